/**
 * The plan of an experiment: what it will need, about how long it will take, and what does not fit. From configs
 * alone, so that a model can be planned whose weights are not here; with an opened world the longest prompt, the
 * lengths and the rate come from the real thing.
 *
 *   const plan = planRun(QWEN3['0.6b'], preset('quick'), { backend: 'tfjs-node', workers: 0, promptTokens: 512 });
 *
 * Left out: showing it (notebook/plan.ts).
 */
import { z } from 'zod';
import { promptText, type World } from '../../agon/attempt.js';
import { METHODS } from '../../agon/methods.js';
import { check } from '../../files.js';
import type { ModelConfig } from '../../model/index.js';
import { sharedModel } from '../../rollouts/policy.js';
import { BACKEND_NAMES, currentBackend } from '../../tensors/backend.js';
import { type Experiment, experimentSchema } from '../config.js';
import { evaluationProblems } from '../evaluate.js';
import { trainingProblems } from '../run.js';
import { RESULTS_FOLDER } from '../store.js';
import { type Misfit, misfits } from './check.js';
import { type DiskPart, planDisk } from './disk.js';
import { type Machine, thisMachine } from './machine.js';
import { type MemoryPlan, type PlanSetup, planMemory } from './memory.js';
import { type Lengths, measureRate, planTime, type Rate, type TimePlan } from './time.js';
import { trainedRows } from './work.js';

/** What a plan says before anything runs. */
export interface Plan {
  readonly experiment: Experiment;
  readonly memory: MemoryPlan;
  readonly disk: readonly DiskPart[];
  readonly machine: Machine;
  /** What does not fit on the machine. */
  readonly misfits: readonly Misfit[];
  /** Where a rate is known. */
  readonly time?: TimePlan;
}

export interface PlanOptions extends Omit<PlanSetup, 'adapters'> {
  /** Default: this one. */
  readonly machine?: Machine;
  readonly rate?: Rate;
  /** Mean lengths of a rollout; default the longest prompt and half the longest completion. */
  readonly lengths?: Lengths;
  /** Where the results will be written. */
  readonly resultsFolder?: string;
}

const setupSchema = z.strictObject({
  backend: z.enum(BACKEND_NAMES),
  workers: z.int().min(0).max(64),
  promptTokens: z.int().min(1),
});
const pick = ({ backend, workers, promptTokens }: PlanOptions) => ({ backend, workers, promptTokens });

/** Plans an experiment on a model that may not be here. @throws naming the option that cannot be, and when prompts leave no room in the model's context */
export function planRun(model: ModelConfig, experiment: Experiment, options: PlanOptions): Plan {
  const { backend, workers, promptTokens } = check(setupSchema, pick(options), 'the options of the plan');
  const { rate } = options;
  const { run } = check(experimentSchema, experiment, 'the experiment');
  const adapters = Math.max(0, ...trainedRows(experiment).map(({ adapters }) => adapters.length));
  const memory = planMemory(model, run, { backend, workers, promptTokens, adapters }, experiment.eval);
  const disk = planDisk(model, experiment);
  const machine = options.machine ?? thisMachine(backend, options.resultsFolder ?? RESULTS_FOLDER);
  const lengths = options.lengths ?? {
    prompt: promptTokens,
    completion: Math.round(run.grpo.maxCompletionLength / 2),
  };
  return {
    experiment,
    memory,
    disk,
    machine,
    misfits: misfits(memory, disk, machine),
    ...(rate ? { time: planTime(model, experiment, rate, lengths) } : {}),
  };
}

/** Plans an experiment in an opened world, without computing anything. */
export function planWorld(
  world: World,
  experiment: Experiment,
  options: Pick<PlanOptions, 'machine' | 'rate' | 'lengths' | 'resultsFolder'> = {},
): Plan {
  return planRun(sharedModel(world.base).config, experiment, {
    backend: currentBackend().name,
    workers: world.pool.workers,
    promptTokens: longestPrompt(world, experiment),
    ...options,
  });
}

/** As `planWorld`, with the time at a rate that is measured for a few seconds – where the experiment fits. */
export async function planExperiment(
  world: World,
  experiment: Experiment,
  options: Pick<PlanOptions, 'machine' | 'resultsFolder'> = {},
): Promise<Plan> {
  const plan = planWorld(world, experiment, options);
  return plan.misfits.length > 0
    ? plan
    : planWorld(world, experiment, { ...options, ...(await measureRate(world, experiment)) });
}

/** Problems whose prompts are looked at: the longest of so many stands for all. */
const PROMPTS = 1000;
/** A summary shown to a rival is taken to have at most so many tokens (an assumption: it may be as long as the cap). */
const SUMMARY_TOKENS = 512;

function longestPrompt(world: World, { run, eval: evaluation, methods }: Experiment): number {
  const maxSteps = Math.min(run.maxSteps, Math.ceil(PROMPTS / run.problemsPerStep));
  const problems = [
    ...trainingProblems(world, { ...run, seed: 0, maxSteps }),
    ...evaluationProblems(world, run, evaluation, 'heldout').slice(0, PROMPTS),
  ];
  const plain = problems.map(
    (problem) => world.tokenizer.encode(promptText(world, 'solo', { problem })).length,
  );
  const reads = METHODS.some(
    (m) =>
      methods.includes(m.name) &&
      (m.training?.exchange === 'paired' || m.deployments.some((deployment) => deployment.length > 1)),
  );
  const shown = reads ? Math.min(SUMMARY_TOKENS, run.grpo.maxCompletionLength) : 0;
  // The context leaves room for one token at least: what would not fit is an error of its own, when it happens.
  return Math.min(Math.max(...plain) + shown, sharedModel(world.base).config.max_position_embeddings - 1);
}
