/** What is shown of a rival, row by row of the ablation, on countdown drafts that are written out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promptText } from '../../lib/agon/attempt.js';
import { isLatent, SHOWS, type Shows, shownOf } from '../../lib/agon/exchange.js';
import { ARENA_BASE } from '../../lib/experiments/world.js';
import { stream } from '../../lib/random.js';
import type { Attempt, Problem } from '../../lib/records.js';
import { readQuestion } from '../../lib/tasks/countdown/grammar.js';
import { countdown, countdownSpellings, countdownTrace, drawCountdown } from '../../lib/tasks/index.js';
import { loadTokenizer, parseCompletion } from '../../lib/text/index.js';
import { attemptOf, scriptedWorld } from './support.js';

const problem: Problem = {
  id: 'p',
  question: 'numbers 3 5 7 11 target 24',
  gold: '24',
  difficulty: 1,
  split: 'train',
};

function rivalOf(text: string, of = problem, finishReason: 'stop' | 'length' = 'stop'): Attempt {
  const draft = attemptOf({ problem: of });
  return {
    ...draft,
    rollout: { ...draft.rollout, finishReason },
    completion: parseCompletion(text, finishReason),
  };
}

const SEARCH =
  'try 5 + 3 = 8 then 8 + 7 = 15 left 15 11 : 26 4 big target 24 dead try 7 - 3 = 4 then 11 - 5 = 6';
const [DEAD, PATH, ANSWER] = [
  'dead 5 + 3 dead 7 x 5',
  'path 7 - 3 = 4 then 11 - 5 = 6',
  '<answer> 6 x 4 </answer>',
];
const DRAFT = `<think> ${SEARCH} 6 x 4 = 24 hit </think> ${DEAD} ${PATH} ${ANSWER}`;

const world = scriptedWorld(() => '', countdown, loadTokenizer(ARENA_BASE)).world;
const LATENT = SHOWS.filter(isLatent);
/** The challenger's prompt, from the word after `rival`. */
function seen(rival: Attempt, shows?: Shows): string {
  const text = promptText(world, 'challenge', {
    problem: rival.problem,
    reads: rival,
    ...(shows ? { shows } : {}),
  });
  return /target \d+ rival (.*) <\|im_end\|>/s.exec(text)![1]!;
}

test('each row shows what its name says', () => {
  const rival = rivalOf(DRAFT);
  assert.equal(seen(rival), `${DEAD} ${PATH}`, 'the method: the summary');
  const expected: Record<Shows, string> = {
    summary: `${DEAD} ${PATH}`,
    nothing: 'none',
    'dead-ends': DEAD,
    path: PATH,
    trace: `${SEARCH} withheld hit ${DEAD} ${PATH}`,
    answer: `${DEAD} ${PATH} ${ANSWER}`,
    // No words; what else they read is tested in test/latent.
    latent: 'none',
    'latent-summary': 'none',
  };
  assert.deepEqual(Object.fromEntries(SHOWS.map((shows) => [shows, seen(rival, shows)])), expected);
});

test('a part that is not there leaves "none", not an empty place', () => {
  const none = (text: string) => SHOWS.filter((shows) => seen(rivalOf(text), shows) === 'none');
  assert.deepEqual(none(`<think> ${SEARCH} </think> ${PATH} ${ANSWER}`), ['nothing', 'dead-ends', ...LATENT]);
  assert.deepEqual(none(`<think> ${SEARCH} </think> ${DEAD} ${ANSWER}`), ['nothing', 'path', ...LATENT]);
  assert.deepEqual(none(`<think> ${SEARCH} </think> ${ANSWER}`), [...SHOWS], 'no summary: nothing at all');
  assert.deepEqual(none(`<think> ${SEARCH}`), [...SHOWS], 'reasoning that was never closed');
  const unanswered = rivalOf(`<think> ${SEARCH} </think> ${PATH}`);
  assert.equal(seen(unanswered, 'answer'), PATH, 'no answer to show');
});

test('a draft that was cut off shows nothing, whatever it had written', () => {
  for (const text of [DRAFT, `<think> ${SEARCH} </think> ${DEAD} ${PATH}`, `<think> ${SEARCH}`]) {
    const rival = rivalOf(text, problem, 'length');
    for (const shows of SHOWS) {
      assert.equal(shownOf(rival, countdown, shows), undefined, shows);
      assert.equal(seen(rival, shows), 'none', shows);
    }
  }
});

test('property: on generated drafts only "answer" shows the answer, only "trace" the search', () => {
  const random = stream('shows');
  for (let i = 0; i < 300; i++) {
    const drawn = drawCountdown(random, { split: 'train' });
    const trace = countdownTrace(readQuestion(drawn.question), undefined, random);
    const { completion } = rivalOf(trace, drawn);
    const [spelling] = countdownSpellings(completion).filter((text) => !text.includes('='));
    // Some drafts let the answer slip into the reasoning and the summary.
    const planted = i % 2 === 0 ? trace : trace.replace(' </think>', ` ${spelling} </think> ${spelling}`);
    const rival = rivalOf(planted, drawn);
    for (const shows of SHOWS) {
      const shown = ` ${shownOf(rival, countdown, shows) ?? ''} `;
      const tells = countdownSpellings(completion).some((text) => shown.includes(` ${text} `));
      assert.equal(tells, shows === 'answer', `${shows}: ${shown}`);
      assert.equal(shown.includes(' try '), shows === 'trace', `${shows}: ${shown}`);
      assert.equal(shown.includes('<answer>'), shows === 'answer');
    }
  }
});
