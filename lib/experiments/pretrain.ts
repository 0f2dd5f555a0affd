/**
 * Trains a base on generated traces: next-token prediction on the completions, from scratch or from another base.
 *
 * Batches are cut from pools of examples sorted by length, so little is padding. Gradients are split over the
 * worker pool in fixed shards and summed in order; AdamW runs on the host. A checkpoint makes it resumable.
 * Left out: real text, and any use of the validation or held-out problems.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { z } from 'zod';
import { appendJsonl, check, readJsonl, writeFileAtomic } from '../files.js';
import { clipGradNorm, initAdamW, type NamedArrays, scheduleFactor, updateAdamW } from '../grpo/adamw.js';
import {
  forward,
  type HostTensor,
  initModel,
  loadModel,
  logits,
  type Model,
  type ModelConfig,
  type ModelConfigInput,
  makeConfig,
  readSafetensors,
  saveModel,
  writeSafetensors,
} from '../model/index.js';
import { stream } from '../random.js';
import type { Corpus } from '../tasks/index.js';
import { currentBackend } from '../tensors/backend.js';
import { selectedLogProbs } from '../tensors/logprobs.js';
import { type JobFunction, type Pool, shardsOf } from '../tensors/pool.js';
import type { Tokenizer } from '../text/index.js';
import { Interrupted } from './interrupted.js';

export const pretrainConfigSchema = z.strictObject({
  seed: z.int().min(0).default(0),
  maxSteps: z.int().min(1).max(1_000_000).default(2200),
  batchSize: z.int().min(2).max(4096).default(64),
  /** Rows per gradient shard: bounds memory and lets every worker have one. */
  perDeviceTrainBatchSize: z.int().min(1).max(4096).default(32),
  learningRate: z.number().gt(0).max(1).default(3e-3),
  warmupSteps: z.int().min(0).default(100),
  adamBeta1: z.number().min(0).lt(1).default(0.9),
  adamBeta2: z.number().min(0).lt(1).default(0.95),
  adamEpsilon: z.number().gt(0).default(1e-8),
  weightDecay: z.number().min(0).max(1).default(0.01),
  maxGradNorm: z.number().gt(0).default(1),
});
export type PretrainConfig = z.infer<typeof pretrainConfigSchema>;

/** What is trained, and on what. */
export interface PretrainSource {
  readonly corpus: Corpus;
  /** The architecture; its vocabulary is the tokenizer's. */
  readonly model: Omit<ModelConfigInput, 'vocab_size'>;
  /** Folder of a base to go on from, which has all weights of this one by name and shape; without it, random weights. */
  readonly from?: string;
}

interface Example {
  readonly ids: readonly number[];
  /** Prompt tokens, which carry no loss. */
  readonly promptLength: number;
}

interface PretrainShard {
  readonly config: ModelConfig;
  readonly weights: Readonly<Record<string, HostTensor>>;
  readonly examples: readonly Example[];
  /** Completion tokens of the whole batch: every shard's loss is divided by it. */
  readonly batchTokens: number;
}

export const PRETRAIN: JobFunction<PretrainShard, { loss: number; grads: NamedArrays }> = {
  module: import.meta.url,
  name: 'pretrainShard',
  call: pretrainShard,
};

/** The pool's job: this shard's part of the batch's mean cross-entropy (nats per token) and its gradient. */
export async function pretrainShard({ config, weights, examples, batchTokens }: PretrainShard) {
  const names = Object.keys(weights);
  const tensors = names.map((name) => tf.tensor(weights[name]!.data, [...weights[name]!.shape], 'float32'));
  const { value, grads } = tf.valueAndGrads((...given: tf.Tensor[]) => {
    const model: Model = {
      config,
      weights: Object.fromEntries(names.map((n, i) => [n, given[i]!])),
      dispose() {},
    };
    return crossEntropy(model, examples, batchTokens);
  })(tensors);
  const named: NamedArrays = {};
  grads.forEach((grad, i) => {
    named[names[i]!] = grad.dataSync<'float32'>() as Float32Array;
  });
  const loss = value.dataSync()[0]!;
  tf.dispose([value, grads, tensors]);
  return { loss, grads: named };
}

