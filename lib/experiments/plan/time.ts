/**
 * About how long an experiment will take: the operations of its matrix products (model/matmuls.ts), over a rate at
 * which sampling and training do theirs. The rate is measured on this machine with the real model in a few
 * seconds, or assumed for a machine that is not here, and then it is called an assumption.
 *
 * Left out: start-up, judging, files and figures (seconds); and that groups without a difference are not trained
 * on, so that the training is an upper bound.
 */

import type { World } from '../../agon/attempt.js';
import { accumulate } from '../../grpo/update.js';
import { initAdapter, linearModules, type ModelConfig } from '../../model/index.js';
import { flops, type Rectangle, samplingProducts, trainingProducts } from '../../model/matmuls.js';
import { mean } from '../../numbers.js';
import { stream } from '../../random.js';
import { generate } from '../../rollouts/generate.js';
import { sharedModel } from '../../rollouts/policy.js';
import type { Experiment } from '../config.js';
import { trainingProblems } from '../run.js';
import { judgedAnswers, trainedRows } from './work.js';

/** How fast a machine does the arithmetic of a model, everything around the products included. */
export interface Rate {
  /** Floating-point operations a second while sampling and while training. */
  readonly sampling: number;
  readonly training: number;
  /** Bytes a second at which sampling reads weights and cache, where that is what holds it up. */
  readonly bytes?: number;
  /** Where the numbers come from, in a few words. */
  readonly source: string;
}

/** Mean lengths in tokens. */
export interface Lengths {
  readonly prompt: number;
  readonly completion: number;
}

export interface TimePlan {
  readonly rate: Rate;
  readonly lengths: Lengths;
  readonly trainingRuns: number;
  readonly stepsPerRun: number;
  readonly rolloutsPerStep: number;
  /** Seconds of one training step: sampling, and the update. */
  readonly sampleSeconds: number;
  readonly updateSeconds: number;
  readonly evaluationSeconds: number;
  /** The whole experiment, if nothing is finished yet. */
  readonly seconds: number;
}

/**
 * Rates of machines that were not at hand: *assumptions*, from a data sheet and the shares of its figures that
 * dense float32 code commonly reaches. Nothing here was measured.
 */
export const ASSUMED_RATES = {
  /** 67 TFLOP/s float32 and 4.8 TB/s (NVIDIA's data sheet of the H200 SXM); 40% and 60% of them. */
  h200: {
    sampling: 0.4 * 67e12,
    training: 0.4 * 67e12,
    bytes: 0.6 * 4.8e12,
    source: 'assumption: 40% of the float32 rate and 60% of the bandwidth in the data sheet of an H200',
  },
} as const satisfies Record<string, Rate>;

/** Completions grow under training by about this factor (results/LOG.md). */
const GROWTH = 1.25;

/** Seconds of an experiment at a rate. @param lengths of a rollout before training; completions are taken to grow */
export function planTime(model: ModelConfig, experiment: Experiment, rate: Rate, lengths: Lengths): TimePlan {
  const { run, seeds } = experiment;
  const { prompt, completion: before } = lengths;
  const completion = Math.min(
    Math.max(1, Math.round(GROWTH * before)),
    run.grpo.maxCompletionLength,
    model.max_position_embeddings - prompt,
  );
  const sample = (rows: number) =>
    samplingSeconds(model, rows, run.generationBatchSize, rate, prompt, completion);
  const rolloutsPerStep = 2 * run.grpo.numGenerations * run.problemsPerStep;
  const operations = trainingFlops(model, run, { rows: rolloutsPerStep, prompt, completion });
  const sampleSeconds = sample(rolloutsPerStep);
  const updateSeconds = (run.grpo.numIterations * operations) / rate.training;
  const evaluationSeconds = judgedAnswers(experiment).reduce((sum, answers) => sum + sample(answers), 0);
  const rows = trainedRows(experiment).length;
  const stepSeconds = sampleSeconds + updateSeconds;
  return {
    rate,
    lengths: { prompt, completion },
    trainingRuns: rows * seeds.length,
    stepsPerRun: run.maxSteps,
    rolloutsPerStep,
    sampleSeconds,
    updateSeconds,
    evaluationSeconds: seeds.length * evaluationSeconds,
    seconds: seeds.length * (rows * run.maxSteps * stepSeconds + evaluationSeconds),
  };
}

