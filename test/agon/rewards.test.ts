/** The rewards of the method and what GRPO's standardisation makes of them (worked examples by hand). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  adversarial,
  adversarialTiebreak,
  margin,
  outcome,
  REWARDS,
  rewardsOf,
} from '../../lib/agon/rewards.js';
import { streamMetrics } from '../../lib/experiments/run.js';
import { groupAdvantages } from '../../lib/grpo/advantages.js';
import { stream } from '../../lib/random.js';
import type { Attempt, Reward } from '../../lib/records.js';
import { attemptOf, problem } from './support.js';

type Bit = 0 | 1;

/** A challenge group: the own verdicts, the rivals' verdicts, the own format. */
function group(cb: readonly Bit[], ca: readonly Bit[], phi: readonly Bit[]): Attempt[] {
  return cb.map((correct, i) =>
    attemptOf({ correct, formatted: phi[i]!, rival: attemptOf({ correct: ca[i]! }) }),
  );
}

function judged(reward: Reward, attempts: readonly Attempt[]) {
  const rewards = rewardsOf(reward, attempts, attempts.length);
  return { rewards, ...groupAdvantages(rewards, attempts.length) };
}

function assertNear(found: readonly number[], expected: readonly number[], tolerance = 5e-5): void {
  assert.equal(found.length, expected.length);
  found.forEach((value, i) => {
    assert.ok(Math.abs(value - expected[i]!) <= tolerance, `[${i}] is ${value}, expected ${expected[i]}`);
  });
}

test('a mixed group: the conversion pays most, and the advantages follow', () => {
  const attempts = group([1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 1, 0]);
  const cooperative = judged(outcome, attempts);
  assert.deepEqual(cooperative.rewards, [2.5, 0.5, 2.5, 0]);
  assertNear(cooperative.advantages, [0.8555, -0.6654, 0.8555, -1.0456]);
  const agon = judged(adversarial, attempts);
  assert.deepEqual(agon.rewards, [3.5, 0.5, 2.5, 0]);
  assertNear(agon.advantages, [1.1349, -0.6809, 0.5296, -0.9836]);
});

test('an all-correct group still trains, and right beside a right rival is pushed down', () => {
  const attempts = group([1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]);
  const { rewards, advantages, ...rest } = judged(adversarial, attempts);
  assert.deepEqual(rewards, [2, 2, 3, 3]);
  assertNear(advantages, [-0.8659, -0.8659, 0.8659, 0.8659]);
  assertNear(judged(outcome, attempts).advantages, [0, 0, 0, 0], 0);
  const role = { role: 'challenge', adapter: 'B', groupSize: 4 } as const;
  const metrics = streamMetrics({ ...role, attempts, rewards, advantages, ...rest });
  assertNear([metrics['advantage/right_beside_right']!], [-0.8659]);
  assert.equal(metrics.keep, 1);
  assert.equal(metrics.convert, 1);
});

test('what was kept is not 0 but unknown where no rival was right', () => {
  const attempts = group([1, 0], [0, 0], [1, 1]);
  const { rewards, advantages, ...rest } = judged(adversarial, attempts);
  const role = { role: 'challenge', adapter: 'B', groupSize: 2 } as const;
  const metrics = streamMetrics({ ...role, attempts, rewards, advantages, ...rest });
  assert.equal(metrics.convert, 0.5);
  assert.ok(!('keep' in metrics));
  assert.ok(!('advantage/right_beside_right' in metrics));
});

test('against one opponent for the whole group the bonus is gone, whatever the group', () => {
  for (let bits = 0; bits < 16; bits++) {
    const cb = [0, 1, 2, 3].map((i) => ((bits >> i) & 1) as Bit);
    for (const hidden of [0, 1] as const) {
      const attempts = group(cb, [hidden, hidden, hidden, hidden], [1, 1, 1, 1]);
      const [adv, coop] = [judged(adversarial, attempts), judged(outcome, attempts)];
      // Two hits of four agree to four decimals; one of four differs by std's 1e-4 alone.
      assertNear(adv.advantages, coop.advantages, cb.filter(Boolean).length === 2 ? 5e-5 : 1e-4);
    }
  }
  const paired = group([1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]);
  const apart = judged(adversarial, paired).advantages[2]! - judged(outcome, paired).advantages[2]!;
  assert.ok(apart > 0.2, `differing opponents must keep the bonus, found a difference of ${apart}`);
});

test('margin, and the tiebreak that pays only where both are right and the own answer is shorter', () => {
  const right = attemptOf({ correct: 1, length: 5 });
  const wrong = attemptOf({ correct: 0, length: 5 });
  const own = (correct: Bit, length: number, rival: Attempt) =>
    attemptOf({ correct, formatted: 1, length, rival });
  const pay = (reward: Reward, attempt: Attempt) => reward(attempt, attempt.rival, [attempt]);
  assert.equal(pay(margin, own(1, 3, wrong)), 1.5);
  assert.equal(pay(margin, own(1, 3, right)), 0.5);
  assert.equal(pay(margin, own(0, 3, right)), -0.5);
  assert.equal(pay(adversarialTiebreak, own(1, 4, right)), 3);
  assert.equal(pay(adversarialTiebreak, own(1, 5, right)), 2.5);
  assert.equal(pay(adversarialTiebreak, own(1, 4, wrong)), 3.5);
  assert.equal(pay(adversarialTiebreak, own(0, 4, right)), 0.5);
});

test('rewards that compare need a rival; groups are whole and of one problem', () => {
  const alone = attemptOf({ problem: problem('q7') });
  for (const [name, reward] of Object.entries(REWARDS)) {
    if (name === 'outcome') assert.equal(reward(alone, undefined, [alone]), 0);
    else assert.throws(() => reward(alone, undefined, [alone]), /'draft' attempt at q7 .* rival/);
  }
  assert.throws(() => rewardsOf(outcome, [alone, alone, alone], 2), /3 attempts .* groups of 2/);
  assert.throws(() => rewardsOf(outcome, [alone, attemptOf()], 2), /mixes the problems q7 and p/);
});

test('a reward sees its own group, and only it', () => {
  const groups = ['p', 'q'].map((id) => [0, 1].map(() => attemptOf({ problem: problem(id) })));
  const seen: string[] = [];
  const share: Reward = (own, _rival, all) => {
    seen.push(`${own.problem.id}:${all.map((a) => a.problem.id).join('')}:${all.includes(own)}`);
    return 0;
  };
  rewardsOf(share, groups.flat(), 2);
  assert.deepEqual(seen, ['p:pp:true', 'p:pp:true', 'q:qq:true', 'q:qq:true']);
});

test('expected share of groups of 8 without spread at an accuracy p: p^8 + (1 - p)^8', () => {
  const expected = { 0.1: 0.43, 0.23: 0.12, 0.3: 0.06 };
  for (const [text, share] of Object.entries(expected)) {
    const p = Number(text);
    assertNear([p ** 8 + (1 - p) ** 8], [share], 0.005);
    const random = stream('zero variance', p);
    const rewards = Array.from({ length: 8 * 20_000 }, () => 2 * Number(random.uniform() < p));
    // Three standard errors of 20 000 groups are at most 0.0105.
    assertNear([groupAdvantages(rewards, 8).fracRewardZeroStd], [p ** 8 + (1 - p) ** 8], 0.0105);
  }
});
