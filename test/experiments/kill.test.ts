/** A training process that is killed outright, again and again at random moments, ends as one that never was. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { World } from '../../lib/agon/attempt.js';
import { trainRun } from '../../lib/experiments/run.js';
import { readMetrics } from '../../lib/experiments/store.js';
import { coinWorld, fingerprint, openTiny, scratch, tinyConfig } from './support.js';

const STEPS = 8;
const CHILD = fileURLToPath(new URL('./train-child.js', import.meta.url));

let world: World;
before(async () => {
  world = await coinWorld();
});

/** Starts the child and kills it `delay` ms after it has said `line`; without `line` it runs to its end. */
async function train(folder: string, line?: string, delay = 0) {
  const child = spawn(process.execPath, [CHILD, folder, String(STEPS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const said: string[] = [];
  for await (const text of createInterface(child.stdout)) {
    said.push(text);
    // `step` stands for the first step that this process finishes, wherever it goes on.
    if (line !== undefined && text.startsWith(line)) {
      await sleep(delay);
      child.kill('SIGKILL');
      break;
    }
  }
  const [code, signal] = await ended;
  return { code, signal, said };
}

test('killed three times, then left to finish: the same metrics and the same adapters', async () => {
  const whole = openTiny(world, scratch(), tinyConfig({ maxSteps: STEPS }));
  await trainRun(world, whole);
  const stepTime = Math.max(...readMetrics(whole).map((m) => 1000 * m.step_time!));

  const folder = scratch();
  // Twice some time after a step of its own; once in its first, which may or may not be saved.
  for (const line of ['step', 'ready', 'step']) {
    const { signal } = await train(folder, line, Math.random() * stepTime);
    assert.equal(signal, 'SIGKILL', 'the process must not have ended by itself');
  }
  const { code, said } = await train(folder);
  assert.equal(code, 0);
  assert.equal(said.at(-1), 'finished');
  assert.ok(said.length - 2 <= STEPS - 2, `the steps before the kills were kept: ${said.join(', ')}`);
  const run = openTiny(world, folder, tinyConfig({ maxSteps: STEPS }));
  assert.deepEqual(fingerprint(run), fingerprint(whole));
});
