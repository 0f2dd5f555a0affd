import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import { evaluate } from '../../lib/tasks/chain/facts.js';
import { readFacts, readQuestion } from '../../lib/tasks/chain/grammar.js';
import { chainVocabulary } from '../../lib/tasks/chain/tokenizer-files.js';
import {
  arenaVocabulary,
  CHAIN_TRACE_DEFAULTS,
  type ChainMode,
  type ChainTraceOptions,
  chain,
  chainExample,
  chainTrace,
  drawChain,
  shownChain,
  writeChainTokenizer,
} from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';
import { loadTokenizer } from '../../lib/text/tokenizer.js';

const SURE = { slipping: 0, slip: 0, mistaken: 0, mistake: 0 };
const CARELESS: ChainTraceOptions = {
  ...CHAIN_TRACE_DEFAULTS,
  doubts: SURE,
  care: { none: 1, some: 0, all: 0 },
};
const CAREFUL: ChainTraceOptions = { ...CARELESS, care: { none: 0, some: 0, all: 1 } };

function only(mode: ChainMode, options: ChainTraceOptions = CARELESS): ChainTraceOptions {
  return { ...options, rival: { copy: 0, verify: 0, some: 0, ignore: 0, [mode]: 1 } };
}

const puzzle = readQuestion('start 20 a x 15 b - 9 c x 5 d + 7');
const RIGHT = 'a 4 b 32 c 12';
const WRONG = 'a 5 b 33 c 17';
const ALONE = 'a 20 x 15 = 4 b 4 - 9 = 32 c 32 x 5 = 12 d 12 + 7 = 19';

const run = (rival: string | undefined, options: ChainTraceOptions, seed = 1) =>
  parseCompletion(chainTrace(puzzle, rival, stream(seed, 'mode'), options), 'stop');

test('alone, without and with care', () => {
  const careless = run(undefined, CARELESS);
  assert.equal(careless.think, ALONE);
  assert.equal(careless.summary, RIGHT);
  assert.equal(careless.answer, 'd 19');
  const again =
    'a 20 x 15 = 4 again 20 x 15 = 4 b 4 - 9 = 32 again 4 - 9 = 32 ' +
    'c 32 x 5 = 12 again 32 x 5 = 12 d 12 + 7 = 19 again 12 + 7 = 19';
  assert.equal(run(undefined, { ...CAREFUL, split: 0 }).think, again);
  const byParts = again.replace('again 20 x 15 = 4', 'split 20 x 3 = 23 23 x 5 = 4');
  assert.equal(run(undefined, { ...CAREFUL, split: 1 }).think, byParts);
});

test('what a rival mode does', () => {
  assert.equal(run(RIGHT, only('ignore')).think, ALONE);
  assert.equal(run(RIGHT, only('copy')).think, 'take c 12 d 12 + 7 = 19');
  assert.equal(run(RIGHT, only('copy')).summary, RIGHT);
  const copied = run(WRONG, only('copy'));
  assert.equal(copied.summary, WRONG);
  assert.equal(copied.answer, 'd 24', '17 + 7');
  const verified = 'a 20 x 15 = 4 rival 4 b 4 - 9 = 32 rival 32 c 32 x 5 = 12 rival 12 d 12 + 7 = 19';
  assert.equal(run(RIGHT, only('verify')).think, verified);
  assert.equal(run(RIGHT, only('some', { ...CARELESS, check: 1 })).think, verified);
  assert.match(run(RIGHT, only('some')).think, /take/);
});

test('verifying a wrong claim: redone, the own result wins, and the rest is worked out alone', () => {
  for (let seed = 0; seed < 50; seed++) {
    const { think, answer } = run(WRONG, only('verify', { ...CARELESS, differing: 1, split: 1 }), seed);
    assert.equal(
      think,
      `a 20 x 15 = 4 rival 5 split 20 x 3 = 23 23 x 5 = 4 so 4 ${ALONE.slice('a 20 x 15 = 4 '.length)}`,
    );
    assert.equal(answer, 'd 19');
  }
  // Without doing it over, either value; with the rival's, its claims are compared with further.
  const trusting = Array.from(
    { length: 50 },
    (_, seed) => run(WRONG, only('verify', { ...CARELESS, differing: 0 }), seed).think,
  );
  for (const think of trusting)
    assert.match(
      think,
      /^a 20 x 15 = 4 rival 5 so (4 b 4 - 9 = 32 c|5 b 5 - 9 = 33 rival 33 c 33 x 5 = 17 rival 17 d)/,
    );
  assert.ok(new Set(trusting).size > 1);
});

test('claims that are missing are worked out', () => {
  assert.equal(run('a 4 c 12', only('copy')).think, 'take a 4 b 4 - 9 = 32 take c 12 d 12 + 7 = 19');
  assert.equal(run('withheld', only('copy')).think, ALONE);
  // The last step is never taken over, whatever a summary claims of it.
  assert.equal(run(`${RIGHT} d 1`, only('copy')).answer, 'd 19');
});

