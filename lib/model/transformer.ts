/**
 * The transformer of Qwen3 (arXiv 2505.09388) and of Llama (arXiv 2302.13971): token ids in, hidden states and logits
 * out, differentiable in the base's weights and in a LoRA adapter's; layers as in transformers' Qwen3ForCausalLM and
 * LlamaForCausalLM.
 *
 * Linear weights lie in memory as [in, out], transposed against the file, so that a layer is x W. Modules that read
 * the same input are not joined here: their products run at the machine's rate one by one, and TensorFlow.js would
 * copy to take the joined result apart. Left out: the KV cache (cache.ts), files (checkpoint.ts).
 */
import * as tf from '@tensorflow/tfjs';
import type { Random } from '../random.js';
import type { OutputHead } from '../tensors/logprobs.js';
import { checkpoint } from './checkpointing.js';
import { hasQkNorm, isLinear, type ModelConfig, parameterShapes } from './config.js';
import { adaptedLinear } from './linear.js';
import {
  attention,
  attentionBias,
  embed,
  type Rotary,
  rmsNorm,
  rotary,
  rotate,
  swiglu,
} from './operations.js';
import type { HostTensor } from './safetensors.js';

/** Parameters by their Hugging Face names; linear ones are [in, out] (see above). */
export type Weights = Readonly<Record<string, tf.Tensor>>;

/** A model in memory. Several may share weights: `dispose` frees only what this one brought. */
export interface Model {
  readonly config: ModelConfig;
  readonly weights: Weights;
  dispose(): void;
}

/** A LoRA adapter in the backend: PEFT names, lora_A [r, in] and lora_B [out, r] (see lora.ts). */
export interface LoraTensors {
  /** alpha / r */
  readonly scale: number;
  readonly weights: Readonly<Record<string, tf.Tensor2D>>;
}

/** What a layer asks for: from rotated queries [R, H, T, hd] and this call's keys and values, the mixed values. */
type Attend = (q: tf.Tensor4D, k: tf.Tensor4D, v: tf.Tensor4D) => tf.Tensor4D;

/**
 * What a layer's queries read beside their own sequence (lib/latent): from rotated queries [R, H, T, hd], what is added
 * to the mixed values.
 */
export type Beside = (layer: number, q: tf.Tensor4D) => tf.Tensor4D;

/** The name PEFT gives to a LoRA matrix of a linear module, e.g. of `model.layers.0.self_attn.q_proj`. */
export function loraName(module: string, matrix: 'A' | 'B'): string {
  return `base_model.model.${module}.lora_${matrix}.weight`;
}

/** Positions of a row: `count` of them from `start` on. */
export interface Span {
  readonly start: number;
  readonly count: number;
}

export interface ForwardOptions {
  /**
   * Keep only each layer's input for the adapter's gradient and compute the layer again when its turn comes: less
   * memory, a third more time.
   */
  readonly gradientCheckpointing?: boolean | undefined;
  /** The positions that are asked for: the last layer computes no others. Default all. */
  readonly span?: Span;
  /**
   * Gets each layer's rotated keys and its values [R, Hkv, T, hd], in order; `tf.keep` what has to stay. Not together
   * with `gradientCheckpointing`.
   */
  readonly onKeys?: (k: tf.Tensor4D, v: tf.Tensor4D) => void;
  /** Not together with `gradientCheckpointing`. */
  readonly beside?: Beside | undefined;
}

/**
 * The final, normalised hidden states.
 * @param ids [R, T] int32
 * @param attentionMask [R, T], 1 at real tokens and 0 at padding, left or right; padding changes no real token
 * @param lora differentiable; merged into the weights for this call alone (linear.ts)
 * @returns [R, T or the span's count, d]; rows of padding are finite and mean nothing
 */
