/**
 * Decoding as a pure function of tensors: a few tokens per row against blocks of keys and values, so that the whole of
 * it can be one graph (tensors/graph.ts). Products of the same input are joined and the norms' weights folded into
 * them; a layer's past is one block, which is copied once per call to get room for the call's tokens; these are then
 * written in place, where the backend can.
 *
 * Left out: how a token is chosen (a function that is handed in), rows that leave (blocks are gathered outside).
 */
import * as tf from '@tensorflow/tfjs';
import { hasQkNorm, type ModelConfig } from './config.js';
import { hidingBias, rmsNormalise, rotary, rotate, swiglu, writeRows } from './operations.js';
import { type Beside, forward, logits, type Model } from './transformer.js';

/** A model's weights as decoding reads them. */
export interface DecodingWeights {
  readonly layers: readonly LayerWeights[];
  /** [V, d] */
  readonly embedding: tf.Tensor2D;
  /** [d, V], the final norm folded in. */
  readonly head: tf.Tensor2D;
}

interface LayerWeights {
  /** [d, (H + 2 Hkv) hd]: queries (times 1 / sqrt(hd) where no norm follows), keys, values; the norm before folded in. */
  readonly qkv: tf.Tensor2D;
  /** [1, H + Hkv, 1, hd]: the norms' weights of queries, times 1 / sqrt(hd), and of keys; where there are such norms. */
  readonly qkNorm?: tf.Tensor4D;
  /** [H hd, d] */
  readonly output: tf.Tensor2D;
  /** [d, 2 I]; the norm before them folded in. */
  readonly gateUp: tf.Tensor2D;
  /** [I, d] */
  readonly down: tf.Tensor2D;
}

/** One layer's past: keys and values [R Hkv, L, hd]. */
export type Block = { readonly k: tf.Tensor3D; readonly v: tf.Tensor3D };

/** @throws RangeError on a row that is not there */
export function checkRows(rows: readonly number[], count: number): void {
  for (const row of rows)
    if (!Number.isInteger(row) || row < 0 || row >= count)
      throw new RangeError(`row ${row} is not in the cache: allowed are 0 to ${count - 1}`);
}

/** Joins and folds a model's weights; the caller disposes of them (`flatten` lists them). */
export function joinWeights({ config, weights }: Model): DecodingWeights {
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const at = (name: string) => weights[`${name}.weight`]!;
  const qkNorm = hasQkNorm(config);
  const scale = 1 / Math.sqrt(hd);
  /** Linear modules of one input side by side, each row times the weight of the norm before them. */
  const join = (norm: string, modules: readonly tf.Tensor[]) =>
    tf.mul<tf.Tensor2D>(tf.concat([...modules], 1), tf.reshape(at(norm), [-1, 1]));
  return tf.tidy(() => ({
    layers: Array.from({ length: config.num_hidden_layers }, (_, i) => {
      const layer = `model.layers.${i}`;
      const attention = `${layer}.self_attn`;
      const heads = (name: string, n: number) =>
        tf.tile<tf.Tensor4D>(tf.reshape(at(`${attention}.${name}`), [1, 1, 1, hd]), [1, n, 1, 1]);
      const [q, k, v] = ['q', 'k', 'v'].map((name) => at(`${attention}.${name}_proj`));
      return {
        // A norm would undo the scale of the queries: then its own weight has it.
        qkv: join(`${layer}.input_layernorm`, [qkNorm ? q! : tf.mul(q!, scale), k!, v!]),
        ...(qkNorm && {
          qkNorm: tf.concat([tf.mul<tf.Tensor4D>(heads('q_norm', H), scale), heads('k_norm', Hkv)], 1),
        }),
        output: tf.clone(at(`${attention}.o_proj`)) as tf.Tensor2D,
        gateUp: join(
          `${layer}.post_attention_layernorm`,
          ['gate_proj', 'up_proj'].map((name) => at(`${layer}.mlp.${name}`)),
        ),
        down: tf.clone(at(`${layer}.mlp.down_proj`)) as tf.Tensor2D,
      };
    }),
    embedding: tf.clone(at('model.embed_tokens')) as tf.Tensor2D,
    head: tf.mul<tf.Tensor2D>(
      config.tie_word_embeddings ? tf.transpose(at('model.embed_tokens')) : at('lm_head'),
      tf.reshape(at('model.norm'), [-1, 1]),
    ),
  }));
}

