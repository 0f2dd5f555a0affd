/**
 * Evaluation: a run's deployments on validation and held-out problems, one line each in eval.jsonl, and what the table
 * says of it.
 *
 * A cascade's direction is chosen on the validation split and reported on the held-out one; the paper's own way (the
 * better on the held-out set) is kept beside it as `bestOnHeldout`. Left out: the record itself and what can be read
 * off it (evaluation.ts), intervals (analysis/).
 */
import { join } from 'node:path';
import type { Adapters, World } from '../agon/attempt.js';
import { deploy } from '../agon/cascade.js';
import { shownOf } from '../agon/exchange.js';
import { type Deployment, deploymentName, type Method } from '../agon/methods.js';
import { mean, median } from '../numbers.js';
import type { Attempt, Problem } from '../records.js';
import type { EvalConfig, RunConfig } from './config.js';
import {
  copiedShare,
  countCorrect,
  draftStage,
  type EvalKey,
  type Evaluation,
  type EvaluationQuery,
  EvaluationStore,
  finalStage,
  flagsOf,
  type Stage,
  stageOf,
} from './evaluation.js';
import { Interrupted } from './interrupted.js';
import type { MethodResult } from './result.js';
import type { Metrics } from './store.js';

export interface EvalOptions {
  readonly onProgress?: (done: number, total: number, what: string) => void;
  /** Aborting it stops before the next deployment. */
  readonly signal?: AbortSignal;
  /** Steps the adapters were trained for, where that is not the whole run. */
  readonly step?: number;
}

/** What is evaluated: a method's policies, and how they are asked. */
export interface Subject {
  readonly world: World;
  /** The run's folder (for untrained methods, the base's). */
  readonly folder: string;
  readonly method: Method;
  readonly adapters: Adapters;
  readonly config: RunConfig;
  readonly evaluation: EvalConfig;
}

/**
 * Evaluates one deployment on one split; what eval.jsonl already holds is read, not made.
 * @param sample which of several samples per problem
 */
export async function evaluateDeployment(
  { world, folder, method, adapters, config, evaluation }: Subject,
  deployment: Deployment,
  split: 'validation' | 'heldout',
  options: EvalOptions = {},
  sample = 0,
): Promise<Evaluation> {
  const problems = evaluationProblems(world, config, evaluation, split);
  const { grpo, seed, generationBatchSize } = config;
  const name = deploymentName(deployment);
  const query: EvaluationQuery = {
    eval: evalKey(config, evaluation),
    deployment: name,
    split,
    ...(options.step === undefined ? {} : { step: options.step }),
    sample,
    problems: problems.map((problem) => problem.id),
  };
  const store = new EvaluationStore(join(folder, 'eval.jsonl'));
  const found = store.find(query);
  if (found) return found;
  if (options.signal?.aborted) throw new Interrupted(config.maxSteps);
  const start = performance.now();
  const shows = method.training?.shows ?? 'summary';
  const { temperature, topP } = evaluation;
  const sampling = { temperature, topP, generationBatchSize, maxCompletionLength: grpo.maxCompletionLength };
  const total = problems.length * deployment.length;
  const names = sample === 0 ? [seed, split] : [seed, split, 'sample', sample];
  const finals = await deploy(world, adapters, deployment, shows, problems, sampling, names, (done) =>
    options.onProgress?.(done, total, `${method.name} ${name} ${split}`),
  );
  const seconds = Math.round(performance.now() - start) / 1000;
  const shown = (a: Attempt) => a.rival && shownOf(a.rival, world.task, shows);
  const stages = deployment.length > 1 ? [finals.map((a) => a.rival!), finals] : [finals];
  const made = { ...query, stages: stages.map((attempts) => stageOf(world.task, attempts, shown)), seconds };
  store.add(made);
  return made;
}

/** What an evaluation of a run follows from. */
export function evalKey(config: RunConfig, evaluation: EvalConfig): EvalKey {
  const { temperature, topP } = evaluation;
  const { seed, grpo } = config;
  return { temperature, topP, cap: grpo.maxCompletionLength, seed, ...difficulty(config, evaluation) };
}

/** A method's choice among its deployments, made twice. */
export interface ChosenEvaluations {
  /** On the held-out problems, the deployment that is better on the validation split. */
  readonly chosen: Evaluation;
  /** The same deployment on the validation split. */
  readonly validation: Evaluation;
  /** The paper's way: the better on the held-out problems themselves. */
  readonly bestOnHeldout: Evaluation;
}

