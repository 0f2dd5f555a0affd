/**
 * The matrix products that sampling and training cannot do without, from the model's config alone. Multiplied by
 * the rate a machine reaches at these very shapes they give the floor: the time in which the arithmetic of the
 * matrices alone could be done. Everything else (norms, softmax, copies, the language around it) is on top.
 *
 * Attention counts as full squares, as all participants compute it; gradients only where LoRA needs them (the
 * base is frozen, so there is no dW). Left out: measuring (bench/rates.ts).
 */
import { linearModules, type ModelConfig } from './config.js';

/** `count` times a batch of `batch` products [m, k] x [k, n]. */
export interface Product {
  readonly batch: number;
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly count: number;
}

/** A rectangle of sequences: every row has `prompt` and then `completion` tokens. */
export interface Rectangle {
  readonly rows: number;
  readonly prompt: number;
  readonly completion: number;
  /** How many neighbours share a prompt, which is then read once; default 1. */
  readonly group?: number;
}

/** Floating-point operations of products, a multiplication and an addition counting as two. */
export function flops(products: readonly Product[]): number {
  return products.reduce((sum, { batch, m, k, n, count }) => sum + 2 * batch * m * k * n * count, 0);
}

/** The same products with equal shapes added up, in order of first appearance. */
export function merged(products: readonly Product[]): Product[] {
  const byShape = new Map<string, Product>();
  for (const product of products) {
    const key = [product.batch, product.m, product.k, product.n].join();
    const before = byShape.get(key);
    byShape.set(key, before ? { ...before, count: before.count + product.count } : product);
  }
  return [...byShape.values()];
}

/**
 * Sampling with a key-value cache, `batchRows` rows at a time: the prompts, then one token per row and step. Keys
 * grow by one per step; the mean length stands for all of them. The adapter is merged, so it adds nothing.
 */
export function samplingProducts(config: ModelConfig, shape: Rectangle, batchRows: number): Product[] {
  const { rows, prompt, completion, group = 1 } = shape;
  const steps = completion - 1; // the prompt's last position gives the first token
  const head = { batch: 1, k: config.hidden_size, n: config.vocab_size };
  return merged(
    batches(rows, batchRows).flatMap((b) => {
      const prompts = Math.ceil(b / group);
      return [
        ...linearProducts(config, prompts * prompt, 1),
        ...attentionProducts(config, prompts, prompt, prompt, 1),
        { ...head, m: prompts, count: 1 },
        ...linearProducts(config, b, steps),
        ...attentionProducts(config, b, 1, Math.round(prompt + completion / 2), steps),
        { ...head, m: b, count: steps },
      ];
    }),
  );
}

/** Forward and backward of a LoRA adapter of rank r on every linear layer, in micro-batches of `batchRows`. The adapter
 * is merged (model/linear.ts): only its own gradient costs products of its own. */
export function trainingProducts(
  config: ModelConfig,
  shape: Rectangle,
  batchRows: number,
  r: number,
): Product[] {
  const { rows, prompt, completion } = shape;
  const length = prompt + completion;
  const { hidden_size: d, vocab_size: V, num_hidden_layers: layers } = config;
  return merged(
    batches(rows, batchRows).flatMap((b) => {
      const M = b * length;
      const lora = linearModules(config).flatMap(({ path, in: input, out }) => {
        // Nothing that is trained lies before the first layer's q, k and v: no gradient of their input there.
        const through = /[qkv]_proj$/.test(path) ? layers - 1 : layers;
        const product = (m: number, k: number, n: number, count: number) => ({ batch: 1, m, k, n, count });
        return [
          product(M, input, r, layers), // x A
          product(M, out, r, layers), // d(x A)
          product(r, M, out, layers), // dB
          product(input, M, r, layers), // dA
          product(M, out, input, through), // dx
        ];
      });
      return [
        ...linearProducts(config, M, 1),
        ...attentionProducts(config, b, length, length, 1),
        ...lora,
        ...attentionGradients(config, b, length),
        { batch: 1, m: b * completion, k: d, n: V, count: 1 },
        { batch: 1, m: b * completion, k: V, n: d, count: 1 },
      ];
    }),
  );
}

/** `rows` in batches of at most `batchRows`. */
function batches(rows: number, batchRows: number): number[] {
  const full = new Array<number>(Math.floor(rows / batchRows)).fill(batchRows);
  return rows % batchRows === 0 ? full : [...full, rows % batchRows];
}

function linearProducts(config: ModelConfig, m: number, times: number): Product[] {
  return linearModules(config).map((linear) => ({
    batch: 1,
    m,
    k: linear.in,
    n: linear.out,
    count: config.num_hidden_layers * times,
  }));
}

/** Scores and mixed values of `queries` positions against `keys`, the query heads of one key head stacked. */
function attentionProducts(
  config: ModelConfig,
  rows: number,
  queries: number,
  keys: number,
  times: number,
): Product[] {
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const [batch, m, count] = [rows * Hkv, (H / Hkv) * queries, config.num_hidden_layers * times];
  return [
    { batch, m, k: hd, n: keys, count },
    { batch, m, k: keys, n: hd, count },
  ];
}

/** dV, dP, dQ and dK. */
function attentionGradients(config: ModelConfig, rows: number, length: number): Product[] {
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const [batch, m, count] = [rows * Hkv, (H / Hkv) * length, config.num_hidden_layers];
  return [
    { batch, m: length, k: m, n: hd, count: 2 * count },
    { batch, m, k: hd, n: length, count },
    { batch, m, k: length, n: hd, count },
  ];
}