/** The weights as a list, and back from one: a graph's inputs are a list. */
export function flatten({ layers, embedding, head }: DecodingWeights): tf.Tensor[] {
  const inLayer = ({ qkv, qkNorm, output, gateUp, down }: LayerWeights) => [
    ...(qkNorm ? [qkv, qkNorm] : [qkv]),
    output,
    gateUp,
    down,
  ];
  return [...layers.flatMap(inLayer), embedding, head];
}

export function unflatten(list: readonly tf.Tensor[], config: ModelConfig): DecodingWeights {
  const names = ['qkv', ...(hasQkNorm(config) ? ['qkNorm'] : []), 'output', 'gateUp', 'down'];
  const layers = Array.from({ length: config.num_hidden_layers }, (_, layer) => {
    const named = names.map((name, i) => [name, list[names.length * layer + i]]);
    return Object.fromEntries(named) as LayerWeights;
  });
  return { layers, embedding: list.at(-2) as tf.Tensor2D, head: list.at(-1) as tf.Tensor2D };
}

/**
 * Reads prompts.
 * @param ids [R, T] int32, padded on the left
 * @param mask [R, T] float, 1 at real tokens
 * @returns logits [R, V] after each row's last token, each layer's block of T places (kept: no tidy frees them), and
 *   the bias that hides its padding (see DecodeInputs)
 */
export function prefillBlocks(
  model: Model,
  ids: tf.Tensor2D,
  mask: tf.Tensor2D,
  beside?: Beside,
): { logits: tf.Tensor2D; long: Block[]; bias: tf.Tensor3D } {
  const { hidden_size: d, head_dim: hd, num_key_value_heads: Hkv } = model.config;
  const [R, T] = ids.shape;
  return tf.tidy(() => {
    const long: Block[] = [];
    const rank3 = (x: tf.Tensor4D) => tf.keep(tf.reshape(x, [-1, T, hd]) as tf.Tensor3D);
    const hidden = forward(model, ids, mask, undefined, {
      span: { start: T - 1, count: 1 },
      onKeys: (k, v) => long.push({ k: rank3(k), v: rank3(v) }),
      beside,
    });
    const perKeyHead = tf.tile(tf.reshape(hidingBias(mask), [R, 1, T]), [1, Hkv, 1]);
    return {
      logits: logits(model, tf.reshape(hidden, [R, d]) as tf.Tensor2D),
      long,
      bias: tf.reshape(perKeyHead, [R * Hkv, 1, T]) as tf.Tensor3D,
    };
  });
}

/** What a call decodes: the state before it, and how each next token comes from the logits. */
export interface DecodeInputs {
  readonly weights: DecodingWeights;
  /** Each layer's past. */
  readonly long: readonly Block[];
  /** [R Hkv, 1, L], added to the scores of the past: hides padding. */
  readonly bias: tf.Tensor3D;
  /** [R] int32, the last token of each row. */
  readonly ids: tf.Tensor1D;
  /** [R, 1], the position of that token. */
  readonly positions: tf.Tensor2D;
  /** @param step counts the tokens of this call; returns the next ids [R] int32 */
  readonly next: (logits: tf.Tensor2D, step: number) => tf.Tensor1D;
  readonly beside?: Beside | undefined;
}

/**
 * Decodes some tokens per row.
 * @returns each layer's past with the keys and values of the tokens that were read (the last one that was chosen is
 *   not among them), and the bias of that past
 */
