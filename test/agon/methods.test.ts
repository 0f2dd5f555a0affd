/** The table of methods: who plays which role, at what budget, with what shown, and how it is deployed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy } from '../../lib/agon/cascade.js';
import {
  deploymentName,
  METHOD_NAMES,
  METHODS,
  methodByName,
  rolesAt,
  type TrainingRow,
} from '../../lib/agon/methods.js';
import { sampleStep } from '../../lib/agon/step.js';
import { namedAdapters, problem, SAMPLING, scriptedWorld, written } from './support.js';

const ROWS = [...new Set(METHODS.flatMap((m) => (m.training ? [m.training] : [])))];
const row = (name: string): TrainingRow => methodByName(name).training!;

test('an unknown method is refused with the names there are', () => {
  assert.throws(() => methodByName('argon'), {
    message: `unknown method 'argon': allowed are ${METHOD_NAMES.join(', ')}`,
  });
  assert.equal(new Set(METHOD_NAMES).size, METHODS.length);
});

test('every trained row spends 2N rollouts per problem', async () => {
  const [n, problems] = [3, [problem('x'), problem('y')]];
  for (const training of ROWS) {
    const { world, asked } = scriptedWorld(() => written('t', 's', 'right'));
    const options = { ...SAMPLING, numGenerations: n, scaleRewards: 'group', seed: 0 } as const;
    const streams = await sampleStep(world, training, namedAdapters(), problems, 0, options);
    assert.equal(asked.length, 2 * n * problems.length, training.name);
    assert.equal(
      streams.reduce((sum, s) => sum + s.attempts.length, 0),
      asked.length,
      training.name,
    );
    for (const p of problems)
      assert.equal(
        streams.flatMap((s) => s.attempts).filter((a) => a.problem === p).length,
        2 * n,
        training.name,
      );
    for (const s of streams) {
      assert.equal(s.groupSize, training.exchange === 'none' ? 2 * n : n);
      assert.equal(s.advantages.length, s.attempts.length);
    }
    const roles = streams.map((s) => s.role);
    assert.deepEqual(roles, training.exchange === 'none' ? ['solo'] : ['draft', 'challenge']);
  }
});

test('roles rotate every step, stay fixed in the ablation, and one adapter plays both', () => {
  const at = (name: string) => [0, 1, 2, 3].map((step) => rolesAt(row(name), step));
  const [ab, ba, aa] = [
    { draft: 'A', challenge: 'B' },
    { draft: 'B', challenge: 'A' },
    { draft: 'A', challenge: 'A' },
  ];
  for (const name of ['agon', 'cooperative', 'shared-opponent', 'agon-margin', 'agon-tiebreak'])
    assert.deepEqual(at(name), [ab, ba, ab, ba], name);
  assert.deepEqual(at('agon-fixed-roles'), [ab, ab, ab, ab]);
  for (const name of ['grpo', 'self-refinement']) assert.deepEqual(at(name), [aa, aa, aa, aa], name);
});

test('a step samples from the adapter whose role it is', async () => {
  const adapters = namedAdapters();
  const options = { ...SAMPLING, numGenerations: 2, scaleRewards: 'group', seed: 0 } as const;
  for (const training of ROWS)
    for (const step of [0, 1]) {
      const { world, asked } = scriptedWorld(() => written('t', 's', 'right'));
      const streams = await sampleStep(world, training, adapters, [problem('x')], step, options);
      const roles = rolesAt(training, step);
      const half = training.exchange === 'none' ? asked.length : asked.length / 2;
      const who = asked.map((a) => (a.adapter === adapters.A ? 'A' : a.adapter === adapters.B ? 'B' : '?'));
      assert.ok(
        who.slice(0, half).every((name) => name === roles.draft),
        training.name,
      );
      assert.ok(
        who.slice(half).every((name) => name === roles.challenge),
        training.name,
      );
      for (const s of streams) assert.ok(s.attempts.every((a) => a.adapter === s.adapter));
    }
});

test('methods that are the same training share its row, and with it the run', () => {
  assert.equal(methodByName('grpo-self-cascade').training, methodByName('grpo').training);
  const names = ROWS.map((r) => r.name);
  assert.equal(new Set(names).size, names.length, 'two different rows of one name');
});

test('the table is that of the method', () => {
  const ways = (name: string) => methodByName(name).deployments.map(deploymentName);
  assert.deepEqual(METHOD_NAMES.slice(0, 8), [
    'zero-shot',
    'grpo',
    'self-refinement',
    'grpo-self-cascade',
    'moa-untrained',
    'shared-opponent',
    'cooperative',
    'agon',
  ]);
  for (const name of ['zero-shot', 'moa-untrained'])
    assert.equal(methodByName(name).training, undefined, name);
  assert.deepEqual(ways('zero-shot'), ['base']);
  assert.deepEqual(ways('grpo'), ['A']);
  assert.deepEqual(ways('grpo-self-cascade'), ['A>A']);
  assert.deepEqual(ways('moa-untrained'), ['base>base']);
  assert.deepEqual(ways('agon'), ['A>B', 'B>A']);
  const rewards = METHODS.flatMap((m) => (m.training ? [[m.name, m.training.challengeReward]] : []));
  assert.deepEqual(Object.fromEntries(rewards), {
    grpo: 'outcome',
    'self-refinement': 'outcome',
    'grpo-self-cascade': 'outcome',
    'shared-opponent': 'adversarial',
    cooperative: 'outcome',
    agon: 'adversarial',
    'agon-margin': 'margin',
    'agon-fixed-roles': 'adversarial',
    'agon-tiebreak': 'adversarialTiebreak',
  });
  assert.ok(ROWS.every((r) => r.draftReward === 'outcome'));
});

test('a cascade answers problem by problem after its own draft; one pass reads nothing', async () => {
  const adapters = namedAdapters();
  const problems = [problem('x'), problem('y'), problem('z')];
  const { world, asked } = scriptedWorld(({ role, row: i }) => written('t', `${role} ${i}`, 'right'));
  const done: number[] = [];
  const finals = await deploy(world, adapters, ['B', 'A'], problems, SAMPLING, [0], (n) => done.push(n));
  assert.deepEqual(
    finals.map((a) => [a.problem.id, a.adapter, a.role]),
    [
      ['x', 'A', 'challenge'],
      ['y', 'A', 'challenge'],
      ['z', 'A', 'challenge'],
    ],
  );
  finals.forEach((a, i) => {
    assert.equal(a.rival!.problem, a.problem);
    assert.equal(a.rival!.adapter, 'B');
    assert.match(asked[3 + i]!.prompt, new RegExp(`draft ${i}`));
  });
  assert.equal(asked.length, 6);

  const solo = await deploy(world, {}, ['base'], problems, SAMPLING, [0]);
  assert.ok(solo.every((a) => a.rival === undefined && a.role === 'solo' && a.adapter === 'base'));
  assert.ok(asked.slice(6).every((a) => a.adapter === undefined && !a.prompt.includes('rival')));
  await assert.rejects(deploy(world, { A: adapters.A }, ['B'], problems, SAMPLING, [0]), {
    message: "adapter 'B' is not there; there are: A",
  });
});
