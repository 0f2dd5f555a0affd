/**
 * The cache as blocks: what `decodeBlock` reads, held between calls, on every backend without kernels of our own.
 * Left out: the arithmetic (blocks.ts), how tokens are chosen (rollouts/decoder.ts).
 */
import * as tf from '@tensorflow/tfjs';
import { type Block, checkRows, type DecodingWeights, decodeBlock, flatten, joinWeights } from './blocks.js';
import type { KVCache, Reading } from './cache.js';
import type { ModelConfig } from './config.js';
import type { Model } from './transformer.js';

export class BlockCache implements KVCache {
  readonly config: ModelConfig;
  readonly weights: DecodingWeights;
  #long: readonly Block[];
  #bias: tf.Tensor3D;
  #positions: readonly number[];
  /** What the rows read beside their own past. */
  readonly reading: Reading | undefined;

  /**
   * @param long per layer, [R Hkv, T, hd]; the cache's from here on, and so is
   * @param bias [R Hkv, 1, T], which hides padding
   * @param counts real tokens of each row
   * @param reading the cache's from here on
   */
  constructor(
    model: Model,
    long: readonly Block[],
    bias: tf.Tensor3D,
    counts: readonly number[],
    reading?: Reading,
  ) {
    this.config = model.config;
    this.weights = joinWeights(model);
    for (const weight of flatten(this.weights)) tf.keep(weight);
    this.#long = long;
    this.#bias = bias;
    this.#positions = counts;
    this.reading = reading;
    this.#own();
  }

  get rows(): number {
    return this.#positions.length;
  }

  get length(): number {
    return this.#bias.shape[2];
  }

  get long(): readonly Block[] {
    return this.#long;
  }

  get bias(): tf.Tensor3D {
    return this.#bias;
  }

  /** [R, 1], the position of each row's next token; the caller's to dispose. */
  positions(): tf.Tensor2D {
    return tf.tensor2d([...this.#positions], [this.rows, 1]);
  }

  /** Takes in the past after some more tokens, as `decodeBlock` gives it. */
  advance(long: readonly Block[], bias: tf.Tensor3D): void {
    const steps = bias.shape[2] - this.length;
    this.#replace(long, bias);
    this.#positions = this.#positions.map((position) => position + steps);
  }

  step(lastIds: readonly number[]): tf.Tensor2D {
    const { logits, long, bias } = tf.tidy(() => {
      let logits: tf.Tensor2D | undefined;
      const ids = tf.tensor1d([...lastIds], 'int32');
      const next = (found: tf.Tensor2D) => {
        logits = found;
        return ids;
      };
      const beside = this.reading?.beside;
      const inputs = { weights: this.weights, long: this.#long, bias: this.#bias, ids, next, beside };
      const after = decodeBlock(this.config, { ...inputs, positions: this.positions() }, 1);
      return { logits: logits!, ...after };
    });
    this.advance(long, bias);
    return logits;
  }

  keep(rows: readonly number[]): void {
    checkRows(rows, this.rows);
    const { long, bias } = tf.tidy(() => {
      const indices = tf.tensor1d([...rows], 'int32');
      /** Rank 2 is gathered in one copy per row. */
      const pick = (x: tf.Tensor3D) => {
        const flat = tf.gather(tf.reshape(x, [this.rows, -1]), indices);
        return tf.reshape(flat, [-1, x.shape[1], x.shape[2]]) as tf.Tensor3D;
      };
      return { long: this.#long.map(({ k, v }) => ({ k: pick(k), v: pick(v) })), bias: pick(this.#bias) };
    });
    this.#replace(long, bias);
    this.reading?.keep(rows);
    this.#positions = rows.map((row) => this.#positions[row]!);
  }

  dispose(): void {
    tf.dispose([...flatten(this.weights), this.#bias, ...this.#long.flatMap(({ k, v }) => [k, v])]);
    this.reading?.dispose();
    this.#positions = [];
  }

  #replace(long: readonly Block[], bias: tf.Tensor3D): void {
    tf.dispose([this.#bias, ...this.#long.flatMap(({ k, v }) => [k, v])]);
    this.#long = long;
    this.#bias = bias;
    this.#own();
  }

  /** What the cache holds outlives the caller's tidy. */
  #own(): void {
    for (const tensor of [this.#bias, ...this.#long.flatMap(({ k, v }) => [k, v])]) tf.keep(tensor);
  }
}
