/**
 * Decoding with a key-value cache: the prompts once, then one token per row and step. Rows that have ended leave the
 * batch with `keep`.
 *
 * Two caches: our own kernels on wasm (kernel-cache.ts), pure functions of blocks elsewhere (block-cache.ts). Left
 * out: how tokens are chosen and several tokens per call (rollouts/decoder.ts), gradients, paging.
 */
import * as tf from '@tensorflow/tfjs';
import { wasmKernels } from '../tensors/wasm-kernels.js';
import { BlockCache } from './block-cache.js';
import { prefillBlocks } from './blocks.js';
import { KernelCache, kernelsFit } from './kernel-cache.js';
import type { Beside, Model } from './transformer.js';

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

/** What the rows of a batch read beside their own past; rows leave it as they leave the cache. */
export interface Reading {
  readonly beside: Beside;
  keep(rows: readonly number[]): void;
  dispose(): void;
}

/**
 * Reads the prompts.
 * @param ids [R, T] int32, padded on the left
 * @param attentionMask [R, T], 1 at real tokens
 * @param reading the cache's from here on
 * @returns logits [R, V] after each row's last token, and the cache; both are the caller's to dispose
 */
export function prefill(
  model: Model,
  ids: tf.Tensor2D,
  attentionMask: tf.Tensor2D,
  reading?: Reading,
): { logits: tf.Tensor2D; cache: KernelCache | BlockCache } {
  const { counts, ...read } = tf.tidy(() => {
    const mask = tf.cast(attentionMask, 'float32');
    return { ...prefillBlocks(model, ids, mask, reading?.beside), counts: tf.sum(mask, 1) as tf.Tensor1D };
  });
  const lengths: number[] = Array.from(counts.dataSync());
  counts.dispose();
  const kernels = wasmKernels();
  if (!kernels || !kernelsFit(model.config))
    return { logits: read.logits, cache: new BlockCache(model, read.long, read.bias, lengths, reading) };
  const cache = new KernelCache(kernels, model, read.long, lengths, reading);
  tf.dispose([read.bias, ...read.long.flatMap(({ k, v }) => [k, v])]);
  return { logits: read.logits, cache };
}

/**
 * Takes one more token per row.
 * @param lastIds the token of each row that was sampled last
 * @returns logits [R, V] of the token after it, the caller's to dispose
 * @throws RangeError when there is not one id per row
 */
export function decodeStep(cache: KernelCache | BlockCache, lastIds: readonly number[]): tf.Tensor2D {
  if (lastIds.length !== cache.rows)
    throw new RangeError(`${lastIds.length} token ids for ${cache.rows} rows in the cache`);
  return cache.step(lastIds);
}
