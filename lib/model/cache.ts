/**
 * Decoding with a key-value cache: the prompts once, then one token per row and step.
 *
 * On wasm our own kernels do it (kernel-cache.ts). Elsewhere each layer's keys and values lie in a long block, which is only read, and a short recent one, which grows with
 * every token and joins the long block every CONSOLIDATE tokens: so a step copies little. Rows that have ended
 * leave the batch with `keep`. Left out: sampling (rollouts/), gradients, paging, a limit on the length.
 */
import * as tf from '@tensorflow/tfjs';
import { wasmKernels } from '../tensors/wasm-kernels.js';
import { checkRows, KernelCache, kernelsFit } from './kernel-cache.js';
import { attention, attentionBias, hidingBias, rotary } from './operations.js';
import { logits, type Model, positionsOf, runLayers } from './transformer.js';

/** After so many tokens the recent block joins the long one. */
const CONSOLIDATE = 16;

/** Keys and values of one layer, each [R, Hkv, length, hd]. */
type Block = { readonly k: tf.Tensor4D; readonly v: tf.Tensor4D };

/** The state of a batch that is being decoded. Not for use after `dispose`. */
export interface KVCache {
  /** Rows in the batch. */
  readonly rows: number;
  /** Tokens per row so far, padding included. */
  readonly length: number;
  /**
   * Keeps these rows, in this order, and frees the rest. A row may be named more than once: one prefilled prompt
   * becomes a whole group of completions. @throws RangeError on a row that is not there
   */
  keep(rows: readonly number[]): void;
  dispose(): void;
}

class Cache implements KVCache {
  constructor(
    /** Per layer, [R, Hkv, length so far, hd]. */
    readonly long: Block[],
    /** Per layer, what came since; empty right after a consolidation. */
    readonly recent: Block[],
    /** [R, length], 1 at real tokens. */
    public mask: tf.Tensor2D,
    /** The position of each row's next token. */
    public positions: number[],
  ) {}

  get rows(): number {
    return this.positions.length;
  }

  get length(): number {
    return this.mask.shape[1];
  }

  keep(rows: readonly number[]): void {
    checkRows(rows, this.rows);
    const indices = tf.tensor1d([...rows], 'int32');
    const pick = <T extends tf.Tensor>(x: T): T => {
      // Rank 2 is gathered in one copy per row.
      const kept = tf.tidy(() =>
        tf.reshape(tf.gather(tf.reshape(x, [this.rows, -1]), indices), [rows.length, ...x.shape.slice(1)]),
      );
      x.dispose();
      return tf.keep(kept as tf.Tensor as T);
    };
    const pickBlock = ({ k, v }: Block): Block => ({ k: pick(k), v: pick(v) });
    this.long.splice(0, this.long.length, ...this.long.map(pickBlock));
    this.recent.splice(0, this.recent.length, ...this.recent.map(pickBlock));
    this.mask = pick(this.mask);
    this.positions = rows.map((row) => this.positions[row]!);
    indices.dispose();
  }

  dispose(): void {
    for (const { k, v } of [...this.long, ...this.recent]) tf.dispose([k, v]);
    this.mask.dispose();
    this.long.length = this.recent.length = this.positions.length = 0;
  }
}

/**
 * Reads the prompts.
 * @param ids [R, T] int32, padded on the left
 * @param attentionMask [R, T], 1 at real tokens
 * @returns logits [R, V] after each row's last token, and the cache; both are the caller's to dispose
 */
export function prefill(
  model: Model,
  ids: tf.Tensor2D,
  attentionMask: tf.Tensor2D,
): { logits: tf.Tensor2D; cache: KVCache } {
  const [R, T] = ids.shape;
  const { config } = model;
  const long: Block[] = [];
  const mask = tf.keep(tf.cast(attentionMask, 'float32'));
  const out = tf.tidy(() => {
    const table = rotary(positionsOf(mask), config.head_dim, config.rope_theta);
    const bias = attentionBias(mask);
    const hidden = runLayers(model, ids, table, (_layer, q, k, v) => {
      long.push(keepBlock({ k: k.clone(), v: v.clone() }));
      return attention(q, k, v, bias);
    });
    const last = tf.slice(
      tf.reshape(hidden, [R, T, config.hidden_size]),
      [0, T - 1, 0],
      [R, 1, config.hidden_size],
    );
    return logits(model, tf.reshape(last, [R, config.hidden_size]) as tf.Tensor2D);
  });
  const counts = tf.sum(mask, 1);
  const positions = Array.from(counts.dataSync());
  counts.dispose();
  const kernels = wasmKernels();
  if (kernels && kernelsFit(config)) {
    const cache = new KernelCache(kernels, model, long, positions);
    tf.dispose([mask, ...long.flatMap(({ k, v }) => [k, v])]);
    return { logits: out, cache };
  }
  return { logits: out, cache: new Cache(long, [], mask, positions) };
}