export function forward(
  model: Model,
  ids: tf.Tensor2D,
  attentionMask: tf.Tensor2D,
  lora?: LoraTensors,
  { gradientCheckpointing, span, onKeys, beside }: ForwardOptions = {},
): tf.Tensor3D {
  const { shape } = ids;
  if (gradientCheckpointing && beside)
    throw new Error('gradientCheckpointing true: with a memory beside the prompt only false is allowed');
  const { hidden_size, head_dim, rope_theta, rms_norm_eps, num_hidden_layers } = model.config;
  return tf.tidy(() => {
    const mask = tf.cast(attentionMask, 'float32');
    const table = rotary(positionsOf(mask), head_dim, rope_theta);
    const bias = attentionBias(mask);
    let x = embed(model.weights['model.embed_tokens.weight'] as tf.Tensor2D, tf.reshape(ids, [-1]));
    for (let layer = 0; layer < num_hidden_layers; layer++) {
      const out = layer === num_hidden_layers - 1 ? span : undefined;
      if (gradientCheckpointing && lora) {
        x = checkpointedBlock(model, layer, x, shape, table, bias, lora, out);
        continue;
      }
      const attend: Attend = (q, k, v) => {
        onKeys?.(k, v);
        const mixed = attention(q, k, v, within(bias, out));
        return beside ? tf.add(mixed, beside(layer, q)) : mixed;
      };
      const before = x;
      x = tf.tidy(() => block(model, layer, before, shape, table, attend, lora, out));
    }
    const hidden = rmsNorm(x, model.weights['model.norm.weight'] as tf.Tensor1D, rms_norm_eps);
    return tf.reshape(hidden, [shape[0], span?.count ?? shape[1], hidden_size]);
  });
}

/**
 * Next-token logits.
 * @param hidden [..., d], as `forward` gives it
 * @returns [..., V]
 */
export function logits<T extends tf.Tensor>(model: Model, hidden: T): T {
  return tf.tidy(() => {
    const { weight, transposed } = outputHead(model);
    const rows = tf.reshape(hidden as tf.Tensor, [-1, model.config.hidden_size]) as tf.Tensor2D;
    const flat = tf.matMul(rows, weight, false, transposed);
    return tf.reshape(flat, [...hidden.shape.slice(0, -1), model.config.vocab_size]) as tf.Tensor as T;
  });
}

/** The matrix that makes logits: the embedding's own where the config ties them. */
export function outputHead({ config, weights }: Model): OutputHead {
  const transposed = config.tie_word_embeddings;
  const name = transposed ? 'model.embed_tokens.weight' : 'lm_head.weight';
  return { weight: weights[name] as tf.Tensor2D, transposed };
}

/** Positions count real tokens, so that padding on either side gives the numbers of the unpadded row. */
function positionsOf(mask: tf.Tensor2D): tf.Tensor2D {
  return tf.tidy(() => tf.relu(tf.sub(tf.cumsum(mask, 1), 1)) as tf.Tensor2D);
}

/**
 * One layer: attention and MLP, each after a norm and added to what came in.
 * @param x [R * T, d]
 * @param span the positions that come out, which read the keys of all
 * @returns [R * T or R * count, d]
 */
function block(
  { config, weights }: Model,
  layer: number,
  x: tf.Tensor2D,
  [R, T]: readonly [number, number],
  table: Rotary,
  attend: Attend,
  lora?: LoraTensors,
  span?: Span,
): tf.Tensor2D {
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd, rms_norm_eps: eps } = config;
  const at = `model.layers.${layer}`;
  const norm = <S extends tf.Tensor>(x: S, name: string): S =>
    rmsNorm(x, weights[`${at}.${name}.weight`] as tf.Tensor1D, eps);
  const linear = (x: tf.Tensor2D, name: string, frozenInput = false): tf.Tensor2D => {
    const module = `${at}.${name}`;
    const W = weights[`${module}.weight`] as tf.Tensor2D;
    const A = lora?.weights[loraName(module, 'A')];
    const B = lora?.weights[loraName(module, 'B')];
    if (!lora || !A || !B) return tf.matMul(x, W);
    return adaptedLinear(x, { W, A, B, scale: lora.scale }, frozenInput);
  };
  /** [R * n, heads * hd] -> [R, n, heads, hd] */
  const heads = (x: tf.Tensor2D, n: number) => tf.reshape(x, [R, -1, n, hd]) as tf.Tensor4D;
  const headNorm = (x: tf.Tensor4D, name: string) => (hasQkNorm(config) ? norm(x, name) : x);
  const headsFirst = (x: tf.Tensor4D) => tf.transpose(x, [0, 2, 1, 3]);
  /** The rows of x [R * T, n] that come out. */
  const out = (x: tf.Tensor2D) =>
    span ? (tf.reshape(within(tf.reshape(x, [R, 1, T, -1]), span), [-1, x.shape[1]]) as tf.Tensor2D) : x;

  const frozen = layer === 0; // under an adapter: the embedding is not trained
  const normed = norm(x, 'input_layernorm');
  const q = headNorm(heads(linear(out(normed), 'self_attn.q_proj', frozen), H), 'self_attn.q_norm');
  const k = headNorm(heads(linear(normed, 'self_attn.k_proj', frozen), Hkv), 'self_attn.k_norm');
  const v = heads(linear(normed, 'self_attn.v_proj', frozen), Hkv);
  const queryTable = { ...table, cos: within(table.cos, span), sin: within(table.sin, span) };
  const mixed = attend(rotate(headsFirst(q), queryTable), rotate(headsFirst(k), table), headsFirst(v));
  const rows = tf.reshape(headsFirst(mixed), [-1, H * hd]) as tf.Tensor2D;
  const attended = tf.add<tf.Tensor2D>(out(x), linear(rows, 'self_attn.o_proj'));
  const normed2 = norm(attended, 'post_attention_layernorm');
  const inner = swiglu(linear(normed2, 'mlp.gate_proj'), linear(normed2, 'mlp.up_proj'));
  return tf.add(attended, linear(inner, 'mlp.down_proj'));
}

