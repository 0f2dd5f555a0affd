/**
 * A batch of rows that are being decoded: prompts in, tokens out, rows leave. Two ways behind one interface, chosen by
 * the backend: native TensorFlow decodes several tokens per call, all of it one graph (model/blocks.ts); elsewhere
 * every token is a call on the cache of model/cache.ts.
 *
 * Only ids and log-probs come back to the host. Left out: when a row has ended (generate.ts).
 */
import * as tf from '@tensorflow/tfjs';
import {
  type Block,
  type DecodingWeights,
  decodeBlock,
  decodeStep,
  flatten,
  joinWeights,
  type Model,
  type ModelConfig,
  prefill,
  prefillBlocks,
  unflatten,
} from '../model/index.js';
import { asGraph, type TensorFunction } from '../tensors/graph.js';
import {
  type Choice,
  type ChoiceScalars,
  choiceOf,
  choiceScalars,
  type SamplingOptions,
  sampleTokens,
} from './sampler.js';

/** Tokens and their log-probs, row by row: [R, n]. */
export type Drawn = Readonly<{ ids: Int32Array; logProbs: Float32Array }>;

export interface Decoder {
  /** How many tokens `next` decodes per row. */
  readonly tokensPerCall: number;
  /**
   * The tokens after those that were drawn last.
   * @param lastIds one per row
   * @param uniforms [R, tokensPerCall], see `uniformFloat`
   */
  next(lastIds: readonly number[], uniforms: Float32Array): Drawn;
  /** Keeps these rows, in this order; a row may be named more than once. */
  keep(rows: readonly number[]): void;
  dispose(): void;
}

/** The prompts as one rectangle [R, T], padded on the left. */
export interface Prompts {
  readonly ids: readonly (readonly number[])[];
  readonly padId: number;
}

/**
 * Reads the prompts and draws the first token of each copy.
 * @param copies which prompt each row of the batch starts from
 * @param uniforms [copies, 1]
 */
export function startDecoder(
  model: Model,
  { ids, padId }: Prompts,
  copies: readonly number[],
  uniforms: Float32Array,
  options: SamplingOptions,
): { first: Drawn; decoder: Decoder } {
  const width = Math.max(...ids.map((row) => row.length));
  const padding = (row: readonly number[]) => new Array<number>(width - row.length);
  const input = tf.tensor2d(
    ids.map((row) => [...padding(row).fill(padId), ...row]),
    undefined,
    'int32',
  );
  const mask = tf.tensor2d(ids.map((row) => [...padding(row).fill(0), ...row.map(() => 1)]));
  const choice = choiceOf(options);
  const scalars = choiceScalars(options);
  const start = tf.getBackend() === 'tensorflow' ? startBlocks : startSteps;
  const { logits, decoder } = start(model, input, mask, choice, scalars);
  decoder.keep(copies);
  const first = tf.tidy(() => {
    const rows = tf.gather(logits, tf.tensor1d([...copies], 'int32'));
    return download(sampleTokens(rows, tf.tensor2d(uniforms, [copies.length, 1]), choice, scalars));
  });
  logits.dispose();
  return { first, decoder };
}

function download({ ids, logProbs }: { ids: tf.Tensor; logProbs: tf.Tensor }) {
  return { ids: ids.dataSync<'int32'>() as Int32Array, logProbs: logProbs.dataSync() as Float32Array };
}

/** What both ways start from. */
type Start = (
  model: Model,
  ids: tf.Tensor2D,
  mask: tf.Tensor2D,
  choice: Choice,
  scalars: ChoiceScalars,
) => { logits: tf.Tensor2D; decoder: Decoder };

const startSteps: Start = (model, ids, mask, choice, scalars) => {
  const { logits, cache } = prefill(model, ids, mask);
  tf.dispose([ids, mask]);
  const decoder: Decoder = {
    tokensPerCall: 1,
    next: (lastIds, uniforms) =>
      tf.tidy(() => {
        const rows = decodeStep(model, cache, lastIds);
        return download(sampleTokens(rows, tf.tensor2d(uniforms, [lastIds.length, 1]), choice, scalars));
      }),
    keep: (rows) => cache.keep(rows),
    dispose() {
      cache.dispose();
      tf.dispose([scalars.inverseTemperature, scalars.topP]);
    },
  };
  return { logits, decoder };
};

/**
 * A call's fixed cost is shared by so many tokens; a row that ends inside computes the rest in vain, and their keys
 * are attended to in a block of their own, so more is not better.
 */
const TOKENS_PER_CALL = 8;

