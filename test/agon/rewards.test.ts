/** The rewards of the method and what GRPO's standardisation makes of them (worked examples by hand). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  adversarial,
  adversarialWith,
  classBaseline,
  difficultyWeightedWith,
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

/** Every challenge group of four, the format held by all: own verdicts and rivals' verdicts. */
function everyGroup(visit: (cb: Bit[], ca: Bit[], attempts: Attempt[]) => void): void {
  const bits = (n: number) => [0, 1, 2, 3].map((i) => ((n >> i) & 1) as Bit);
  for (let own = 0; own < 16; own++)
    for (let rivals = 0; rivals < 16; rivals++) {
      const [cb, ca] = [bits(own), bits(rivals)];
      visit(cb, ca, group(cb, ca, [1, 1, 1, 1]));
    }
}

const MIXED = group([1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 1, 0]);
const ALL_RIGHT = group([1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]);

test('difficulty weighting: half of the drafts failed, so every right answer is paid half of the bonus', () => {
  const weighted = REWARDS.difficultyWeighted();
  const mixed = judged(weighted, MIXED);
  assert.deepEqual(mixed.rewards, [3, 0.5, 3, 0]);
  // Mean 1.625, std sqrt(7.6875 / 3) = 1.600781.
  assertNear(mixed.advantages, [0.8589, -0.7027, 0.8589, -1.0151]);
  const right = judged(weighted, ALL_RIGHT);
  assert.deepEqual(right.rewards, [2.5, 2.5, 2.5, 2.5]);
  assert.deepEqual(right.advantages, [0, 0, 0, 0], 'no rival of one’s own, no push');
  assert.deepEqual(judged(difficultyWeightedWith(0.5), MIXED).rewards, [2.75, 0.5, 2.75, 0]);
});

test('difficulty weighting: the bonus is constant over the right answers of a group, and Agon’s where rivals are alike', () => {
  everyGroup((cb, ca, attempts) => {
    const bonus = rewardsOf(REWARDS.difficultyWeighted(), attempts, 4).map((r, i) => r! - 2 * cb[i]! - 0.5);
    const failed = ca.filter((c) => c === 0).length / 4;
    assert.deepEqual(
      bonus,
      cb.map((c) => c * failed),
    );
    if (new Set(ca).size === 1)
      assert.deepEqual(
        rewardsOf(REWARDS.difficultyWeighted(), attempts, 4),
        rewardsOf(adversarial, attempts, 4),
      );
  });
});

test('class baseline: each answer against those beside a rival of the same kind', () => {
  const mixed = judged(classBaseline, MIXED);
  // Beside wrong rivals 2.5 and 0.5, mean 1.5; beside right ones 2.5 and 0, mean 1.25.
  assert.deepEqual(mixed.rewards, [1, -1, 1.25, -1.25]);
  // Mean 0, std sqrt(5.125 / 3) = 1.307032.
  assertNear(mixed.advantages, [0.765, -0.765, 0.9563, -0.9563]);
  assert.equal(mixed.reward, 0, 'the reward itself says nothing of how good the policy is');

  const right = judged(classBaseline, ALL_RIGHT);
  assert.deepEqual(right.rewards, [0, 0, 0, 0]);
  assert.deepEqual(right.advantages, [0, 0, 0, 0], 'an all-right group is not pushed anywhere');
  assert.equal(right.fracRewardZeroStd, 1);
  // The format still is: one lost format of four, beside a right rival.
  const format = judged(classBaseline, group([1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1]));
  assert.deepEqual(format.rewards, [0.25, -0.25, 0, 0]);
  assertNear(format.advantages, [1.2241, -1.2241, 0, 0]);
  // Right only where the rival failed: nothing in a class differs, so nothing is learned.
  const sorted = judged(classBaseline, group([1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]));
  assert.deepEqual(sorted.advantages, [0, 0, 0, 0]);
  // Alone of its kind an answer is its own baseline: right or wrong, it gets nothing.
  const lone = judged(classBaseline, group([1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]));
  assert.deepEqual(lone.rewards, [0, 0, 0, 0]);
});

test('class baseline: right answers are never pushed down nor wrong ones up, as Agon’s bonus can', () => {
  let pushed = 0;
  everyGroup((cb, ca, attempts) => {
    const { rewards, advantages } = judged(classBaseline, attempts);
    for (const kind of [0, 1] as const) {
      const sum = rewards.reduce((s: number, r, i) => s + (ca[i] === kind ? r! : 0), 0);
      assert.ok(Math.abs(sum) < 1e-12, `class ${kind} of ${ca} sums to ${sum}`);
    }
    cb.forEach((right, i) => {
      assert.ok(right ? advantages[i]! >= -1e-12 : advantages[i]! <= 1e-12, `${cb} beside ${ca}`);
    });
    if (cb.every(Boolean)) assert.deepEqual(advantages, [0, 0, 0, 0]);
    const agon = judged(adversarial, attempts).advantages;
    pushed += cb.some((right, i) => right && ca[i] && agon[i]! < 0) ? 1 : 0;
  });
  assert.ok(pushed >= 14, `${pushed}: in all-right groups of mixed rivals alone there are 14`);
});

test('a weight scales the bonus; in an all-right group standardisation takes the weight away again', () => {
  const quarter = judged(REWARDS.adversarial(0.25), MIXED);
  assert.deepEqual(quarter.rewards, [2.75, 0.5, 2.5, 0]);
  // Mean 1.4375, std sqrt(5.796875 / 3) = 1.390069.
  assertNear(quarter.advantages, [0.9441, -0.6744, 0.7643, -1.034]);
  const right = judged(adversarialWith(0.25), ALL_RIGHT);
  assert.deepEqual(right.rewards, [2, 2, 2.25, 2.25]);
  // +-0.125 / (0.144338 + 1e-4): the push of a whole bonus, +-0.8659, to three decimals.
  assertNear(right.advantages, [-0.8654, -0.8654, 0.8654, 0.8654]);
  everyGroup((_cb, _ca, attempts) => {
    assert.deepEqual(rewardsOf(adversarialWith(0), attempts, 4), rewardsOf(outcome, attempts, 4));
    assert.deepEqual(rewardsOf(REWARDS.adversarial(), attempts, 4), rewardsOf(adversarial, attempts, 4));
  });
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
      // One opponent is one class: its baseline is the group's mean, and the advantages are cooperation's.
      assertNear(judged(classBaseline, attempts).advantages, coop.advantages, 1e-12);
      assert.deepEqual(judged(REWARDS.difficultyWeighted(), attempts).advantages, adv.advantages);
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
  for (const [weight, shorter] of [
    [undefined, 3],
    [0.1, 2.6],
    [1, 3.5],
    [0, 2.5],
  ] as const) {
    const tiebreak = REWARDS.adversarialTiebreak(weight);
    assert.equal(pay(tiebreak, own(1, 4, right)), shorter);
    assert.equal(pay(tiebreak, own(1, 5, right)), 2.5, 'as long is not shorter');
    assert.equal(pay(tiebreak, own(1, 6, right)), 2.5);
    assert.equal(pay(tiebreak, own(1, 4, wrong)), 3.5, 'the weight is not the bonus’s');
    assert.equal(pay(tiebreak, own(0, 4, right)), 0.5);
    assert.equal(pay(tiebreak, own(0, 4, wrong)), 0.5);
  }
});

test('rewards that compare need a rival; groups are whole and of one problem', () => {
  const alone = attemptOf({ problem: problem('q7') });
  for (const [name, make] of Object.entries(REWARDS)) {
    const reward: Reward = make();
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
