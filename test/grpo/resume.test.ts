/** Check 17: a run that was stopped and resumed is the run that was not. */
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';
import { methodByName } from '../../lib/agon/methods.js';
import { runConfigSchema } from '../../lib/experiments/config.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { trainRun, WALL_CLOCK_METRICS } from '../../lib/experiments/run.js';
import { openRun, type RunFolder, readMetrics } from '../../lib/experiments/store.js';
import { openWorld } from '../../lib/experiments/world.js';
import { readSafetensors } from '../../lib/model/index.js';
import type { Attempt } from '../../lib/records.js';
import { scratch } from '../support/tiny.js';

let world: World;
before(async () => {
  world = await openWorld({ workers: 0 });
});
after(() => world.pool.close());

const STEPS = 3;
const config = runConfigSchema.parse({
  seed: 1,
  maxSteps: STEPS,
  problemsPerStep: 2,
  minDifficulty: 4,
  maxDifficulty: 16,
  grpo: { numGenerations: 3, maxCompletionLength: 16, learningRate: 1e-2, warmupSteps: 2, temperature: 1 },
  lora: { r: 2, alpha: 4, initNoise: { absolute: 0.02 } },
});
let seen: Attempt[] = [];
// Paid by its tokens, a challenge group has spread whatever the base has learned.
const challengeReward = (own: Attempt) => {
  seen.push(own);
  return own.rollout.completionIds.reduce((sum, id) => (sum + 7 * id) % 11, 0);
};
const row = { ...methodByName('agon').training!, name: 'resume-test' };

const open = (folder: string): RunFolder =>
  openRun(
    { training: row, config, baseHash: 'test', backend: 'wasm', challengeReward: challengeReward.toString() },
    folder,
  );

/** Metrics without the clock, and every tensor of the checkpoint: parameters and moments. */
function outcome(run: RunFolder) {
  const clock: readonly string[] = WALL_CLOCK_METRICS;
  const metrics = readMetrics(run).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !clock.includes(name))),
  );
  return { metrics, checkpoint: readSafetensors(join(run.path, 'state', 'checkpoint.safetensors')) };
}

/** Trains until `steps` are done, as far as that. */
async function trainUntil(run: RunFolder, steps: number): Promise<Attempt[]> {
  seen = [];
  const stop = new AbortController();
  const options = {
    signal: stop.signal,
    challengeReward,
    onStep: (step: number) => {
      if (step === steps) stop.abort();
    },
  };
  if (steps < STEPS) await assert.rejects(trainRun(world, run, options), Interrupted);
  else await trainRun(world, run, options);
  return seen;
}

test('check 17: stopped after a step and resumed, with half a line in the log: same problems, samples, metrics and moments', async () => {
  const whole = open(scratch());
  const attempts = await trainUntil(whole, STEPS);
  const expected = outcome(whole);
  assert.equal(expected.metrics.length, STEPS);
  const moments = Object.entries(expected.checkpoint.tensors).filter(([name]) => /^[AB]\/[mv]\//.test(name));
  assert.ok(
    moments.some(([name, m]) => name.startsWith('A') && m.data.some((x) => x !== 0)),
    'A was never trained',
  );
  assert.ok(
    moments.some(([name, m]) => name.startsWith('B') && m.data.some((x) => x !== 0)),
    'B was never trained',
  );

  const folder = scratch();
  const first = await trainUntil(open(folder), 1);
  const stopped = open(folder);
  assert.equal(readMetrics(stopped).length, 1);
  assert.notDeepEqual(outcome(stopped).checkpoint, expected.checkpoint);
  // What a process that is killed in step 2 leaves behind: a line beyond the checkpoint, and half of another.
  appendFileSync(join(stopped.path, 'metrics.jsonl'), '{"step":1,"reward":-1}\n{"step":2,"rew');
  const rest = await trainUntil(stopped, STEPS);
  assert.deepEqual(outcome(stopped), expected);
  assert.deepEqual([...first, ...rest], attempts);
  assert.deepEqual(
    ['A', 'B'].map((name) => readFileSync(join(stopped.path, name, 'adapter_model.safetensors'))),
    ['A', 'B'].map((name) => readFileSync(join(whole.path, name, 'adapter_model.safetensors'))),
  );
});
