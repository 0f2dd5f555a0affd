import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../../lib/files.js';
import { stream } from '../../lib/random.js';
import { readAnswer, readQuestion } from '../../lib/tasks/countdown/grammar.js';
import {
  countdown,
  countdownExample,
  countdownTrace,
  drawCountdown,
  shownTrace,
  TRACE_DEFAULTS,
  type TraceOptions,
  writeArenaTokenizer,
} from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';
import { loadTokenizer } from '../../lib/text/tokenizer.js';
import { shownSummary, WITHHELD } from '../../lib/text/withhold.js';

const folder = join(ROOT, 'data/arena-base');
const FAITHFUL: TraceOptions = { ...TRACE_DEFAULTS, slip: 0, disguise: 0 };

function only(mode: keyof TraceOptions['rival'], options: TraceOptions = FAITHFUL): TraceOptions {
  return { ...options, rival: { copy: 0, verify: 0, ignore: 0, continue: 0, [mode]: 1 } };
}

const puzzle = { numbers: [3, 5, 7, 11], target: 24 };
const problem = {
  id: 'p',
  question: 'numbers 3 5 7 11 target 24',
  gold: '24',
  difficulty: 1,
  split: 'train' as const,
};
const RIGHT = 'path 11 - 5 = 6 then 7 - 3 = 4';
const WRONG = 'dead 7 - 3 dead 5 x 3 path 11 + 5 = 16 then 7 + 3 = 10';
const SLIPPED = 'path 11 + 5 = 17 then 7 - 3 = 4';

test('a faithful solver is right exactly when it says hit, and every trace holds the format', () => {
  const random = stream(1, 'faithful');
  let right = 0;
  for (let i = 0; i < 1000; i++) {
    const drawn = drawCountdown(random, { split: 'train' });
    const completion = parseCompletion(
      countdownTrace(readQuestion(drawn.question), undefined, random, FAITHFUL),
      'stop',
    );
    assert.ok(completion.formatted);
    const says = completion.think.endsWith('hit');
    assert.equal(countdown.verify(drawn, completion), says, completion.think);
    right += says ? 1 : 0;
  }
  assert.ok(right > 200 && right < 700, String(right));
});

test('slips and disguised give-ups make some hits false', () => {
  const random = stream(2, 'unfaithful');
  const claims = Array.from({ length: 1000 }, () => {
    const drawn = drawCountdown(random, { split: 'train' });
    const completion = parseCompletion(
      countdownTrace(readQuestion(drawn.question), undefined, random),
      'stop',
    );
    return { says: completion.think.endsWith('hit'), right: countdown.verify(drawn, completion) };
  }).filter((claim) => claim.says);
  const share = claims.filter((claim) => claim.right).length / claims.length;
  assert.ok(share > 0.4 && share < 0.85, String(share));
});

test('what a rival mode does', () => {
  const run = (rival: string, options: TraceOptions, seed = 1) =>
    parseCompletion(countdownTrace(puzzle, rival, stream(seed, 'mode'), options), 'stop');

  const taken = run(RIGHT, only('verify'));
  assert.equal(taken.think, 'check 11 - 5 = 6 then 7 - 3 = 4 left 6 4 : 10 2 24 target 24 hit');
  assert.equal(taken.answer, '6 x 4');
  assert.deepEqual(run(RIGHT, only('copy')), taken);
  assert.deepEqual(run(RIGHT, only('continue')), taken);
  assert.match(run(RIGHT, only('ignore')).think, /^try /);

  const copied = run(WRONG, only('copy'));
  assert.equal(copied.think, 'check 11 + 5 = 16 then 7 + 3 = 10 left 16 10 : 26 6 big target 24 guess');
  assert.equal(copied.summary, 'path 11 + 5 = 16 then 7 + 3 = 10');
  assert.match(run(WRONG, only('verify')).think, /^check .* dead try /);
  assert.match(run(SLIPPED, only('verify')).think, /^check 11 \+ 5 = 16 dead try /);
  assert.match(run(SLIPPED, only('copy')).think, /^check 11 \+ 5 = 17 then 7 - 3 = 4 left 17 4 /);

  for (let seed = 0; seed < 200; seed++) {
    const { think } = run(WRONG, only('continue'), seed);
    assert.doesNotMatch(think, /try (7 - 3|5 x 3|11 \+ 5) /, 'a dead end of the rival again');
  }
});

