/**
 * Prompts to rollouts: batched sampling with a KV cache, split over the pool.
 *
 * A batch is cut by `generationBatchSize`, not by the number of workers, and every row draws from the stream
 * its names give, so the rollouts depend on neither. Finished rows leave the batch. The adapter is merged into
 * the base for sampling. Left out: what a prompt says and what a completion means (text/, agon/).
 */
import * as tf from '@tensorflow/tfjs';
import { decodeStep, type Model, mergeAdapter, prefill } from '../model/index.js';
import { type Random, stream } from '../random.js';
import type { Rollout } from '../records.js';
import type { JobFunction, Pool } from '../tensors/pool.js';
import { type Policy, sharedModel } from './policy.js';
import { type SamplingOptions, sampleToken } from './sampler.js';

export interface GenerationOptions extends SamplingOptions {
  /** Token cap of one completion (TRL's `max_completion_length`). */
  readonly maxCompletionLength: number;
  readonly eosId: number;
  readonly padId: number;
}

/** One row to sample: the prompt and the names of its stream of random numbers. */
export interface RolloutRequest {
  readonly promptIds: readonly number[];
  readonly names: readonly (string | number)[];
}

interface GenerateShard {
  readonly policy: Policy;
  readonly requests: readonly RolloutRequest[];
  readonly options: GenerationOptions;
}

/** Rows are compacted when at least this share of the batch has finished: each compaction copies the cache. */
const COMPACT_SHARE = 0.125;

/**
 * Samples one completion per request, in the requests' order.
 * @param generationBatchSize rows per batch (TRL's name); part of the result's identity down to rounding
 * @param onDone called with the number of finished rollouts
 */
export async function generate(
  pool: Pool,
  policy: Policy,
  requests: readonly RolloutRequest[],
  options: GenerationOptions,
  generationBatchSize: number,
  onDone?: (done: number) => void,
): Promise<Rollout[]> {
  const shards: GenerateShard[] = [];
  for (let i = 0; i < requests.length; i += generationBatchSize)
    shards.push({ policy, requests: requests.slice(i, i + generationBatchSize), options });
  const report = onDone && ((done: number) => onDone(Math.min(requests.length, done * generationBatchSize)));
  return (await pool.map(GENERATE, shards, report)).flat();
}

/** The pool's job: samples one batch in this thread. */
export async function generateShard({ policy, requests, options }: GenerateShard): Promise<Rollout[]> {
  const base = sharedModel(policy.base);
  const merged = policy.adapter ? mergeAdapter(base, policy.adapter) : undefined;
  try {
    return sampleBatch(merged ?? base, requests, options);
  } finally {
    merged?.dispose();
  }
}

const GENERATE: JobFunction<GenerateShard, Rollout[]> = {
  module: import.meta.url,
  name: 'generateShard',
  call: generateShard,
};

interface Row {
  readonly request: RolloutRequest;
  readonly random: Random;
  readonly completionIds: number[];
  readonly logProbs: number[];
  /** Tokens this row may have: the cap, or what its own prompt leaves of the context. */
  readonly room: number;
  finishReason: Rollout['finishReason'] | undefined;
}

/**
 * Samples a batch on a loaded model.
 * @throws when a prompt is empty or does not leave room for one token in the model's context
 */
export function sampleBatch(
  model: Model,
  requests: readonly RolloutRequest[],
  options: GenerationOptions,
): Rollout[] {
  const longest = Math.max(...requests.map((r) => r.promptIds.length));
  const context = model.config.max_position_embeddings;
  if (requests.some((r) => r.promptIds.length === 0)) throw new Error('a prompt is empty');
  if (longest >= context)
    throw new Error(`a prompt of ${longest} tokens leaves no room in a context of ${context}`);
  const rows: Row[] = requests.map((request) => ({
    request,
    random: stream(...request.names),
    completionIds: [],
    logProbs: [],
    room: Math.min(options.maxCompletionLength, context - request.promptIds.length),
    finishReason: undefined,
  }));
  const { ids, mask } = leftPad(requests, longest, options.padId);
  let { logits, cache } = prefill(model, ids, mask);
  tf.dispose([ids, mask]);
  let active = rows.map((_, i) => i);
  try {
    while (true) {
      const values = logits.dataSync() as Float32Array;
      const width = model.config.vocab_size;
      logits.dispose();
      active.forEach((rowIndex, k) => {
        const row = rows[rowIndex]!;
        if (row.finishReason) return;
        const { id, logProb } = sampleToken(
          values.subarray(k * width, (k + 1) * width),
          options,
          row.random.uniform(),
        );
        row.completionIds.push(id);
        row.logProbs.push(logProb);
        if (id === options.eosId) row.finishReason = 'stop';
        else if (row.completionIds.length === row.room) row.finishReason = 'length';
      });
      const unfinished = active.flatMap((rowIndex, k) => (rows[rowIndex]!.finishReason ? [] : [k]));
      if (unfinished.length === 0) break;
      if (active.length - unfinished.length >= COMPACT_SHARE * active.length) {
        cache.keep(unfinished);
        active = unfinished.map((k) => active[k]!);
      }
      const last = active.map((rowIndex) => rows[rowIndex]!.completionIds.at(-1)!);
      logits = decodeStep(model, cache, last);
    }
  } finally {
    cache.dispose();
  }
  return rows.map(({ request, completionIds, logProbs, finishReason }) => ({
    promptIds: request.promptIds,
    completionIds,
    logProbs,
    finishReason: finishReason!,
  }));
}

/** Prompts as one rectangle [rows, width], padded on the left, with its attention mask (1 real, 0 padding). */
function leftPad(requests: readonly RolloutRequest[], width: number, padId: number) {
  const ids = requests.map((r) => [
    ...new Array<number>(width - r.promptIds.length).fill(padId),
    ...r.promptIds,
  ]);
  const mask = requests.map((r) =>
    Array.from({ length: width }, (_, t) => Number(t >= width - r.promptIds.length)),
  );
  return { ids: tf.tensor2d(ids, undefined, 'int32'), mask: tf.tensor2d(mask) };
}
