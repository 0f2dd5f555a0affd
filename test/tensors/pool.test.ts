/** The pool: order, errors, dead workers, closing – and that the number of workers changes no result. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { GRADIENT } from '../../lib/grpo/gradient.js';
import { generate } from '../../lib/rollouts/generate.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool, explained, type Pool } from '../../lib/tensors/pool.js';
import { COMPUTE, ECHO, EXIT, FAIL_ON_3, HANG, SQUARE, THROW_LATER } from '../support/jobs.js';
import { requests, SAMPLING, tinyAdapter, tinyBase } from '../support/tiny.js';

let pools: Pool[];
before(async () => {
  await initBackend();
  pools = [0, 1, 2].map((workers) => createPool(workers));
});
after(() => Promise.all(pools.map((pool) => pool.close())));

test('outputs come in the order of the inputs, whichever job ends first', async () => {
  const inputs = Array.from({ length: 9 }, (_, i) => i);
  for (const pool of pools) {
    const done: number[] = [];
    const outputs = await pool.map(SQUARE, inputs, (n) => done.push(n));
    assert.deepEqual(
      outputs.map((o) => o.squared),
      inputs.map((i) => i * i),
    );
    assert.deepEqual(
      done,
      inputs.map((i) => i + 1),
    );
    assert.deepEqual(new Set(outputs.map((o) => o.backend)), new Set([tf.getBackend()]));
    assert.equal(new Set(outputs.map((o) => o.thread)).size, Math.max(1, pool.workers));
    assert.equal(outputs[0]!.thread === 0, pool.workers === 0);
    assert.deepEqual(await pool.map(SQUARE, []), []);
  }
});

test('check 20, and the pool: rollouts and gradients are bit-identical with 0, 1 and 2 workers', async () => {
  const base = tinyBase();
  const policy = { base, adapter: tinyAdapter(base, 'x') };
  const options = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0.1, temperature: 1 };
  const results = [];
  for (const pool of pools) {
    const rollouts = await generate(pool, policy, requests(12), SAMPLING, 4);
    const rows = rollouts.map((r, i) => ({
      ...r,
      oldLogProbs: r.logProbs,
      advantage: (i % 3) - 1,
      weight: 0.1,
    }));
    const shards = [rows.slice(0, 5), rows.slice(5)].map((part) => ({ policy, rows: part, options }));
    results.push({ rollouts, sums: await pool.map(GRADIENT, shards) });
  }
  assert.deepEqual(results[1], results[0]);
  assert.deepEqual(results[2], results[0]);
});

test("a job's error rejects with its message; the pool goes on, and the jobs behind it are dropped", async () => {
  for (const pool of pools) {
    await assert.rejects(pool.map(FAIL_ON_3, [1, 2, 3, 4]), { message: 'three is not allowed' });
    const done: number[] = [];
    await assert.rejects(pool.map(FAIL_ON_3, [3, ...new Array<number>(50).fill(1)], (n) => done.push(n)));
    assert.deepEqual(await pool.map(FAIL_ON_3, [5, 6]), [5, 6]);
    assert.ok(done.length < 50, `${done.length} jobs ran on after the error`);
  }
});

test('an input that cannot be copied to a worker rejects, and the worker stays', async () => {
  const pool = pools[1]!;
  await assert.rejects(pool.map(ECHO, [() => 1]), /could not be cloned/);
  assert.deepEqual(await pool.map(ECHO, [{ a: Float32Array.of(1, 2) }]), [{ a: Float32Array.of(1, 2) }]);
});

for (const code of [0, 3]) {
  test(`a worker that ends with code ${code} inside a job rejects instead of hanging, and so does the pool from then on`, async () => {
    const pool = createPool(2);
    const others = pool.map(HANG, [1]);
    const message = { message: `a worker thread ended with code ${code}` };
    await Promise.all([assert.rejects(pool.map(EXIT, [code]), message), assert.rejects(others, message)]);
    await assert.rejects(pool.map(SQUARE, [1]), message);
    await pool.close();
  });
}

test('an error thrown outside the job rejects with its message', async () => {
  const pool = createPool(1);
  await assert.rejects(pool.map(THROW_LATER, ['stray']), { message: 'stray' });
  await pool.close();
});

test('the parent goes on while its workers compute', async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  await pools[2]!.map(COMPUTE, [400, 400]);
  clearInterval(timer);
  assert.ok(ticks >= 5, `its timer fired ${ticks} times in 400 ms`);
});

test("a full wasm heap's error says what to change, and every other error stays what it is", () => {
  const aborted = Object.assign(new Error('Aborted(). Build with'), { name: 'RuntimeError' });
  const wasm = tf.getBackend() === 'wasm';
  assert.throws(() => explained(aborted), wasm ? /failed \(Aborted\(\)\).*4 GiB.*perDeviceTrain/ : aborted);
  const other = new RangeError('three');
  assert.throws(() => explained(other), other);
});

test('close ends the workers: work in progress and later work reject', async () => {
  const pool = createPool(1);
  const running = pool.map(HANG, [1, 2]);
  await Promise.all([assert.rejects(running, { message: 'the pool is closed' }), pool.close()]);
  await assert.rejects(pool.map(SQUARE, [1]), { message: 'the pool is closed' });
  await pool.close(); // a second time changes nothing
});

test('the number of workers is checked', () => {
  for (const workers of [-1, 1.5, 65, Number.NaN])
    assert.throws(() => createPool(workers), {
      message: `workers: ${workers} is not a whole number from 0 to 64`,
    });
});
