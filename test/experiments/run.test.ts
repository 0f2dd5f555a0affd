/** Training runs: reproducible bit for bit, stopped and resumed alike, each adapter on its own stream only. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Adapters, World } from '../../lib/agon/attempt.js';
import { methodByName, type TrainingRow } from '../../lib/agon/methods.js';
import { sampleStep } from '../../lib/agon/step.js';
import type { RunConfig } from '../../lib/experiments/config.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { initTrainees, trainingProblems, trainRun, trainStep } from '../../lib/experiments/run.js';
import { loadAdapters, loadCheckpoint } from '../../lib/experiments/store.js';
import type { GradientShard } from '../../lib/grpo/gradient.js';
import type { Trainee } from '../../lib/grpo/update.js';
import type { Reward } from '../../lib/records.js';
import { sharedModel } from '../../lib/rollouts/policy.js';
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
  row: TrainingRow = AGON,
) {
  const config: RunConfig = tinyConfig({ problemsPerStep: 2 });
  const trainees = initTrainees(world.base, row, config);
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
  const metrics = await trainStep({ ...world, pool }, row, config, trainees, problems, step, challengeReward);
  return { before, trainees, metrics };
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

test('a frozen rival’s stream trains nobody; its challenger learns from challenges only', async () => {
  const rival = world.tokenizer.encode('rival')[0]!;
  for (const name of ['frozen-agon', 'frozen-cooperative']) {
    const reads: boolean[] = [];
    const { before, trainees, metrics } = await oneStep(
      1,
      undefined,
      ({ policy, rows }, { A }) => {
        assert.equal(policy.adapter, A!.adapter, 'no gradient for the base');
        reads.push(...rows.map((r) => r.promptIds.includes(rival)));
      },
      methodByName(name).training!,
    );
    assert.deepEqual(Object.keys(trainees), ['A']);
    assert.ok(reads.length > 0 && reads.every(Boolean), name);
    assert.notDeepEqual(trainees.A!.adapter, before.A!.adapter);
    assert.ok('draft/accuracy' in metrics && 'challenge/accuracy' in metrics && 'A/loss' in metrics);
    assert.ok(!Object.keys(metrics).some((key) => key.startsWith('base/')));
    assert.ok(metrics['draft/reward_std']! > 0, 'the drafts differ: there was something to learn from them');
  }
});

test('a frozen rival is the base itself: it drafts alike whatever its challenger has become', async () => {
  const row = methodByName('frozen-agon').training!;
  const config = tinyConfig({ problemsPerStep: 2 });
  const problems = trainingProblems(world, config).slice(0, 2);
  const drafts = async (adapters: Adapters) => {
    const options = { ...config.grpo, topP: 1, generationBatchSize: 8, seed: 0 };
    const [draft, challenge] = await sampleStep(world, row, adapters, problems, 0, options);
    return [draft!, challenge!].map((s) => s.attempts.map((a) => a.rollout));
  };
  const trainees = initTrainees(world.base, AGON, config);
  // B's up-matrix is not zero, so as a challenger it differs from A, which is the base still.
  const [a, b] = [await drafts({ A: trainees.A!.adapter }), await drafts({ A: trainees.B!.adapter })];
  assert.deepEqual(a[0], b[0]);
  assert.notDeepEqual(a[1], b[1]);
});

test('a ring: two of three learn in a step, and the third and its moments stay as they were', async () => {
  const row = methodByName('agon-ring').training!;
  const fresh = initTrainees(world.base, row, tinyConfig());
  const ups = Object.values(fresh).map(({ adapter }) =>
    Object.entries(adapter.weights).filter(([name]) => name.includes('lora_B')),
  );
  assert.ok(
    ups[0]!.every(([, w]) => w.data.every((x) => x === 0)),
    'A begins as the base',
  );
  assert.ok(ups[1]!.every(([, w]) => w.data.some((x) => x !== 0)));
  assert.ok(ups[2]!.every(([, w]) => w.data.some((x) => x !== 0)));
  assert.notDeepEqual(ups[1], ups[2], 'B and C differ from the start');
  for (const [step, idle] of [
    [0, 'C'],
    [1, 'A'],
    [2, 'B'],
  ] as const) {
    const { before, trainees, metrics } = await oneStep(step, undefined, undefined, row);
    for (const name of ['A', 'B', 'C']) {
      if (name === idle) assert.deepEqual(trainees[name], before[name], `step ${step}: ${name}`);
      else assert.notDeepEqual(trainees[name]!.adapter, before[name]!.adapter, `step ${step}: ${name}`);
      assert.ok(Number.isFinite(metrics[`${name}/loss`]));
      assert.ok(Number.isFinite(metrics[`${name}/grad_norm`]));
    }
    assert.equal(metrics[`${idle}/grad_norm`], 0);
  }
});

test('adapters are kept along the way where asked for, and the run’s result is the same', async () => {
  const config = tinyConfig();
  const run = openTiny(world, scratch(), config);
  const { adapters } = await trainRun(world, run, { saveSteps: 2 });
  assert.deepEqual(readdirSync(join(run.path, 'checkpoints')), ['2']);
  const plain = openTiny(world, scratch(), config);
  await trainRun(world, plain);
  assert.deepEqual(fingerprint(run), fingerprint(plain));
  assert.ok(!existsSync(join(plain.path, 'checkpoints')));
  // What was kept are the adapters of a run that was stopped there.
  const stopped = openTiny(world, scratch(), config);
  const stop = new AbortController();
  const onStep = (step: number) => step === 2 && stop.abort();
  await assert.rejects(trainRun(world, stopped, { signal: stop.signal, onStep }), Interrupted);
  const trainees = initTrainees(world.base, AGON, config);
  assert.equal(loadCheckpoint(stopped, trainees), 2);
  const kept = loadAdapters(run, ['A', 'B'], sharedModel(world.base).config, 2);
  for (const name of ['A', 'B'] as const) {
    assert.deepEqual(kept[name]!.weights, trainees[name]!.adapter.weights);
    assert.notDeepEqual(kept[name]!.weights, adapters[name]!.weights);
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