test('property: a trace holds the format, its steps follow from each other, and it writes what it says', () => {
  const random = stream(2, 'traces');
  for (let i = 0; i < 1000; i++) {
    const problem = drawChain(random, { split: 'train', minDifficulty: 3 });
    const question = readQuestion(problem.question);
    const rival = shownChain(problem, chainTrace(question, undefined, random));
    const trace = chainTrace(question, i % 2 ? rival : undefined, random);
    const completion = parseCompletion(trace, 'stop');
    assert.ok(completion.formatted, trace);
    const claims = `${completion.summary} ${completion.answer}`.split(' ');
    assert.deepEqual(
      claims.filter((_, j) => j % 2 === 0),
      [...'abcdefghij'].slice(0, problem.difficulty),
    );
    assert.equal(rival!.split(' ').length, 2 * (problem.difficulty - 1), 'no value of a rival is hidden');
    // Each step starts from the value claimed for the one before, and its own value is claimed after it.
    for (const [, letter, body] of trace.matchAll(
      /(?<= )([a-j]) (\d+ [-+x] \d+ = .*?)(?= [a-j] | take | <)/g,
    )) {
      const at = 'abcdefghij'.indexOf(letter!);
      const [first] = readFacts(body!);
      assert.equal(first!.left, at === 0 ? question.start : Number(claims[2 * at - 1]), trace);
      const settled = /so (\d+)$/.exec(body!)?.[1] ?? readFacts(body!).at(-1)!.result;
      assert.equal(Number(settled), Number(claims[2 * at + 1]), trace);
    }
    if (chain.countTrace(problem, completion).wrong === 0 && i % 2 === 0)
      assert.ok(chain.verify(problem, completion));
  }
});

test('care buys accuracy and costs tokens; easy facts are always true', () => {
  const random = stream(3, 'care');
  const measure = (options: ChainTraceOptions) => {
    let [right, length] = [0, 0];
    for (let i = 0; i < 1500; i++) {
      const problem = drawChain(random, { split: 'train' });
      const trace = chainTrace(readQuestion(problem.question), undefined, random, options);
      const completion = parseCompletion(trace, 'stop');
      right += Number(chain.verify(problem, completion));
      length += trace.split(' ').length;
      for (const fact of readFacts(completion.think))
        if (fact.right < 10) assert.equal(evaluate(fact), fact.result, trace);
    }
    return { right: right / 1500, length: length / 1500 };
  };
  const { doubts } = CHAIN_TRACE_DEFAULTS;
  const careless = measure({ ...CARELESS, doubts });
  const same = measure({ ...CAREFUL, doubts, split: 0 });
  const byParts = measure({ ...CAREFUL, doubts, split: 1 });
  assert.ok(
    careless.right < same.right && same.right < byParts.right,
    JSON.stringify([careless, same, byParts]),
  );
  assert.ok(careless.length < 70 && byParts.length > 110, JSON.stringify([careless, byParts]));
});

test('half of the examples have a rival, in the shares of the modes, and all are of the train split', () => {
  const random = stream(4, 'shares');
  const examples = Array.from({ length: 3000 }, () => chainExample(random));
  const prompts = examples.map((e) => e.prompt[0]!.content);
  const challenged = prompts.filter((p) => p.includes(' rival ')).length / prompts.length;
  assert.ok(Math.abs(challenged - 0.5) < 0.03, String(challenged));
  assert.ok(examples.every((e) => e.problem.split === 'train'));
  const read = examples.filter((e) => /rival (?!none)/.test(e.prompt[0]!.content));
  const looks = read.filter((e) => /rival|take/.test(e.completion)).length / read.length;
  assert.ok(Math.abs(looks - 0.8) < 0.04, String(looks));
});

test('words that the arena has too keep its ids, and none is there twice', () => {
  const [own, arena] = [chainVocabulary(), arenaVocabulary()];
  assert.equal(own.length, arena.length);
  assert.equal(new Set(own).size, own.length);
  const shared = own.filter((word) => arena.includes(word) && !word.startsWith('<unused'));
  assert.ok(shared.includes('36') && shared.includes('=') && shared.includes('x'));
  for (const word of shared) assert.equal(own.indexOf(word), arena.indexOf(word), word);
});

test('the tokenizer holds every word: there and back without [UNK], one token a word', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agon-chain-'));
  writeChainTokenizer(folder);
  const tokenizer = loadTokenizer(folder);
  assert.ok(tokenizer.vocabSize <= 96);
  const unknown = tokenizer.encode('[UNK]')[0]!;
  const random = stream(5, 'round trip');
  for (let i = 0; i < 500; i++) {
    const { prompt, completion } = chainExample(random);
    const ids = tokenizer.encode(completion);
    assert.ok(!ids.includes(unknown), completion);
    assert.equal(tokenizer.decode(ids), completion);
    assert.equal(ids.length, completion.split(' ').length);
    assert.ok(!tokenizer.encodePrompt(prompt).includes(unknown), prompt[0]!.content);
  }
  rmSync(folder, { recursive: true });
});
