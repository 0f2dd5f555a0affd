/**
 * One micro-batch: rows of (rollout, advantage, weight) to the gradient of the GRPO loss.
 *
 * Forward, log-probs to the host, `sequenceLoss` there, and back through the model from dL/dlogp. Rows are
 * padded on the right; the log-prob of token t comes from the logits at t - 1, the first completion token's
 * from the last prompt position. Left out: which rows, which weights, and the optimizer (update.ts).
 */
import * as tf from '@tensorflow/tfjs';
import { besideOf, openGates, uploadMemories } from '../latent/index.js';
import {
  checkAdapter,
  checkTokenIds,
  type ForwardOptions,
  forward,
  LATENT_GATE,
  type LoraTensors,
  type Model,
  outputHead,
  uploadAdapter,
} from '../model/index.js';
import type { Memory } from '../records.js';
import { type Policy, sharedModel } from '../rollouts/policy.js';
import { type ScoreOptions, scoreTokens } from '../tensors/logprobs.js';
import type { JobFunction } from '../tensors/pool.js';
import type { NamedArrays } from './adamw.js';
import { type LossOptions, sequenceLoss } from './loss.js';

/** One sequence in the loss. */
export interface LossRow {
  readonly promptIds: readonly number[];
  readonly completionIds: readonly number[];
  readonly oldLogProbs: readonly number[];
  readonly advantage: number;
  /** w_i of `tokenWeights`. */
  readonly weight: number;
  /** What the policy reads beside the prompt, through its adapter's gates (lib/latent). */
  readonly memory?: Memory;
}

type ScoredRow = Pick<LossRow, 'promptIds' | 'completionIds' | 'memory'>;

export interface GradientShard {
  readonly policy: Policy;
  readonly rows: readonly LossRow[];
  readonly options: LossOptions & { readonly temperature: number; readonly gradientCheckpointing?: boolean };
}

/** Sums over the shard: the caller adds shards up, always in the same order. */
export interface GradientSums {
  readonly grads: NamedArrays;
  readonly loss: number;
  readonly tokens: number;
  readonly entropy: number;
  readonly clippedLow: number;
  readonly clippedHigh: number;
  readonly kl: number;
}

export const GRADIENT: JobFunction<GradientShard, GradientSums> = {
  module: import.meta.url,
  name: 'gradientShard',
  call: gradientShard,
};

/** The pool's job: the gradient of one micro-batch with respect to the policy's adapter. */
export async function gradientShard({ policy, rows, options }: GradientShard): Promise<GradientSums> {
  const base = sharedModel(policy.base);
  if (!policy.adapter) throw new Error('a gradient needs an adapter: the base is frozen');
  checkAdapter(base.config, policy.adapter, 'the adapter');
  const reference =
    options.beta > 0 ? tf.tidy(() => hostLogProbs(base, undefined, rows, options.temperature)) : undefined;
  const adapter = uploadAdapter(policy.adapter);
  // Gates that nothing is read through lead to no log-prob: their gradient is zero, and the tape would refuse them.
  const reads = rows.some((row) => row.memory);
  const names = Object.keys(adapter.weights).filter((name) => reads || name !== LATENT_GATE);
  const sums = { loss: 0, tokens: 0, entropy: 0, clippedLow: 0, clippedHigh: 0, kl: 0 };
  try {
    const { value, grads } = tf.valueAndGrads((...weights: tf.Tensor[]) => {
      const given = Object.fromEntries(names.map((n, i) => [n, weights[i] as tf.Tensor2D]));
      const lora: LoraTensors = { ...adapter, weights: given };
      const scored = scoreRows(base, lora, rows, { ...options, differentiable: true });
      const logProbs = scored.logProbs.dataSync() as Float32Array;
      const entropies = scored.entropies.dataSync() as Float32Array;
      const slopes = new Float32Array(logProbs.length);
      rows.forEach((row, i) => {
        const at = scored.start(i);
        const end = at + row.completionIds.length;
        const ref = reference?.slice(at, end);
        const part = sequenceLoss(
          logProbs.subarray(at, end),
          row.oldLogProbs,
          ref,
          row.advantage,
          row.weight,
          options,
        );
        slopes.set(part.dLogProbs, at);
        sums.loss += part.loss;
        sums.tokens += row.completionIds.length;
        sums.clippedLow += part.clippedLow;
        sums.clippedHigh += part.clippedHigh;
        sums.kl += part.kl;
        for (let t = at; t < end; t++) sums.entropy += entropies[t]!;
      });
      // d(sum slope_t logp_t) = dL: the loss itself was computed above, on plain numbers.
      return tf.sum(tf.mul(scored.logProbs, tf.tensor1d(slopes))) as tf.Scalar;
    })(names.map((name) => adapter.weights[name]!));
    value.dispose();
    const named: NamedArrays = Object.fromEntries(
      Object.entries(adapter.weights).map(([name, { size }]) => [name, new Float32Array(size)]),
    );
    grads.forEach((grad, i) => {
      named[names[i]!] = grad.dataSync() as Float32Array;
      grad.dispose();
    });
    return { ...sums, grads: named };
  } finally {
    tf.dispose(Object.values(adapter.weights));
  }
}

