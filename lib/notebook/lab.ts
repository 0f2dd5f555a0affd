/**
 * The lab: methods of the table and rows of the user's own, trained side by side at a small budget with a live display,
 * judged on the same held-out problems, and shown as a table with intervals. Everything is kept: the same call reads
 * what is there, an interrupted one goes on, and a saved lab is read by its name without training.
 *
 * Left out: what an own row may be (experiments/own.ts), and more than a look: studies (experiments/studies.ts) have
 * more seeds.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Adapters, World } from '../agon/attempt.js';
import type { Deployment, TrainingRow } from '../agon/methods.js';
import { BASE_NAMES, BASES, baseFolder } from '../experiments/bases.js';
import {
  type EvalConfig,
  type Experiment,
  experimentSchema,
  parseExperiment,
  preset,
  type RunConfig,
} from '../experiments/config.js';
import { evaluateMethod, evaluationProblems } from '../experiments/evaluate.js';
import { Interrupted } from '../experiments/interrupted.js';
import { type Entrant, entrant, type OwnRow, ownParts } from '../experiments/own.js';
import { checkPlan } from '../experiments/plan/check.js';
import { planWorld } from '../experiments/plan/plan.js';
import { trainSteps } from '../experiments/run.js';
import { hashBase, openRun, RESULTS_FOLDER, type RunFolder, readMetrics } from '../experiments/store.js';
import { type ArmResult, readArm } from '../experiments/study.js';
import { readJson, writeJson } from '../files.js';
import { currentBackend } from '../tensors/backend.js';
import { showTable } from './display.js';
import { interruptible } from './interruptible.js';
import { labTable } from './lab-table.js';
import { liveTraining } from './live.js';

type Settings = Omit<RunConfig, 'seed' | 'task' | 'maxSteps'>;

export interface LabOptions {
  /** What it is saved under, of letters, digits, `.`, `-` and `_`; another lab of this name is replaced, its runs stay. */
  readonly name: string;
  /** Names of the table of methods, and rows of your own. The first is what the others are compared with. */
  readonly methods: readonly (string | OwnRow)[];
  /** Optimizer steps; default 20. */
  readonly steps?: number;
  /** Training seeds; default 0 alone. */
  readonly seeds?: readonly number[];
  /** What differs from the settings of the preset `quick`. */
  readonly run?: Partial<Omit<Settings, 'grpo' | 'lora'>> & {
    readonly grpo?: Partial<Settings['grpo']>;
    readonly lora?: Partial<Settings['lora']>;
  };
  /** What differs from 300 held-out and 100 validation problems and from the settings of the preset `quick`. */
  readonly eval?: Partial<EvalConfig>;
  /** Where runs lie, in its folder `runs`, and labs, in `labs`; default the repository's `results`. */
  readonly resultsFolder?: string;
  /** Trains and evaluates everything anew. */
  readonly fresh?: boolean;
}

/** A finished lab: one arm per method and seed. */
export interface LabResults {
  readonly name: string;
  readonly arms: readonly ArmResult[];
}

interface LabRun extends Entrant {
  /** The name of its line in the display. */
  readonly label: string;
  readonly seed: number;
  readonly run: RunFolder;
}

const DEFAULT_STEPS = 20;
const PROBLEMS = { problems: 300, validationProblems: 100 };

/**
 * Trains what is not there yet, evaluates it, saves it, and shows the table.
 * @throws Interrupted when the kernel was interrupted: everything is saved, and the same call goes on
 * @throws before anything is written, naming what does not fit: a row, a setting, or the machine's memory
 */
export async function lab(world: World, options: LabOptions): Promise<LabResults> {
  const { name, resultsFolder = RESULTS_FOLDER, fresh = false } = options;
  if (!/^[\w.-]+$/.test(name))
    throw new Error(`a lab's name may have letters, digits, ., - and _ only, found '${name}'`);
  const entrants = options.methods.map((row) => entrant(world, row));
  const experiment = labExperiment(world, options, entrants);
  for (const split of ['validation', 'heldout'] as const)
    evaluationProblems(world, experiment.run, experiment.eval, split);
  const plan = planWorld(world, experiment, { resultsFolder });
  checkPlan(plan, plan.machine);
  const backend = currentBackend().name;
  const baseHash = hashBase(world.base);
  const identities = experiment.seeds.flatMap((seed) =>
    entrants.map((one) => {
      const config = { ...experiment.run, seed };
      const training = one.method.training ?? null;
      const parts = ownParts(one, config, experiment.eval);
      return { one, seed, identity: { training, config, baseHash, backend, ...parts } };
    }),
  );
  const runs = identities.map(({ one, seed, identity }): LabRun => {
    const label = experiment.seeds.length > 1 ? `${one.method.name}, seed ${seed}` : one.method.name;
    return { ...one, seed, label, run: openRun(identity, resultsFolder, fresh) };
  });
  await interruptible((signal) => trainAndEvaluate(runs, experiment.eval, signal));
  writeJson(labPath(name, resultsFolder), {
    experiment,
    methods: entrants.map(({ method }) => ({ ...method, training: method.training ?? null })),
    arms: runs.map(({ method, seed, run }) => ({ method: method.name, seed, backend, runId: run.id })),
  } satisfies z.input<typeof savedSchema>);
  const results = readLab(name, resultsFolder);
  showTable(labTable(results));
  return results;
}