function crossEntropy(model: Model, examples: readonly Example[], batchTokens: number): tf.Scalar {
  const rows = examples.length;
  const width = Math.max(...examples.map((e) => e.ids.length));
  const rectangle = (value: (e: Example, t: number) => number) =>
    examples.map((e) => Array.from({ length: width }, (_, t) => (t < e.ids.length ? value(e, t) : 0)));
  const ids = rectangle((e, t) => e.ids[t]!);
  const inLoss = rectangle((e, t) => (t >= e.promptLength ? 1 / batchTokens : 0));
  const mask = tf.tensor2d(
    rectangle(() => 1),
    [rows, width],
  );
  const hidden = forward(model, tf.tensor2d(ids, [rows, width], 'int32'), mask);
  const z = logits(model, tf.slice(hidden, [0, 0, 0], [-1, width - 1, -1]));
  const flat = tf.reshape(z, [rows * (width - 1), model.config.vocab_size]) as tf.Tensor2D;
  const targets = tf.tensor1d(
    ids.flatMap((row) => row.slice(1)),
    'int32',
  );
  const weights = tf.tensor1d(inLoss.flatMap((row) => row.slice(1)));
  return tf.neg(tf.sum(tf.mul(selectedLogProbs(flat, targets), weights))) as tf.Scalar;
}

/** Batches cut at once from one sorted pool. */
const POOL_BATCHES = 16;

/** The examples of one pool as batches of like length, in shuffled order; a function of (seed, pool) alone. */
export function exampleBatches(
  corpus: Corpus,
  tokenizer: Tokenizer,
  seed: number,
  pool: number,
  batchSize: number,
): Example[][] {
  const random = stream(seed, 'pretrain', pool);
  const examples = Array.from({ length: POOL_BATCHES * batchSize }, () => {
    const { prompt, completion } = corpus.example(random);
    const promptIds = tokenizer.encodePrompt(prompt);
    return {
      ids: [...promptIds, ...tokenizer.encode(completion), tokenizer.eosId],
      promptLength: promptIds.length,
    };
  });
  examples.sort((a, b) => a.ids.length - b.ids.length);
  return random.shuffle(
    Array.from({ length: POOL_BATCHES }, (_, i) => examples.slice(i * batchSize, (i + 1) * batchSize)),
  );
}

