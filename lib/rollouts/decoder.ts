/**
 * A batch of rows that are being decoded: prompts in, tokens out, rows leave. With a cache of
 * blocks a call decodes several tokens, on native TensorFlow as one graph (tensors/graph.ts); our own wasm kernels
 * cost next to nothing to call, and decode one.
 *
 * Only ids and log-probs come back to the host. Left out: when a row has ended (generate.ts).
 */
import * as tf from '@tensorflow/tfjs';
import {
  type Block,
  BlockCache,
  type DecodingWeights,
  decodeBlock,
  decodeStep,
  flatten,
  type Model,
  type ModelConfig,
  prefill,
  type Reading,
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
  /** What each prompt reads beside itself; the decoder's from here on. */
  readonly reading?: Reading | undefined;
}

/**
 * Reads the prompts and draws the first token of each copy.
 * @param copies which prompt each row of the batch starts from
 * @param uniforms [copies, 1]
 */
export function startDecoder(
  model: Model,
  { ids, padId, reading }: Prompts,
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
  const { logits, cache } = prefill(model, input, mask, reading);
  tf.dispose([input, mask]);
  cache.keep(copies);
  const draw = (from: tf.Tensor2D, shares: Float32Array): Drawn =>
    tf.tidy(() => download(sampleTokens(from, tf.tensor2d(shares, [cache.rows, 1]), choice, scalars)));
  const first = tf.tidy(() => draw(tf.gather(logits, tf.tensor1d([...copies], 'int32')), uniforms));
  logits.dispose();
  // A memory is outside what a graph of one call takes in.
  const inBlocks = cache instanceof BlockCache && !reading;
  const decoder: Decoder = {
    tokensPerCall: inBlocks ? TOKENS_PER_CALL : 1,
    next: (lastIds, shares) =>
      inBlocks
        ? nextBlock(cache, lastIds, shares, choice, scalars)
        : tf.tidy(() => draw(decodeStep(cache, lastIds), shares)),
    keep: (rows) => cache.keep(rows),
    dispose() {
      cache.dispose();
      tf.dispose([scalars.inverseTemperature, scalars.topP]);
    },
  };
  return { first, decoder };
}

function download({ ids, logProbs }: { ids: tf.Tensor; logProbs: tf.Tensor }) {
  return { ids: ids.dataSync<'int32'>() as Int32Array, logProbs: logProbs.dataSync() as Float32Array };
}

/**
 * A call's fixed cost, and the copy that makes room in the past, are shared by so many tokens. A row that ends inside
 * computes the rest in vain, so more is not better (16: 3% faster per computed token).
 */
const TOKENS_PER_CALL = 8;

function nextBlock(
  cache: BlockCache,
  lastIds: readonly number[],
  uniforms: Float32Array,
  choice: Choice,
  { inverseTemperature, topP }: ChoiceScalars,
): Drawn {
  const own = {
    ids: tf.tensor1d([...lastIds], 'int32'),
    positions: cache.positions(),
    uniforms: tf.tensor2d(uniforms, [cache.rows, TOKENS_PER_CALL]),
  };
  const { bias, long, weights } = cache;
  const decode = decodingGraph(cache.config, choice, weights);
  const [ids, logProbs, biasAfter, ...longAfter] = decode(
    listOf({ ...own, bias, inverseTemperature, topP, long, weights }),
  );
  const drawn = download({ ids: ids!, logProbs: logProbs! });
  tf.dispose([...Object.values(own), ids!, logProbs!]);
  cache.advance(asBlocks(longAfter), biasAfter as tf.Tensor3D);
  return drawn;
}

/** What one call reads. */
interface CallInputs extends ChoiceScalars {
  /** [R] int32 */
  readonly ids: tf.Tensor1D;
  /** [R, 1] */
  readonly positions: tf.Tensor2D;
  /** [R, TOKENS_PER_CALL] */
  readonly uniforms: tf.Tensor2D;
  /** [R Hkv, 1, L] */
  readonly bias: tf.Tensor3D;
  readonly long: readonly Block[];
  readonly weights: DecodingWeights;
}

/** A call's inputs as a graph takes them: a list; `fromList` is its inverse. */
function listOf({ ids, positions, uniforms, bias, inverseTemperature, topP, long, weights }: CallInputs) {
  const own: tf.Tensor[] = [ids, positions, uniforms, bias, inverseTemperature, topP];
  return [...own, ...long.flatMap(({ k, v }) => [k, v]), ...flatten(weights)];
}

function fromList(list: readonly tf.Tensor[], config: ModelConfig): CallInputs {
  const { num_hidden_layers: layers } = config;
  const [ids, positions, uniforms, bias, inverseTemperature, topP, ...rest] = list as [
    tf.Tensor1D,
    tf.Tensor2D,
    tf.Tensor2D,
    tf.Tensor3D,
    tf.Scalar,
    tf.Scalar,
    ...tf.Tensor[],
  ];
  const [long, weights] = [asBlocks(rest.slice(0, 2 * layers)), unflatten(rest.slice(2 * layers), config)];
  return { ids, positions, uniforms, bias, inverseTemperature, topP, long, weights };
}

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

/** What a graph of one call computes: ids and log-probs [R, TOKENS_PER_CALL], the bias and the blocks after it. */
function decodingFunction(config: ModelConfig, choice: Choice): TensorFunction {
  return (list) =>
    tf.tidy(() => {
      const { uniforms, ...inputs } = fromList(list, config);
      const shares = tf.split(uniforms, TOKENS_PER_CALL, 1) as tf.Tensor2D[];
      const drawn: { ids: tf.Tensor1D; logProbs: tf.Tensor1D }[] = [];
      const next = (logits: tf.Tensor2D, step: number) => {
        drawn.push(sampleTokens(logits, shares[step]!, choice, inputs));
        return drawn.at(-1)!.ids;
      };
      const after = decodeBlock(config, { ...inputs, next }, TOKENS_PER_CALL);
      const columns = (xs: readonly tf.Tensor1D[]) =>
        tf.concat(
          xs.map((x) => tf.reshape(x, [-1, 1]) as tf.Tensor2D),
          1,
        );
      return [
        columns(drawn.map(({ ids }) => ids)),
        columns(drawn.map(({ logProbs }) => logProbs)),
        after.bias,
        ...after.long.flatMap(({ k, v }) => [k, v]),
      ];
    });
}

/** Inputs of the right kinds with R rows and L places in the past. */
function exampleInputs(config: ModelConfig, weights: DecodingWeights, R: number, L: number): tf.Tensor[] {
  const { num_hidden_layers: layers, num_key_value_heads: Hkv, head_dim: hd } = config;
  const block = () => tf.zeros<tf.Rank.R3>([R * Hkv, L, hd]);
  return listOf({
    ids: tf.zeros([R], 'int32'),
    positions: tf.fill([R, 1], L),
    uniforms: tf.fill([R, TOKENS_PER_CALL], 0.5),
    bias: tf.zeros([R * Hkv, 1, L]),
    inverseTemperature: tf.scalar(1),
    topP: tf.scalar(0.9),
    long: Array.from({ length: layers }, () => ({ k: block(), v: block() })),
    weights: unflatten(
      flatten(weights).map((weight) => tf.clone(weight)),
      config,
    ),
  });
}
