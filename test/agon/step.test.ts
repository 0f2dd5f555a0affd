/** One step's streams: pairing, groups normalised apart, the hidden opponent, a reward of the user's own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { methodByName, type TrainingRow } from '../../lib/agon/methods.js';
import { type StepOptions, type Stream, sampleStep } from '../../lib/agon/step.js';
import { groupAdvantages } from '../../lib/grpo/advantages.js';
import type { Attempt, Reward } from '../../lib/records.js';
import { namedAdapters, problem, SAMPLING, type Script, scriptedWorld, written } from './support.js';

const row = (name: string): TrainingRow => methodByName(name).training!;
const PROBLEMS = [problem('x'), problem('y')];
const N = 4;
const OPTIONS = { ...SAMPLING, numGenerations: N, scaleRewards: 'group', seed: 0 } as const;

/** Verdicts by role: one pattern of right and wrong per row. */
function verdicts(draft: readonly number[], challenge: readonly number[]): Script {
  return ({ role, row: i }) => {
    const pattern = role === 'draft' ? draft : challenge;
    return written('t', `${role} ${i}`, pattern[i % pattern.length] ? 'right' : 'wrong');
  };
}

async function step(name: string, script: Script, options: Partial<StepOptions> = {}) {
  const { world, asked } = scriptedWorld(script);
  const streams = await sampleStep(world, row(name), namedAdapters(), PROBLEMS, 0, {
    ...OPTIONS,
    ...options,
  });
  return { streams: streams as [Stream, Stream], asked };
}

test('the i-th challenge reads the i-th draft and is scored against it', async () => {
  const { streams, asked } = await step('agon', verdicts([1, 0, 0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0]));
  const [draft, challenge] = streams;
  challenge.attempts.forEach((b, i) => {
    assert.equal(b.rival, draft.attempts[i]);
    assert.match(asked[2 * N + i]!.prompt, new RegExp(`<rival>\ndraft ${i}\n</rival>`));
  });
  assert.ok(draft.attempts.every((a) => a.rival === undefined));
  assert.deepEqual(draft.rewards, [2.5, 0.5, 0.5, 2.5, 0.5, 0.5, 0.5, 0.5]);
  assert.deepEqual(challenge.rewards, [2.5, 3.5, 0.5, 0.5, 3.5, 0.5, 0.5, 0.5]);
});

test('draft and challenge groups are normalised apart, problem by problem', async () => {
  const { streams } = await step('agon', verdicts([1, 0, 0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 1, 1, 1, 1]));
  for (const s of streams) {
    const alone = [0, 1].flatMap((g) => groupAdvantages(s.rewards.slice(g * N, g * N + N), N).advantages);
    assert.deepEqual(s.advantages, alone);
  }
  const [draft, challenge] = streams;
  assert.deepEqual(draft.advantages.slice(N), [0, 0, 0, 0], 'all wrong: nothing to learn');
  assert.equal(draft.fracRewardZeroStd, 0.5);
  assert.ok(challenge.advantages.slice(0, N).every((a) => Math.abs(a) > 0.1));
});

test('a hidden opponent: the plain prompt, and one rival for the whole group', async () => {
  const { streams, asked } = await step('shared-opponent', verdicts([1, 0, 0, 0, 0, 1, 1, 1], [1, 0, 1, 0]));
  const [draft, challenge] = streams;
  const plain = asked.slice(0, 2 * N).map((a) => a.prompt);
  assert.deepEqual(
    asked.slice(2 * N).map((a) => a.prompt),
    plain,
  );
  assert.ok(asked.slice(2 * N).every((a) => a.role === 'solo'));
  challenge.attempts.forEach((b, i) => {
    assert.equal(b.rival, draft.attempts[i < N ? 0 : N]);
  });
  assert.deepEqual(challenge.rewards, [2.5, 0.5, 2.5, 0.5, 3.5, 0.5, 3.5, 0.5]);
  // The bonus is a constant of the group: both groups get the same advantages, those of the plain outcome.
  const outcome = groupAdvantages([2.5, 0.5, 2.5, 0.5], N).advantages;
  challenge.advantages.forEach((a, i) => {
    assert.ok(Math.abs(a - outcome[i % N]!) < 5e-5);
  });
});

