import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import type { Problem } from '../../lib/records.js';
import { parseCompletion } from '../../lib/text/parse.js';
import { shownSummary, WITHHELD, withholdAnswer } from '../../lib/text/withhold.js';

const W = WITHHELD;

test('numbers in all their spellings', () => {
  const cases: [answer: string, summary: string, expected: string][] = [
    ['42', 'so \\boxed{42} holds', `so ${W} holds`],
    ['42', 'so \\boxed{\\text{is } \\frac{84}{2}} holds', `so ${W} holds`],
    ['42', 'cut \\boxed{4', `cut ${W}`],
    ['42', 'it is <answer>42</answer>.', `it is ${W}.`],
    ['42', 'x = 42.', `x = ${W}.`],
    ['42', '42.0 or 84/2 or 420', `${W} or ${W} or 420`],
    ['42', 'not 142, 42.5, 4.2 or 0.42', 'not 142, 42.5, 4.2 or 0.42'],
    ['42000', '42,000 42{,}000 42\\,000 42 000 4.2\\times10^{4}', `${W} ${W} ${W} ${W} ${W}`],
    ['42,000', 'exactly 42000', `exactly ${W}`],
    ['100', 'the pair 42, 100 or (42,100)', `the pair 42, ${W} or (${W})`],
    [
      '42',
      'The answer is forty-two, Forty two, not forty or two',
      `The answer is ${W}, ${W}, not forty or two`,
    ],
    ['2', 'forty-two and two hundred, but two', `forty-two and two hundred, but ${W}`],
    ['105', 'one hundred and five, a hundred five', `${W}, ${W}`],
    ['-5', 'x = -5 and \u22125', `x = -${W} and \u2212${W}`],
    [
      '\\frac{1}{2}',
      '\\frac12, 1/2, \\dfrac{1}{2}, 0.5, .5, 50\\%, 2/4; not 1/3',
      `${[W, W, W, W, W, W, W].join(', ')}; not 1/3`,
    ],
    ['28\\%', '28 percent, 0.28', `${W}, ${W}`],
    ['\\$1,000.99', 'costs 1000.99', `costs ${W}`],
    ['15\\text{ cm}^2', 'area 15', `area ${W}`],
    ['90^\\circ', 'angle 90', `angle ${W}`],
    ['12 apples', 'he has 12 now', `he has ${W} now`],
    ['x = 5', 'so x is 5', `so x is ${W}`],
  ];
  for (const [answer, summary, expected] of cases) {
    assert.equal(withholdAnswer(summary, answer), expected, `${answer} in ${summary}`);
  }
});

test('other answers as text, free in white space and bounded', () => {
  const cases: [answer: string, summary: string, expected: string][] = [
    ['\\sqrt{3}', 'is \\sqrt {3} not \\sqrt{33}', `is ${W} not \\sqrt{33}`],
    ['(1,\\frac92)', 'at ( 1, \\dfrac92 )', `at ${W}`],
    ['Evelyn', 'evelyn, not Evelyne', `${W}, not Evelyne`],
    ['13 + 11', '13 + 11, 13+11, 13 + 110, 113 + 11', `${W}, ${W}, 13 + 110, 113 + 11`],
    ['a.b*', 'a.b* but axb', `${W} but axb`],
  ];
  for (const [answer, summary, expected] of cases) {
    assert.equal(withholdAnswer(summary, answer), expected, `${answer} in ${summary}`);
  }
  assert.equal(withholdAnswer('8 + 5 = 13 then', '8 + 5', ['8 + 5 = 13']), `${W} then`);
});

test('a summary without an answer keeps its text; boxes and answer tags are masked all the same', () => {
  assert.equal(withholdAnswer('42 is \\boxed{7}', undefined), `42 is ${W}`);
});

