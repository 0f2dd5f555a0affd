/** The table of methods: who plays which role, at what budget, with what shown, and how it is deployed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy } from '../../lib/agon/cascade.js';
import {
  deploymentName,
  MAIN_METHODS,
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

test('a ring of three turns by one, and deploys the pairs it trains', () => {
  const ring = methodByName('agon-ring');
  const pairs = [0, 1, 2, 3, 4, 5].map((step) => rolesAt(ring.training!, step));
  const turn = [
    { draft: 'A', challenge: 'B' },
    { draft: 'B', challenge: 'C' },
    { draft: 'C', challenge: 'A' },
  ];
  assert.deepEqual(pairs, [...turn, ...turn]);
  assert.deepEqual(
    ring.deployments,
    turn.map(({ draft, challenge }) => [draft, challenge]),
  );
});

test('a frozen rival drafts at every step and never challenges', () => {
  for (const name of ['frozen-agon', 'frozen-cooperative']) {
    for (let step = 0; step < 4; step++)
      assert.deepEqual(rolesAt(row(name), step), { draft: 'base', challenge: 'A' }, name);
    assert.deepEqual(methodByName(name).deployments.map(deploymentName), ['base>A']);
  }
  const both: TrainingRow = { ...row('agon'), drafter: 'base' };
  const taught = [0, 1, 2].map((step) => rolesAt(both, step).challenge);
  assert.deepEqual(taught, ['A', 'B', 'A'], 'with two adapters the challenger rotates');
  assert.throws(() => rolesAt({ ...row('agon'), adapters: [] }, 0), /training row 'agon' names no adapter/);
});

test('a step samples from the adapter whose role it is', async () => {
  const adapters = namedAdapters();
  const options = { ...SAMPLING, numGenerations: 2, scaleRewards: 'group', seed: 0 } as const;
  for (const training of ROWS)
    for (const step of [0, 1, 2]) {
      const { world, asked } = scriptedWorld(() => written('t', 's', 'right'));
      const streams = await sampleStep(world, training, adapters, [problem('x')], step, options);
      const roles = rolesAt(training, step);
      const half = training.exchange === 'none' ? asked.length : asked.length / 2;
      const names = ['A', 'B', 'C'] as const;
      const who = asked.map(({ adapter }) =>
        adapter === undefined ? 'base' : names.find((name) => adapters[name] === adapter),
      );
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
  const rewards = MAIN_METHODS.flatMap((name) => {
    const { training } = methodByName(name);
    return training ? [[name, training.challengeReward]] : [];
  });
  assert.deepEqual(Object.fromEntries(rewards), {
    grpo: 'outcome',
    'self-refinement': 'outcome',
    'grpo-self-cascade': 'outcome',
    'shared-opponent': 'adversarial',
    cooperative: 'outcome',
    agon: 'adversarial',
  });
  assert.ok(ROWS.every((r) => r.draftReward === 'outcome'));
});

test('a variant differs from Agon in what it is about and in nothing else', () => {
  const agon = methodByName('agon');
  const found = METHODS.slice(MAIN_METHODS.length).map(({ name, training, deployments }) => {
    const keys = new Set([...Object.keys(training!), ...Object.keys(agon.training!)]) as Set<
      keyof TrainingRow
    >;
    keys.delete('name');
    const changed = [...keys].filter((key) => training![key] !== agon.training![key]);
    assert.equal(training!.name, name);
    if (deployments !== agon.deployments) assert.ok(training!.adapters !== agon.training!.adapters, name);
    return [name, Object.fromEntries(changed.map((key) => [key, training![key]]))];
  });
  const frozen = { adapters: ['A'], roles: 'fixed', drafter: 'base' };
  assert.deepEqual(Object.fromEntries(found), {
    'agon-margin': { challengeReward: 'margin' },
    'agon-fixed-roles': { roles: 'fixed' },
    'agon-tiebreak': { challengeReward: 'adversarialTiebreak' },
    'agon-tiebreak-0.1': { challengeReward: 'adversarialTiebreak', rewardWeight: 0.1 },
    'agon-tiebreak-1': { challengeReward: 'adversarialTiebreak', rewardWeight: 1 },
    'agon-shows-nothing': { shows: 'nothing' },
    'agon-shows-dead-ends': { shows: 'dead-ends' },
    'agon-shows-path': { shows: 'path' },
    'agon-shows-trace': { shows: 'trace' },
    'agon-shows-answer': { shows: 'answer' },
    'difficulty-weighted': { challengeReward: 'difficultyWeighted' },
    'frozen-agon': frozen,
    'frozen-cooperative': { ...frozen, challengeReward: 'outcome' },
    'class-baseline': { challengeReward: 'classBaseline' },
    'agon-bonus-0.25': { rewardWeight: 0.25 },
    'agon-latent': { shows: 'latent' },
    'agon-latent-summary': { shows: 'latent-summary' },
    'agon-ring': { adapters: ['A', 'B', 'C'] },
  });
});

test('a cascade answers problem by problem after its own draft; one pass reads nothing', async () => {
  const adapters = namedAdapters();
  const problems = [problem('x'), problem('y'), problem('z')];
  const { world, asked } = scriptedWorld(({ role, row: i }) => written('t', `${role} ${i}`, 'right'));
  const finals = await deploy(world, adapters, ['B', 'A'], 'summary', problems, SAMPLING, [0]);
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

  const solo = await deploy(world, {}, ['base'], 'summary', problems, SAMPLING, [0]);
  assert.ok(solo.every((a) => a.rival === undefined && a.role === 'solo' && a.adapter === 'base'));
  assert.ok(asked.slice(6).every((a) => a.adapter === undefined && !a.prompt.includes('rival')));
  await assert.rejects(deploy(world, { A: adapters.A }, ['B'], 'summary', problems, SAMPLING, [0]), {
    message: "adapter 'B' is not there; there are: A",
  });
});