test('the row’s weight reaches the reward, and group rewards see their own group only', async () => {
  // Problem x: two of four drafts fail; problem y: three do. Every challenge is right.
  const script = verdicts([1, 0, 0, 1, 0, 0, 1, 0], [1]);
  const rewards = async (name: string) => (await step(name, script)).streams[1].rewards;
  assert.deepEqual(await rewards('agon'), [2.5, 3.5, 3.5, 2.5, 3.5, 3.5, 2.5, 3.5]);
  assert.deepEqual(await rewards('agon-bonus-0.25'), [2.5, 2.75, 2.75, 2.5, 2.75, 2.75, 2.5, 2.75]);
  assert.deepEqual(await rewards('difficulty-weighted'), [3, 3, 3, 3, 3.25, 3.25, 3.25, 3.25]);
  assert.deepEqual(await rewards('class-baseline'), new Array(8).fill(0));
  assert.deepEqual(await rewards('frozen-cooperative'), new Array(8).fill(2.5));
  assert.deepEqual(await rewards('frozen-agon'), await rewards('agon'), 'scored against the base’s drafts');

  // Every challenge is two letters shorter than its draft: `draft 0` against `row 0`.
  const short: Script = ({ role, row: i }) =>
    written('t', `${role === 'draft' ? role : 'row'} ${i}`, 'right');
  for (const [name, paid] of [
    ['agon-tiebreak', 3],
    ['agon-tiebreak-0.1', 2.6],
    ['agon-tiebreak-1', 3.5],
  ] as const)
    assert.deepEqual((await step(name, short)).streams[1].rewards, new Array(8).fill(paid), name);
});

test('a frozen rival and a ring: 2N rollouts, and a stream for whoever sampled it', async () => {
  const script = verdicts([1, 0, 0, 1, 0, 0, 1, 0], [1, 0]);
  for (const [name, at, draft, challenge] of [
    ['frozen-agon', 0, 'base', 'A'],
    ['frozen-cooperative', 1, 'base', 'A'],
    ['agon-ring', 0, 'A', 'B'],
    ['agon-ring', 1, 'B', 'C'],
    ['agon-ring', 2, 'C', 'A'],
  ] as const) {
    const { world, asked } = scriptedWorld(script);
    const adapters = namedAdapters();
    const streams = await sampleStep(world, row(name), adapters, PROBLEMS, at, OPTIONS);
    assert.equal(asked.length, 2 * N * PROBLEMS.length, name);
    assert.deepEqual(
      streams.map((s) => [s.role, s.adapter, s.attempts.length]),
      [
        ['draft', draft, N * PROBLEMS.length],
        ['challenge', challenge, N * PROBLEMS.length],
      ],
    );
    const drafter = draft === 'base' ? undefined : adapters[draft];
    assert.ok(asked.slice(0, 2 * N).every((a) => a.adapter === drafter && a.role === 'draft'));
    assert.ok(asked.slice(2 * N).every((a) => a.adapter === adapters[challenge] && a.role === 'challenge'));
    streams[1]!.attempts.forEach((b, i) => {
      assert.equal(b.rival, streams[0]!.attempts[i]);
    });
  }
});

test('a reward of the user for the challenge stream; undefined leaves the attempt out', async () => {
  const rival: (Attempt | undefined)[] = [];
  const own: Reward = (attempt, against, group) => {
    rival.push(against);
    assert.equal(group.length, N);
    const i = group.indexOf(attempt);
    return attempt.problem.id === 'y' || i === 3 ? undefined : i;
  };
  const { streams } = await step('agon', verdicts([1, 0], [1, 0, 0]), { challengeReward: own });
  const [draft, challenge] = streams;
  assert.deepEqual(challenge.rewards, [0, 1, 2, ...new Array<undefined>(5).fill(undefined)]);
  const expected = groupAdvantages([0, 1, 2], 3).advantages;
  assert.deepEqual(challenge.advantages, [...expected, 0, 0, 0, 0, 0]);
  assert.equal(challenge.reward, 1, 'the mean over the judged');
  assert.deepEqual(rival, draft.attempts);
  assert.deepEqual(draft.rewards.slice(0, 2), [2.5, 0.5], 'drafts keep the reward of their row');
});

test('problems in another order permute the groups and change nothing else', async () => {
  // A policy that answers by the question and its place in the group, not by its place in the batch.
  const script: Script = ({ prompt, row: i }) => {
    const right = prompt.includes('question y') ? i % N < 2 : i % N === 2;
    return written('t', `${i % N}`, right ? 'right' : 'wrong');
  };
  const run = async (problems: typeof PROBLEMS) => {
    const { world } = scriptedWorld(script);
    return sampleStep(world, row('agon'), namedAdapters(), problems, 0, OPTIONS);
  };
  const [forward, backward] = [await run(PROBLEMS), await run([...PROBLEMS].reverse())];
  forward.forEach((s, k) => {
    const other = backward[k]!;
    const swapped = <T>(values: readonly T[]) => [...values.slice(N), ...values.slice(0, N)];
    assert.notDeepEqual(s.advantages, other.advantages, 'the groups must differ for this to say anything');
    assert.deepEqual(other.advantages, swapped(s.advantages));
    assert.deepEqual(other.rewards, swapped(s.rewards));
    assert.equal(other.fracRewardZeroStd, s.fracRewardZeroStd);
    assert.equal(other.reward, s.reward);
  });
});
