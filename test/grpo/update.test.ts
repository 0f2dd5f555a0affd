/** One optimizer step: which rows count and how much, micro-batches, iterations, and adapters that stay apart. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Stream } from '../../lib/agon/step.js';
import { streamMetrics } from '../../lib/experiments/run.js';
import { initAdamW } from '../../lib/grpo/adamw.js';
import { groupAdvantages } from '../../lib/grpo/advantages.js';
import { type GrpoConfig, grpoConfigSchema } from '../../lib/grpo/config.js';
import { LOSS_TYPES } from '../../lib/grpo/loss.js';
import {
  accumulate,
  lossRows,
  paramsOf,
  type StreamBatch,
  type Trainee,
  updateAdapter,
} from '../../lib/grpo/update.js';
import type { Attempt, Rollout } from '../../lib/records.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool } from '../../lib/tensors/pool.js';
import { assertClose } from '../model/support.js';
import { sample, tinyAdapter, tinyBase } from '../support/tiny.js';

const pool = createPool(0);
let base: string;
before(async () => {
  await initBackend();
  base = tinyBase();
});

const CAP = 8;
const config = (input: Partial<GrpoConfig> = {}): GrpoConfig =>
  grpoConfigSchema.parse({
    numGenerations: 4,
    maxCompletionLength: CAP,
    learningRate: 0.01,
    lrSchedulerType: 'constant',
    ...input,
  });

function trainee(name: string): Trainee {
  const adapter = tinyAdapter(base, name);
  return { adapter, optimizer: initAdamW(paramsOf(adapter)) };
}

/** A copy of all that a step may change. */
const state = ({ adapter, optimizer }: Trainee) => structuredClone({ weights: adapter.weights, optimizer });

/** 12 rollouts of a policy in 3 groups, paid by their tokens: every group has spread. */
async function batch(
  of: Trainee,
  seed = 0,
  options: { maxCompletionLength?: number } = {},
): Promise<StreamBatch> {
  const rollouts = await sample(
    { base, adapter: of.adapter },
    12,
    { maxCompletionLength: CAP, ...options },
    seed,
  );
  const { advantages, fracRewardZeroStd } = groupAdvantages(
    rollouts.map((r) => r.completionIds.reduce((a, b) => a + b)),
    4,
  );
  assert.equal(fracRewardZeroStd, 0);
  return { rollouts, advantages };
}

/** A rollout of a given length that was or was not cut. */
const rollout = (length: number, finishReason: Rollout['finishReason'] = 'stop'): Rollout => ({
  promptIds: [5, 6],
  completionIds: new Array<number>(length).fill(4),
  logProbs: new Array<number>(length).fill(-2),
  finishReason,
});

test('check 16: k micro-batches of a 1/k batch are one batch to 1e-6, for every loss type, with masked rows and KL', async () => {
  const who = trainee('A');
  const given = await batch(who);
  assert.ok(given.rollouts.some((r) => r.finishReason === 'length'));
  for (const lossType of LOSS_TYPES) {
    const of = async (perDeviceTrainBatchSize: number) => {
      const options = config({
        lossType,
        perDeviceTrainBatchSize,
        beta: 0.1,
        maskTruncatedCompletions: true,
      });
      return accumulate(pool, { base, adapter: who.adapter }, lossRows(given, options), options);
    };
    const whole = await of(12);
    const size = Math.max(...Object.values(whole.grads).flatMap((g) => [...g].map(Math.abs)));
    assert.ok(size > 1e-2, `${lossType}: the gradient is nearly zero`);
    for (const k of [1, 3, 5]) {
      const parts = await of(k);
      assertClose(parts.loss, whole.loss, 1e-6, `${lossType}, ${k} rows: loss`);
      assert.equal(parts.tokens, whole.tokens);
      for (const [name, grad] of Object.entries(whole.grads))
        assertClose(parts.grads[name], grad, 1e-6, `${lossType}, ${k} rows: ${name}`);
    }
  }
});