const startBlocks: Start = (model, ids, mask, choice, scalars) => {
  const weights = joinWeights(model);
  const weightList = flatten(weights);
  const started = prefillBlocks(model, ids, mask);
  const state = { long: started.long, bias: started.bias };
  // A row's next position is the number of its real tokens.
  let positions = Array.from(tf.tidy(() => tf.sum(mask, 1).dataSync()));
  tf.dispose([ids, mask]);
  const decode = decodingGraph(model.config, choice, weights);
  const replace = (long: Block[], bias: tf.Tensor3D) => {
    tf.dispose([state.bias, ...state.long.flatMap(({ k, v }) => [k, v])]);
    Object.assign(state, { long, bias });
  };
  const decoder: Decoder = {
    tokensPerCall: TOKENS_PER_CALL,
    next(lastIds, uniforms) {
      const R = lastIds.length;
      const own = [
        tf.tensor1d([...lastIds], 'int32'),
        tf.tensor2d(positions, [R, 1]),
        tf.tensor2d(uniforms, [R, TOKENS_PER_CALL]),
      ];
      const inputs = [
        ...own,
        state.bias,
        scalars.inverseTemperature,
        scalars.topP,
        ...state.long.flatMap(({ k, v }) => [k, v]),
        ...weightList,
      ];
      const [drawnIds, logProbs, longer, ...blocks] = decode(inputs);
      const drawn = download({ ids: drawnIds!, logProbs: logProbs! });
      tf.dispose([...own, drawnIds!, logProbs!]);
      replace(asBlocks(blocks), longer as tf.Tensor3D);
      positions = positions.map((position) => position + TOKENS_PER_CALL);
      return drawn;
    },
    keep(rows) {
      const kept = tf.tidy(() => {
        const indices = tf.tensor1d([...rows], 'int32');
        /** Rank 2 is gathered in one copy per row. */
        const pick = (x: tf.Tensor3D) => {
          const flat = tf.gather(tf.reshape(x, [positions.length, -1]), indices);
          return tf.reshape(flat, [-1, x.shape[1], x.shape[2]]) as tf.Tensor3D;
        };
        const long = state.long.map(({ k, v }) => ({ k: pick(k), v: pick(v) }));
        return { long, bias: pick(state.bias) };
      });
      replace(kept.long, kept.bias);
      positions = rows.map((row) => positions[row]!);
    },
    dispose() {
      const past = state.long.flatMap(({ k, v }) => [k, v]);
      tf.dispose([state.bias, ...past, scalars.inverseTemperature, scalars.topP, ...weightList]);
    },
  };
  return { logits: started.logits, decoder };
};

function asBlocks(list: readonly tf.Tensor[]): Block[] {
  return Array.from({ length: list.length / 2 }, (_, i) => ({
    k: list[2 * i] as tf.Tensor3D,
    v: list[2 * i + 1] as tf.Tensor3D,
  }));
}

const graphs = new Map<string, TensorFunction>();

/** The graph of one call for this architecture, made at first use and kept until the thread ends. */
function decodingGraph(config: ModelConfig, choice: Choice, weights: DecodingWeights): TensorFunction {
  const key = JSON.stringify([config, choice]);
  let graph = graphs.get(key);
  if (!graph) {
    graph = asGraph(decodingFunction(config, choice), () => [
      exampleInputs(config, weights, 2, 3),
      exampleInputs(config, weights, 3, 5),
    ]);
    graphs.set(key, graph);
  }
  return graph;
}

/** Inputs and outputs in the order in which `next` gives and takes them. */
function decodingFunction(config: ModelConfig, choice: Choice): TensorFunction {
  const blocksOf = 2 * config.num_hidden_layers;
  return (inputs) =>
    tf.tidy(() => {
      const [ids, positions, uniforms, bias, inverseTemperature, topP] = inputs as [
        tf.Tensor1D,
        tf.Tensor2D,
        tf.Tensor2D,
        tf.Tensor3D,
        tf.Scalar,
        tf.Scalar,
      ];
      const shares = tf.split(uniforms, TOKENS_PER_CALL, 1) as tf.Tensor2D[];
      const drawn: { ids: tf.Tensor1D; logProbs: tf.Tensor1D }[] = [];
      const long = decodeBlock(
        config,
        {
          weights: unflatten(inputs.slice(6 + blocksOf)),
          long: asBlocks(inputs.slice(6, 6 + blocksOf)),
          bias,
          ids,
          positions,
          next(logits, step) {
            drawn.push(sampleTokens(logits, shares[step]!, choice, { inverseTemperature, topP }));
            return drawn.at(-1)!.ids;
          },
        },
        TOKENS_PER_CALL,
      );
      const columns = (xs: readonly tf.Tensor1D[]) =>
        tf.concat(
          xs.map((x) => tf.reshape(x, [-1, 1]) as tf.Tensor2D),
          1,
        );
      // What was read just now is seen by everybody.
      const seen = tf.tile(tf.mul(tf.slice(bias, [0, 0, 0], [-1, 1, 1]), 0), [1, 1, TOKENS_PER_CALL]);
      return [
        columns(drawn.map(({ ids }) => ids)),
        columns(drawn.map(({ logProbs }) => logProbs)),
        tf.concat([bias, seen], 2),
        ...long.flatMap(({ k, v }) => [k, v]),
      ];
    });
}

/** Inputs of the right kinds with R rows and L places in the past. */
function exampleInputs(config: ModelConfig, weights: DecodingWeights, R: number, L: number): tf.Tensor[] {
  const { num_hidden_layers: layers, num_key_value_heads: Hkv, head_dim: hd } = config;
  return [
    tf.zeros([R], 'int32'),
    tf.fill([R, 1], L),
    tf.fill([R, TOKENS_PER_CALL], 0.5),
    tf.zeros([R * Hkv, 1, L]),
    tf.scalar(1),
    tf.scalar(0.9),
    ...Array.from({ length: 2 * layers }, () => tf.zeros([R * Hkv, L, hd])),
    ...flatten(weights).map((weight) => tf.clone(weight)),
  ];
}
