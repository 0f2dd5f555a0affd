/** Sampling a step on the real base: the same numbers from the same seed, whoever does the work. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';

import { type Stream, sampleStep } from '../../lib/agon/step.js';
import { initTrainees, trainingProblems } from '../../lib/experiments/run.js';
import type { Reward } from '../../lib/records.js';
import { AGON, coinWorld, tinyConfig } from './support.js';

let world: World;
before(async () => {
  world = await coinWorld(0);
});

const CONFIG = tinyConfig({ problemsPerStep: 2 });

async function sample(where: World, seed = 0, step = 0, challengeReward?: Reward): Promise<Stream[]> {
  const problems = trainingProblems(where, CONFIG).slice(0, 2);
  const adapters = Object.fromEntries(
    Object.entries(initTrainees(where.base, AGON, CONFIG)).map(([name, t]) => [name, t.adapter]),
  );
  return sampleStep(where, AGON, adapters, problems, step, {
    ...CONFIG.grpo,
    topP: 1,
    seed,
    generationBatchSize: 3,
    ...(challengeReward && { challengeReward }),
  });
}

const completions = (streams: Stream[]) =>
  streams.flatMap((s) => s.attempts.map((a) => a.rollout.completionIds.join(' ')));

test('same seed, same streams; another seed or step, others; rows of one prompt differ', async () => {
  const first = await sample(world);
  assert.deepEqual(await sample(world), first);
  assert.notDeepEqual(completions(await sample(world, 1)), completions(first));
  assert.notDeepEqual(completions(await sample(world, 0, 2)), completions(first));
  const group = completions(first).slice(0, 4);
  assert.ok(new Set(group).size > 1, 'four attempts at one problem are not all the same');
});

test('two worker threads give bit for bit what this thread gives', async () => {
  const threads = await coinWorld(2);
  try {
    assert.equal(threads.pool.workers, 2);
    assert.deepEqual(await sample(threads), await sample(world));
    // A reward of one's own is a function, which no thread can be sent.
    const reward: Reward = (own) => own.rollout.completionIds.length;
    assert.deepEqual(await sample(threads, 0, 0, reward), await sample(world, 0, 0, reward));
  } finally {
    await threads.pool.close();
  }
});
