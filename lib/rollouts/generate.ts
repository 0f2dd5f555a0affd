/**
 * Prompts to rollouts: batched sampling with a KV cache, split over the pool.
 *
 * A batch is cut by `generationBatchSize`, not by the number of workers, and every row draws from the stream
 * its names give, so the rollouts depend on neither. Finished rows leave the batch. The adapter is merged into
 * the base for sampling. Left out: what a prompt says and what a completion means (text/, agon/).
 */
import { openMemories } from '../latent/index.js';
import { checkTokenIds, type HostTensor, LATENT_GATE, type Model, mergeAdapter } from '../model/index.js';
import { type Random, stream } from '../random.js';
import type { Memory, Rollout } from '../records.js';
import { type JobFunction, type Pool, shardsOf } from '../tensors/pool.js';
import { type Drawn, startDecoder } from './decoder.js';
import { type Policy, sharedModel } from './policy.js';
import { checkLogProb, checkSampling, type SamplingOptions, uniformFloat } from './sampler.js';

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
  /** Keys and values that are read beside the prompt; the policy's adapter needs gates for it. */
  readonly memory?: Memory;
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
  if (!(Number.isInteger(generationBatchSize) && generationBatchSize > 0))
    throw new RangeError(`generationBatchSize ${generationBatchSize}: allowed are whole numbers from 1`);
  // Field by field: what goes to a worker is copied, and the caller's object may hold more, as a reward of its own.
  const { temperature, topP, maxCompletionLength, eosId, padId } = options;
  const own = { temperature, topP, maxCompletionLength, eosId, padId };
  const shards = shardsOf(requests, generationBatchSize).map((some) => ({
    policy,
    requests: some,
    options: own,
  }));
  const report = onDone && ((done: number) => onDone(Math.min(requests.length, done * generationBatchSize)));
  return (await pool.map(GENERATE, shards, report)).flat();
}

/** The pool's job: samples one batch in this thread. */
export async function generateShard({ policy, requests, options }: GenerateShard): Promise<Rollout[]> {
  const base = sharedModel(policy.base);
  const merged = policy.adapter ? mergeAdapter(base, policy.adapter) : undefined;
  try {
    return sampleBatch(merged ?? base, requests, options, policy.adapter?.weights[LATENT_GATE]);
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
 * Samples a batch on a loaded model. Each distinct prompt is read once, one with a memory by each row for itself.
 * @param gate of the memories [layers, heads] (lib/latent)
 * @throws when a prompt is empty, holds an id beyond the vocabulary or does not leave room for one token in the
 *   model's context, when the options cannot be, and when logits are not finite
 */
export function sampleBatch(
  model: Model,
  requests: readonly RolloutRequest[],
  options: GenerationOptions,
  gate?: HostTensor,
): Rollout[] {
  const longest = Math.max(...requests.map((r) => r.promptIds.length));
  const context = model.config.max_position_embeddings;
  if (requests.some((r) => r.promptIds.length === 0)) throw new Error('a prompt is empty');
  if (longest >= context)
    throw new Error(`a prompt of ${longest} tokens leaves no room in a context of ${context}`);
  for (const { promptIds } of requests) checkTokenIds(model.config, promptIds);
  checkSampling(options);
  const rows: Row[] = requests.map((request) => ({
    request,
    random: stream(...request.names),
    completionIds: [],
    logProbs: [],
    room: Math.min(options.maxCompletionLength, context - request.promptIds.length),
    finishReason: undefined,
  }));
  const keys = requests.map(({ promptIds, memory }, i) => promptIds.join() + (memory ? ` ${i}` : ''));
  const prompts = new Map(requests.map((request, i) => [keys[i]!, request]));
  const places = new Map([...prompts.keys()].map((key, i) => [key, i]));
  const uniforms = (batch: readonly Row[], count: number) =>
    Float32Array.from({ length: batch.length * count }, (_, i) =>
      uniformFloat(batch[Math.floor(i / count)]!.random.uniform()),
    );
  const read = [...prompts.values()];
  const memories = read.map(({ memory }) => memory);
  const reading = openMemories(memories, gate, model.config);
  const { first, decoder } = startDecoder(
    model,
    { ids: read.map(({ promptIds }) => promptIds), padId: options.padId, reading },
    keys.map((key) => places.get(key)!),
    uniforms(rows, 1),
    options,
  );
  try {
    let active = rows;
    take(active, first, 1, options.eosId);
    while (true) {
      const unfinished = active.flatMap((row, k) => (row.finishReason ? [] : [k]));
      if (unfinished.length === 0) break;
      if (active.length - unfinished.length >= COMPACT_SHARE * active.length) {
        decoder.keep(unfinished);
        active = unfinished.map((k) => active[k]!);
      }
      const last = active.map((row) => row.completionIds.at(-1)!);
      const count = decoder.tokensPerCall;
      take(active, decoder.next(last, uniforms(active, count)), count, options.eosId);
    }
  } finally {
    decoder.dispose();
  }
  return rows.map(({ request, completionIds, logProbs, finishReason }) => ({
    promptIds: request.promptIds,
    completionIds,
    logProbs,
    finishReason: finishReason!,
  }));
}

/** Gives each row its tokens, up to its end; what was drawn beyond is dropped. */
function take(rows: readonly Row[], { ids, logProbs }: Drawn, count: number, eosId: number): void {
  rows.forEach((row, k) => {
    for (let i = k * count; i < (k + 1) * count && !row.finishReason; i++) {
      row.completionIds.push(ids[i]!);
      row.logProbs.push(checkLogProb(logProbs[i]!));
      if (ids[i] === eosId) row.finishReason = 'stop';
      else if (row.completionIds.length === row.room) row.finishReason = 'length';
    }
  });
}
