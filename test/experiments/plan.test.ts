/**
 * The plan: numbers by hand for a model that is not here, formulas against the bytes TensorFlow.js really held, what
 * is refused and with which advice, and time as operations over a rate.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { ARENA_MODEL } from '../../lib/experiments/bases.js';
import { type Experiment, preset } from '../../lib/experiments/config.js';
import { runExperiment } from '../../lib/experiments/experiment.js';
import { checkPlan, misfits } from '../../lib/experiments/plan/check.js';
import { planMemory } from '../../lib/experiments/plan/memory.js';
import { type PlanOptions, planExperiment, planRun } from '../../lib/experiments/plan/plan.js';
import { samplingParts } from '../../lib/experiments/plan/sampling.js';
import { planTime } from '../../lib/experiments/plan/time.js';
import { trainingParts } from '../../lib/experiments/plan/training.js';
import type { ThreadPart } from '../../lib/experiments/plan/widths.js';
import { openWorld } from '../../lib/experiments/world.js';
import { gradientShard } from '../../lib/grpo/gradient.js';
import {
  initAdapter,
  initModel,
  loraConfig,
  type ModelConfigInput,
  makeConfig,
  saveModel,
} from '../../lib/model/index.js';
import { QWEN3 } from '../../lib/model/qwen3.js';
import { planMarkdown, planSummary, planTable } from '../../lib/notebook/plan.js';
import { stream } from '../../lib/random.js';
import { generateShard } from '../../lib/rollouts/generate.js';
import { sharedModel } from '../../lib/rollouts/policy.js';
import { currentBackend, initBackend } from '../../lib/tensors/backend.js';
import { countBytes } from '../support/peak.js';
import { scratch, tinyConfig } from './support.js';

before(() => initBackend());

const GIB = 2 ** 30;
const ROOMY = { memory: 1e15, disk: 1e15 };

/** The preset `quick` for one long row at a time. */
function long(gradientCheckpointing: boolean): Experiment {
  const quick = preset('quick');
  const grpo = {
    ...quick.run.grpo,
    perDeviceTrainBatchSize: 1,
    maxCompletionLength: 14_500,
    gradientCheckpointing,
  };
  return { ...quick, run: { ...quick.run, generationBatchSize: 8, grpo } };
}
const SETUP = { backend: 'tfjs-node', workers: 0, promptTokens: 500 } as const;

test('Qwen3-0.6B at 15,000 tokens, with and without checkpointing, by hand', () => {
  const parts = (checkpointing: boolean, phase: string) => {
    const plan = planRun(QWEN3['0.6b'], long(checkpointing), { ...SETUP, machine: ROOMY });
    const { parts } = plan.memory.phases.find(({ name }) => name === phase)!;
    return Object.fromEntries(parts.map((part) => [part.name, part.bytes]));
  };
  // One layer: q and o 2 x 1024 x 2048, k and v 2 x 1024 x 1024, mlp 3 x 1024 x 3072 = 15,728,640 in products;
  // norms 2 x 1024 + 2 x 128 = 2304. 28 of them, the embedding 151,936 x 1024, the last norm 1024: 596,049,920.
  assert.equal(parts(false, 'loading')['base weights'], 4 * 596_049_920);
  // 8 rows x keys and values x 28 layers x 8 heads x 128 x 15,000 tokens x 4 bytes: 27.5 GB.
  assert.equal(parts(false, 'sampling')['KV cache'], 8 * 2 * 28 * 8 * 128 * 15_000 * 4);
  // Rank 16: q 16 (1024 + 2048), k and v 16 (1024 + 1024), o 16 (2048 + 1024), gate, up and down 16 (1024 + 3072)
  // = 360,448 per layer, 10,092,544 in all; with two moments three times that.
  assert.equal(parts(false, 'training')['adapters and moments'], 3 * 4 * 10_092_544);
  // Scores: 4 tensors of 16 heads x 15,000 keys per token; 27 layers of all 15,000 tokens, the last of 14,500.
  assert.equal(parts(false, 'training')['attention scores'], 4 * (27 * 15_000 + 14_500) * 4 * 16 * 15_000);
  // With checkpointing one layer's.
  assert.equal(parts(true, 'training')['attention scores'], 4 * 15_000 * 4 * 16 * 15_000);
  // Per token and layer, in tensors of each width (training.ts), native:
  const perToken = 27 * 1024 + 27 * 2048 + 24 * 1024 + 11 * 3072 + 2 * 7 * 16;
  assert.equal(perToken, 141_536);
  assert.equal(parts(false, 'training').activations, 4 * (27 * 15_000 + 14_500) * 141_536);
  // Kept: each layer's input and its gradient, 2 x 1024 per token: 3.4 GB. At work: one layer.
  assert.equal(parts(true, 'training')["layers' inputs"], 4 * 28 * 15_000 * 2 * 1024);
  assert.equal(parts(true, 'training').activations, 4 * 15_000 * (141_536 + 12 * 1024 + 1024));
});

