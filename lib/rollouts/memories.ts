/**
 * Memories of drafts: the keys and values that the drafting policy computes at some tokens of its own draft,
 * for a rival to read (lib/latent).
 *
 * A draft is read up to the last of these tokens and no further, so that what comes after (the answer) is in
 * nothing. The keys are then turned from their places in the draft to the places -S to -1: a reader whose own
 * sequence starts at 0 sees the memory at the distances it would have if its prompt stood right behind it.
 * Computed once, and the same numbers for sampling and for the gradient, into which the rival does not enter.
 * Left out: which tokens may be read (latent/places.ts).
 */
import * as tf from '@tensorflow/tfjs';
import { checkTokenIds, forward, uploadAdapter } from '../model/index.js';
import { rotary, rotate } from '../model/operations.js';
import type { Memory } from '../records.js';
import { type JobFunction, type Pool, shardsOf } from '../tensors/pool.js';
import { type Policy, sharedModel } from './policy.js';

/**
 * One draft to remember: its tokens from the prompt's first on, and how many of the last ones are remembered.
 */
export interface MemoryRequest {
  readonly ids: readonly number[];
  /** From 1 to the number of ids. */
  readonly places: number;
}

interface MemoryShard {
  readonly policy: Policy;
  readonly requests: readonly MemoryRequest[];
}

const READ: JobFunction<MemoryShard, Memory[]> = {
  module: import.meta.url,
  name: 'readShard',
  call: readShard,
};

/**
 * One memory per request, in order.
 * @param policy the one that drafted
 * @param batchSize drafts that are read at once
 */
export async function readMemories(
  pool: Pool,
  policy: Policy,
  requests: readonly MemoryRequest[],
  batchSize: number,
): Promise<Memory[]> {
  const shards = shardsOf(requests, batchSize).map((some) => ({ policy, requests: some }));
  return (await pool.map(READ, shards)).flat();
}

/** The pool's job: reads one batch in this thread. @throws naming the field of a request that cannot be */
export async function readShard({ policy, requests }: MemoryShard): Promise<Memory[]> {
  const model = sharedModel(policy.base);
  const { num_key_value_heads: heads, head_dim: hd, rope_theta } = model.config;
  for (const { ids, places } of requests) {
    checkTokenIds(model.config, ids);
    if (!(Number.isInteger(places) && places > 0 && places <= ids.length))
      throw new RangeError(`places ${places}: allowed are 1 to the draft's ${ids.length} tokens`);
  }
  const width = Math.max(...requests.map(({ ids }) => ids.length));
  const padded = (row: readonly number[]) => [...row, ...new Array<number>(width - row.length).fill(0)];
  const layers: { readonly k: Float32Array; readonly v: Float32Array }[] = [];
  tf.tidy(() => {
    const ids = tf.tensor2d(
      requests.map((request) => padded(request.ids)),
      undefined,
      'int32',
    );
    const mask = tf.tensor2d(requests.map((request) => padded(request.ids.map(() => 1))));
    // Turned back by the draft's length, the token at place p stands at p - length: the last one at -1.
    const back = rotary(
      tf.tensor2d(requests.map(({ ids }) => new Array<number>(width).fill(-ids.length))),
      hd,
      rope_theta,
    );
    forward(model, ids, mask, policy.adapter && uploadAdapter(policy.adapter), {
      span: { start: 0, count: 1 },
      onKeys: (k, v) =>
        layers.push({
          k: rotate(k, back).dataSync() as Float32Array,
          v: v.dataSync() as Float32Array,
        }),
    });
  });
  return requests.map(({ ids, places }, row) => {
    /** [Hkv, places, hd] out of [R, Hkv, width, hd] */
    const cut = (all: Float32Array): Float32Array => {
      const out = new Float32Array(heads * places * hd);
      for (let head = 0; head < heads; head++) {
        const end = ((row * heads + head) * width + ids.length) * hd;
        out.set(all.subarray(end - places * hd, end), head * places * hd);
      }
      return out;
    };
    return { places, layers: layers.map(({ k, v }) => ({ k: cut(k), v: cut(v) })) };
  });
}
