/**
 * The two workloads that everybody runs: the arena's base, and a random model of the same architecture ten times
 * wider (a hundred times the numbers per matrix), each with the same prompts, lengths, LoRA and optimizer.
 *
 * The learning rate is next to nothing, so that the policy, and with it the lengths of its rollouts, stays where
 * it is over the repetitions; an update costs the same. Left out: measuring.
 */
import { copyFileSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { preset, type RunConfig } from '../experiments/config.js';
import { ARENA_BASE } from '../experiments/world.js';
import { initModel, makeConfig, readConfig, saveModel } from '../model/index.js';
import { stream } from '../random.js';
import { countdown } from '../tasks/index.js';
import { buildPrompt, loadTokenizer } from '../text/index.js';
import type { Workload } from './protocol.js';

/** How much of what is measured on a model. */
export interface Plan {
  readonly model: string;
  /** Rows of the fixed-length measurements. */
  readonly rows: number;
  /** Their completion tokens. */
  readonly completion: number;
  /** Of a whole step; 2N rollouts each. */
  readonly problemsPerStep: number;
  /** Rows of a micro-batch of ours; the wide model's activations fill a wasm heap with more. */
  readonly trainRows: number;
  /** Rounds before the clock counts: compilers on all sides get faster over the first ones. */
  readonly warmUps: number;
  readonly repetitions: number;
  /** Rows of the profile, which runs in one thread. */
  readonly profileRows: number;
}

export const ARENA_PLAN: Plan = {
  model: 'arena-base',
  rows: 384, // two steps of rollouts: a fifth of a second or more for everybody
  completion: 64,
  problemsPerStep: 12,
  trainRows: 24,
  warmUps: 4,
  repetitions: 5,
  profileRows: 96,
};

export const WIDE_PLAN: Plan = {
  model: 'random, 10x wider',
  rows: 48,
  completion: 64,
  problemsPerStep: 3,
  trainRows: 8,
  warmUps: 1,
  repetitions: 2,
  profileRows: 24,
};

/**
 * Rows per batch, at most, where the length is fixed: the fastest of 24, 48, 64 and 96 on the arena's base (peers: all rows at
 * once). Whole steps use the trainer's own default.
 */
export const SAMPLING_ROWS = { kernels: 48, graphs: 96 };

/** The course of cost: rows at the plan's length, and lengths (up to the context) at a quarter of its rows. */
export function curvePoints(plan: Plan, context: number, prompt: number) {
  return {
    rows: [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2].map((share) => plan.rows * share),
    completions: [1 / 2, 1, 2, 4, Number.POSITIVE_INFINITY].map((share) =>
      Math.min(plan.completion * share, context - prompt),
    ),
    rowsOfCompletions: plan.rows / 4,
  };
}

/** The trainer's own settings with the step's size of the plan. */
export function benchConfig(plan: Plan): RunConfig {
  const { run } = preset('quick');
  return {
    ...run,
    seed: 0,
    maxSteps: 64,
    problemsPerStep: plan.problemsPerStep,
    grpo: { ...run.grpo, perDeviceTrainBatchSize: plan.trainRows, learningRate: 1e-6, warmupSteps: 0 },
  };
}

/**
 * Problems, prompts and completions of a plan on a base.
 * @throws when the base's tokenizer or config cannot be read
 */
export function makeWorkload(plan: Plan, base: string, threads: number, alternateRewards: boolean): Workload {
  const run = benchConfig(plan);
  const tokenizer = loadTokenizer(base);
  const config = readConfig(join(base, 'config.json'));
  const problems = countdown.problems({
    split: 'train',
    count: run.maxSteps * run.problemsPerStep,
    seed: run.seed,
    minDifficulty: run.minDifficulty,
    maxDifficulty: run.maxDifficulty,
  });
  const asked = problems.map((problem) => ({
    problem,
    prompt: tokenizer.applyChatTemplate(buildPrompt(countdown.promptStyle, problem, 'solo'), {
      addGenerationPrompt: true,
    }),
  }));
  const groupSize = 2 * run.grpo.numGenerations;
  const random = stream('bench', 'completions');
  const rows = 2 * plan.rows; // the curve's largest
  const prompts = Array.from({ length: rows }, (_, row) =>
    tokenizer.encode(asked[Math.floor(row / groupSize)]!.prompt),
  );
  const firstWord = 4; // after the special tokens
  const completions = prompts.map((prompt) =>
    Array.from(
      { length: config.max_position_embeddings - prompt.length },
      () => firstWord + random.int(tokenizer.vocabSize - firstWord),
    ),
  );
  return { base, threads, run, prompts, completions, problems: asked, alternateRewards };
}

/**
 * Makes the random model in a folder of its own under the system's temporary one: ten times hidden size, MLP and
 * heads of the arena's base, with its tokenizer. Needs a running backend. The caller removes the folder.
 */
export function makeWideModel(times = 10): string {
  const { hidden_size, num_attention_heads, num_key_value_heads, intermediate_size, ...same } = readConfig(
    join(ARENA_BASE, 'config.json'),
  );
  const model = initModel(
    makeConfig({
      ...same,
      hidden_size: times * hidden_size,
      num_attention_heads: times * num_attention_heads,
      num_key_value_heads: times * num_key_value_heads,
      intermediate_size: times * intermediate_size,
    }),
    stream('bench', 'wide'),
  );
  const folder = mkdtempSync(join(tmpdir(), 'agon-bench-'));
  saveModel(folder, model);
  model.dispose();
  for (const name of readdirSync(ARENA_BASE).filter((name) => /^(tokenizer|chat_template)/.test(name)))
    copyFileSync(join(ARENA_BASE, name), join(folder, name));
  return folder;
}
