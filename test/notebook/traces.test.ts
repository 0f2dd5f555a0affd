import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { JSDOM } from 'jsdom';
import { readTrace, showTraces, TRACE_FILTERS, tracesHtml, tracesText } from '../../lib/notebook/traces.js';
import type { Attempt, Role } from '../../lib/records.js';
import { countdown } from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';

const problem = {
  ...{ id: 'p', question: 'numbers 3 5 7 11 target 24', gold: '24' },
  ...{ difficulty: 1, split: 'train' as const },
};

function attemptAt(text: string, role: Role, rival?: Attempt): Attempt {
  const completion = parseCompletion(text, 'stop');
  return {
    problem,
    adapter: role === 'challenge' ? 'B' : 'A',
    role,
    rollout: { promptIds: [1], completionIds: [1, 2, 3], logProbs: [0, 0, 0], finishReason: 'stop' },
    completion,
    correct: countdown.verify(problem, completion),
    formatted: completion.formatted,
    ...(rival ? { rival } : {}),
  };
}

const RIGHT =
  '<think> try 11 - 5 = 6 then 7 - 3 = 4 left 6 4 : 10 2 24 target 24 hit </think> path 11 - 5 = 6 then 7 - 3 = 4 <answer> 6 x 4 </answer>';
const WRONG =
  '<think> try 11 + 5 = 16 then 7 + 3 = 10 left 16 10 : 26 6 big target 24 guess </think> path 11 + 5 = 16 then 7 + 3 = 10 <answer> 16 + 10 </answer>';

const pairs = (['wrong', 'right'] as const).flatMap((draft) =>
  (['wrong', 'right'] as const).map((own) => {
    const text = { wrong: WRONG, right: RIGHT };
    return attemptAt(text[own], 'challenge', attemptAt(text[draft], 'draft'));
  }),
);

function printed(run: () => void): string {
  const log = mock.method(console, 'log', () => {});
  run();
  log.mock.restore();
  return log.mock.calls.map((call) => String(call.arguments[0])).join('\n');
}

test('what became of each answer beside its rival, and what it read', () => {
  const readings = pairs.map((attempt) => readTrace(attempt));
  assert.deepEqual(
    readings.map(({ outcome, copied }) => [outcome, copied]),
    [
      ['both wrong', true],
      ['conversion', false],
      ['loss', false],
      ['keep', true],
    ],
  );
  assert.equal(readings[1]!.shown, 'path 11 + 5 = 16 then 7 + 3 = 10');
  assert.deepEqual(readings[0]!.own.steps[0]!.marks, ['copied', 'settled']);
  assert.deepEqual(readings[0]!.rival!.steps[0]!.marks, ['settled']);
  const unseen = readTrace(attemptAt(RIGHT, 'solo', attemptAt(RIGHT, 'draft')));
  assert.deepEqual([unseen.shown, unseen.own.steps[0]!.marks], [undefined, ['settled']]);
  assert.equal(readTrace(attemptAt(RIGHT, 'draft')).outcome, 'right');
  assert.equal(readTrace(pairs[1]!, { shows: 'nothing' }).shown, undefined);
});

test('a filter shows what it says and how many there are', () => {
  const titles = TRACE_FILTERS.map((filter) => printed(() => showTraces(pairs, { filter })).split('\n')[0]);
  assert.deepEqual(titles, [
    '1 of 1 conversions among 4 attempts',
    '1 of 1 keeps among 4 attempts',
    '1 of 1 losses among 4 attempts',
    '2 of 2 failures among 4 attempts',
    '2 of 2 copies among 4 attempts',
  ]);
  assert.match(
    printed(() => showTraces(pairs, { limit: 2 })),
    /^2 of 4 attempts\n\n1\. both wrong/,
  );
  assert.equal(
    printed(() => showTraces([pairs[0]!], { filter: 'keeps' })),
    '0 of 0 keeps among 1 attempts',
  );
  assert.throws(() => showTraces(pairs, { limit: 0 }), /limit is 0, allowed are whole numbers from 1/);
  const unknown = 'wins' as (typeof TRACE_FILTERS)[number];
  assert.throws(
    () => showTraces(pairs, { filter: unknown }),
    /filter is 'wins', allowed are conversions, keeps/,
  );
});

test('the text form lays everything out in lines that fit a terminal', () => {
  const text = tracesText('one', [readTrace(pairs[0]!)]);
  assert.match(text, /1\. both wrong: numbers 3 5 7 11 target 24/);
  assert.match(text, /\[≡ copied, → settled\] try 11 \+ 5 = 16/);
  assert.match(text, /Challenge by B: ✗ wrong \(3 tokens, format holds; 1 step, 1 new and true\)/);
  assert.match(text, /≡ copied: the rival's proposal as it stood/);
  assert.ok(Math.max(...text.split('\n').map((line) => line.length)) <= 110);
});

test('what a model writes stays text: no element, no escape sequence, no formula of its own', () => {
  const evil = `<script>alert(1)</script><img src=x onerror=alert(1)> " ' & $x$ \u001b[2J \u202e ${'</code></td>'}`;
  const draft = attemptAt(`<think> ${evil} </think> ${evil} path <answer> ${evil} </answer>`, 'draft');
  const attempt = attemptAt(
    `<think> ${evil} </think> ${evil} <answer> ${evil} </answer>`,
    'challenge',
    draft,
  );
  const readings = [readTrace(attempt)];
  const { document } = new JSDOM(tracesHtml('evil', readings)).window;
  assert.deepEqual([...document.querySelectorAll('script, img, [onerror], [src], [href]')], []);
  const cells = [...document.querySelectorAll('td')];
  assert.equal(cells.length, 4);
  const codes = [...document.querySelectorAll('td code')].map((node) => node.textContent ?? '');
  // Reasoning, summary and answer of both; in what was shown the answer is masked.
  assert.equal(codes.filter((text) => text.includes('<script>alert(1)</script>')).length, 6);
  // Outside of <code> nothing of it stands: there a viewer would look for formulas.
  for (const node of document.querySelectorAll('code')) node.remove();
  assert.doesNotMatch(document.body.textContent ?? '', /alert|\$/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is looked for
  assert.doesNotMatch(tracesText('evil', readings) + tracesHtml('evil', readings), /[\u001b\u202e]/);
});

test('without styles the marks are still there in words and signs', () => {
  const html = tracesHtml('one', [readTrace(pairs[0]!)]).replace(/ style="[^"]*"/g, '');
  assert.match(html, /<b>≡&nbsp;copied<\/b> <b>→&nbsp;settled<\/b><br><code>try 11 \+ 5 = 16/);
  assert.match(html, /<th width="32%">Draft by A<\/th>.*Shown of it.*Challenge by B.*Verdict/);
});
