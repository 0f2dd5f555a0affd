/**
 * One training run: sample, judge, update, log, checkpoint – step after step, resumable at any of them.
 *
 * All chance is drawn from streams named by (seed, step, ...), so a checkpoint is weights, moments and a step
 * number. Asking for a finished run reads it. Left out: evaluation (evaluate.ts) and display; progress goes to
 * a callback.
 */

import { relative } from 'node:path';
import type { Adapters, World } from '../agon/attempt.js';
import { isLatent } from '../agon/exchange.js';
import { METHODS, type TrainingRow } from '../agon/methods.js';
import { type Stream, sampleStep } from '../agon/step.js';
import { ROOT } from '../files.js';
import { initAdamW } from '../grpo/adamw.js';
import { paramsOf, type Trainee, type UpdateMetrics, updateAdapter } from '../grpo/update.js';
import { gateValues, withGates } from '../latent/index.js';
import { initAdapter } from '../model/index.js';
import { mean } from '../numbers.js';
import { stream } from '../random.js';
import type { Attempt, Problem, Reward } from '../records.js';
import { sharedModel } from '../rollouts/policy.js';
import type { RunConfig } from './config.js';
import { Interrupted } from './interrupted.js';
import {
  appendMetrics,
  hasAdapters,
  loadAdapters,
  loadCheckpoint,
  lockRun,
  type Metrics,
  type RunFolder,
  readMetrics,
  saveAdapters,
  saveCheckpoint,
  truncateMetrics,
} from './store.js';

export interface TrainOptions {
  readonly onStep?: (step: number, metrics: Metrics) => void;
  /** Aborting it stops the run after the step it is in. */
  readonly signal?: AbortSignal;
  /** Also saves the adapters after every so many steps (TRL's `save_steps`), for what is measured over training. */
  readonly saveSteps?: number;
  /** Rewards of the user's own; such a run needs a row with a name of its own. */
  readonly challengeReward?: Reward;
  readonly draftReward?: Reward;
}

export interface TrainedRun {
  readonly adapters: Adapters;
  readonly metrics: readonly Metrics[];
}

/** New adapters for a row: A as standard LoRA, B with a small random up-matrix (METHOD, "Two policies"). */
export function initTrainees(base: string, row: TrainingRow, config: RunConfig): Record<string, Trainee> {
  const model = sharedModel(base);
  const { initNoise, ...lora } = config.lora;
  return Object.fromEntries(
    row.adapters.map((name) => {
      const plain = initAdapter(model, lora, stream(config.seed, 'lora', name), name, initNoise);
      const adapter = isLatent(row.shows) ? withGates(plain, model.config) : plain;
      return [name, { adapter, optimizer: initAdamW(paramsOf(adapter)) }];
    }),
  );
}

/** The problems of step t: one pass over the training split, the same for every method of a seed. */
export function trainingProblems(world: Pick<World, 'task'>, config: RunConfig): Problem[] {
  const { seed, minDifficulty, maxDifficulty, maxSteps, problemsPerStep } = config;
  return world.task.problems({
    split: 'train',
    count: maxSteps * problemsPerStep,
    seed,
    minDifficulty,
    maxDifficulty,
  });
}

/**
 * Trains a run to its last step, from its last checkpoint.
 * @throws Interrupted when the signal was aborted; what was finished is saved
 */
export async function trainRun(
  world: World,
  run: RunFolder,
  options: TrainOptions = {},
): Promise<TrainedRun> {
  const steps = trainSteps(world, run, options);
  for (;;) {
    const next = await steps.next();
    if (next.done) return next.value;
  }
}

/**
 * The same, one step each time it is asked, so that several runs can go side by side: yields the number of finished
 * steps and returns the trained run. Whoever does not go on to its end has to abort the signal and ask once more.
 */
export async function* trainSteps(
  world: World,
  run: RunFolder,
  options: TrainOptions = {},
): AsyncGenerator<number, TrainedRun> {
  const { training: row } = run.identity;
  if (!row) throw new Error(`run ${run.id} has no training row: the base is not trained`);
  for (const which of ['challengeReward', 'draftReward'] as const) {
    const [own, opened] = [options[which], run.identity[which]];
    if (own && METHODS.some((method) => method.training?.name === row.name))
      throw new Error(
        `run ${run.id} belongs to the table's row '${row.name}', whose ${which} is '${row[which]}': ` +
          `a reward of your own needs a row with another name, such as { ...row, name: 'my-reward' }`,
      );
    if (own?.toString() !== opened)
      throw new Error(
        `run ${run.id} was opened for ${opened ? `another ${which}` : `the ${which} of its row`}: ` +
          `give openRun the identity with ${which}: yourReward.toString()`,
      );
  }
  const unlock = lockRun(run);
  try {
    return yield* trainLocked(world, run, row, options);
  } finally {
    unlock();
  }
}

