import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ARENA_STYLE, buildPrompt, ENGLISH_STYLE } from '../../lib/text/prompts.js';

const problem = { question: 'numbers 3 5 7 11 target 24' };

test('arena prompts are a few words', () => {
  const content = (role: 'draft' | 'solo' | 'challenge', shown?: string) =>
    buildPrompt(ARENA_STYLE, problem, role, shown).map((m) => `${m.role}: ${m.content}`);
  assert.deepEqual(content('draft'), ['user: numbers 3 5 7 11 target 24']);
  assert.deepEqual(content('solo'), content('draft'));
  assert.deepEqual(content('challenge', 'path p'), ['user: numbers 3 5 7 11 target 24 rival path p']);
  assert.deepEqual(content('challenge'), ['user: numbers 3 5 7 11 target 24 rival none']);
});

test('the English challenger is told to distrust, the drafter is not', () => {
  const [draft] = buildPrompt(ENGLISH_STYLE, problem, 'draft');
  const [challenge] = buildPrompt(ENGLISH_STYLE, problem, 'challenge', 'the way');
  assert.match(challenge!.content, /Do not trust the rival/);
  assert.match(challenge!.content, /right where the rival is wrong/);
  assert.match(challenge!.content, /<rival>\nthe way\n<\/rival>/);
  assert.doesNotMatch(draft!.content, /rival/);
  for (const message of [draft, challenge]) assert.match(message!.content, /<think>.*summary.*<answer>/s);
  assert.match(buildPrompt(ENGLISH_STYLE, problem, 'challenge')[0]!.content, /left no summary/);
});

test('filled-in text is not expanded again', () => {
  const [message] = buildPrompt(ARENA_STYLE, { question: '{summary} $&' }, 'challenge', '{question} $1');
  assert.equal(message!.content, '{summary} $& rival {question} $1');
});

test('only a challenger is shown a rival', () => {
  assert.throws(() => buildPrompt(ARENA_STYLE, problem, 'draft', 'x'), /role draft reads no rival/);
});