/** Log-probs of the rows' completion tokens under a policy, one array per row (nats, at `temperature`). */
export async function scoreLogProbs(
  policy: Policy,
  rows: readonly ScoredRow[],
  temperature: number,
): Promise<Float32Array[]> {
  const base = sharedModel(policy.base);
  if (policy.adapter) checkAdapter(base.config, policy.adapter, 'the adapter');
  return tf.tidy(() => {
    const lora = policy.adapter && uploadAdapter(policy.adapter);
    const flat = hostLogProbs(base, lora, rows, temperature);
    const { start } = layout(rows);
    return rows.map((row, i) => flat.slice(start(i), start(i) + row.completionIds.length));
  });
}

function hostLogProbs(
  model: Model,
  lora: LoraTensors | undefined,
  rows: readonly ScoredRow[],
  temperature: number,
): Float32Array {
  const { logProbs } = scoreRows(model, lora, rows, { temperature, differentiable: false });
  return logProbs.dataSync() as Float32Array;
}

/** Where each row's completion lies in the flat [rows x (width - first)] array of scored positions. */
function layout(rows: readonly ScoredRow[]) {
  const width = Math.max(...rows.map((r) => r.promptIds.length + r.completionIds.length));
  const first = Math.min(...rows.map((r) => r.promptIds.length));
  const scored = width - first;
  return { width, first, scored, start: (i: number) => i * scored + rows[i]!.promptIds.length - first };
}

function scoreRows(
  model: Model,
  lora: LoraTensors | undefined,
  rows: readonly ScoredRow[],
  options: Omit<ScoreOptions, 'maxLogits'> & Pick<ForwardOptions, 'gradientCheckpointing'>,
) {
  const { width, first, scored, start } = layout(rows);
  if (first === 0) throw new Error('a prompt is empty: nothing says what its first completion token follows');
  for (const { promptIds, completionIds } of rows)
    for (const given of [promptIds, completionIds]) checkTokenIds(model.config, given);
  const ids = rows.map((r) => pad([...r.promptIds, ...r.completionIds], width));
  const mask = rows.map((r) =>
    pad(new Array<number>(r.promptIds.length + r.completionIds.length).fill(1), width),
  );
  const shape: [number, number] = [rows.length, width];
  const input = tf.tensor2d(ids, shape, 'int32');
  // Position t predicts token t + 1: not asked for are the last one and those before the first completion.
  const span = { start: first - 1, count: scored };
  const { gradientCheckpointing, temperature, differentiable } = options;
  const gate = lora?.weights[LATENT_GATE];
  const memories =
    gate &&
    uploadMemories(
      rows.map((row) => row.memory),
      model.config,
    );
  const beside = memories && besideOf(memories, openGates(gate));
  const reading = { gradientCheckpointing, span, beside };
  const hidden = forward(model, input, tf.tensor2d(mask, shape), lora, reading);
  const targets = tf.tensor1d(
    ids.flatMap((row) => row.slice(first)),
    'int32',
  );
  const flat = tf.reshape(hidden, [rows.length * scored, model.config.hidden_size]) as tf.Tensor2D;
  return { ...scoreTokens(flat, outputHead(model), targets, { temperature, differentiable }), start };
}

function pad(values: number[], width: number): number[] {
  return [...values, ...new Array<number>(width - values.length).fill(0)];
}
