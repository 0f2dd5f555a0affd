import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCompletion } from '../../lib/text/parse.js';

test('takes a well-formed completion apart', () => {
  assert.deepEqual(parseCompletion('<think> a b </think> the way <answer> 42 </answer>', 'stop'), {
    think: 'a b',
    summary: 'the way',
    answer: '42',
    formatted: true,
  });
});

test('white space, a missing opening tag and chat tokens at the end do not matter', () => {
  const expected = { think: 'a', summary: 's', answer: '42', formatted: true };
  for (const text of [
    '<think>\na\n</think>\n\ns\n\n<answer>42</answer>',
    '\n\n<think>a</think>s<answer>\n42\n</answer>\n',
    'a\n</think>\n\ns\n<answer>42</answer><|im_end|>',
    'a </think> s <answer> 42 </answer> <|im_end|> <|endoftext|>',
  ]) {
    assert.deepEqual(parseCompletion(text, 'stop'), expected, JSON.stringify(text));
  }
});

test('empty reasoning holds the format; what the reasoning says about answers does not count', () => {
  assert.equal(parseCompletion('<think>\n\n</think>\n\ns <answer>1</answer>', 'stop').formatted, true);
  const quoted = parseCompletion(
    '<think> maybe <answer> 1 </answer> </think> s <answer> 2 </answer>',
    'stop',
  );
  assert.deepEqual([quoted.answer, quoted.summary, quoted.formatted], ['2', 's', true]);
});

test('each way in which the format can break', () => {
  const cases: [string, string, string | undefined, string][] = [
    ['never closed', '<think> a <answer> 1 </answer>', undefined, ''],
    ['nothing', '', undefined, ''],
    ['closed twice', '<think> a </think> b </think> s <answer> 1 </answer>', '1', 's'],
    ['opened twice', '<think> a <think> b </think> s <answer> 1 </answer>', '1', 's'],
    ['reopened later', '<think> a </think> s <think> b <answer> 1 </answer>', undefined, ''],
    ['twice', '<think> a </think> <think> private </think> s <answer> 1 </answer>', '1', 's'],
    ['no summary', '<think> a </think> <answer> 1 </answer>', '1', ''],
    ['no answer', '<think> a </think> s', undefined, 's'],
    ['empty answer', '<think> a </think> s <answer> </answer>', undefined, 's'],
    ['answer not closed', '<think> a </think> s <answer> 1', undefined, 's'],
    ['answer not opened', '<think> a </think> s 1 </answer>', undefined, 's 1 </answer>'],
    ['two answers', '<think> a </think> s <answer> 1 </answer> <answer> 2 </answer>', '2', 's'],
    ['nested answers', '<think> a </think> s <answer> <answer> 1 </answer> </answer>', undefined, 's'],
    ['text after the answer', '<think> a </think> s <answer> 1 </answer> or 2', '1', 's'],
  ];
  for (const [name, text, answer, summary] of cases) {
    const parsed = parseCompletion(text, 'stop');
    assert.deepEqual([parsed.answer, parsed.summary, parsed.formatted], [answer, summary, false], name);
  }
});

test('a completion cut at the cap does not hold the format, whatever it says', () => {
  const parsed = parseCompletion('<think> a </think> s <answer> 1 </answer>', 'length');
  assert.deepEqual([parsed.answer, parsed.formatted], ['1', false]);
});

test('long adversarial texts take linear time', () => {
  const start = performance.now();
  for (const piece of ['<think>', '</think>', '<answer>', '</answer>', '<|', '|>', ' ', '<']) {
    parseCompletion(piece.repeat(100_000), 'stop');
  }
  assert.ok(performance.now() - start < 3000);
});
