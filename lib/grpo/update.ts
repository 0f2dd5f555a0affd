/**
 * One optimizer step: streams of (rollout, advantage) to a new adapter and TRL's metrics.
 *
 * Each stream is a mean of its own; an adapter that trains on several (self-refinement) adds their losses.
 * Rows whose advantage is 0 have no gradient when beta is 0 and are not run backward; they still count in the
 * loss's denominators, as in TRL. Left out: how rewards were made, files.
 */
import type { Adapter } from '../model/index.js';
import type { Rollout } from '../records.js';
import type { Policy } from '../rollouts/policy.js';
import { type Pool, shardsOf } from '../tensors/pool.js';
import { type AdamWState, clipGradNorm, type NamedArrays, scheduleFactor, updateAdamW } from './adamw.js';
import type { GrpoConfig } from './config.js';
import { GRADIENT, type GradientSums, type LossRow } from './gradient.js';
import { tokenWeights } from './loss.js';

/** What one stream hands to the update. */
export interface StreamBatch {
  readonly rollouts: readonly Rollout[];
  readonly advantages: readonly number[];
}

/** An adapter in training: its weights and its optimizer's moments. Changed in place by `updateAdapter`. */
export interface Trainee {
  readonly adapter: Adapter;
  readonly optimizer: AdamWState;
}

/** TRL's names; means over the updates. */
export interface UpdateMetrics {
  readonly loss: number;
  readonly grad_norm: number;
  readonly learning_rate: number;
  /** Mean per token over the rows that were trained on. */
  readonly entropy: number;
  readonly kl: number;
  readonly 'clip_ratio/low_mean': number;
  readonly 'clip_ratio/high_mean': number;
  readonly 'clip_ratio/region_mean': number;
}

/** The rows of one stream with their weights; truncated ones leave loss and denominator when masked. */
export function lossRows(batch: StreamBatch, config: GrpoConfig): LossRow[] {
  const { rollouts, advantages } = batch;
  if (rollouts.length !== advantages.length)
    throw new Error(`${rollouts.length} rollouts and ${advantages.length} advantages`);
  const masked = (r: Rollout) => config.maskTruncatedCompletions && r.finishReason === 'length';
  const lengths = rollouts.map((r) => (masked(r) ? 0 : r.completionIds.length));
  const weights = tokenWeights(config.lossType, lengths, config.maxCompletionLength);
  return rollouts
    .map((r, i) => ({
      promptIds: r.promptIds,
      completionIds: r.completionIds,
      oldLogProbs: r.logProbs,
      advantage: advantages[i]!,
      weight: weights[i]!,
      ...(r.memory ? { memory: r.memory } : {}),
    }))
    .filter((row, i) => lengths[i]! > 0 && (row.advantage !== 0 || config.beta > 0));
}

/** Sums of the loss and its gradient over all rows, in micro-batches of like length on the pool. */
export async function accumulate(
  pool: Pool,
  policy: Policy,
  rows: readonly LossRow[],
  config: GrpoConfig,
): Promise<GradientSums> {
  const length = (row: LossRow) => row.promptIds.length + row.completionIds.length;
  const sorted = [...rows].sort((a, b) => length(b) - length(a)); // stable: long ones first, like with like
  const options = {
    epsilon: config.epsilon,
    epsilonHigh: config.epsilonHigh ?? config.epsilon,
    beta: config.beta,
    temperature: config.temperature,
    gradientCheckpointing: config.gradientCheckpointing,
  };
  const shards = shardsOf(sorted, config.perDeviceTrainBatchSize).map((some) => ({
    policy,
    rows: some,
    options,
  }));
  return addUp(await pool.map(GRADIENT, shards));
}

/**
 * Trains one adapter on its streams: `numIterations` updates, each one AdamW step at the scheduled rate. Where no
 * row has anything to teach nothing changes, the moments included (torch would move on along the old momentum).
 * @param step 0-based optimizer step of the run, `maxSteps` its length (for the schedule)
 */
export async function updateAdapter(
  pool: Pool,
  base: string,
  trainee: Trainee,
  streams: readonly StreamBatch[],
  config: GrpoConfig,
  step: number,
  maxSteps: number,
): Promise<UpdateMetrics> {
  const { adapter, optimizer } = trainee;
  const rows = streams.flatMap((batch) => lossRows(batch, config));
  const rate = config.learningRate * scheduleFactor(step, { ...config, maxSteps });
  const updates: UpdateMetrics[] = [];
  for (let iteration = 0; iteration < config.numIterations; iteration++) {
    const sums = await accumulate(pool, { base, adapter }, rows, config);
    const params = paramsOf(adapter);
    const grads = rows.length > 0 ? sums.grads : zerosLike(params);
    const gradNorm = clipGradNorm(grads, config.maxGradNorm);
    if (rows.length > 0) updateAdamW(params, grads, optimizer, { ...config, learningRate: rate });
    const perToken = (sum: number) => sum / Math.max(1, sums.tokens);
    updates.push({
      loss: sums.loss,
      grad_norm: gradNorm,
      learning_rate: rate,
      entropy: perToken(sums.entropy),
      kl: perToken(sums.kl),
      'clip_ratio/low_mean': perToken(sums.clippedLow),
      'clip_ratio/high_mean': perToken(sums.clippedHigh),
      'clip_ratio/region_mean': perToken(sums.clippedLow + sums.clippedHigh),
    });
  }
  const names = Object.keys(updates[0]!) as (keyof UpdateMetrics)[];
  const mean = (name: keyof UpdateMetrics) => updates.reduce((sum, m) => sum + m[name], 0) / updates.length;
  return Object.fromEntries(names.map((name) => [name, mean(name)])) as Record<keyof UpdateMetrics, number>;
}

/** The adapter's arrays by name, shared with it: the optimizer writes into the adapter. */
export function paramsOf(adapter: Adapter): NamedArrays {
  return Object.fromEntries(Object.entries(adapter.weights).map(([name, tensor]) => [name, tensor.data]));
}

function zerosLike(params: NamedArrays): NamedArrays {
  return Object.fromEntries(Object.entries(params).map(([name, p]) => [name, new Float32Array(p.length)]));
}

function addUp(parts: readonly GradientSums[]): GradientSums {
  const grads: NamedArrays = {};
  const total = { loss: 0, tokens: 0, entropy: 0, clippedLow: 0, clippedHigh: 0, kl: 0 };
  for (const part of parts) {
    for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += part[key];
    for (const [name, grad] of Object.entries(part.grads)) {
      const sum = grads[name];
      if (!sum) grads[name] = grad.slice();
      else for (let i = 0; i < grad.length; i++) sum[i] = sum[i]! + grad[i]!;
    }
  }
  return { ...total, grads };
}