async function* trainLocked(
  world: World,
  run: RunFolder,
  row: TrainingRow,
  options: TrainOptions,
): AsyncGenerator<number, TrainedRun> {
  const { config } = run.identity;
  const trainees = initTrainees(world.base, row, config);
  const finished = readMetrics(run);
  if (finished.length === config.maxSteps && hasAdapters(run, trainees))
    return { adapters: loadAdapters(run, row.adapters, sharedModel(world.base).config), metrics: finished };
  const adapters: Adapters = Object.fromEntries(
    Object.entries(trainees).map(([name, t]) => [name, t.adapter]),
  );
  const first = loadCheckpoint(run, trainees);
  const before = truncateMetrics(run, first);
  const problems = trainingProblems(world, config);
  let tokens = before.at(-1)?.num_tokens ?? 0;
  for (let step = first; step < config.maxSteps; step++) {
    if (options.signal?.aborted) throw new Interrupted(step);
    const batch = problems.slice(step * config.problemsPerStep, (step + 1) * config.problemsPerStep);
    const { challengeReward, draftReward } = options;
    const metrics = await trainStep(world, row, config, trainees, batch, step, challengeReward, draftReward);
    tokens += metrics.num_tokens!;
    const line = { ...metrics, num_tokens: tokens };
    appendMetrics(run, line);
    if (options.saveSteps && (step + 1) % options.saveSteps === 0)
      saveAdapters(run, trainees, relative(ROOT, world.base), step + 1);
    saveCheckpoint(run, step + 1, trainees);
    options.onStep?.(step + 1, line);
    yield step + 1;
  }
  saveAdapters(run, trainees, relative(ROOT, world.base));
  return { adapters, metrics: readMetrics(run) };
}

/** One step: streams, then each adapter's update on its own. Changes the trainees; returns the step's metrics. */
export async function trainStep(
  world: World,
  row: TrainingRow,
  config: RunConfig,
  trainees: Record<string, Trainee>,
  problems: readonly Problem[],
  step: number,
  challengeReward?: Reward,
  draftReward?: Reward,
): Promise<Metrics> {
  const start = performance.now();
  const adapters: Adapters = Object.fromEntries(
    Object.entries(trainees).map(([name, t]) => [name, t.adapter]),
  );
  const { grpo, seed, maxSteps } = config;
  const options = {
    ...grpo,
    topP: 1,
    generationBatchSize: config.generationBatchSize,
    seed,
    ...(challengeReward ? { challengeReward } : {}),
    ...(draftReward ? { draftReward } : {}),
  };
  const streams = await sampleStep(world, row, adapters, problems, step, options);
  const sampled = performance.now();
  const updates = await Promise.all(
    Object.entries(trainees).map(async ([name, trainee]) => {
      const own = streams
        .filter((s) => s.adapter === name)
        .map((s) => ({ rollouts: s.attempts.map((a) => a.rollout), advantages: s.advantages }));
      return prefixed(name, await updateAdapter(world.pool, world.base, trainee, own, grpo, step, maxSteps));
    }),
  );
  const end = performance.now();
  return {
    step,
    ...Object.assign({}, ...streams.map((s) => prefixed(s.role, streamMetrics(s)))),
    ...Object.assign({}, ...updates),
    ...Object.assign({}, ...Object.entries(trainees).map(([name, t]) => prefixed(name, gateMetrics(t)))),
    num_tokens: streams.reduce((sum, s) => sum + s.attempts.reduce((n, a) => n + tokensOf(a), 0), 0),
    ...wallClock(start, sampled, end),
  };
}

/** The only metrics that may differ between two runs of the same identity. */
export const WALL_CLOCK_METRICS = ['step_time', 'sample_time', 'update_time'] as const;

function wallClock(start: number, sampled: number, end: number): Metrics {
  const seconds = (ms: number) => Math.round(ms) / 1000;
  return {
    step_time: seconds(end - start),
    sample_time: seconds(sampled - start),
    update_time: seconds(end - sampled),
  };
}

/**
 * TRL's metrics of one stream, and where a rival is known: what was kept and what was converted. A share of
 * nothing (what was kept where no rival was right) is left out, not 0.
 */
export function streamMetrics(s: Stream): Metrics {
  const lengths = s.attempts.map((a) => a.rollout.completionIds.length);
  const share = (attempts: readonly Attempt[], test: (a: Attempt) => boolean) =>
    attempts.filter(test).length / attempts.length;
  const metrics: Metrics = {
    reward: s.reward,
    reward_std: s.rewardStd,
    frac_reward_zero_std: s.fracRewardZeroStd,
    accuracy: share(s.attempts, (a) => a.correct),
    formatted: share(s.attempts, (a) => a.formatted),
    'completions/mean_length': lengths.reduce((a, b) => a + b, 0) / lengths.length,
    'completions/min_length': Math.min(...lengths),
    'completions/max_length': Math.max(...lengths),
    'completions/clipped_ratio': share(s.attempts, (a) => a.rollout.finishReason === 'length'),
  };
  const rivals = s.attempts.filter((a) => a.rival);
  if (rivals.length === 0) return metrics;
  const besideRight = rivals.filter((a) => a.rival!.correct);
  const besideWrong = rivals.filter((a) => !a.rival!.correct);
  const right = rivals.flatMap((a) =>
    a.correct && a.rival!.correct ? [s.advantages[s.attempts.indexOf(a)]!] : [],
  );
  return {
    ...metrics,
    ...(besideRight.length > 0 ? { keep: share(besideRight, (a) => a.correct) } : {}),
    ...(besideWrong.length > 0 ? { convert: share(besideWrong, (a) => a.correct) } : {}),
    // Right beside a right rival: pushed down where others in the group converted (CHECKS, 23).
    ...(right.length > 0
      ? { 'advantage/right_beside_right': right.reduce((a, b) => a + b, 0) / right.length }
      : {}),
  };
}

/** Where an adapter reads its rival's memory: the mean of its gates, and how far they stand open. */
function gateMetrics({ adapter }: Trainee): Metrics {
  const gates = gateValues(adapter);
  if (gates.length === 0) return {};
  return { gate_mean: mean(gates), gate_mean_abs: mean(gates.map(Math.abs)) };
}

/** Tokens of one attempt, prompt included. */
export function tokensOf(attempt: Attempt): number {
  return attempt.rollout.promptIds.length + attempt.rollout.completionIds.length;
}

function prefixed(prefix: string, metrics: Metrics | UpdateMetrics): Metrics {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${prefix}/${name}`, value]));
}
