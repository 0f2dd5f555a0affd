/** AdamW, gradient clipping and the schedule against torch and transformers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  clipGradNorm,
  globalNorm,
  initAdamW,
  type NamedArrays,
  scheduleFactor,
  updateAdamW,
} from '../../lib/grpo/adamw.js';
import { assertClose } from '../model/support.js';
import { golden } from './golden.js';

const arrays = (named: Record<string, number[]>): NamedArrays =>
  Object.fromEntries(Object.entries(named).map(([name, x]) => [name, Float32Array.from(x)]));

test("20 steps with weight decay, clipping and a falling rate are torch's", () => {
  const { start, steps, options, maxGradNorm } = golden.adamw;
  const params = arrays(start);
  const state = initAdamW(params);
  assert.equal(steps.length, 20);
  assert.ok(steps.some((s) => s.gradNorm > maxGradNorm) && steps.some((s) => s.gradNorm < maxGradNorm));
  steps.forEach(({ learningRate, gradNorm, grads, params: expected }, i) => {
    const given = arrays(grads);
    assertClose(clipGradNorm(given, maxGradNorm), gradNorm, 1e-6);
    updateAdamW(params, given, state, { ...options, learningRate });
    assert.equal(state.step, i + 1);
    for (const name of Object.keys(start))
      assertClose([...params[name]!], expected[name], 1e-6, `step ${i}, ${name}`);
  });
});

test('clipping scales all gradients together to the norm, and leaves smaller ones as they are', () => {
  const grads = arrays({ a: [3], b: [0, -4] });
  assert.equal(clipGradNorm(grads, 10), 5);
  assert.deepEqual(grads, arrays({ a: [3], b: [0, -4] }));
  assert.equal(clipGradNorm(grads, 1), 5);
  assertClose([globalNorm(grads), ...grads.a!, ...grads.b!], [1, 0.6, 0, -0.8], 1e-6);
});

test('a gradient that is missing, of another size or not finite is an error, and nothing has changed', () => {
  const options = {
    learningRate: 0.1,
    adamBeta1: 0.9,
    adamBeta2: 0.999,
    adamEpsilon: 1e-8,
    weightDecay: 0.1,
  };
  const fresh = () => arrays({ a: [1, 2], b: [3] });
  const cases = [
    [{ a: [1, 1] }, /gradient of 'b': missing, expected 1/],
    [{ a: [1, 1], b: [1, 1] }, /gradient of 'b': 2 numbers, expected 1/],
    [{ a: [1, 1], b: [Number.NaN] }, /gradient of 'b' holds NaN at 0/],
    [{ a: [1, Infinity], b: [1] }, /gradient of 'a' holds Infinity at 1/],
  ] as const;
  for (const [grads, message] of cases) {
    const params = fresh();
    const state = initAdamW(params);
    const given = arrays(grads as unknown as Record<string, number[]>);
    assert.throws(() => {
      clipGradNorm(given, 1);
      updateAdamW(params, given, state, options);
    }, /gradient of '[ab]'/);
    assert.throws(
      () => updateAdamW(params, arrays(grads as unknown as Record<string, number[]>), state, options),
      message,
    );
    assert.deepEqual([params, state], [fresh(), initAdamW(fresh())]);
  }
});

test("the schedules are transformers' after the warm-up, and one step ahead of theirs in it", () => {
  assert.equal(golden.schedules.length, 6);
  for (const { factors, ...options } of golden.schedules)
    factors.forEach((factor, step) => {
      // In the warm-up transformers has step / warmupSteps, and so a first step at rate 0.
      const expected = step < options.warmupSteps ? factor + 1 / options.warmupSteps : factor;
      assertClose(scheduleFactor(step, options), expected, 1e-12, `${options.lrSchedulerType}, step ${step}`);
    });
  assert.equal(scheduleFactor(20, { warmupSteps: 0, maxSteps: 12, lrSchedulerType: 'linear' }), 0);
});
