import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stream } from '../../lib/random.js';
import type { Split } from '../../lib/records.js';
import {
  DIGITS,
  DOUBT_DEFAULTS,
  digitsOf,
  doubtOf,
  evaluate,
  HARD_FACTORS,
  isHard,
  MODULUS,
  recall,
} from '../../lib/tasks/chain/facts.js';
import {
  isSummary,
  readAnswer,
  readClaims,
  readFacts,
  readQuestion,
  valuesOf,
  writeFact,
  writeQuestion,
} from '../../lib/tasks/chain/grammar.js';
import { chain, chainSplitOf, drawChain } from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';
import { shownSummary, withholdAnswer } from '../../lib/text/withhold.js';

const SPLITS: Split[] = ['train', 'validation', 'heldout'];

// 20 x 15 = 300 = 8 x 37 + 4; 4 - 9 = -5 = 32; 32 x 5 = 160 = 4 x 37 + 12; 12 + 7 = 19.
const problem = {
  id: 'p',
  question: 'start 20 a x 15 b - 9 c x 5 d + 7',
  gold: 'd 19',
  difficulty: 4,
  split: 'train' as const,
};

const completed = (summary: string, answer: string, think = '') =>
  parseCompletion(`<think> ${think} </think> ${summary} <answer> ${answer} </answer>`, 'stop');

test('values of a chain computed by hand', () => {
  assert.deepEqual(valuesOf(readQuestion(problem.question)), [4, 32, 12, 19]);
  assert.equal(evaluate({ left: 36, op: '+', right: 9 }), 8);
  assert.equal(evaluate({ left: 0, op: '-', right: 2 }), 35);
});

test('hard factors are the products of two digits below the modulus, and by parts they give the same', () => {
  const products = new Set(DIGITS.flatMap((a) => DIGITS.map((b) => a * b)).filter((k) => k > 9));
  assert.deepEqual(
    [...products].filter((k) => k < MODULUS).sort((a, b) => a - b),
    [...HARD_FACTORS],
  );
  assert.deepEqual(digitsOf(36), [4, 9]);
  assert.throws(() => digitsOf(22), /22 is not the product of two digits/);
  for (const right of HARD_FACTORS) {
    const [one, other] = digitsOf(right);
    for (let left = 0; left < MODULUS; left++) {
      const first = evaluate({ left, op: 'x', right: one });
      assert.equal(
        evaluate({ left: first, op: 'x', right: other }),
        evaluate({ left, op: 'x', right }),
        `${left} x ${right}`,
      );
    }
  }
});

test('doubts: the shares of facts that are doubted, one wrong result each, easy facts never', () => {
  const shares = new Map<number, number>();
  for (let left = 0; left < MODULUS; left++) {
    for (const right of HARD_FACTORS) {
      const operation = { left, op: 'x' as const, right };
      const { wrong, share } = doubtOf(operation, DOUBT_DEFAULTS);
      assert.ok(wrong !== evaluate(operation) && wrong >= 0 && wrong < MODULUS);
      assert.deepEqual(doubtOf(operation, DOUBT_DEFAULTS), { wrong, share });
      shares.set(share, (shares.get(share) ?? 0) + 1);
    }
    for (const right of DIGITS)
      for (const op of ['+', '-', 'x'] as const) {
        assert.equal(isHard({ left, op, right }), false);
        assert.equal(doubtOf({ left, op, right }, DOUBT_DEFAULTS).share, 0);
      }
  }
  const total = MODULUS * HARD_FACTORS.length;
  const { slipping, slip, mistaken, mistake } = DOUBT_DEFAULTS;
  // Three standard deviations of a share of 592 facts are 0.06.
  assert.ok(Math.abs(shares.get(slip)! / total - slipping) < 0.06);
  assert.ok(Math.abs(shares.get(mistake)! / total - mistaken) < 0.06);
});

test('recalling a fact gives its two results in the shares of its doubt', () => {
  const random = stream(1, 'recall');
  const always = { slipping: 1, slip: 0.3, mistaken: 0, mistake: 0 };
  const operation = { left: 20, op: 'x' as const, right: 15 };
  const results = Array.from({ length: 4000 }, () => recall(operation, random, always).result);
  const wrong = results.filter((result) => result !== 4);
  assert.equal(new Set(wrong).size, 1);
  assert.ok(Math.abs(wrong.length / results.length - 0.3) < 0.03);
});

