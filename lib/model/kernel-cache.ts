/**
 * Decoding on the wasm backend: one token per row, in calls of our own kernels (lib/kernels) one after the other, with
 * no operation of TensorFlow.js between them. Keys and values are written in place; nothing is copied or transposed
 * per token. Weights are packed once, at the prompts, the norms' weights folded into the products that follow.
 *
 * A row's tokens lie from place 0 on, without padding, so that after equal prompts its numbers are the same bits in
 * every batch (prompts of other lengths are read with padding, and differ by rounding). The
 * room for tokens doubles when it is full. Left out: reading prompts (cache.ts), head sizes that are no multiple of 8,
 * hidden sizes that are no multiple of 4.
 */
import * as tf from '@tensorflow/tfjs';
import type { WasmKernels } from '../tensors/wasm-kernels.js';
import { type Block, checkRows } from './blocks.js';
import type { KVCache, Reading } from './cache.js';
import { hasQkNorm, type ModelConfig } from './config.js';
import { rotary } from './operations.js';
import type { Model } from './transformer.js';

/** Room for tokens that a cache starts with, beyond the prompts. */
export const ROOM = 64;
/** Bytes of a number. */
const WORD = 4;

/** Whether the kernels can decode this model. */
export function kernelsFit(config: ModelConfig): boolean {
  return config.head_dim % 8 === 0 && config.hidden_size % 4 === 0;
}

/** The state of a batch that is being decoded by kernels. */
export class KernelCache implements KVCache {
  readonly #kernels: WasmKernels;
  readonly #config: ModelConfig;
  readonly #weights: PackedWeights;
  /** Per layer, [R, Hkv, capacity, hd] and a few places more, which attention may read. */
  #blocks: { readonly k: tf.Tensor1D; readonly v: tf.Tensor1D }[] = [];
  #capacity: number;
  #angles: Angles;
  #work: Workspace;
  /** Of each row's next token; as many came before it. */
  #positions: number[];
  #length: number;
  /** What the rows read beside their own past: the one part that is made of TensorFlow.js operations. */
  readonly #reading: Reading | undefined;

