/** What is counted in a countdown trace, on traces written by hand and on five hundred generated ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import type { Completion, Problem } from '../../lib/records.js';
import { leavesOf } from '../../lib/tasks/countdown/arithmetic.js';
import { readPath, readQuestion } from '../../lib/tasks/countdown/grammar.js';
import {
  countdown,
  countdownTrace,
  drawCountdown,
  type RIVAL_MODES,
  shownTrace,
  TRACE_DEFAULTS,
  type TraceOptions,
} from '../../lib/tasks/index.js';
import type { TraceCounts } from '../../lib/tasks/task.js';
import { parseCompletion } from '../../lib/text/parse.js';

const problem: Problem = {
  id: 'p',
  question: 'numbers 3 5 7 11 target 24',
  gold: '24',
  difficulty: 1,
  split: 'train',
};

const completion = (think: string): Completion => ({
  think,
  summary: '',
  answer: undefined,
  formatted: false,
});
const count = (think: string, shown?: string) => countdown.countTrace(problem, completion(think), shown);
const counts = (
  steps: number,
  useful: number,
  rest: Partial<Omit<TraceCounts, 'steps' | 'useful'>> = {},
): TraceCounts => ({ steps, useful, repeated: 0, deadAgain: 0, wrong: 0, ...rest });

// 5 + 3 = 8 leaves 7, 8 and 11; 7 - 3 = 4 leaves 4, 5 and 11; only 11 - 5 = 6 beside 7 - 3 = 4 hits (6 x 4 = 24).
const FIVE = 'try 5 + 3 = 8 then 8 + 7 = 15 left 15 11 : 26 4 big target 24 dead';
const FIVE_TOO = 'then 11 - 8 = 3 left 7 3 : 10 4 21 target 24 dead';
const SEVEN = 'try 7 - 3 = 4 then 11 + 5 = 16 left 16 4 : 20 12 big target 24 dead';
const HIT = 'then 11 - 5 = 6 left 6 4 : 10 2 24 target 24 hit';

test('true and new leaves are useful, one by one', () => {
  assert.deepEqual(count(''), counts(0, 0));
  assert.deepEqual(count('try 5 + 3 = 8'), counts(0, 0), 'a first step alone is no leaf');
  assert.deepEqual(count(FIVE), counts(1, 1));
  assert.deepEqual(count(`${FIVE} ${FIVE_TOO} ${SEVEN} ${HIT}`), counts(4, 4));
});

test('a leaf written again is repeated and no longer useful, in either order of its operands', () => {
  assert.deepEqual(count(`${FIVE} then 8 + 7 = 15 dead`), counts(2, 1, { repeated: 1 }));
  assert.deepEqual(count(`${FIVE} then 7 + 8 = 15 dead`), counts(2, 1, { repeated: 1 }));
  assert.deepEqual(count(`${FIVE} try 3 + 5 = 8 then 8 + 7 = 15`), counts(2, 1, { repeated: 1 }));
  assert.deepEqual(count(`${FIVE} ${FIVE} ${FIVE}`), counts(3, 1, { repeated: 2 }), 'it was never left');
  // The same two steps the other way round are another leaf, as in the count of a problem's leaves.
  const swapped = 'try 11 - 5 = 6 then 7 - 3 = 4 left 6 4';
  assert.deepEqual(count(`${swapped} try 7 - 3 = 4 ${HIT}`), counts(2, 2));
});

test('a first step that was left is a dead end; coming back counts once, what is new there is useful still', () => {
  const back = `${FIVE} ${SEVEN} try 5 + 3 = 8`;
  assert.deepEqual(count(`${back} ${FIVE_TOO}`), counts(3, 3, { deadAgain: 1 }));
  assert.deepEqual(count(`${back} ${FIVE_TOO} then 8 - 7 = 1`), counts(4, 4, { deadAgain: 1 }));
  assert.deepEqual(count(`${back} then 8 + 7 = 15`), counts(3, 2, { deadAgain: 1, repeated: 1 }));
  assert.deepEqual(
    count(`${back} ${FIVE_TOO} ${SEVEN}`),
    counts(4, 3, { deadAgain: 2, repeated: 1 }),
    'each return counts',
  );
});

test('what the rival ruled out is not useful to enter, unless it hits after all', () => {
  const summary = 'dead 7 - 3 dead 7 x 5 path 5 + 3 = 8 then 8 + 7 = 15';
  assert.deepEqual(count(SEVEN, summary), counts(1, 0, { deadAgain: 1 }));
  assert.deepEqual(count(`${SEVEN} ${HIT}`, summary), counts(2, 1, { deadAgain: 1 }));
  assert.deepEqual(count(`${SEVEN} ${HIT}`), counts(2, 2), 'nobody had ruled it out');
  assert.deepEqual(count(`${SEVEN} ${FIVE} ${SEVEN}`, summary), counts(3, 1, { deadAgain: 2, repeated: 1 }));
  assert.deepEqual(count(FIVE, summary), counts(1, 1), 'the rival’s path is not among its dead ends');
  assert.deepEqual(count(FIVE, 'dead 3 + 5'), counts(1, 0, { deadAgain: 1 }), 'in either order');
  assert.deepEqual(count(SEVEN, 'dead 7 - 4 dead withheld dead'), counts(1, 1), 'only what can be read');
});

test('false results, steps that are not allowed, and what rests on them', () => {
  const wrong = (steps: number, useful: number, more = {}) => counts(steps, useful, { wrong: 1, ...more });
  assert.deepEqual(count('try 5 + 3 = 8 then 8 + 7 = 16 left 16 11'), wrong(1, 0));
  assert.deepEqual(count('try 5 + 3 = 9 then 9 + 7 = 16 then 11 - 9 = 2'), wrong(2, 0, { wrong: 2 }));
  assert.deepEqual(count('try 5 + 4 = 9 then 9 + 7 = 16'), wrong(1, 0), 'no 4 is given');
  assert.deepEqual(count('try 5 + 3 = 8 then 7 + 5 = 12'), wrong(1, 0), 'the 5 is used up');
  assert.deepEqual(count('try 5 + 5 = 10 then 10 + 7 = 17'), wrong(1, 0), 'one 5 is given');
  assert.deepEqual(count('try 3 - 5 = 2 then 7 + 2 = 9'), wrong(1, 0), 'differences are not turned round');
  assert.deepEqual(count('try 11 x 7 = 77 then 77 - 5 = 72'), wrong(1, 0), 'past 60');
  assert.deepEqual(
    count('try 5 + 3 = 8 then 8 + 7 = 16 then 8 + 7 = 16'),
    wrong(2, 0, { wrong: 2, repeated: 1 }),
  );
  assert.deepEqual(
    count('try 5 + 3 = 8 then 8 + 7 = 16 then 8 + 7 = 15'),
    wrong(2, 1),
    'a correction is new',
  );
});

test('a check is one leaf and enters no dead end; written out thrice it is repeated twice', () => {
  const check = 'check 7 - 3 = 4 then 11 + 5 = 16 left 16 4 : 20 12 big target 24 dead';
  const path = 'path 7 - 3 = 4 then 11 + 5 = 16';
  assert.deepEqual(count(`${check} ${FIVE}`, path), counts(2, 2));
  assert.deepEqual(count(`${check} ${check} ${check}`, path), counts(3, 1, { repeated: 2 }));
  assert.deepEqual(count(`${check} try 7 - 3 = 4 ${HIT}`, path), counts(2, 2), 'the path was not left');
  assert.deepEqual(count(`${check} ${FIVE} try 7 - 3 = 4 ${HIT}`, path), counts(3, 3, { deadAgain: 1 }));
  assert.deepEqual(count(check, `dead 7 - 3 ${path}`), counts(1, 1), 'a check looks, it does not search');
  assert.deepEqual(
    count(`${check} ${SEVEN}`, `dead 7 - 3 ${path}`),
    counts(2, 1, { repeated: 1, deadAgain: 1 }),
  );
  assert.deepEqual(
    count(`${check} ${HIT}`, 'dead 7 - 3'),
    counts(2, 2, { deadAgain: 1 }),
    'one leaf, then search',
  );
  assert.deepEqual(count(`check 7 - 3 = 5 dead ${FIVE}`, path), counts(1, 1), 'stopped at once: no leaf');
});

test('whatever stands in a trace, nothing is read into it', () => {
  assert.deepEqual(count('then 8 + 7 = 15 left 15 11'), counts(0, 0), 'no first step');
  assert.deepEqual(count(`${FIVE} try 11 - = 6 then 7 - 3 = 4`), counts(1, 1), 'not under the step before');
  assert.deepEqual(count(`${FIVE} then then 11 - 8 = 3 then 8 - 7`), counts(2, 2));
  assert.deepEqual(count(`${FIVE} left dead hit : 24 ${FIVE_TOO}`), counts(2, 2));
  assert.deepEqual(count('try 5 + 3 = 08 then 8 + 7 = 15'), counts(0, 0), 'no such word');
  const open = `${FIVE} hit path 7 - 3 = 4 then 11 - 5 = 6 <answer> 6 x 4 </answer>`;
  assert.deepEqual(countdown.countTrace(problem, parseCompletion(open, 'length')), counts(1, 1));
  assert.throws(
    () => countdown.countTrace({ ...problem, question: 'why' }, completion(FIVE)),
    /not a countdown/,
  );
});

test('the parts of a summary', () => {
  const parts = (summary: string) => countdown.summaryParts(summary);
  const [dead, path] = ['dead 5 + 3 dead 7 x 5', 'path 7 - 3 = 4 then 11 - 5 = 6'];
  assert.deepEqual(parts(`${dead} ${path}`), { deadEnds: dead, path });
  assert.deepEqual(parts(` ${dead}\n`), { deadEnds: dead, path: '' });
  assert.deepEqual(parts(path), { deadEnds: '', path });
  assert.deepEqual(parts(''), { deadEnds: '', path: '' });
  assert.deepEqual(parts('dead withheld path withheld'), {
    deadEnds: 'dead withheld',
    path: 'path withheld',
  });
  assert.deepEqual(
    parts(`${path} ${dead}`),
    { deadEnds: dead, path },
    'no dead end is shown as part of a path',
  );
  assert.deepEqual(
    parts('7 - 3 = 4 then 11 - 5 = 6'),
    { deadEnds: '', path: '' },
    'nor a path as a dead end',
  );
});

test('a proposal is the path and the last operation, equal where only operands are exchanged', () => {
  const proposal = (summary: string, answer?: string) =>
    countdown.proposal({ think: '', summary, answer, formatted: true });
  const path = 'path 11 - 5 = 6 then 7 + 3 = 10';
  const settled = '11 - 5 = 6 then 7 + 3 = 10 then 10 + 6';
  assert.equal(proposal(path, '10 + 6'), settled);
  assert.equal(proposal(`dead 7 x 5 ${path}`, ' 6 + 10 '), settled, 'the dead ends are no part of it');
  assert.equal(proposal('path 11 - 5 = 6 then 3 + 7 = 10', '10 + 6'), settled);
  assert.notEqual(proposal(path, '10 - 6'), settled);
  assert.notEqual(proposal(path, '10 - 6'), proposal(path, '6 - 10'), 'differences have an order');
  assert.notEqual(proposal('path 11 - 5 = 6 then 7 + 3 = 11', '10 + 6'), settled, 'as it was written');
  for (const [summary, answer] of [
    [path, undefined],
    [path, '16'],
    [path, '10 + 6 = 16'],
    ['dead 7 x 5', '10 + 6'],
    ['path 11 - 5 = 6', '10 + 6'],
    ['', ''],
  ] as const)
    assert.equal(proposal(summary, answer), undefined, `${summary} | ${answer}`);
});

/** Generated completions of train problems, each read beside the rival's summary it was written for. */
function generated(name: string, n: number, options: TraceOptions, withRival: boolean) {
  const random = stream(name, 'inspect');
  return Array.from({ length: n }, () => {
    const drawn = drawCountdown(random, { split: 'train' });
    const puzzle = readQuestion(drawn.question);
    const rival = withRival
      ? shownTrace(drawn, countdownTrace(puzzle, undefined, random, options))
      : undefined;
    const written = parseCompletion(countdownTrace(puzzle, rival, random, options), 'stop');
    const found = countdown.countTrace(drawn, written, rival);
    return { drawn, puzzle, rival, written, found };
  });
}