export interface PretrainOptions {
  readonly onStep?: (step: number, loss: number, tokens: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Trains and saves the base into `folder` (which holds the tokenizer already); logs to its pretrain.jsonl.
 * @throws Interrupted when the signal was aborted; the next call goes on from the last checkpoint
 */
export async function pretrain(
  pool: Pool,
  folder: string,
  tokenizer: Tokenizer,
  source: PretrainSource,
  config: PretrainConfig,
  stateFolder: string,
  options: PretrainOptions = {},
): Promise<void> {
  const modelConfig = makeConfig({
    ...source.model,
    vocab_size: tokenizer.vocabSize,
    eos_token_id: tokenizer.eosId,
    pad_token_id: tokenizer.padId,
  });
  const weights = initialWeights(modelConfig, config.seed, source.from);
  const params = Object.fromEntries(Object.entries(weights).map(([name, w]) => [name, w.data]));
  const optimizer = initAdamW(params);
  const checkpoint = join(stateFolder, 'checkpoint.safetensors');
  const kinds: Record<string, NamedArrays> = { param: params, m: optimizer.m, v: optimizer.v };
  let first = 0;
  if (existsSync(checkpoint)) {
    const saved = readSafetensors(checkpoint);
    first = check(z.coerce.number().int().min(0), saved.metadata.step, `${checkpoint}: metadata 'step'`);
    optimizer.step = first;
    for (const [kind, arrays] of Object.entries(kinds))
      for (const [name, array] of Object.entries(arrays)) {
        const found = saved.tensors[`${kind}/${name}`];
        const { shape } = weights[name]!;
        if (found?.shape.join() !== shape.join())
          throw new Error(`${checkpoint}: tensor '${kind}/${name}' is missing or not of shape [${shape}]`);
        array.set(found.data);
      }
  }
  const save = (step: number) => {
    mkdirSync(stateFolder, { recursive: true });
    const tensors = Object.entries(kinds).flatMap(([kind, arrays]) =>
      Object.entries(arrays).map(([name, data]) => [
        `${kind}/${name}`,
        { shape: weights[name]!.shape, data },
      ]),
    );
    writeSafetensors(checkpoint, Object.fromEntries(tensors), { metadata: { step: String(step) } });
  };
  const log = join(folder, 'pretrain.jsonl');
  // A new training starts a new log; a resumed one drops what was logged after its checkpoint.
  const logged = readJsonl(log, z.looseObject({ step: z.number().optional() }));
  const kept = logged.filter((line) => (line.step ?? 0) <= first);
  const lines = first === 0 ? [{ config, backend: currentBackend() }] : kept;
  writeFileAtomic(log, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  let batches: Example[][] = [];
  let [steps, lossSum, tokenSum, since] = [0, 0, 0, performance.now()]; // since the last line of the log
  for (let step = first; step < config.maxSteps; step++) {
    if (options.signal?.aborted) {
      save(step);
      throw new Interrupted(step);
    }
    if (batches.length === 0 || step % POOL_BATCHES === 0)
      batches = exampleBatches(
        source.corpus,
        tokenizer,
        config.seed,
        Math.floor(step / POOL_BATCHES),
        config.batchSize,
      );
    const batch = batches[step % POOL_BATCHES]!;
    const batchTokens = batch.reduce((sum, e) => sum + e.ids.length - e.promptLength, 0);
    const shards = shardsOf(batch, config.perDeviceTrainBatchSize).map((examples) => ({
      config: modelConfig,
      weights,
      examples,
      batchTokens,
    }));
    const parts = await pool.map(PRETRAIN, shards);
    const grads = parts[0]!.grads;
    for (const part of parts.slice(1))
      for (const [name, grad] of Object.entries(part.grads)) {
        const sum = grads[name]!;
        for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + grad[i]!;
      }
    clipGradNorm(grads, config.maxGradNorm);
    const factor = scheduleFactor(step, { ...config, lrSchedulerType: 'cosine' });
    updateAdamW(params, grads, optimizer, { ...config, learningRate: config.learningRate * factor });
    const loss = parts.reduce((sum, part) => sum + part.loss, 0);
    const tokens = batch.reduce((sum, e) => sum + e.ids.length, 0);
    [steps, lossSum, tokenSum] = [steps + 1, lossSum + loss, tokenSum + tokens];
    options.onStep?.(step + 1, loss, tokens);
    if ((step + 1) % 50 === 0 || step + 1 === config.maxSteps) {
      const seconds = (performance.now() - since) / 1000;
      appendJsonl(log, {
        step: step + 1,
        loss: Number((lossSum / steps).toFixed(5)),
        learning_rate: config.learningRate * factor,
        tokens: tokenSum,
        tokens_per_second: Math.round(tokenSum / seconds),
      });
      [steps, lossSum, tokenSum, since] = [0, 0, 0, performance.now()];
      save(step + 1);
    }
  }
  const model = uploadTrained(modelConfig, weights);
  saveModel(folder, model);
  model.dispose();
}

/**
 * Host copies of the weights to start from, in the layout they have in memory; what `from` has beyond them is left out.
 * @throws when `from` lacks one or has it in another shape
 */
function initialWeights(config: ModelConfig, seed: number, from?: string): Record<string, HostTensor> {
  const fresh = initModel(config, stream(seed, 'base'));
  const model = from === undefined ? fresh : loadModel(from);
  const weights = Object.fromEntries(
    Object.entries(fresh.weights).map(([name, { shape }]) => {
      const w = model.weights[name];
      if (w?.shape.join() !== shape.join())
        throw new Error(`${from} cannot be gone on from: '${name}' is not there with shape [${shape}]`);
      return [name, { shape, data: w.dataSync<'float32'>().slice() as Float32Array }];
    }),
  );
  if (model !== fresh) fresh.dispose();
  model.dispose();
  return weights;
}

function uploadTrained(config: ModelConfig, weights: Record<string, HostTensor>): Model {
  const tensors = Object.fromEntries(
    Object.entries(weights).map(([name, w]) => [name, tf.tensor(w.data, [...w.shape], 'float32')]),
  );
  return { config, weights: tensors, dispose: () => tf.dispose(tensors) };
}
