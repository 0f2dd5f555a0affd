/** Training runs: reproducible bit for bit, stopped and resumed alike, each adapter on its own stream only. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';
import { methodByName } from '../../lib/agon/methods.js';
import type { RunConfig } from '../../lib/experiments/config.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { initTrainees, trainingProblems, trainRun, trainStep } from '../../lib/experiments/run.js';
import type { GradientShard } from '../../lib/grpo/gradient.js';
import type { Trainee } from '../../lib/grpo/update.js';
import type { Reward } from '../../lib/records.js';
import type { Pool } from '../../lib/tensors/pool.js';
import { AGON, coinWorld, fingerprint, NO_POOL, openTiny, scratch, tinyConfig } from './support.js';

let world: World;
before(async () => {
  world = await coinWorld();
});

test('the same run twice: metrics and adapters are alike to the last bit, and both adapters moved', async () => {
  const [one, two] = [openTiny(world, scratch()), openTiny(world, scratch())];
  assert.equal(one.id, two.id);
  const trained = await trainRun(world, one);
  await trainRun(world, two);
  const print = fingerprint(one);
  assert.deepEqual(fingerprint(two), print);
  assert.equal(print.metrics.length, 3);
  print.metrics.forEach((line, i) => {
    assert.equal(line.step, i);
  });
  const fresh = initTrainees(world.base, AGON, tinyConfig());
  for (const name of ['A', 'B'] as const) assert.notDeepEqual(trained.adapters[name], fresh[name]!.adapter);

  const again = await trainRun({ ...world, pool: NO_POOL }, one);
  assert.deepEqual(again, trained, 'a finished run is read');
});

test('another seed is another run', async () => {
  const folder = scratch();
  const [zero, one] = [openTiny(world, folder), openTiny(world, folder, tinyConfig({ seed: 1 }))];
  assert.notEqual(zero.id, one.id);
  const ids = (seed: number) => trainingProblems(world, tinyConfig({ seed })).map((p) => p.id);
  assert.notDeepEqual(ids(0), ids(1));
});

test('stopped after every step and resumed: as if never stopped', async () => {
  const whole = openTiny(world, scratch());
  await trainRun(world, whole);
  const run = openTiny(world, scratch());
  const seen: number[] = [];
  for (let finished = 1; finished <= 2; finished++) {
    const stop = new AbortController();
    const options = {
      signal: stop.signal,
      onStep: (step: number) => {
        seen.push(step);
        stop.abort();
      },
    };
    await assert.rejects(trainRun(world, run, options), (error) => {
      assert.ok(error instanceof Interrupted);
      assert.equal(error.steps, finished);
      assert.match(error.message, new RegExp(`after ${finished} steps`));
      return true;
    });
  }
  await trainRun(world, run, { onStep: (step) => seen.push(step) });
  assert.deepEqual(seen, [1, 2, 3], 'no step is made twice');
  assert.deepEqual(fingerprint(run), fingerprint(whole));
});

/** One training step on the arena; `spy` sees every gradient job. */
async function oneStep(
  step: number,
  challengeReward?: Reward,
  spy?: (shard: GradientShard, trainees: Record<string, Trainee>) => void,
) {
  const config: RunConfig = tinyConfig({ problemsPerStep: 2 });
  const trainees = initTrainees(world.base, AGON, config);
  const before = structuredClone(trainees);
  const pool: Pool = {
    ...world.pool,
    map: (job, inputs, onDone) => {
      if (job.name === 'gradientShard')
        for (const input of inputs) spy?.(input as unknown as GradientShard, trainees);
      return world.pool.map(job, inputs, onDone);
    },
  };
  const problems = trainingProblems(world, config).slice(0, 2);
  await trainStep({ ...world, pool }, AGON, config, trainees, problems, step, challengeReward);
  return { before, trainees };
}

test('each adapter trains on the rollouts of its own stream only', async () => {
  const rival = world.tokenizer.encode('rival')[0]!;
  for (const step of [0, 1]) {
    const rows = { A: [] as boolean[], B: [] as boolean[] };
    await oneStep(step, undefined, ({ policy, rows: shard }, trainees) => {
      const name = policy.adapter === trainees.A!.adapter ? 'A' : 'B';
      assert.equal(policy.adapter, trainees[name]!.adapter);
      rows[name].push(...shard.map((r) => r.promptIds.includes(rival)));
    });
    const [drafter, challenger] = step === 0 ? (['A', 'B'] as const) : (['B', 'A'] as const);
    assert.ok(rows[drafter].length > 0 && rows[drafter].every((reads) => !reads), `step ${step}: drafts`);
    assert.ok(
      rows[challenger].length > 0 && rows[challenger].every((reads) => reads),
      `step ${step}: challenges`,
    );
  }
});

test('a challenge stream without signal leaves the challenger and its optimizer as they were', async () => {
  for (const step of [0, 1]) {
    const { before, trainees } = await oneStep(step, () => 1);
    const [drafter, challenger] = step === 0 ? ['A', 'B'] : ['B', 'A'];
    assert.deepEqual(trainees[challenger!], before[challenger!]);
    assert.notDeepEqual(trainees[drafter!]!.adapter, before[drafter!]!.adapter);
    assert.equal(trainees[drafter!]!.optimizer.step, 1);
    assert.equal(trainees[challenger!]!.optimizer.step, 0);
  }
});

test('a draft stream without signal leaves the drafter as it was, whatever the challenger learns', async () => {
  const honest = world;
  world = { ...honest, task: { ...honest.task, verify: () => false } };
  try {
    // Every draft is wrong and cut off, so all are paid alike; the challenger is paid for its length in letters.
    const { before, trainees } = await oneStep(0, (own) => own.completion.think.length);
    assert.deepEqual(trainees.A, before.A);
    assert.notDeepEqual(trainees.B!.adapter, before.B!.adapter);
  } finally {
    world = honest;
  }
});

test('a reward of the user needs a row of its own, and then trains another run than the table', async () => {
  const config = tinyConfig({ maxSteps: 1 });
  const folder = scratch();
  const table = openTiny(world, folder, config);
  const challengeReward: Reward = (own) => own.completion.think.length;
  await assert.rejects(trainRun(world, table, { challengeReward }), /agon-s0-.*'agon'.*another name/);
  const row = { ...AGON, name: 'mine' };
  await assert.rejects(
    trainRun(world, openTiny(world, folder, config, row), { challengeReward }),
    /toString/,
  );
  const source = challengeReward.toString();
  const mine = openTiny(world, folder, config, row, source);
  assert.match(mine.id, /^mine-s0-/);
  const { metrics } = await trainRun(world, mine, { challengeReward });
  assert.notEqual(
    mine.id,
    openTiny(world, folder, config, row, `${source} `).id,
    'another reward, another run',
  );
  assert.ok(metrics[0]!['challenge/reward']! > 3.5, 'lengths in letters, not the table’s rewards');
  const base = openTiny(world, folder, config, null);
  await assert.rejects(trainRun(world, base), /base-s0-.* has no training row/);
});

test('self-refinement adds both streams up in the one adapter', async () => {
  const row = methodByName('self-refinement').training!;
  const run = openTiny(world, scratch(), tinyConfig({ maxSteps: 1 }), row);
  const { adapters, metrics } = await trainRun(world, run);
  assert.deepEqual(Object.keys(adapters), ['A']);
  for (const name of ['draft/reward', 'challenge/reward', 'A/loss']) assert.ok(name in metrics[0]!, name);
});
