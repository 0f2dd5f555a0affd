import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import type { Split } from '../../lib/records.js';
import { leavesOf, stepKey, stepsOf } from '../../lib/tasks/countdown/arithmetic.js';
import { readQuestion } from '../../lib/tasks/countdown/grammar.js';
import {
  countCountdown,
  countdown,
  countdownProblems,
  difficultyOf,
  splitOf,
} from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';

const SPLITS: Split[] = ['train', 'validation', 'heldout'];

test('difficulty of a problem counted by hand', () => {
  // 1 1 1 13 -> 16 = 13 + 1 + 1 + 1. After 1 + 1 = 2: 2 + 1, 13 + 1 and 13 + 2 hit; after 13 + 1 = 14: 1 + 1 and
  // 14 + 1 hit; 1 x 1, 13 - 1 and 13 x 1 lead nowhere.
  assert.equal(difficultyOf({ numbers: [1, 13, 1, 1], target: 16 }), 5);
});

test('leaves are legal and distinct', () => {
  // Three ones and a two: a pair (1, 1) gives 2 and 1, a pair (2, 1) gives 3, 1 and 2.
  assert.equal(stepsOf([1, 1, 1, 2]).length, 5);
  const leaves = leavesOf([3, 7, 10, 12]);
  // 6 pairs x 3 operators, less 12 x 7, 12 x 10 and 10 x 7 past 60; at most 3 pairs x 3 operators under each.
  assert.equal(new Set(leaves.map((leaf) => stepKey(leaf.first))).size, 15);
  assert.ok(leaves.length > 15 * 4 && leaves.length <= 15 * 9, String(leaves.length));
  assert.equal(new Set(leaves.map((leaf) => JSON.stringify(leaf))).size, leaves.length);
  for (const { first, second } of leaves)
    for (const { left, right, result } of [first, second])
      assert.ok(left >= right && result >= 1 && result <= 60);
});

test('splits are disjoint under shuffled numbers, and about 80/10/10', () => {
  const sizes = SPLITS.map((split) => countCountdown({ split, minDifficulty: 0 }));
  const total = sizes.reduce((a, b) => a + b);
  assert.equal(total, 1820 * 51);
  const shares = sizes.map((size) => size / total);
  for (const [i, share] of [0.8, 0.1, 0.1].entries())
    assert.ok(Math.abs(shares[i]! - share) < 0.01, String(shares));

  const random = stream(1, 'shuffles');
  const seen = new Map<string, Split>();
  for (const split of SPLITS) {
    for (const problem of countdownProblems({ split, count: 1000, seed: 3 })) {
      assert.equal(problem.split, split);
      assert.equal(seen.get(problem.id), undefined, `${problem.id} twice`);
      seen.set(problem.id, split);
      const { numbers, target } = readQuestion(problem.question);
      assert.equal(splitOf({ numbers: random.shuffle(numbers), target }), split);
      assert.equal(problem.gold, String(target));
    }
  }
});

test('problems depend on the seed only, keep to the filter, and a larger count begins the same', () => {
  const query = { split: 'train' as const, count: 50, seed: 5, minDifficulty: 4, maxDifficulty: 16 };
  const problems = countdown.problems(query);
  assert.deepEqual(countdown.problems(query), problems);
  assert.deepEqual(countdown.problems({ ...query, count: 80 }).slice(0, 50), problems);
  assert.notDeepEqual(countdown.problems({ ...query, seed: 6 }), problems);
  for (const problem of problems) {
    assert.ok(problem.difficulty >= 4 && problem.difficulty <= 16);
    assert.equal(problem.difficulty, difficultyOf(readQuestion(problem.question)));
  }
  assert.ok(
    problems.some((p) => readQuestion(p.question).numbers.some((n, i, all) => i > 0 && n < all[i - 1]!)),
  );
  assert.throws(
    () => countdown.problems({ ...query, count: 1e6 }),
    /count is 1000000, but split train, difficulty 4\.\.16 has \d+ problems/,
  );
});

const problem = {
  id: 'p',
  question: 'numbers 3 5 7 11 target 24',
  gold: '24',
  difficulty: 1,
  split: 'train' as const,
};

function judge(summary: string, answer: string): boolean | undefined {
  const text = `<think> </think> ${summary} <answer> ${answer} </answer>`;
  return countdown.verify(problem, parseCompletion(text, 'stop'));
}