/** The positions of a span in x [R, n, T, m]; x itself where there is none. */
function within(x: tf.Tensor4D, span: Span | undefined): tf.Tensor4D {
  return span ? tf.slice(x, [0, 0, span.start, 0], [-1, -1, span.count, -1]) : x;
}

/** `block` with full attention, of which only the input is kept for the gradient (checkpointing.ts). */
function checkpointedBlock(
  model: Model,
  layer: number,
  x: tf.Tensor2D,
  shape: readonly [number, number],
  table: Rotary,
  bias: tf.Tensor4D,
  lora: LoraTensors,
  span: Span | undefined,
): tf.Tensor2D {
  const names = Object.keys(lora.weights).filter((name) => name.includes(`.layers.${layer}.`));
  return checkpoint(
    (x, trained, constants) => {
      const [cos, sin, swap, bias] = constants as [tf.Tensor4D, tf.Tensor4D, tf.Tensor2D, tf.Tensor4D];
      const own = Object.fromEntries(names.map((name, i) => [name, trained[i] as tf.Tensor2D]));
      const attend: Attend = (q, k, v) => attention(q, k, v, within(bias, span));
      return block(model, layer, x, shape, { cos, sin, swap }, attend, { ...lora, weights: own }, span);
    },
    x,
    names.map((name) => lora.weights[name]!),
    [table.cos, table.sin, table.swap, bias],
  );
}

/** A new model: weights ~ N(0, std), norms one (transformers' initialisation). */
export function initModel(config: ModelConfig, random: Random, std = 0.02): Model {
  return uploadModel(config, (_name, shape) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    return { shape, data: shape.length === 1 ? data.fill(1) : data.map(() => std * random.normal()) };
  });
}

/** Puts a model's parameters, in the file's shapes, into the backend one by one. */
export function uploadModel(
  config: ModelConfig,
  parameter: (name: string, shape: readonly number[]) => HostTensor,
): Model {
  const weights: Record<string, tf.Tensor> = {};
  const dispose = () => tf.dispose(weights);
  try {
    for (const [name, shape] of parameterShapes(config)) {
      const host = tf.tensor(parameter(name, shape).data, [...shape], 'float32');
      weights[name] = isLinear(name) ? tf.transpose(host) : host;
      if (isLinear(name)) host.dispose();
    }
  } catch (error) {
    dispose();
    throw error;
  }
  return { config, weights, dispose };
}

/** A model's parameters in the file's names and shapes. */
export function downloadModel(model: Model): Record<string, HostTensor> {
  const host: Record<string, HostTensor> = {};
  for (const [name, shape] of parameterShapes(model.config)) {
    const weight = model.weights[name]!;
    const inFile = isLinear(name) ? tf.transpose(weight) : weight;
    host[name] = { shape, data: inFile.dataSync<'float32'>() as Float32Array };
    if (inFile !== weight) inFile.dispose();
  }
  return host;
}