export function decodeBlock(
  config: ModelConfig,
  inputs: DecodeInputs,
  steps: number,
): { long: Block[]; bias: tf.Tensor3D } {
  const { weights, long, bias, positions, beside } = inputs;
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const own = ownPlaces(bias, steps);
  // Each layer's past with room for this call's tokens; a token's place is written when it is read.
  const room = long.map(({ k, v }) => ({ k: withRoom(k), v: withRoom(v) }));
  let ids = inputs.ids;
  for (let step = 0; step < steps; step++) {
    const table = rotary(tf.add(positions, step), hd, config.rope_theta);
    const place = own.indices(step);
    const seen = own.bias(step);
    const write = (past: tf.Tensor3D, now: tf.Tensor): tf.Tensor3D => {
      const flat = (x: tf.Tensor) => tf.reshape(x, [-1, hd]) as tf.Tensor2D;
      return tf.reshape(writeRows(flat(past), place, flat(now)), past.shape);
    };
    let x = tf.gather(weights.embedding, ids);
    weights.layers.forEach((w, layer) => {
      const qkv = tf.reshape(tf.matMul(normalise(x), w.qkv), [-1, H + 2 * Hkv, 1, hd]) as tf.Tensor4D;
      const [qk, v] = tf.split(qkv, [H + Hkv, Hkv], 1) as [tf.Tensor4D, tf.Tensor4D];
      const turned = rotate(w.qkNorm ? tf.mul(normalise(qk), w.qkNorm) : qk, table);
      const [q, k] = tf.split(turned, [H, Hkv], 1);
      const past = room[layer]!;
      past.k = write(past.k, k!);
      past.v = write(past.v, v);
      const query = tf.reshape(q!, [-1, H / Hkv, hd]) as tf.Tensor3D;
      const p = tf.softmax(tf.add(tf.matMul(query, past.k, false, true), seen)) as tf.Tensor3D;
      const own = tf.matMul(p, past.v);
      const mixed = beside
        ? tf.add(own, tf.reshape(beside(layer, tf.mul(q!, Math.sqrt(hd))), own.shape))
        : own;
      x = tf.add(x, tf.matMul(tf.reshape(mixed, [-1, H * hd]) as tf.Tensor2D, w.output));
      const [gate, up] = tf.split(tf.matMul(normalise(x), w.gateUp), 2, 1) as [tf.Tensor2D, tf.Tensor2D];
      x = tf.add(x, tf.matMul(swiglu(gate, up), w.down));
    });
    ids = inputs.next(tf.matMul(normalise(x), weights.head), step);
  }
  return { long: room, bias: own.bias(steps - 1) };

  function withRoom(past: tf.Tensor3D): tf.Tensor3D {
    return tf.pad(past, [
      [0, 0],
      [0, steps],
      [0, 0],
    ]);
  }

  function normalise<T extends tf.Tensor>(y: T): T {
    return rmsNormalise(y, config.rms_norm_eps);
  }
}

/**
 * Where this call's tokens lie: after the past, in the same place in every row. Everything follows from the bias of
 * the past [R Hkv, 1, L] without a size being spelt out, so that one graph serves all.
 */
function ownPlaces(bias: tf.Tensor3D, steps: number) {
  const zeroPerRow = tf.mul(tf.slice(bias, [0, 0, 0], [-1, 1, 1]), 0);
  const one = tf.add(tf.reshape(zeroPerRow, [-1]), 1);
  const rows = tf.cast(tf.cumsum(one, 0, true), 'int32') as tf.Tensor1D;
  const firstRow = tf.slice(bias, [0, 0, 0], [1, 1, -1]);
  const whole = (n: number) => tf.scalar(n, 'int32');
  const length = tf.cast(tf.sum(tf.add(tf.mul(firstRow, 0), 1)), 'int32');
  return {
    /** [R Hkv] int32: where each row's token of this step lies among all places of all rows. */
    indices: (step: number): tf.Tensor1D =>
      tf.add(tf.mul(rows, tf.add(length, whole(steps))), tf.add(length, whole(step))),
    /** [R Hkv, 1, L + steps]: the past's bias, and what this step sees of the call's own places. */
    bias(step: number): tf.Tensor3D {
      const seen = Float32Array.from({ length: steps }, (_, i) => Number(i <= step));
      const ahead = tf.add(zeroPerRow, hidingBias(tf.tensor3d(seen, [1, 1, steps])));
      return tf.concat([bias, ahead as tf.Tensor3D], 2);
    },
  };
}