test('question, facts, claims and answer go through the grammar and back', () => {
  const random = stream(2, 'grammar');
  for (let i = 0; i < 500; i++) {
    const { question, gold } = drawChain(random, { split: 'train', minDifficulty: 3 });
    const read = readQuestion(question);
    assert.equal(writeQuestion(read), question);
    assert.deepEqual(readAnswer(gold), { at: read.links.length - 1, value: valuesOf(read).at(-1) });
  }
  const facts = [
    { left: 20, op: 'x' as const, right: 15, result: 4 },
    { left: 4, op: '-' as const, right: 9, result: 32 },
  ];
  assert.deepEqual(readFacts(`a ${facts.map(writeFact).join(' rival 4 again ')} so 32`), facts);
  assert.deepEqual(readFacts('20 x 15 = 37 20 x 15 4 - 9 = 32'), [facts[1]]);
  assert.deepEqual(
    [...readClaims('a 4 b withheld c 12 c 3 k 9 d 99')],
    [
      [0, 4],
      [2, 12],
    ],
  );
  for (const bad of [
    'start 20',
    'start 20 b x 15',
    'start 20 a x 37',
    'start 20 a x 15 b -',
    'start 20 a / 2',
    '20 a x 15',
    '',
  ])
    assert.throws(() => readQuestion(bad), /not a chain's question/, bad);
  for (const bad of ['19', 'd', 'd 19 19', 'd 019', 'd 37', 'k 3', 'd = 19', '']) {
    assert.equal(readAnswer(bad), undefined, bad);
  }
});

test('a summary holds the grammar when it claims intermediate values in order', () => {
  for (const good of ['a 4 b 32 c 12', 'a 4 c 12', '']) assert.ok(isSummary(good, 4), good);
  for (const bad of ['a 4 b 32 c 12 d 19', 'b 32 a 4', 'a 4 a 4', 'a 4 b', 'a 4 19', 'so 19', 'a withheld'])
    assert.ok(!isSummary(bad, 4), bad);
});

test('the verifier: the last step, its true value, and nothing else', () => {
  assert.equal(chain.verify(problem, completed('a 4 b 32 c 12', 'd 19')), true);
  assert.equal(chain.verify(problem, completed('a 1 b 2 c 3', 'd 19')), true, 'errors before it are silent');
  for (const answer of ['d 18', 'c 19', '19', 'd 19 or d 18', 'd = 19', 'd 56', 'withheld', 'process.exit()'])
    assert.equal(chain.verify(problem, completed('a 4 b 32 c 12', answer)), false, answer);
  assert.equal(chain.verify(problem, parseCompletion('<think> a 20 x 15 = 4', 'length')), false);
  assert.throws(
    () => chain.verify({ ...problem, question: 'what' }, completed('a 5', 'd 35')),
    /not a chain/,
  );
});

test('splits are disjoint by content, about 80/10/10, and a problem is in its own', () => {
  const random = stream(3, 'splits');
  const seen = new Map<string, Split>();
  for (const split of SPLITS)
    for (const p of chain.problems({ split, count: 500, seed: 3, minDifficulty: 3 })) {
      assert.equal(p.split, split);
      assert.equal(chainSplitOf(readQuestion(p.question)), split);
      assert.equal(seen.get(p.id), undefined, `${p.id} twice`);
      seen.set(p.id, split);
    }
  const counts = { train: 0, validation: 0, heldout: 0 };
  const start = () => 1 + random.int(MODULUS - 1);
  for (let i = 0; i < 20_000; i++) {
    const links = Array.from({ length: 5 }, () => ({ op: 'x' as const, right: random.pick(HARD_FACTORS) }));
    counts[chainSplitOf({ start: start(), links })]++;
  }
  for (const [i, share] of [0.8, 0.1, 0.1].entries())
    assert.ok(Math.abs(counts[SPLITS[i]!] / 20_000 - share) < 0.01, JSON.stringify(counts));
});

test('problems depend on the query only, keep to its bounds, and a larger count begins the same', () => {
  const query = { split: 'validation' as const, count: 60, seed: 5, minDifficulty: 6, maxDifficulty: 8 };
  const problems = chain.problems(query);
  assert.deepEqual(chain.problems(query), problems);
  assert.deepEqual(chain.problems({ ...query, count: 100 }).slice(0, 60), problems);
  assert.notDeepEqual(chain.problems({ ...query, seed: 6 }), problems);
  assert.deepEqual(new Set(problems.map((p) => p.difficulty)), new Set([6, 7, 8]));
  for (const p of problems) {
    const values = valuesOf(readQuestion(p.question));
    assert.equal(p.difficulty, values.length);
    assert.ok(!values.includes(0), p.question);
    assert.equal(chain.verify(p, completed('a 1', p.gold)), true);
  }
  const standard = chain.problems({ split: 'heldout', count: 200, seed: 0 }).map((p) => p.difficulty);
  assert.deepEqual([Math.min(...standard), Math.max(...standard)], [5, 10]);
  assert.throws(
    () => chain.problems({ ...query, minDifficulty: 11, maxDifficulty: 20 }),
    /allowed are 3\.\.10/,
  );
  assert.throws(() => chain.problems({ ...query, minDifficulty: 8, maxDifficulty: 7 }), /difficulty 8\.\.7/);
  assert.throws(() => chain.problems({ ...query, count: 2e6 }), /at most 1000000/);
});

const shown = (summary: string, answer: string) =>
  shownSummary({ problem, rollout: { finishReason: 'stop' }, completion: completed(summary, answer) }, chain);

test('what is withheld: the claim of the last step; equal numbers only where they could be the answer', () => {
  assert.equal(shown('a 4 b 32 c 12', 'd 19'), 'a 4 b 32 c 12');
  // An intermediate value that equals the answer stays: hiding it would lose a step and tell the answer.
  assert.equal(shown('a 19 b 32 c 12', 'd 19'), 'a 19 b 32 c 12');
  assert.equal(shown('a 4 b 32 c 12 d 19', 'd 19'), 'a 4 b 32 c 12 withheld');
  assert.equal(shown('a 19 b 32 c 12 d 19', 'd 19'), 'a withheld b 32 c 12 withheld');
  assert.equal(shown('a 4 b 32 c 12 so 19', 'd 19'), 'a 4 b 32 c 12 so withheld');
  assert.equal(shown('a 4 b 32 c 12 d = 19', 'd 19'), 'a 4 b 32 c 12 d = withheld');
  assert.equal(shown('19 a 4', '19'), 'withheld a 4');
});

test('where the reasoning is shown, what settles the last step is withheld', () => {
  const think = 'a 20 x 15 = 4 b 4 - 9 = 32 c 32 x 5 = 12 d 12 + 7 = 18 again 12 + 7 = 19 so 19';
  const completion = completed('a 4 b 32 c 12', 'd 19', think);
  assert.deepEqual(chain.answerSpellings(problem, completion), ['12 + 7 = 19', 'so 19']);
  assert.match(
    withholdAnswer(think, completion.answer, chain.answerSpellings(problem, completion)),
    /c 32 x 5 = 12 d 12 \+ 7 = 18 again withheld withheld$/,
  );
});

test('property: the answer never survives outside the intermediate claims, however it is planted', () => {
  const random = stream(4, 'plant');
  for (let i = 0; i < 1000; i++) {
    const p = drawChain(random, { split: 'train' });
    const { at, value } = readAnswer(p.gold)!;
    const values = valuesOf(readQuestion(p.question)).slice(0, at);
    const claims = values.map((v, j) => `${'abcdefghij'[j]} ${v}`);
    const planted = random.pick([
      p.gold,
      `${value}`,
      `so ${value}`,
      `\\boxed{${value}}`,
      `${p.gold} ${value}`,
    ]);
    claims.splice(random.int(claims.length + 1), 0, planted);
    const text = shownSummary(
      {
        problem: p,
        rollout: { finishReason: 'stop' },
        completion: { think: '', summary: claims.join(' '), answer: p.gold, formatted: true },
      },
      chain,
    )!;
    assert.ok(!text.split(' ').includes(String(value)), `${value} survives in ${JSON.stringify(text)}`);
  }
});

test('operations of a trace counted by hand', () => {
  const think =
    'a 20 x 15 = 5 rival 4 split 20 x 3 = 23 23 x 5 = 4 so 4 b 4 - 9 = 32 again 4 - 9 = 32 c 32 x 5 = 12 d 12 + 7 = 18';
  // Seven operations; 20 x 15 = 5 and 12 + 7 = 18 are false; 4 - 9 is written again.
  assert.deepEqual(chain.countTrace(problem, completed('a 4', 'd 18', think)), {
    steps: 7,
    useful: 4,
    repeated: 1,
    deadAgain: 0,
    wrong: 2,
  });
  assert.equal(chain.countTrace(problem, completed('a 4', 'd 18', 'nothing here')).steps, 0);
});

test('parts of a summary, and the proposal', () => {
  assert.deepEqual(chain.summaryParts(' a 4 b 32 '), { deadEnds: '', path: 'a 4 b 32' });
  assert.equal(chain.proposal(completed('a 4', 'd 19')), 'd 19');
  assert.equal(chain.proposal(completed('a 4', 'twenty')), undefined);
});