function assertBounds({ steps, useful, repeated, deadAgain, wrong }: TraceCounts, think: string): void {
  assert.ok(useful + wrong <= steps && useful + repeated <= steps && deadAgain <= steps, think);
  assert.ok(steps > 0 || /^check \S+ . \S+ = \S+ dead/.test(think), think);
}

const FAITHFUL: TraceOptions = { ...TRACE_DEFAULTS, slip: 0, disguise: 0 };
const only = (mode: (typeof RIVAL_MODES)[number]): TraceOptions => ({
  ...FAITHFUL,
  rival: { copy: 0, verify: 0, ignore: 0, continue: 0, [mode]: 1 },
});

test('500 searches alone: every leaf is new, and either useful or false', () => {
  for (const [name, options] of Object.entries({ slips: TRACE_DEFAULTS, faithful: FAITHFUL })) {
    let wrong = 0;
    for (const { written, puzzle, found } of generated(name, 500, options, false)) {
      const { think } = written;
      const leaves = think.match(/then/g)!.length;
      assert.deepEqual(found, counts(leaves, leaves - found.wrong, { wrong: found.wrong }), think);
      assert.ok(found.steps >= 1 && found.steps <= options.maxLeaves);
      assert.ok(found.useful <= leavesOf(puzzle.numbers).length);
      wrong += found.wrong;
    }
    if (options === FAITHFUL) assert.equal(wrong, 0);
    else assert.ok(wrong > 20, `${wrong}: three slips in a hundred steps show`);
  }
});