test('check 6: a masked truncated sequence changes neither numerator nor denominator of dapo; unmasked it counts in both', () => {
  const rollouts = [rollout(1), rollout(3), rollout(8, 'length')];
  const both = { rollouts: rollouts.slice(0, 2), advantages: [1, -1] };
  const all = { rollouts, advantages: [1, -1, 2] };
  const rows = lossRows(all, config({ maskTruncatedCompletions: true }));
  assert.deepEqual(rows, lossRows(both, config()));
  assert.deepEqual(
    rows.map((r) => r.weight),
    [1 / 4, 1 / 4],
  );
  assert.deepEqual(
    lossRows(all, config()).map((r) => r.weight),
    [1 / 12, 1 / 12, 1 / 12],
  );
});

test('a row of advantage 0 stays in the denominator; it is run only where the KL needs it', () => {
  const given = { rollouts: [rollout(1), rollout(3)], advantages: [1, 0] };
  assert.deepEqual(
    lossRows(given, config()).map((r) => [r.completionIds.length, r.weight]),
    [[1, 1 / 4]],
  );
  assert.equal(lossRows(given, config({ beta: 0.1 })).length, 2);
});

test('check 15: a wrong number of advantages is an error', () => {
  assert.throws(() => lossRows({ rollouts: [rollout(1)], advantages: [] }, config()), {
    message: '1 rollouts and 0 advantages',
  });
});

test('check 7: where everything is masked, or nothing has spread, loss and norm are 0 and nothing changes', async () => {
  const who = trainee('A');
  const before = state(who);
  const masked = { rollouts: [rollout(CAP, 'length'), rollout(CAP, 'length')], advantages: [1, -1] };
  const flat = { rollouts: [rollout(2), rollout(3)], advantages: [0, 0] };
  for (const given of [masked, flat]) {
    const metrics = await updateAdapter(
      pool,
      base,
      who,
      [given],
      config({ maskTruncatedCompletions: true }),
      0,
      10,
    );
    assert.deepEqual([metrics.loss, metrics.grad_norm, metrics.entropy], [0, 0, 0]);
    assert.ok(Object.values(metrics).every(Number.isFinite));
  }
  assert.deepEqual(state(who), before);
});

test('check 9: a truncation without EOS counts in completions/clipped_ratio, EOS on the last place does not', () => {
  const rollouts = [
    rollout(CAP, 'length'),
    rollout(CAP, 'stop'),
    rollout(2),
    rollout(CAP, 'length'),
    rollout(1),
  ];
  const completion = { think: '', summary: '', answer: undefined, formatted: false };
  const problem = { id: 'p', question: '', gold: '', difficulty: 1, split: 'train' } as const;
  const attempts = rollouts.map(
    (rollout): Attempt => ({
      problem,
      adapter: 'A',
      role: 'solo',
      rollout,
      completion,
      correct: false,
      formatted: false,
    }),
  );
  const rewards = attempts.map(() => 0);
  const stream: Stream = {
    role: 'solo',
    adapter: 'A',
    groupSize: 5,
    attempts,
    rewards,
    ...groupAdvantages(rewards, 5),
  };
  const metrics = streamMetrics(stream);
  assert.equal(metrics['completions/clipped_ratio'], 2 / 5);
  assert.equal(metrics['completions/max_length'], CAP);
});

test('check 12: one inner epoch has no clipped token; the step follows the gradient', async () => {
  const who = trainee('A');
  const given = await batch(who);
  const lossOf = async () => {
    const options = config();
    return (await accumulate(pool, { base, adapter: who.adapter }, lossRows(given, options), options)).loss;
  };
  const before = await lossOf();
  const metrics = await updateAdapter(pool, base, who, [given], config({ learningRate: 1e-3 }), 0, 10);
  assertClose(metrics.loss, before, 1e-7);
  assert.deepEqual(
    [metrics['clip_ratio/low_mean'], metrics['clip_ratio/high_mean'], metrics['clip_ratio/region_mean']],
    [0, 0, 0],
  );
  assert.ok(metrics.grad_norm > 0 && metrics.entropy > 0);
  assert.equal(metrics.kl, 0);
  assert.ok((await lossOf()) < before);
  assert.equal(who.optimizer.step, 1);
});

