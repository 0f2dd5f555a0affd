/** The parts that run: timers around kernels, rates, the workload, and a participant of our own in its process. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as tf from '@tensorflow/tfjs';
import { Participant } from '../../lib/bench/participant.js';
import { grouped, profileKernels } from '../../lib/bench/profile.js';
import { timingSchema } from '../../lib/bench/protocol.js';
import { timeProducts } from '../../lib/bench/rates.js';
import { ARENA_PLAN, makeWorkload } from '../../lib/bench/workload.js';
import { ARENA_BASE } from '../../lib/experiments/world.js';
import { initBackend } from '../../lib/tensors/backend.js';

const plan = { ...ARENA_PLAN, rows: 4, problemsPerStep: 1 };
const workload = makeWorkload(plan, ARENA_BASE, 1, true);
const script = fileURLToPath(new URL('../../lib/bench/ours.js', import.meta.url));
const wasm = {
  name: 'wasm',
  side: 'ours',
  program: process.execPath,
  args: [script],
  env: { AGON_BACKEND: 'wasm' },
} as const;
const started: Participant[] = [];

before(() => initBackend('wasm'));
after(() => {
  for (const participant of started) participant.close();
});

function start(spec: Participant['spec']): Participant {
  const participant = new Participant(spec);
  started.push(participant);
  return participant;
}

test('the profile counts calls and flops, adds up to the whole, and takes its timers off', async () => {
  const [a, b] = [tf.ones([32, 16]), tf.ones([16, 8])];
  const { parts, seconds } = await profileKernels(async () => {
    tf.tidy(() => tf.add(tf.matMul(a, b), tf.matMul(a, b)).dataSync());
  });
  const product = parts.find((part) => part.name === 'matMul (linear layers)');
  assert.equal(product?.calls, 2);
  assert.equal(product?.flops, 2 * 2 * 32 * 16 * 8);
  assert.equal(parts.find((part) => part.name === 'Add')?.calls, 1);
  const sum = (list: readonly { seconds: number }[]) => list.reduce((s, part) => s + part.seconds, 0);
  assert.ok(Math.abs(sum(parts) - seconds) < 1e-6);
  assert.ok(Math.abs(sum(grouped(parts)) - seconds) < 1e-6);
  assert.ok(grouped(parts).some(({ name }) => name === 'elementwise'));
  tf.tidy(() => tf.matMul(a, b));
  assert.equal(product?.calls, 2);
  tf.dispose([a, b]);
});

test('a larger product takes longer, and nothing is left in the backend', async () => {
  const before = tf.memory().numTensors;
  const shape = { batch: 1, m: 64, k: 64, n: 64, count: 1 };
  const [small, large] = await timeProducts([shape, { ...shape, m: 1024 }]);
  assert.ok(large! > 3 * small!, `${small} s and ${large} s`);
  assert.equal(tf.memory().numTensors, before);
});

test('a workload has groups of equal prompts and completions that reach the end of the context', () => {
  assert.deepEqual(workload.prompts[0], workload.prompts[7]);
  assert.equal(workload.prompts.length, 2 * plan.rows);
  for (const [i, prompt] of workload.prompts.entries())
    assert.equal(prompt.length + workload.completions[i]!.length, 512);
});

test('a participant opens, samples and trains the tokens it was asked for, and says what went wrong', async () => {
  const participant = start(wasm);
  await participant.open(workload);
  assert.deepEqual(participant.opened.measures, ['sample', 'train', 'grpo', 'agon']);
  const sampled = await participant.ask({ ask: 'sample', rows: 3, completion: 5 }, timingSchema);
  assert.equal(sampled.tokens, 15);
  const trained = await participant.ask({ ask: 'train', rows: 3, completion: 5 }, timingSchema);
  assert.equal(trained.tokens, 3 * (workload.prompts[0]!.length + 5));
  assert.ok((participant.peakBytes() ?? 1e9) > 5e7);
  const tooFar = participant.ask({ ask: 'train', rows: 3, completion: 5000 }, timingSchema);
  await assert.rejects(tooFar, /wasm failed at 'train'/);
});

test('a participant that ends is an error with what it printed', async () => {
  const broken = start({ ...wasm, args: ['-e', 'console.error("no such peer"); process.exit(1)'] });
  await assert.rejects(broken.open(workload), /wasm ended at 'open':\nno such peer/);
});