  /**
   * @param blocks one per layer, [R Hkv, T, hd], still the caller's
   * @param counts real tokens of each row, the last ones of its T
   * @param reading the cache's from here on
   */
  constructor(
    kernels: WasmKernels,
    model: Model,
    blocks: readonly Block[],
    counts: readonly number[],
    reading?: Reading,
  ) {
    const { config } = model;
    const T = blocks[0]!.k.shape[1];
    this.#kernels = kernels;
    this.#reading = reading;
    this.#config = config;
    this.#weights = packWeights(kernels, model);
    this.#positions = [...counts];
    this.#length = T;
    this.#capacity = T + ROOM;
    this.#angles = makeAngles(config, this.#capacity);
    this.#work = makeWorkspace(kernels, config, this.rows, this.#capacity);
    this.#blocks = blocks.map((prompt) => {
      const block = this.#makeBlock(this.rows, this.#capacity);
      for (const part of ['k', 'v'] as const)
        for (let row = 0; row < this.rows; row++) {
          const heads = this.#heads([row]);
          const padding = T - counts[row]!;
          this.#copy(
            kernels.address(prompt[part]) + padding * this.#placeBytes,
            T,
            heads,
            kernels.address(block[part]) + heads[0]! * this.#capacity * this.#placeBytes,
            this.#capacity,
            counts[row]!,
          );
        }
      return block;
    });
  }

  get rows(): number {
    return this.#positions.length;
  }

  get length(): number {
    return this.#length;
  }

  keep(rows: readonly number[]): void {
    checkRows(rows, this.rows);
    this.#rebuild(rows, this.#capacity);
    this.#reading?.keep(rows);
    this.#positions = rows.map((row) => this.#positions[row]!);
  }

  dispose(): void {
    tf.dispose([this.#weights.packed, ...this.#weights.norms, this.#angles.cos, this.#angles.sin]);
    this.#disposeRows();
    this.#reading?.dispose();
    this.#blocks = [];
    this.#positions = [];
  }

  /**
   * @param lastIds one id per row
   * @returns logits [R, V]
   */
  step(lastIds: readonly number[]): tf.Tensor2D {
    if (Math.max(...this.#positions) === this.#capacity)
      this.#rebuild(
        this.#positions.map((_, row) => row),
        2 * this.#capacity,
      );
    const { hidden_size: d, intermediate_size: I, rms_norm_eps: eps, vocab_size: V } = this.#config;
    const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = this.#config;
    const { address, writeIntegers, rmsNormalise, product, swiglu, cachedAttention, gatherBlocks } =
      this.#kernels;
    const { x, normed, qkv, mixed, gateUp, inner, scores, ids, positions } = this.#work;
    const { layers, head, embedding } = this.#weights;
    const R = this.rows;
    /** out [R, columns of width] = or += from [R, ...] weight */
    const linear = (from: number, weight: PackedMatrix, out: number, width: number, add = false) => {
      const { at, K, N } = weight;
      product(from, at, out, R, N, K, K * WORD, WORD, width * WORD, K * 8 * WORD, add);
    };
    const cos = address(this.#angles.cos);
    const sin = address(this.#angles.sin);
    writeIntegers(ids, lastIds);
    writeIntegers(positions, this.#positions);
    gatherBlocks(embedding, ids, x, R, d * WORD, d * WORD, d * WORD);
    layers.forEach(({ q, k, v, o, gate, up, down, qNorm, kNorm }, i) => {
      const width = q.N + k.N + v.N;
      rmsNormalise(x, normed, R, d, eps);
      linear(normed, q, qkv, width);
      linear(normed, k, qkv + q.N * WORD, width);
      linear(normed, v, qkv + (q.N + k.N) * WORD, width);
      const block = this.#blocks[i]!;
      const past = [positions, address(block.k), address(block.v), scores];
      cachedAttention(qkv, qNorm, kNorm, eps, cos, sin, ...past, mixed, R, H, Hkv, hd, this.#capacity);
      linear(mixed, o, x, d, true);
      if (this.#reading) {
        const beside = this.#readBeside(this.#reading, i, qkv, width);
        linear(address(beside), o, x, d, true); // what is added before a product may be added after it
        beside.dispose();
      }
      rmsNormalise(x, normed, R, d, eps);
      linear(normed, gate, gateUp, 2 * I);
      linear(normed, up, gateUp + I * WORD, 2 * I);
      swiglu(gateUp, gateUp + I * WORD, inner, R, I, 2 * I * WORD);
      linear(inner, down, x, d, true);
    });
    rmsNormalise(x, normed, R, d, eps);
    const logits = this.#kernels.allocate<tf.Rank.R2>([R, V]);
    linear(normed, head, address(logits), V);
    this.#positions = this.#positions.map((position) => position + 1);
    this.#length += 1;
    return logits;
  }

  /**
   * @param qkv address of [R, width], the queries first, as cachedAttention leaves them: rotated, times 1 / sqrt(hd)
   * @returns [R, H, 1, hd], the caller's to dispose
   */
  #readBeside(reading: Reading, layer: number, qkv: number, width: number): tf.Tensor4D {
    const { num_attention_heads: H, head_dim: hd } = this.#config;
    const { address, allocate, gatherBlocks, scratch, writeIntegers } = this.#kernels;
    const bytes = H * hd * WORD;
    return tf.tidy(() => {
      const queries = allocate<tf.Rank.R4>([this.rows, H, 1, hd]);
      writeIntegers(scratch, Array.from(this.#positions.keys()));
      gatherBlocks(qkv, scratch, address(queries), this.rows, bytes, width * WORD, bytes);
      return reading.beside(layer, tf.mul(queries, Math.sqrt(hd)));
    });
  }

  get #placeBytes(): number {
    return this.#config.head_dim * WORD;
  }

  /** Indices of these rows' heads in a block. */
  #heads(rows: readonly number[]): number[] {
    const Hkv = this.#config.num_key_value_heads;
    return rows.flatMap((row) => Array.from({ length: Hkv }, (_, h) => row * Hkv + h));
  }

  #makeBlock(rows: number, capacity: number) {
    const { num_key_value_heads: Hkv, head_dim: hd } = this.#config;
    const numbers = (rows * Hkv * capacity + 3) * hd;
    const make = () => tf.keep(this.#kernels.allocate<tf.Rank.R1>([numbers]));
    return { k: make(), v: make() };
  }

  /** Copies `places` tokens of each head, from heads of `capacity` tokens to heads of `target`. */
  #copy(
    from: number,
    capacity: number,
    heads: readonly number[],
    to: number,
    target: number,
    places: number,
  ): void {
    const { scratch, writeIntegers, gatherBlocks } = this.#kernels;
    const bytes = this.#placeBytes;
    writeIntegers(scratch, heads);
    gatherBlocks(from, scratch, to, heads.length, places * bytes, capacity * bytes, target * bytes);
  }

  /** The state anew for these rows (of the present ones) and room for so many tokens. */
  #rebuild(rows: readonly number[], capacity: number): void {
    const { address } = this.#kernels;
    const heads = this.#heads(rows);
    const longest = Math.max(0, ...rows.map((row) => this.#positions[row]!));
    const before = this.#capacity;
    const blocks = this.#blocks.map((block) => {
      const next = this.#makeBlock(rows.length, capacity);
      for (const part of ['k', 'v'] as const)
        this.#copy(address(block[part]), before, heads, address(next[part]), capacity, longest);
      return next;
    });
    this.#disposeRows();
    this.#blocks = blocks;
    this.#work = makeWorkspace(this.#kernels, this.#config, rows.length, capacity);
    if (capacity === before) return;
    tf.dispose([this.#angles.cos, this.#angles.sin]);
    this.#angles = makeAngles(this.#config, capacity);
    this.#capacity = capacity;
  }

  #disposeRows(): void {
    tf.dispose([...this.#blocks.flatMap(({ k, v }) => [k, v]), this.#work.memory]);
  }
}

/** cos and sin of the angles of positions 0 to capacity - 1, [capacity, hd / 2]. */
interface Angles {
  readonly cos: tf.Tensor4D;
  readonly sin: tf.Tensor4D;
}

function makeAngles({ head_dim: hd, rope_theta }: ModelConfig, capacity: number): Angles {
  const { cos, sin } = tf.tidy(() => {
    const positions = tf.reshape(tf.range(0, capacity), [1, capacity]) as tf.Tensor2D;
    const table = rotary(positions, hd, rope_theta);
    const half = (x: tf.Tensor4D) => tf.slice(x, [0, 0, 0, 0], [1, 1, capacity, hd / 2]);
    return { cos: half(table.cos), sin: half(table.sin) };
  });
  return { cos: tf.keep(cos), sin: tf.keep(sin) };
}

/** Addresses of what one step computes, in one piece of memory. */
interface Workspace {
  readonly memory: tf.Tensor;
  /** [R, d] */
  readonly x: number;
  /** [R, d] */
  readonly normed: number;
  /** [R, (H + 2 Hkv) hd] */
  readonly qkv: number;
  /** [R, H hd] */
  readonly mixed: number;
  /** [R, 2 I] */
  readonly gateUp: number;
  /** [R, I] */
  readonly inner: number;
  /** Two rows of scores. */
  readonly scores: number;
  /** [R], whole numbers */
  readonly ids: number;
  /** [R], whole numbers */
  readonly positions: number;
}

function makeWorkspace(
  kernels: WasmKernels,
  { hidden_size: d, intermediate_size: I, ...config }: ModelConfig,
  rows: number,
  capacity: number,
): Workspace {
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const sizes = {
    x: rows * d,
    normed: rows * d,
    qkv: rows * (H + 2 * Hkv) * hd,
    mixed: rows * H * hd,
    gateUp: rows * 2 * I,
    inner: rows * I,
    scores: 2 * (capacity + 4),
    ids: rows,
    positions: rows,
  };
  const memory = tf.keep(
    kernels.allocate<tf.Rank.R1>([Object.values(sizes).reduce((sum, size) => sum + size, 0)]),
  );
  let at = kernels.address(memory);
  const addresses = Object.entries(sizes).map(([name, size]) => {
    const start = at;
    at += size * WORD;
    return [name, start];
  });
  return { memory, ...(Object.fromEntries(addresses) as Record<keyof typeof sizes, number>) };
}

/** A weight [K, N] in the order in which `product` reads it (lib/kernels/product.ts). */
interface PackedMatrix {
  /** Address */
  readonly at: number;
  readonly K: number;
  readonly N: number;
}

const MODULES = {
  q: 'self_attn.q_proj',
  k: 'self_attn.k_proj',
  v: 'self_attn.v_proj',
  o: 'self_attn.o_proj',
  gate: 'mlp.gate_proj',
  up: 'mlp.up_proj',
  down: 'mlp.down_proj',
} as const;
/** The norm whose weight is folded into these. */
const NORMS: Partial<Record<keyof typeof MODULES, string>> = {
  q: 'input_layernorm',
  k: 'input_layernorm',
  v: 'input_layernorm',
  gate: 'post_attention_layernorm',
  up: 'post_attention_layernorm',
};

interface PackedWeights {
  readonly packed: tf.Tensor;
  /** The norms of queries (times 1 / sqrt(hd)) and keys, where there are any. */
  readonly norms: readonly tf.Tensor[];
  /** With the addresses of these norms; 0 where there are none, and then the queries' product has the scale. */
  readonly layers: readonly (Record<keyof typeof MODULES, PackedMatrix> & {
    readonly qNorm: number;
    readonly kNorm: number;
  })[];
  /** The final norm folded in. */
  readonly head: PackedMatrix;
  /** Address of the table [V, d], which stays the model's. */
  readonly embedding: number;
}

function packWeights(kernels: WasmKernels, { config, weights }: Model): PackedWeights {
  const { address } = kernels;
  const parameter = (name: string) => weights[`${name}.weight`]!;
  const tied = config.tie_word_embeddings;
  const embedding = parameter('model.embed_tokens');
  const names = Object.keys(MODULES) as (keyof typeof MODULES)[];
  const prefixes = Array.from({ length: config.num_hidden_layers }, (_, i) => `model.layers.${i}`);
  const sizeOf = ([K, N]: readonly number[]) => K! * 8 * Math.ceil(N! / 8);
  const headShape = [config.hidden_size, config.vocab_size];
  const shapes = prefixes.flatMap((layer) =>
    names.map((name) => parameter(`${layer}.${MODULES[name]}`).shape),
  );
  const numbers = [...shapes, headShape].reduce((sum, shape) => sum + sizeOf(shape), 0);
  const packed = tf.keep(kernels.allocate<tf.Rank.R1>([numbers]));
  let next = address(packed);
  const pack = (weight: tf.Tensor, transposed: boolean, norm: tf.Tensor | undefined): PackedMatrix => {
    const [rows, columns] = weight.shape as [number, number];
    const [K, N] = transposed ? [columns, rows] : [rows, columns];
    const strides = transposed ? [WORD, columns * WORD] : [columns * WORD, WORD];
    const at = next;
    kernels.pack(address(weight), at, K, N, ...strides, norm ? address(norm) : 0);
    next += sizeOf([K, N]) * WORD;
    return { at, K, N };
  };
  const qkNorm = hasQkNorm(config);
  const scaled = (norm: tf.Tensor) => tf.keep(tf.mul(norm, 1 / Math.sqrt(config.head_dim)));
  const norms: tf.Tensor[] = [];
  const layers = prefixes.map((layer) => {
    const matrices = names.map((name) => {
      const norm = NORMS[name] === undefined ? undefined : parameter(`${layer}.${NORMS[name]}`);
      const folded = norm && name === 'q' && !qkNorm ? scaled(norm) : norm;
      const matrix = pack(parameter(`${layer}.${MODULES[name]}`), false, folded);
      if (folded && folded !== norm) folded.dispose();
      return [name, matrix];
    });
    const own = qkNorm
      ? [scaled(parameter(`${layer}.self_attn.q_norm`)), parameter(`${layer}.self_attn.k_norm`).clone()]
      : [];
    for (const norm of own) norms.push(tf.keep(norm));
    const [qNorm = 0, kNorm = 0] = own.map(address);
    return {
      ...(Object.fromEntries(matrices) as Record<keyof typeof MODULES, PackedMatrix>),
      qNorm,
      kNorm,
    };
  });
  const head = pack(tied ? embedding : parameter('lm_head'), tied, parameter('model.norm'));
  return { packed, norms, layers, head, embedding: address(embedding) };
}
