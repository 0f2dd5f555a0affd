/** Rewards to advantages: hand-computed numbers and TRL's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupAdvantages } from '../../lib/grpo/advantages.js';
import { assertClose } from '../model/support.js';
import { golden } from './golden.js';

const of = (rewards: (number | undefined)[], groupSize = rewards.length) =>
  groupAdvantages(rewards, groupSize).advantages;

test('check 1: [1,1,0,0] gives +-0.8659; one hit in 8 gives 2.4742 and seven times -0.3535', () => {
  // mean 1/2, unbiased std sqrt(1/3): 0.5 / (0.57735 + 0.0001); with ddof 0 it would be 0.9998
  assertClose(of([1, 1, 0, 0]), [0.8659, 0.8659, -0.8659, -0.8659], 5e-5);
  // mean 1/8, unbiased std sqrt(1/8): 0.875 and -0.125 over 0.35355 + 0.0001
  assertClose(
    of([0, 0, 0, 1, 0, 0, 0, 0]),
    [-0.3535, -0.3535, -0.3535, 2.4742, -0.3535, -0.3535, -0.3535, -0.3535],
    5e-5,
  );
});

test('check 2: equal rewards give exactly 0, under every scaling, also where their mean rounds', () => {
  for (const reward of [0, 1, 0.1, 2.5, 1 / 3, -0.7])
    for (const n of [2, 3, 7, 8])
      for (const scale of ['group', 'batch', 'none'] as const) {
        const result = groupAdvantages(new Array<number>(n).fill(reward), n, scale);
        assert.deepEqual(result.advantages, new Array<number>(n).fill(0));
        assert.equal(result.rewardStd, 0);
        assert.equal(result.fracRewardZeroStd, 1);
      }
  // ... and beside a group that has spread, whose batch std is not 0.
  assert.deepEqual(groupAdvantages([0.1, 0.1, 0.1, 1, 0, 0], 3, 'batch').advantages.slice(0, 3), [0, 0, 0]);
});

test('check 3: a group of one has advantage 0', () => {
  const { advantages, reward, rewardStd } = groupAdvantages([3, 0.5], 1);
  assert.deepEqual([advantages, reward, rewardStd], [[0, 0], 1.75, 0]);
});

test('check 4: groups are contiguous: permuting whole groups permutes the advantages and changes nothing else', () => {
  const groups = [
    [1, 0, 0],
    [2.5, 0.5, 0],
    [1, 1, 1],
    [0, 3, 2],
  ];
  const order = [2, 0, 3, 1];
  for (const scale of ['group', 'none'] as const) {
    const straight = groupAdvantages(groups.flat(), 3, scale);
    const permuted = groupAdvantages(
      order.flatMap((g) => groups[g]!),
      3,
      scale,
    );
    assert.deepEqual(
      permuted.advantages,
      order.flatMap((g) => straight.advantages.slice(3 * g, 3 * g + 3)),
    );
    assertClose(
      [permuted.reward, permuted.rewardStd, permuted.fracRewardZeroStd],
      [straight.reward, straight.rewardStd, straight.fracRewardZeroStd],
      1e-15,
    );
  }
  // Interleaved, the same numbers form other groups.
  assert.notDeepEqual(of([1, 0, 1, 0], 2), of([1, 1, 0, 0], 2));
});

test('check 15: a reward that does not apply is left out; all of them: advantage 0, and no reward of 0', () => {
  assertClose(of([1, undefined, 1, 0, 0]), [0.8659, 0, 0.8659, -0.8659, -0.8659], 5e-5);
  const { advantages, reward, rewardStd, fracRewardZeroStd } = groupAdvantages(
    [undefined, undefined, 1, 3],
    2,
  );
  assert.deepEqual(advantages.slice(0, 2), [0, 0]);
  assert.equal(reward, 2);
  assertClose(rewardStd, Math.SQRT2, 1e-12);
  assert.equal(fracRewardZeroStd, 0.5);
  assert.deepEqual(of([undefined, 5]), [0, 0]);
});

test('check 15: a wrong number of rewards is an error, and so is one that is not finite', () => {
  assert.throws(() => of([1, 2, 3], 2), { message: '3 rewards do not form whole groups of 2' });
  assert.throws(() => of([], 2), { message: '0 rewards do not form whole groups of 2' });
  assert.throws(() => of([1], 0), { message: '1 rewards do not form whole groups of 0' });
  assert.throws(() => of([1, Number.NaN]), { message: 'reward 1 is NaN: a finite number is needed' });
  assert.throws(() => of([Infinity, 1]), /reward 0 is Infinity/);
});

test("group, batch and no scaling are TRL's, not-applicable rewards included", () => {
  for (const { scaleRewards, rewards, advantages } of golden.advantages)
    assertClose(
      groupAdvantages(
        rewards.map((r) => r ?? undefined),
        4,
        scaleRewards,
      ).advantages,
      advantages,
      1e-6,
      scaleRewards,
    );
});