const SHAPES: Record<string, [Partial<ModelConfigInput>, rows: number, prompt: number, completion: number]> =
  {
    arena: [{}, 24, 40, 160],
    wider: [{ hidden_size: 256, intermediate_size: 768, num_attention_heads: 8, head_dim: 32 }, 8, 80, 60],
    deeper: [{ num_hidden_layers: 8, vocab_size: 3000 }, 6, 100, 60],
    // No norms on queries and keys, which are wide.
    llama: [{ model_type: 'llama', head_dim: 64, num_attention_heads: 8, num_key_value_heads: 4 }, 8, 80, 60],
  };

for (const [name, [changes, rows, prompt, completion]] of Object.entries(SHAPES))
  test(`${name}: the bytes that tensors hold are within 15% of the plan (sampling: 20% above)`, async (t) => {
    const config = makeConfig({
      ...ARENA_MODEL,
      vocab_size: 96,
      ...changes,
    });
    const base = scratch();
    const model = initModel(config, stream('plan', name));
    saveModel(base, model);
    model.dispose();
    const counter = countBytes();
    try {
      const lora = loraConfig({ r: 16 });
      const adapter = initAdapter(sharedModel(base), lora, stream('adapter'), 'B', { absolute: 0.01 });
      const policy = { base, adapter };
      const shape = { rows, prompt, completion };
      const backend = currentBackend().name;
      counter.peak();
      const weights = counter.peak();
      const compare = (what: string, parts: readonly ThreadPart[]) => {
        const held = counter.peak() - weights;
        const planned = parts
          .filter(({ space }) => space === 'backend')
          .reduce((sum, { bytes }) => sum + bytes, 0);
        const error = planned / held - 1;
        t.diagnostic(`${what}: ${(held / 1e6).toFixed(1)} MB, plan ${(100 * error).toFixed(1)}%`);
        // The plan counts rows that leave when the cache is largest; here all end together.
        const above = what === 'sampling' ? 0.2 : 0.15;
        assert.ok(error > -0.15 && error < above, `${what}: ${held} bytes held, ${planned} planned`);
      };
      const prompts = Array.from({ length: rows }, (_, i) =>
        Array.from({ length: prompt }, (_, k) => 3 + ((i + k) % 90)),
      );
      const requests = prompts.map((promptIds, i) => ({ promptIds, names: [i] }));
      const drawing = { temperature: 1, topP: 1, maxCompletionLength: completion, eosId: -1, padId: 0 };
      await generateShard({ policy, requests, options: drawing });
      compare('sampling', samplingParts(config, lora, shape, 1, backend));
      const completionIds = Array.from({ length: completion }, (_, k) => 3 + (k % 90));
      const oldLogProbs = completionIds.map(() => -1);
      const lossRows = prompts.map((promptIds) => ({
        promptIds,
        completionIds,
        oldLogProbs,
        advantage: 1,
        weight: 1,
      }));
      const options = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0, temperature: 1 };
      for (const gradientCheckpointing of [false, true]) {
        await gradientShard({ policy, rows: lossRows, options: { ...options, gradientCheckpointing } });
        const parts = trainingParts(config, lora, shape, gradientCheckpointing, backend);
        compare(`training, checkpointing ${gradientCheckpointing}`, parts);
      }
    } finally {
      counter.stop();
    }
  });

test('what does not fit is refused with settings that make it fit, and no larger ones would', () => {
  const experiment = long(false);
  const machine = { memory: 40 * GIB, disk: 10 * GIB };
  const plan = planRun(QWEN3['0.6b'], experiment, { ...SETUP, machine });
  assert.throws(
    () => checkPlan(plan, machine),
    /training needs [\d.]+ GiB, and the memory of the process is 40\.0 GiB; the largest part is attention scores, [\d.]+ GiB/,
  );
  const advice = plan.misfits.find(({ where }) => where === 'training')!.fixes.join('\n');
  const [, value] = /grpo\.maxCompletionLength 14500 -> at most (\d+)/.exec(advice)!;
  const trains = (maxCompletionLength: number) => {
    const run = { ...experiment.run, grpo: { ...experiment.run.grpo, maxCompletionLength } };
    const memory = planMemory(QWEN3['0.6b'], run, { ...SETUP, adapters: 2 });
    return misfits(memory, [], machine).every(({ where }) => where !== 'training');
  };
  assert.ok(trains(Number(value)));
  assert.ok(!trains(Number(value) + 1));
  const sampling = plan.misfits.find(({ where }) => where === 'evaluation')!;
  assert.match(sampling.fixes.join(), /generationBatchSize 8 -> at most \d/);
  assert.doesNotThrow(() => checkPlan(plan, ROOMY));
});

