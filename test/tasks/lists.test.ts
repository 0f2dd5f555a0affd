/** Lists: the interpreter by hand, the grammar there and back, problems and their splits, the hidden tests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import type { Problem, Split } from '../../lib/records.js';
import { drawLists, lists, listsDifficultyOf, listsProblems, listsSplitOf } from '../../lib/tasks/index.js';
import {
  LONGEST,
  readAnswer,
  readDead,
  readList,
  readPath,
  readProgram,
  readQuestion,
  type Shown,
  writeList,
  writeProgram,
  writeQuestion,
} from '../../lib/tasks/lists/grammar.js';
import {
  apply,
  LARGEST,
  OPS,
  type Op,
  opsBetween,
  type Program,
  passes,
  programsPassing,
  run,
} from '../../lib/tasks/lists/programs.js';
import { drawInput, hiddenTests, pairOf } from '../../lib/tasks/lists/verify.js';
import { parseCompletion } from '../../lib/text/parse.js';

const SPLITS: Split[] = ['train', 'validation', 'heldout'];

test('every operation by hand', () => {
  // biome-ignore format: a table
  const cases: Record<Op, [from: number[], to: number[]][]> = {
    rev: [[[3, 1, 4], [4, 1, 3]], [[], []]],
    sort: [[[10, 9, 2, 9], [2, 9, 9, 10]], [[], []]],
    swap: [[[3, 1, 4, 5], [5, 1, 4, 3]], [[3, 1], [1, 3]], [[7], [7]], [[], []]],
    rot: [[[3, 1, 4], [1, 4, 3]], [[7], [7]], [[], []]],
    tail: [[[3, 1, 4], [1, 4]], [[7], []], [[], []]],
    init: [[[3, 1, 4], [3, 1]], [[7], []], [[], []]],
    uniq: [[[3, 1, 3, 1, 2], [3, 1, 2]], [[], []]],
    inc: [[[0, 9, 24], [1, 10, 24]], [[], []]],
    dbl: [[[0, 9, 12, 13], [0, 18, 24, 24]], [[], []]],
    half: [[[0, 1, 7, 24], [0, 0, 3, 12]], [[], []]],
    sums: [[[3, 1, 4], [3, 4, 8]], [[14, 9, 5, 0], [14, 23, 24, 24]], [[], []]],
    diffs: [[[3, 1, 4], [2, 3]], [[7], []], [[], []]],
  };
  for (const op of OPS) for (const [from, to] of cases[op]) assert.deepEqual(apply(op, from), to, op);
  assert.deepEqual(run(['diffs', 'sums', 'rev'], [9, 4, 6, 6]), [7, 7, 5], 'diffs 5 2 0, sums 5 7 7');
});

test('operations are total and bounded, and leave what they are given as it is', () => {
  const random = stream(1, 'total');
  for (let i = 0; i < 500; i++) {
    const list = Object.freeze(Array.from({ length: random.int(7) }, () => random.int(LARGEST + 1)));
    for (const op of OPS) {
      const result = apply(op, list);
      assert.ok(result.length <= list.length, op);
      assert.ok(
        result.every((n) => Number.isInteger(n) && n >= 0 && n <= LARGEST),
        op,
      );
    }
  }
});

test('programs that pass, against trying all 1,728', () => {
  const random = stream(2, 'brute force');
  for (let i = 0; i < 20; i++) {
    const program: Program = [random.pick(OPS), random.pick(OPS), random.pick(OPS)];
    const tests = Array.from({ length: 3 }, () => pairOf(program, drawInput(random)));
    const all = OPS.flatMap((a) => OPS.flatMap((b) => OPS.map((c): Program => [a, b, c])));
    assert.deepEqual(
      programsPassing(tests),
      all.filter((one) => passes(one, tests)),
    );
  }
  assert.deepEqual(opsBetween([3, 1, 4], [4, 1, 3]), ['rev', 'swap']);
  assert.deepEqual(opsBetween([3, 1, 4], [1, 3, 5]), []);
});

test('difficulty of a problem counted by hand', () => {
  const of = (program: Program) =>
    listsDifficultyOf([pairOf(program, [5, 1, 6, 2]), pairOf(program, [3, 2, 6, 4])], program);
  // Only the place of init among the tails is free: with a rev there is one operation fewer to cut with.
  assert.equal(of(['tail', 'tail', 'init']), 3);
  // dbl before inc (2x + 1), and rev in any of three places.
  assert.equal(of(['dbl', 'inc', 'rev']), 3);
});

test('question, program and list there and back', () => {
  const random = stream(3, 'grammar');
  for (let i = 0; i < 500; i++) {
    const program: Program = [random.pick(OPS), random.pick(OPS), random.pick(OPS)];
    const shown: Shown = [pairOf(program, drawInput(random)), pairOf(program, drawInput(random))];
    assert.deepEqual(readQuestion(writeQuestion(shown)), shown);
    assert.deepEqual(readProgram(writeProgram(program)), program);
    assert.deepEqual(readList(['9', ...writeList(shown[0].output).split(' ')].slice(1)), shown[0].output);
  }
  assert.deepEqual(readPath('dead inc dead sort path rev then inc'), ['rev', 'inc']);
  assert.deepEqual([...readDead('dead inc dead sort dead 3 path rev then inc')], ['inc', 'sort']);
  assert.equal(readAnswer('last rev'), 'rev');
});

test('hostile text is not read', () => {
  for (const text of [
    'rev',
    'last',
    'last 3',
    'last rev rev',
    'then rev',
    'last constructor',
    'last __proto__',
    '',
  ])
    assert.equal(readAnswer(text), undefined, text);
  for (const text of [
    'rev then inc',
    'path rev',
    'path rev inc',
    'path rev then inc then sort',
    'path rev then inc path rev then inc',
    'path toString then inc',
    'path withheld then inc',
  ])
    assert.equal(readPath(text), undefined, text);
  for (const text of ['', 'x', '25', '-1', '01', '1e1', '1.5', '1 2 3 4 5', '999999999999'])
    assert.equal(readList(text.split(' ')), undefined, text);
  for (const text of [
    '',
    'in 1 2 out 2 1',
    'in 1 2 out 2 1 in 3 out 3 3 3 3 3 3',
    'in 1 2 out 2 1 in 3 out 3 in 3',
    'in 1 x out 2 1 in 3 out 3',
    'numbers 1 2 3 4 target 5',
  ]) {
    assert.throws(() => readQuestion(text), /not a lists question/, text);
  }
  for (const text of [
    'rev',
    'rev then inc',
    'rev then inc then valueOf',
    'rev then inc then sort then rev',
    '',
  ])
    assert.throws(() => readProgram(text), /not a program/, text);
});

test('splits are disjoint whatever the order of the examples, and about 80/10/10', () => {
  const random = stream(4, 'splits');
  const counts = { train: 0, validation: 0, heldout: 0 };
  for (let i = 0; i < 10_000; i++) {
    const program: Program = [random.pick(OPS), random.pick(OPS), random.pick(OPS)];
    const shown: Shown = [pairOf(program, drawInput(random)), pairOf(program, drawInput(random))];
    const split = listsSplitOf(shown);
    assert.equal(listsSplitOf([shown[1], shown[0]]), split);
    counts[split]++;
  }
  for (const [split, share] of [
    ['train', 0.8],
    ['validation', 0.1],
    ['heldout', 0.1],
  ] as const)
    assert.ok(Math.abs(counts[split] / 10_000 - share) < 0.015, `${split} ${counts[split]}`);

  const seen = new Map<string, Split>();
  for (const split of SPLITS) {
    for (const problem of listsProblems({ split, count: 300, seed: 3 })) {
      assert.equal(problem.split, split);
      assert.equal(listsSplitOf(readQuestion(problem.question)), split);
      assert.equal(seen.get(problem.id), undefined, `${problem.id} twice`);
      seen.set(problem.id, split);
    }
  }
});

test('problems depend on the seed only, keep to the filter, and a larger count begins the same', () => {
  const query = { split: 'heldout' as const, count: 40, seed: 5, minDifficulty: 3, maxDifficulty: 12 };
  const problems = lists.problems(query);
  assert.deepEqual(lists.problems(query), problems);
  assert.deepEqual(lists.problems({ ...query, count: 60 }).slice(0, 40), problems);
  assert.notDeepEqual(lists.problems({ ...query, seed: 6 }), problems);
  for (const { question, gold, difficulty } of problems) {
    const shown = readQuestion(question);
    assert.ok(difficulty >= 3 && difficulty <= 12);
    assert.equal(difficulty, listsDifficultyOf(shown, readProgram(gold)));
    for (const { input, output } of shown) {
      assert.ok(input.length === LONGEST && input.every((n) => n <= 6));
      assert.ok(output.length >= 2);
    }
  }
});

test('a query that nothing fits is an error, not a loop', () => {
  // Of 10,000 candidates none has so many equal programs.
  assert.throws(
    () => drawLists(stream(1, 'none'), { split: 'train', minDifficulty: 1729 }),
    /10000 candidates in a row, and none is of split train, difficulty 1729\.\.Infinity/,
  );
});

const problem: Problem = {
  id: 'lists-by-hand',
  question: 'in 3 1 1 2 out 6 4 4 8 in 0 5 5 6 out 14 12 12 2',
  gold: 'inc then dbl then rev',
  difficulty: 4,
  split: 'train',
};

function judge(summary: string, answer: string, of = problem): boolean {
  return lists.verify(
    of,
    parseCompletion(`<think> </think> ${summary} <answer> ${answer} </answer>`, 'stop'),
  );
}

test('the verifier on right programs', () => {
  assert.equal(judge('path inc then dbl', 'last rev'), true, 'the hidden program itself');
  assert.equal(judge('dead sort path rev then inc', 'last dbl'), true, 'one that is always the same');
  assert.equal(judge('path inc then rev', 'last dbl'), true);
  assert.equal(judge('path dbl then inc', 'last rev'), false, '2x + 1 is not 2(x + 1)');
});

test('hidden tests catch a program that fits both examples by coincidence', () => {
  // Where the two numbers in the middle are equal, swapping the ends is turning around.
  const shown = readQuestion(problem.question);
  assert.ok(passes(['inc', 'dbl', 'swap'], shown));
  const hidden = hiddenTests(problem.id, readProgram(problem.gold));
  assert.equal(hidden.length, 8);
  assert.ok(hidden.some(({ input }) => input[1] !== input[2]));
  assert.equal(judge('path inc then dbl', 'last swap'), false);
  assert.equal(judge('path inc then dbl', 'last swap', { ...problem, gold: 'inc then dbl then swap' }), true);
});

test('a shown example counts too, and hidden tests are named by the id', () => {
  const other = { ...problem, question: 'in 3 1 1 2 out 6 4 4 8 in 0 5 5 6 out 14 12 12 3' };
  assert.equal(judge('path inc then dbl', 'last rev', other), false);
  const program = readProgram(problem.gold);
  assert.deepEqual(hiddenTests('a', program), hiddenTests('a', program));
  assert.notDeepEqual(hiddenTests('a', program), hiddenTests('b', program));
});

test('the verifier on cheats', () => {
  const cheats: [string, string, string][] = [
    ['a third operation in the path', 'path inc then dbl then rev', 'last rev'],
    ['one operation', 'path inc', 'last rev'],
    ['two paths', 'path inc then dbl path inc then dbl', 'last rev'],
    ['no path', 'inc then dbl', 'last rev'],
    ['a bare operation', 'path inc then dbl', 'rev'],
    ['the outputs', 'path inc then dbl', '6 4 8'],
    ['two answers in one', 'path inc then dbl', 'last rev last swap'],
    ['a program', 'path inc then dbl', 'inc then dbl then rev'],
    ['code', 'path inc then dbl', 'last process.exit()'],
    ['withheld', 'path inc then dbl', 'withheld'],
  ];
  for (const [name, summary, answer] of cheats) assert.equal(judge(summary, answer), false, name);
  assert.equal(lists.verify(problem, parseCompletion('<think> a', 'length')), false);
});

test('the verifier refuses what is not a problem about lists', () => {
  const completion = parseCompletion('', 'stop');
  assert.throws(
    () => lists.verify({ ...problem, question: 'in 1 out 1' }, completion),
    /not a lists question/,
  );
  assert.throws(() => lists.verify({ ...problem, gold: 'rev' }, completion), /not a program/);
});