test('the verifier on right answers', () => {
  assert.equal(judge('path 7 - 3 = 4 then 11 + 5 = 16', '16 + 4'), false, '20 is not 24');
  assert.equal(judge('path 5 + 3 = 8 then 11 - 7 = 4', '8 x 4'), false, '32 is not 24');
  assert.equal(judge('path 7 + 5 = 12 then 11 - 3 = 8', '12 + 8'), false, '20 is not 24');
  assert.equal(judge('path 11 - 5 = 6 then 7 - 3 = 4', '6 x 4'), true);
  assert.equal(judge('dead 5 + 3 dead 7 x 3 path 11 - 5 = 6 then 7 - 3 = 4', '4 x 6'), true, 'either order');
  assert.equal(judge('path 7 - 3 = 4 then 11 - 5 = 6', '6 x 4'), true);
  assert.equal(judge('path 11 + 3 = 14 then 14 + 5 = 19', '19 + 7'), false, '26 is not 24');
  assert.equal(judge('path 3 x 5 = 15 then 15 - 7 = 8', '11 + 8'), false, '19 is not 24');
});

test('the verifier on cheats', () => {
  const cheats: [string, string, string][] = [
    ['number used twice', 'path 5 - 3 = 2 then 11 + 11 = 22', '22 + 2'],
    ['number not given', 'path 12 + 6 = 18 then 5 + 1 = 6', '18 + 6'],
    ['number left over', 'path 11 - 5 = 6 then 7 - 3 = 4', '20 + 4'],
    ['intermediate used twice', 'path 7 + 5 = 12 then 11 - 3 = 8', '12 + 12'],
    ['operand of a step used again', 'path 11 - 5 = 6 then 7 - 3 = 4', '7 + 17'],
    ['wrong arithmetic', 'path 11 + 5 = 17 then 7 - 3 = 4', '17 + 7'],
    ['wrong arithmetic that fits', 'path 11 + 5 = 20 then 7 - 3 = 4', '20 + 4'],
    ['target missed', 'path 11 - 5 = 6 then 7 - 3 = 4', '6 + 4'],
    ['smaller minus larger', 'path 3 - 7 = 4 then 11 - 5 = 6', '6 x 4'],
    ['a third step', 'path 11 - 5 = 6 then 7 - 3 = 4 then 6 x 4 = 24', '6 x 4'],
    ['one step', 'path 11 - 5 = 6', '6 x 4'],
    ['two paths', 'path 11 - 5 = 6 then 7 - 3 = 4 path 11 - 5 = 6 then 7 - 3 = 4', '6 x 4'],
    ['no path', '11 - 5 = 6 then 7 - 3 = 4', '6 x 4'],
    ['only the target', 'path 11 - 5 = 6 then 7 - 3 = 4', '24'],
    ['the result behind it', 'path 11 - 5 = 6 then 7 - 3 = 4', '6 x 4 = 24'],
    ['an expression', 'path 11 - 5 = 6 then 7 - 3 = 4', '6 x 4 + 0'],
    ['code', 'path 11 - 5 = 6 then 7 - 3 = 4', 'process.exit()'],
    ['leading zero', 'path 11 - 5 = 06 then 7 - 3 = 4', '6 x 4'],
    ['withheld', 'path 11 - 5 = 6 then 7 - 3 = 4', 'withheld'],
  ];
  for (const [name, summary, answer] of cheats) assert.equal(judge(summary, answer), false, name);
  assert.equal(countdown.verify(problem, parseCompletion('<think> a', 'length')), false);
});

test('an intermediate past 60 is not allowed', () => {
  const big = { ...problem, question: 'numbers 13 5 4 1 target 60' };
  const completion = parseCompletion(
    '</think> path 13 x 5 = 65 then 4 + 1 = 5 <answer> 65 - 5 </answer>',
    'stop',
  );
  assert.equal(countdown.verify(big, completion), false);
});

test('the verifier refuses what is not a countdown question', () => {
  const completion = parseCompletion('', 'stop');
  for (const question of ['numbers 1 2 3 target 4', 'what is 2 + 2', 'numbers 1 2 3 x target 4', '']) {
    assert.throws(() => countdown.verify({ ...problem, question }, completion), /not a countdown question/);
  }
});
