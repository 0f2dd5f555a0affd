/** Choosing a backend, each time in a process of its own, and that the backends compute the same. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { z } from 'zod';
import { availableBackends, BACKEND_NAMES, initBackend } from '../../lib/tensors/backend.js';
import { assertClose } from '../model/support.js';
import { runScript } from '../support/child.js';
import { tinyBase } from '../support/tiny.js';

const seen = z.object({
  early: z.string(),
  unknown: z.string(),
  missing: z.enum(BACKEND_NAMES).nullable(),
  unavailable: z.string().nullable(),
  before: z.array(z.number()),
  after: z.array(z.number()),
  name: z.string(),
  product: z.array(z.array(z.number())),
  again: z.boolean(),
  other: z.string(),
});

let found: z.infer<typeof seen>;
before(async () => {
  found = seen.parse(await runScript('backend-script.js'));
});

test('wasm starts, computes, and leaves no listener that rethrows stray rejections', () => {
  assert.equal(found.name, 'wasm');
  assert.deepEqual(found.product, [
    [3, 3],
    [3, 3],
  ]);
  assert.deepEqual(found.before, [0, 0]);
  assert.deepEqual(found.after, [0, 0]);
});

test('an unknown name is refused with the names that are allowed', () => {
  assert.equal(
    found.unknown,
    "unknown backend 'webgpu': allowed are auto, tfjs-node-gpu, tfjs-node, wasm, cpu",
  );
});

test('a backend that is not installed is refused with those that are', (t) => {
  if (found.missing === null) return t.skip('every native backend is installed here');
  const available = availableBackends().join(', ');
  assert.equal(
    found.unavailable,
    `backend '${found.missing}' is not available here; available: ${available}`,
  );
  assert.match(available, /wasm, cpu$/);
});

test('the first choice stays: asking again gives it, asking for another is an error', () => {
  assert.ok(found.again);
  assert.equal(found.other, "backend 'cpu' was asked for, but 'wasm' is already running in this process");
  assert.equal(found.early, 'no backend is running: call initBackend() first');
});

test('cpu, wasm and an installed native CPU agree on loss, metrics and gradient', async () => {
  await initBackend('wasm');
  const base = tinyBase();
  const names = availableBackends().filter((name) => name !== 'tfjs-node-gpu');
  const sums = z.object({
    loss: z.number(),
    kl: z.number(),
    entropy: z.number(),
    grads: z.record(z.string(), z.array(z.number())),
  });
  const [reference, ...others] = await Promise.all(
    ['cpu', ...names.filter((name) => name !== 'cpu')].map(async (name) =>
      sums.parse(await runScript('gradient-script.js', name, base)),
    ),
  );
  assert.ok(others.length >= 1);
  for (const other of others) {
    for (const key of ['loss', 'kl', 'entropy'] as const) assertClose(other[key], reference![key], 1e-5, key);
    for (const [name, grad] of Object.entries(reference!.grads)) {
      const size = Math.max(...grad.map(Math.abs));
      assert.ok(size > 1e-4, `${name}: the gradient is nearly zero, the test could not fail`);
      assertClose(other.grads[name], grad, 1e-4 * size, `gradient of ${name}`);
    }
  }
});