test('several inner epochs are as many optimizer steps; the metrics are their means, so clipping shows', async () => {
  const who = trainee('A');
  const given = await batch(who);
  const options = config({ learningRate: 0.05, numIterations: 3 });
  const metrics = await updateAdapter(pool, base, who, [given], options, 0, 10);
  assert.equal(who.optimizer.step, 3);
  assert.ok(metrics['clip_ratio/region_mean'] > 0);
  assertClose(
    metrics['clip_ratio/region_mean'],
    metrics['clip_ratio/low_mean'] + metrics['clip_ratio/high_mean'],
    1e-12,
  );
  assertClose(metrics.learning_rate, 0.05, 1e-12);
});

test('the rate follows the schedule, and the gradient is clipped to maxGradNorm before AdamW', async () => {
  const options = config({ lrSchedulerType: 'linear', maxGradNorm: 1e-3 });
  const who = trainee('A');
  const given = await batch(who);
  const metrics = await updateAdapter(pool, base, who, [given], options, 5, 10);
  assertClose(metrics.learning_rate, 0.005, 1e-12);
  assert.ok(metrics.grad_norm > 1e-3);
  // m = (1 - beta1) g after one step from zero
  const norm = Math.sqrt(
    Object.values(who.optimizer.m).reduce((sum, m) => sum + m.reduce((s, x) => s + x * x, 0), 0),
  );
  assertClose(norm, 0.1 * 1e-3, 1e-6);
});

test('streams are means of their own, added: two are not one of double length', async () => {
  const who = trainee('A');
  const [one, two] = [await batch(who), await batch(who, 1, { maxCompletionLength: 5 })];
  const gradient = async (batches: StreamBatch[]) => {
    const options = config();
    return accumulate(
      pool,
      { base, adapter: who.adapter },
      batches.flatMap((b) => lossRows(b, options)),
      options,
    );
  };
  const [first, second, both] = [await gradient([one]), await gradient([two]), await gradient([one, two])];
  assertClose(both.loss, first.loss + second.loss, 1e-6);
  for (const [name, grad] of Object.entries(both.grads))
    assertClose(
      grad,
      [...first.grads[name]!].map((x, i) => x + second.grads[name]![i]!),
      1e-6,
      name,
    );
});

test('check 18: a step on A leaves B bit-identical and the reverse, optimizers included, also when both step at once', async () => {
  const [a, b] = [trainee('A'), trainee('B')];
  const [forA, forB] = [await batch(a), await batch(b, 1)];
  const step = (who: Trainee, given: StreamBatch) => updateAdapter(pool, base, who, [given], config(), 0, 10);
  const fresh = { a: state(a), b: state(b) };
  await step(a, forA);
  assert.deepEqual(state(b), fresh.b);
  assert.notDeepEqual(state(a), fresh.a);
  const onlyA = state(a);
  await step(b, forB);
  assert.deepEqual(state(a), onlyA);
  assert.notDeepEqual(state(b), fresh.b);
  const [a2, b2] = [trainee('A'), trainee('B')];
  await Promise.all([step(a2, forA), step(b2, forB)]);
  assert.deepEqual([state(a2), state(b2)], [state(a), state(b)]);
});

test('options outside their range, and unknown ones, are refused by name', () => {
  for (const bad of [
    { temperature: 0 },
    { epsilon: -0.1 },
    { lossType: 'ppo' },
    { numGenerations: 1.5 },
    { learning_rate: 1 },
  ]) {
    const result = grpoConfigSchema.safeParse(bad);
    assert.ok(!result.success);
    assert.match(JSON.stringify(result.error.issues), new RegExp(Object.keys(bad)[0]!));
  }
});