/** The settings as an experiment of the table's methods that the rows are based on. */
function labExperiment(world: World, options: LabOptions, entrants: readonly Entrant[]): Experiment {
  const { name, steps = DEFAULT_STEPS, seeds = [0], run: { grpo, lora, ...run } = {} } = options;
  const names = entrants.map(({ method }) => method.name);
  const twice = names.find((method, i) => names.indexOf(method) < i);
  if (twice !== undefined) throw new Error(`lab ${name}: two methods are named '${twice}'`);
  const base = BASE_NAMES.find((known) => baseFolder(known) === world.base);
  if (!base)
    throw new Error(`lab ${name}: the base ${world.base} is none of data/: ${BASE_NAMES.join(', ')}`);
  const quick = preset('quick');
  return parseExperiment(
    {
      name,
      base,
      methods: [...new Set(entrants.map(({ basedOn }) => basedOn))],
      seeds,
      run: {
        ...quick.run,
        ...run,
        task: BASES[base].task,
        maxSteps: steps,
        grpo: { ...quick.run.grpo, ...grpo },
        lora: { ...quick.run.lora, ...lora },
      },
      eval: { ...quick.eval, ...PROBLEMS, ...options.eval },
    },
    `lab ${name}`,
  );
}

async function trainAndEvaluate(
  runs: readonly LabRun[],
  evaluation: EvalConfig,
  signal: AbortSignal,
): Promise<void> {
  // Methods that share a training row share the run.
  const trained = runs.filter(
    ({ method, run }, i) => method.training && runs.findIndex((other) => other.run.id === run.id) === i,
  );
  const live = liveTraining(
    Object.fromEntries(trained.map(({ label, run }) => [label, run.identity.config.maxSteps])),
    { before: Object.fromEntries(trained.map(({ label, run }) => [label, readMetrics(run)])) },
  );
  let ended = 'stopped';
  try {
    const adapters = await trainInTurn(trained, signal, live.step);
    for (const { method, world, run } of runs)
      await evaluateMethod(
        {
          world,
          folder: run.path,
          method,
          adapters: adapters.get(run.id) ?? {},
          config: run.identity.config,
          evaluation,
        },
        { signal, onProgress: (done, total, what) => live.note(`judging ${what}: ${done} of ${total}`) },
      );
    ended = 'trained and judged';
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    throw new Interrupted(trained.reduce((sum, { run }) => sum + readMetrics(run).length, 0));
  } finally {
    await live.stop(ended);
  }
}

/** Trains runs step by step in turn, so that they can be watched side by side. @returns adapters by the run's id */
async function trainInTurn(
  runs: readonly LabRun[],
  signal: AbortSignal,
  onStep: (label: string, metrics: ReturnType<typeof readMetrics>[number]) => void,
): Promise<Map<string, Adapters>> {
  const adapters = new Map<string, Adapters>();
  let open = runs.map(({ label, world, run, rewards }) => ({
    id: run.id,
    steps: trainSteps(world, run, { ...rewards, signal, onStep: (_, metrics) => onStep(label, metrics) }),
  }));
  try {
    while (open.length > 0) {
      const going = [];
      for (const one of open) {
        const next = await one.steps.next();
        if (next.done) adapters.set(one.id, next.value.adapters);
        else going.push(one);
      }
      open = going;
    }
  } catch (error) {
    // The others stand between two steps; this lets their folders go.
    await Promise.allSettled(open.map(({ steps }) => steps.throw(error)));
    throw error;
  }
  return adapters;
}

const savedSchema = z.strictObject({
  /** `methods` are those of the table that the lab's methods are based on. */
  experiment: experimentSchema,
  methods: z.array(
    z.strictObject({
      name: z.string(),
      training: z.custom<TrainingRow>((value) => typeof value === 'object' && value !== null).nullable(),
      deployments: z.custom<readonly Deployment[]>((value) => Array.isArray(value) && value.length > 0),
    }),
  ),
  arms: z.array(
    z.strictObject({
      method: z.string(),
      seed: z.int(),
      backend: z.string(),
      runId: z.string().regex(/^[\w.-]+$/),
    }),
  ),
});

function labPath(name: string, resultsFolder: string): string {
  return join(resultsFolder, 'labs', `${name}.json`);
}

/** Names of the labs that are saved. */
export function savedLabs(resultsFolder: string = RESULTS_FOLDER): string[] {
  const folder = join(resultsFolder, 'labs');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

/**
 * A saved lab, from the files of its runs: nothing is trained.
 * @throws naming the labs there are, or the run that is not there whole
 */
export function readLab(name: string, resultsFolder: string = RESULTS_FOLDER): LabResults {
  const path = labPath(name, resultsFolder);
  if (!existsSync(path))
    throw new Error(`no lab '${name}' is saved: there are ${savedLabs(resultsFolder).join(', ') || 'none'}`);
  const { experiment, methods, arms } = readJson(path, savedSchema);
  return {
    name,
    arms: arms.map(({ method: of, ...run }) => {
      const found = methods.find((method) => method.name === of);
      const folder = join(resultsFolder, 'runs', run.runId);
      const method = found && { ...found, training: found.training ?? undefined };
      const arm = method && readArm(experiment, method, run, folder);
      if (!arm) throw new Error(`${path}: the run ${run.runId} of '${of}' is not in ${folder} whole`);
      return arm;
    }),
  };
}