/** @param heldout, @param validation one evaluation per deployment, in the same order; the first of equals is taken */
export function chooseEvaluations(
  heldout: readonly Evaluation[],
  validation: readonly Evaluation[],
): ChosenEvaluations {
  const choice = best(validation);
  return {
    chosen: heldout[choice]!,
    validation: validation[choice]!,
    bestOnHeldout: heldout[best(heldout)]!,
  };
}

/** Evaluates a method's deployments and chooses among them, twice: see the file's head. */
export async function evaluateMethod(
  subject: Subject,
  options: EvalOptions = {},
): Promise<ChosenEvaluations> {
  const [only, ...others] = subject.method.deployments;
  const on = async (split: 'validation' | 'heldout') => {
    const made: Evaluation[] = [];
    for (const deployment of subject.method.deployments)
      made.push(await evaluateDeployment(subject, deployment, split, options));
    return made;
  };
  const heldout = await on('heldout');
  // A method with one deployment has no choice to make, but its validation result is what tuning looks at.
  const validation = await on('validation');
  if (only?.length === 1 && others.length === 0)
    for (let sample = 1; sample < subject.evaluation.samples; sample++)
      await evaluateDeployment(subject, only, 'heldout', options, sample);
  return chooseEvaluations(heldout, validation);
}

/** The problems of a split that every method of an experiment answers. @throws when there are too few */
export function evaluationProblems(
  world: Pick<World, 'task'>,
  config: Pick<RunConfig, 'minDifficulty' | 'maxDifficulty'>,
  evaluation: EvalConfig,
  split: 'validation' | 'heldout',
): Problem[] {
  const count = split === 'heldout' ? evaluation.problems : evaluation.validationProblems;
  return world.task.problems({ split, count, seed: 0, ...difficulty(config, evaluation) });
}

/** The table's record of an evaluation. */
export function methodResult(
  method: Pick<Method, 'name' | 'deployments'>,
  evaluation: Evaluation,
  {
    metrics,
    ...run
  }: Pick<MethodResult, 'seed' | 'runId' | 'backend'> & { readonly metrics: readonly Metrics[] },
): MethodResult {
  const final = finalStage(evaluation);
  const draft = draftStage(evaluation);
  const total = evaluation.problems.length;
  const finalTokens = mean(final.completionTokens);
  const draftTokens = draft ? mean(draft.completionTokens) : 0;
  const correct = flagsOf(final.correct);
  const share = (right: boolean) => {
    const own = draft && flagsOf(draft.correct).flatMap((was, i) => (was === right ? [correct[i]!] : []));
    return own && own.length > 0 ? own.filter(Boolean).length / own.length : undefined;
  };
  const [keep, convert, copied] = [share(true), share(false), copiedShare(evaluation)];
  return {
    method: method.name,
    ...run,
    steps: metrics.length,
    ...(metrics.length > 0
      ? {
          secondsPerStep: median(metrics.map((m) => m.step_time!)),
          trainingTokens: metrics.at(-1)!.num_tokens!,
        }
      : {}),
    correct: countCorrect(evaluation),
    total,
    draftTokens,
    finalTokens,
    totalTokens: draftTokens + finalTokens,
    promptTokens: evaluation.stages.reduce((sum, stage) => sum + mean(stage.promptTokens), 0),
    secondsPerProblem: evaluation.seconds / total,
    direction: method.deployments.length > 1 ? evaluation.deployment : '-',
    ...(draft ? { draftCorrect: flagsOf(draft.correct).filter(Boolean).length } : {}),
    ...(keep === undefined ? {} : { keep }),
    ...(convert === undefined ? {} : { convert }),
    ...(copied === undefined ? {} : { copied }),
    usefulPer100: per100(final, final.useful),
    repeatedPer100: per100(final, final.repeated),
    wrongPer100: per100(final, final.wrong),
  };
}

/** Counts per 100 generated tokens, over all problems. */
export function per100({ completionTokens }: Stage, column: readonly number[]): number {
  return (100 * mean(column)) / mean(completionTokens);
}

function best(evaluations: readonly Evaluation[]): number {
  const scores = evaluations.map((evaluation) => countCorrect(evaluation));
  return scores.indexOf(Math.max(...scores));
}

/** Difficulty of the problems: the evaluation's own bounds where it has them (transfer), else the training's. */
function difficulty(
  config: Pick<RunConfig, 'minDifficulty' | 'maxDifficulty'>,
  { minDifficulty, maxDifficulty }: Pick<EvalConfig, 'minDifficulty' | 'maxDifficulty'>,
) {
  return {
    minDifficulty: minDifficulty ?? config.minDifficulty,
    maxDifficulty: maxDifficulty ?? config.maxDifficulty,
  };
}