test('an unusable summary is ignored', () => {
  for (const rival of ['path 1 + 1 = 2 then 2 + 2 = 4', WITHHELD, `path ${WITHHELD} then 7 - 3 = 4`]) {
    assert.match(countdownTrace(puzzle, rival, stream(1, 'garbage')), /^<think> try /);
  }
});

test('the shares of the modes, and half of the examples with a rival', () => {
  const random = stream(3, 'shares');
  const examples = Array.from({ length: 4000 }, () => countdownExample(random));
  const prompts = examples.map((e) => e.prompt[0]!.content);
  const challenged = prompts.filter((p) => p.includes(' rival ')).length / prompts.length;
  assert.ok(Math.abs(challenged - 0.5) < 0.03, String(challenged));
  assert.ok(examples.every((e) => e.problem.split === 'train'));
  const read = examples.filter((e) => /rival (?!none)/.test(e.prompt[0]!.content));
  const looks = read.filter((e) => e.completion.startsWith('<think> check')).length / read.length;
  assert.ok(Math.abs(looks - 0.85) < 0.04, String(looks));
});

test('lengths: about 85 tokens, few past 200', () => {
  const random = stream(4, 'lengths');
  const lengths = Array.from({ length: 3000 }, () => countdownExample(random).completion.split(' ').length);
  const mean = lengths.reduce((a, b) => a + b) / lengths.length;
  assert.ok(mean > 75 && mean < 95, String(mean));
  assert.ok(lengths.filter((n) => n > 200).length / lengths.length < 0.03);
});

test('round trip through the tokenizer without [UNK]', () => {
  const tokenizer = loadTokenizer(folder);
  const unknown = tokenizer.encode('[UNK]')[0]!;
  const random = stream(5, 'round trip');
  for (let i = 0; i < 1000; i++) {
    const { prompt, completion } = countdownExample(random);
    const ids = tokenizer.encode(completion);
    assert.ok(!ids.includes(unknown), completion);
    assert.equal(tokenizer.decode(ids), completion);
    assert.equal(ids.length, completion.split(' ').length);
    assert.ok(!tokenizer.encodePrompt(prompt).includes(unknown), prompt[0]!.content);
  }
});

test('the committed tokenizer files are the generated ones', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'agon-arena-'));
  writeArenaTokenizer(scratch);
  for (const file of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja']) {
    assert.equal(readFileSync(join(folder, file), 'utf8'), readFileSync(join(scratch, file), 'utf8'), file);
  }
  rmSync(scratch, { recursive: true });
});

test('property: the last operation never survives in what a rival is shown, however it is planted', () => {
  const random = stream(6, 'plant');
  for (let i = 0; i < 2000; i++) {
    const drawn = drawCountdown(random, { split: 'train' });
    const trace = countdownTrace(readQuestion(drawn.question), undefined, random);
    const completion = parseCompletion(trace, 'stop');
    const { left, op, right } = readAnswer(completion.answer!)!;
    const [a, b] = random.pick([
      [left, right],
      [right, left],
    ]) as [number, number];
    const gap = random.pick([' ', '', '  ', '\n']);
    const operation = `${a}${gap}${op}${gap}${b}`;
    const planted = random.pick([
      operation,
      `${operation} = 24`,
      `<answer> ${operation} </answer>`,
      `\\boxed{${operation}}`,
    ]);
    const at = random.int(2);
    const summary = at === 0 ? `${planted} ${completion.summary}` : `${completion.summary} ${planted}`;
    const shown = shownSummary(
      { problem: drawn, rollout: { finishReason: 'stop' }, completion: { ...completion, summary } },
      countdown,
    )!;
    const tight = ` ${shown.replace(/\s*([-+x])\s*/g, '$1')} `;
    for (const form of [`${left}${op}${right}`, `${right}${op}${left}`]) {
      assert.ok(!tight.includes(` ${form} `), `${form} survives in ${JSON.stringify(shown)}`);
    }
    assert.ok(shown.includes(WITHHELD));
    assert.ok(!shown.includes('try') && !shown.includes('left'), 'reasoning shown');
  }
});

test('a summary without the last operation is shown as it is', () => {
  assert.equal(shownTrace(problem, `<think> try </think> ${RIGHT} <answer> 6 x 4 </answer>`), RIGHT);
});