test('a heap of wasm is a limit of its own, and a native backend a way out; so is the disk', () => {
  const setup = { backend: 'wasm', workers: 2, promptTokens: 500 } as const;
  const machine = { memory: 500 * GIB, heap: 4 * GIB, disk: 1e3 };
  const { misfits } = planRun(QWEN3['0.6b'], long(true), { ...setup, machine });
  const sampling = misfits.find(({ where }) => where === 'sampling')!;
  assert.equal(sampling.limit, 'one wasm heap');
  assert.ok(sampling.fixes.includes('a native backend: npm run setup:native'), sampling.fixes.join());
  assert.equal(misfits.at(-1)!.where, 'disk');
});

test('an experiment that cannot fit is refused before anything is written', async () => {
  const world = await openWorld({ workers: 0 });
  const { seed: _, ...run } = tinyConfig();
  const grpo = { ...run.grpo, numGenerations: 1024, perDeviceTrainBatchSize: 4096, maxCompletionLength: 480 };
  const huge = { ...run, problemsPerStep: 64, generationBatchSize: 8192, grpo };
  const experiment = { ...preset('smoke'), methods: ['grpo'], run: huge };
  const folder = scratch();
  await assert.rejects(
    runExperiment(world, experiment, { resultsFolder: folder }),
    /this does not fit on the machine:\n.*perDeviceTrainBatchSize 4096 -> at most \d+/s,
  );
  assert.deepEqual(readdirSync(folder), []);
  assert.ok(!existsSync(join(folder, 'runs')));
});

test('time is operations over a rate, runs counted once', async () => {
  const experiment = preset('quick');
  const rate = { sampling: 1e12, training: 2e12, source: 'assumption: of the test' };
  const lengths = { prompt: 30, completion: 80 };
  const plan = planTime(QWEN3['0.6b'], experiment, rate, lengths);
  assert.equal(plan.trainingRuns, 3, 'grpo, cooperative and agon; the other methods share or need none');
  assert.equal(plan.rolloutsPerStep, 2 * 8 * 12);
  assert.equal(plan.lengths.completion, 100, 'completions grow by a quarter');
  const twice = planTime(QWEN3['0.6b'], experiment, { ...rate, sampling: 2e12, training: 4e12 }, lengths);
  assert.ok(Math.abs(plan.seconds / twice.seconds - 2) < 1e-9);
  const { run } = experiment;
  const checkpointed = { ...run, grpo: { ...run.grpo, gradientCheckpointing: true } };
  const slower = planTime(QWEN3['0.6b'], { ...experiment, run: checkpointed }, rate, lengths);
  assert.ok(Math.abs(slower.updateSeconds / plan.updateSeconds - 4 / 3) < 1e-9);
});

test('with an opened world the rate is measured, and the plan can be read', async () => {
  const world = await openWorld({ workers: 0 });
  const { seed: _, ...run } = tinyConfig({ maxSteps: 2 });
  const experiment = {
    ...preset('smoke'),
    seeds: [0, 1],
    methods: ['grpo', 'grpo-self-cascade', 'agon'],
    run,
  };
  const plan = await planExperiment(world, experiment, { machine: ROOMY });
  assert.deepEqual([plan.time!.trainingRuns, plan.time!.stepsPerRun], [2 * 2, 2]);
  assert.ok(plan.time!.seconds > 0);
  assert.match(plan.time!.rate.source, /^measured just now: \d+ tokens\/s sampled, \d+ tokens\/s trained$/);
  assert.match(planSummary(plan), /^memory: at most .* GiB .*\nin the .* backend: loading .*\ndisk: /);
  assert.deepEqual(planTable(plan).columns, ['phase', 'part', 'MiB', 'copies', 'MiB in all', 'how']);
  assert.match(planMarkdown(plan), /\| training \| activations \|/);
});

test('a plan refuses what is no number of workers or tokens, and no backend', () => {
  const plan = (options: Partial<PlanOptions>) =>
    planRun(QWEN3['0.6b'], preset('quick'), { backend: 'wasm', workers: 2, promptTokens: 100, ...options });
  assert.throws(() => plan({ workers: Number.NaN }), /options of the plan[\s\S]*workers/);
  assert.throws(() => plan({ promptTokens: -5 }), /options of the plan[\s\S]*promptTokens/);
  assert.throws(() => plan({ backend: 'nope' as 'wasm' }), /options of the plan[\s\S]*backend/);
});