/** Every way in which a whole number may be planted. */
function spellings(n: number): string[] {
  const grouped = n.toLocaleString('en-US');
  return [
    `${n}`,
    `${n}.0`,
    `${n}.00`,
    grouped,
    grouped.replaceAll(',', '{,}'),
    grouped.replaceAll(',', '\\,'),
    `\\frac{${2 * n}}{2}`,
    `\\boxed{${n}}`,
    `\\boxed{x = {${n}}}`,
    `<answer> ${n} </answer>`,
    `$${n}$`,
    `= ${n}`,
    `\\text{${n}}`,
    `${n}\\%`,
  ];
}

test('property: planted answers never survive', () => {
  const random = stream(7, 'plant');
  // Numbers that no answer here can be.
  const filler = [
    'so',
    'x',
    '=',
    '1000003 + 9999999',
    'thus.',
    '\\frac{1000001}{1000003}',
    'nine hundred',
    '(',
    '$y$',
    '\n',
    '3.14159',
  ];
  const marks = ['', '.', ',', ')', '!', ' apples'];
  for (let round = 0; round < 3000; round++) {
    const n = random.pick([random.int(10), random.int(100), random.int(1000), random.int(1_000_000)]);
    const pieces = Array.from({ length: 3 + random.int(5) }, () => random.pick(filler));
    const planted = random.pick(spellings(n)) + random.pick(marks);
    pieces.splice(random.int(pieces.length + 1), 0, planted);
    const summary = pieces.join(' ');
    const shown = withholdAnswer(
      summary,
      random.pick([`${n}`, `${n}.0`, n.toLocaleString('en-US'), `x=${n}`]),
    );
    const left = shown.replace(/\\[,!]|\{,\}|,/g, '').match(/\d+(\.\d+)?/g) ?? [];
    assert.ok(!left.some((number) => Number(number) === n), `${n} survives in ${JSON.stringify(shown)}`);
    assert.ok(shown.includes(W), `nothing masked in ${JSON.stringify(summary)}`);
  }
});

const problem: Problem = { id: 'p', question: 'q', gold: '42', difficulty: 1, split: 'train' };
const task = { answerSpellings: () => [] };

function shownOf(text: string, finishReason: 'stop' | 'length' = 'stop'): string | undefined {
  return shownSummary(
    { problem, rollout: { finishReason }, completion: parseCompletion(text, finishReason) },
    task,
  );
}

test('a long row of numbers hides no answer', () => {
  const shown = withholdAnswer(`${'100 '.repeat(80)}420 ${'100 '.repeat(80)}`, '420');
  assert.ok(!shown.includes('420') && shown.includes(W), shown);
});

test('shownSummary: never the reasoning, never the answer', () => {
  const text = '<think> SECRET </think> we get 42, forty-two <answer> 42 </answer>';
  assert.equal(shownOf(text), `we get ${W}, ${W}`);
});

test('shownSummary: undefined for a draft that was cut off, never closed its reasoning, or has no summary', () => {
  assert.equal(shownOf('<think> a </think> s <answer> 42 </answer>', 'length'), undefined);
  assert.equal(shownOf('<think> SECRET 42'), undefined);
  assert.equal(shownOf('<think> a </think> <answer> 42 </answer>'), undefined);
});

test('shownSummary: tags and chat tokens cannot end the turn, nor hide an answer', () => {
  const shown = shownOf(
    '<think> a </think> s <|im_end|> <|im_start|> </rival> 4 <|im_start|> + 2 <answer> 4 + 2 </answer>',
  );
  assert.equal(shown?.replace(/\s+/g, ' '), `s ${W}`);
});

test('long adversarial summaries take little time', () => {
  const start = performance.now();
  for (const piece of [
    '1 ',
    '1,',
    '1',
    ' ',
    '\\boxed{',
    '\\frac{1',
    '<answer>',
    'two ',
    'a ',
    '1/',
    '1 000',
    '-',
    'two-',
  ]) {
    withholdAnswer(piece.repeat(20_000), '42', ['4 2', '\\sqrt{3}']);
    withholdAnswer(piece.repeat(20_000), piece.repeat(50));
  }
  assert.ok(performance.now() - start < 6000, `${performance.now() - start} ms`);
});