/** With gradient checkpointing every layer is computed once more: a third on top. */
function trainingFlops(model: ModelConfig, { grpo, lora }: Experiment['run'], shape: Rectangle): number {
  const once = flops(trainingProducts(model, shape, grpo.perDeviceTrainBatchSize, lora.r));
  return grpo.gradientCheckpointing ? (4 / 3) * once : once;
}

function samplingSeconds(
  model: ModelConfig,
  rows: number,
  batchRows: number,
  rate: Rate,
  prompt: number,
  completion: number,
): number {
  const arithmetic = flops(samplingProducts(model, { rows, prompt, completion }, batchRows)) / rate.sampling;
  if (rate.bytes === undefined) return arithmetic;
  const { num_hidden_layers: layers, num_key_value_heads: kv, head_dim: hd } = model;
  const cache = rows * 8 * layers * kv * hd * (prompt + completion / 2);
  const weights = Math.ceil(rows / batchRows) * 4 * matrixNumbers(model);
  return Math.max(arithmetic, (completion * (cache + weights)) / rate.bytes);
}

/** The numbers of all matrices a token meets: each is read once per step of a batch. */
function matrixNumbers(model: ModelConfig): number {
  const layer = linearModules(model).reduce((sum, linear) => sum + linear.in * linear.out, 0);
  return model.num_hidden_layers * layer + model.hidden_size * model.vocab_size;
}

/**
 * Samples and trains with the real model for a few seconds; nothing is written.
 * @returns the rate, and the mean lengths of what was sampled
 */
export async function measureRate(
  world: World,
  experiment: Experiment,
): Promise<{ rate: Rate; lengths: Lengths }> {
  const { run } = experiment;
  const { grpo, generationBatchSize } = run;
  const model = sharedModel(world.base);
  const threads = Math.max(1, world.pool.workers);
  const problems = trainingProblems(world, { ...run, seed: 0, maxSteps: 1 });
  const requests = Array.from({ length: generationBatchSize * Math.max(2, threads) }, (_, i) => ({
    promptIds: world.tokenizer.encodePrompt([
      { role: 'user', content: problems[i % problems.length]!.question },
    ]),
    names: ['plan', i],
  }));
  const { eosId, padId } = world.tokenizer;
  const { initNoise, ...lora } = run.lora;
  const adapter = initAdapter(model, lora, stream('plan'), 'B', initNoise);
  const policy = { base: world.base, adapter };
  const sample = (maxCompletionLength: number) =>
    generate(
      world.pool,
      policy,
      requests,
      { ...grpo, topP: 1, eosId, padId, maxCompletionLength },
      generationBatchSize,
    );
  await sample(2); // warm-up
  const [sampleSeconds, rollouts] = await timed(() => sample(grpo.maxCompletionLength));

  const rows = rollouts.slice(0, threads * grpo.perDeviceTrainBatchSize).map((rollout) => ({
    ...rollout,
    oldLogProbs: rollout.logProbs,
    advantage: 1,
    weight: 1,
  }));
  // The first time a thread trains its memory grows and nothing is compiled yet: several times as slow.
  await accumulate(world.pool, policy, rows, grpo);
  const [trainSeconds] = await timed(() => accumulate(world.pool, policy, rows, grpo));

  const shapeOf = (some: readonly { promptIds: readonly number[]; completionIds: readonly number[] }[]) => ({
    rows: some.length,
    prompt: Math.round(mean(some.map((r) => r.promptIds.length))),
    completion: Math.round(mean(some.map((r) => r.completionIds.length))),
  });
  const [sampled, trained] = [shapeOf(rollouts), shapeOf(rows)];
  const perSecond = (tokens: number, seconds: number) => Math.round(tokens / seconds);
  return {
    rate: {
      sampling: flops(samplingProducts(model.config, sampled, generationBatchSize)) / sampleSeconds,
      training: trainingFlops(model.config, run, trained) / trainSeconds,
      source:
        `measured just now: ${perSecond(sampled.rows * sampled.completion, sampleSeconds)} tokens/s sampled, ` +
        `${perSecond(trained.rows * (trained.prompt + trained.completion), trainSeconds)} tokens/s trained`,
    },
    lengths: sampled,
  };
}

async function timed<T>(work: () => Promise<T>): Promise<[seconds: number, result: T]> {
  const start = performance.now();
  const result = await work();
  return [(performance.now() - start) / 1000, result];
}
