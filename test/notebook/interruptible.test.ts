/** Work that is interrupted stops by its signal, and the process is left as it was. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { interruptible } from '../../lib/notebook/interruptible.js';

test('the first interrupt aborts the signal, the second goes where the first would have gone', async () => {
  let heard = 0;
  const listener = () => heard++;
  process.on('SIGINT', listener);
  const before = process.rawListeners('SIGINT');
  try {
    const work = interruptible(async (signal) => {
      process.kill(process.pid, 'SIGINT');
      while (!signal.aborted) await sleep(5);
      assert.equal(heard, 0, 'the kernel has not heard of it');
      process.kill(process.pid, 'SIGINT');
      while (heard === 0) await sleep(5);
      throw new Interrupted(7);
    });
    await assert.rejects(work, (error: Error) => {
      assert.ok(error instanceof Interrupted);
      assert.equal(error.steps, 7);
      assert.match(inspect(error), /^\[Interrupted: interrupted after 7 steps; .*run this cell again.*\]$/);
      return true;
    });
    assert.equal(heard, 1);
    assert.deepEqual(process.rawListeners('SIGINT'), before);
  } finally {
    process.removeListener('SIGINT', listener);
  }
});

test('what work returns and throws comes through', async () => {
  assert.equal(await interruptible(async () => 5), 5);
  await assert.rejects(
    interruptible(async () => {
      throw new RangeError('boom');
    }),
    RangeError,
  );
  assert.equal(process.listenerCount('SIGINT'), 0);
});