/**
 * Takes one more token per row.
 * @param lastIds the token of each row that was sampled last
 * @returns logits [R, V] of the token after it, the caller's to dispose
 * @throws RangeError when there is not one id per row
 */
export function decodeStep(model: Model, cache: KVCache, lastIds: readonly number[]): tf.Tensor2D {
  if (lastIds.length !== cache.rows)
    throw new RangeError(`${lastIds.length} token ids for ${cache.rows} rows in the cache`);
  if (cache instanceof KernelCache) return cache.step(lastIds);
  if (!(cache instanceof Cache)) throw new TypeError('decodeStep wants the cache that prefill made');
  const R = cache.rows;
  const { config } = model;
  const result = tf.tidy(() => {
    const positions = tf.tensor2d(cache.positions, [R, 1]);
    const table = rotary(positions, config.head_dim, config.rope_theta);
    const mask = tf.concat([cache.mask, tf.ones<tf.Rank.R2>([R, 1])], 1);
    const bias = tf.reshape(hidingBias(mask), [R, 1, 1, cache.length + 1]) as tf.Tensor4D;
    const recent: Block[] = [];
    const hidden = runLayers(model, tf.tensor2d([...lastIds], [R, 1], 'int32'), table, (layer, q, k, v) => {
      const before = cache.recent[layer];
      const now = before ? { k: tf.concat([before.k, k], 2), v: tf.concat([before.v, v], 2) } : { k, v };
      recent.push(now);
      return attendBlocks(q, cache.long[layer]!, now, bias);
    });
    return { out: logits(model, hidden), mask, recent };
  });
  tf.dispose([cache.mask, ...cache.recent.flatMap(({ k, v }) => [k, v])]);
  cache.mask = tf.keep(result.mask);
  cache.recent.splice(0, cache.recent.length, ...result.recent.map(keepBlock));
  cache.positions = cache.positions.map((position) => position + 1);
  if (cache.recent[0]!.k.shape[2] === CONSOLIDATE) consolidate(cache);
  return result.out;
}

/** One query per row against the long and the recent block, under one softmax. */
function attendBlocks(q: tf.Tensor4D, long: Block, recent: Block, bias: tf.Tensor4D): tf.Tensor4D {
  const [R, H, , hd] = q.shape;
  const Hkv = long.k.shape[1];
  const stack = (x: tf.Tensor4D) => tf.reshape(x, [R * Hkv, x.shape[2], hd]) as tf.Tensor3D;
  const query = tf.reshape(tf.mul(q, 1 / Math.sqrt(hd)), [R * Hkv, H / Hkv, hd]) as tf.Tensor3D;
  const scores: tf.Tensor3D = tf.concat(
    [long, recent].map(({ k }) => tf.matMul<tf.Tensor3D>(query, stack(k), false, true)),
    2,
  );
  const S = long.k.shape[2];
  const length = S + recent.k.shape[2];
  const p = tf.softmax(tf.add(tf.reshape(scores, [R, H, 1, length]), bias));
  const [pLong, pRecent] = tf.split(tf.reshape(p, scores.shape), [S, length - S], 2) as [
    tf.Tensor3D,
    tf.Tensor3D,
  ];
  const mixed = tf.add(tf.matMul(pLong, stack(long.v)), tf.matMul(pRecent, stack(recent.v)));
  return tf.reshape(mixed, [R, H, 1, hd]);
}

/** What the cache holds outlives the caller's tidy. */
function keepBlock({ k, v }: Block): Block {
  return { k: tf.keep(k), v: tf.keep(v) };
}

function consolidate(cache: Cache): void {
  const joined = cache.long.map((long, layer) => {
    const recent = cache.recent[layer]!;
    const block = keepBlock({ k: tf.concat([long.k, recent.k], 2), v: tf.concat([long.v, recent.v], 2) });
    tf.dispose([long.k, long.v, recent.k, recent.v]);
    return block;
  });
  cache.long.splice(0, cache.long.length, ...joined);
  cache.recent.length = 0;
}