test('500 challenges: bounds hold, and each way to read a rival leaves its mark', () => {
  for (const { written, found } of generated('mixed', 500, TRACE_DEFAULTS, true))
    assertBounds(found, written.think);

  // Where the answer reads like a step of the path, that step is withheld too, and the rival is not looked at.
  const read = (mode: (typeof RIVAL_MODES)[number]) =>
    generated(mode, 500, only(mode), true).filter(({ rival }) => readPath(rival!));
  const total = (mode: (typeof RIVAL_MODES)[number]) => {
    const sum = { steps: 0, useful: 0, repeated: 0, deadAgain: 0, wrong: 0 };
    for (const { written, found } of read(mode)) {
      assertBounds(found, written.think);
      for (const name of Object.keys(sum) as (keyof TraceCounts)[]) sum[name] += found[name];
    }
    return sum;
  };
  for (const { found } of read('copy')) assert.deepEqual(found, counts(1, 1), 'one check of a faithful path');
  const [verify, ignore, go] = [total('verify'), total('ignore'), total('continue')];
  for (const sum of [verify, ignore, go]) assert.equal(sum.wrong, 0);
  assert.equal(go.deadAgain, 0, 'who goes on from the dead ends enters none');
  assert.equal(go.repeated, 0);
  assert.equal(go.useful, go.steps);
  assert.ok(ignore.deadAgain > 20 && ignore.useful < ignore.steps, JSON.stringify(ignore));
  assert.equal(ignore.repeated, 0, 'the rival’s leaves are not its own');
  assert.ok(verify.repeated > 0, 'a search may come by the path that was checked');
});
