import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costReport } from '../../lib/analysis/studies/cost.js';
import { densityReport } from '../../lib/analysis/studies/density.js';
import { atTokens, sampleCurve } from '../../lib/analysis/votes.js';
import type { Stage } from '../../lib/experiments/evaluation.js';
import { cellsOf, fixtureArms, fixtureExperiment, fixtureStudy, PROBLEMS } from './arms.js';

/** One problem per sample: right, proposal, log-probability, tokens. */
function sample(right: boolean, proposal: number | null, logProb: number, tokens = 10): Stage {
  const zero = [0];
  return {
    adapter: 'A',
    correct: right ? '1' : '0',
    formatted: '1',
    truncated: '0',
    promptTokens: [4],
    completionTokens: [tokens],
    logProb: [logProb],
    proposal: [proposal],
    steps: zero,
    useful: zero,
    repeated: zero,
    deadAgain: zero,
    wrong: zero,
  };
}

test('three samples by hand: vote, likeliest, oracle and tokens, over all ways to take n', () => {
  // Right ones propose 1; the wrong one is the likeliest.
  const curve = sampleCurve([
    sample(true, 1, -0.5, 8),
    sample(false, 2, -0.1, 12),
    sample(true, 1, -0.7, 10),
  ]);
  assert.deepEqual(
    curve.map((p) => [p.n, p.tokens]),
    [
      [1, 4 + 10],
      [2, 4 + 20],
      [3, 4 + 30],
    ],
  );
  const close = (found: number, wanted: number) => assert.ok(Math.abs(found - wanted) < 1e-12, `${found}`);
  close(curve[0]!.vote, 2 / 3);
  close(curve[0]!.best, 2 / 3);
  close(curve[0]!.oracle, 2 / 3);
  // Pairs: {1, 2} and {2, 3} tie and go to the likelier wrong one, {1, 3} agrees.
  close(curve[1]!.vote, 1 / 3);
  close(curve[1]!.best, 1 / 3);
  close(curve[1]!.oracle, 1);
  close(curve[2]!.vote, 1);
  close(curve[2]!.best, 0);
});

test('a completion that proposes nothing does not vote, and nobody voting is wrong', () => {
  const curve = sampleCurve([sample(false, null, -0.1), sample(true, 3, -0.9), sample(false, null, -0.1)]);
  assert.equal(curve[2]!.vote, 1);
  assert.ok(Math.abs(curve[0]!.vote - 1 / 3) < 1e-12);
  assert.throws(() => sampleCurve([]), /at least one sample/);
});

test('the oracle is the unbiased pass@k', () => {
  // 3 of 8 right: 1 - C(5, k) / C(8, k).
  const samples = Array.from({ length: 8 }, (_, i) => sample(i < 3, i, -i / 10));
  const curve = sampleCurve(samples);
  const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);
  for (const { n, oracle } of curve)
    assert.ok(Math.abs(oracle - (1 - (n > 5 ? 0 : choose(5, n) / choose(8, n)))) < 1e-12, `n = ${n}`);
});

test('between two points of a curve lies the line between them, outside nothing', () => {
  const curve = sampleCurve([sample(true, 1, -1), sample(false, 2, -2)]);
  const value = (tokens: number) => atTokens(curve, tokens, (p) => p.oracle);
  assert.equal(value(14), 0.5);
  assert.equal(value(19), 0.75);
  assert.equal(value(24), 1);
  assert.equal(value(13.9), undefined);
  assert.equal(value(24.1), undefined);
});

const study = fixtureStudy('main', [
  fixtureExperiment({
    methods: ['zero-shot', 'grpo', 'moa-untrained', 'cooperative', 'agon'],
    eval: { problems: PROBLEMS, validationProblems: 40, samples: 4 },
  }),
]);
const arms = fixtureArms(study, (method) => (method === 'zero-shot' ? 0.2 : 0.5));

test('cost: all tokens are prefilled, drafted and answered ones; cascades meet one pass at their own tokens', () => {
  const report = costReport(study, arms);
  for (const row of cellsOf(report, 'main-cost')) {
    const sum = ['prefilled', 'drafted', 'answered'].reduce(
      (total, k) => total + Number(row[`${k} tokens`]),
      0,
    );
    assert.ok(Math.abs(sum - Number(row['all tokens'])) < 0.16, row.method);
  }
  const equal = cellsOf(report, 'main-equal-tokens');
  assert.deepEqual(
    [...new Set(equal.map((row) => `${row.cascade} ${row.against}`))],
    ['moa-untrained zero-shot', 'cooperative grpo', 'agon grpo'],
  );
  for (const row of equal) {
    const samples = Number(row.samples);
    assert.ok(samples > 1 && samples < 4);
    const gap = Number(row['cascade %']) - Number(row['one pass %']);
    assert.ok(Math.abs(gap - Number(row['difference, points'])) < 0.16);
  }
  assert.equal(report.notes.length, 2, 'the oracle cannot be deployed and is no verdict');
  assert.equal(report.figures[0]!.name, 'main-equal-tokens');
});

test('density: lengths by outcome as the fixture draws them, counts per 100 tokens by hand', () => {
  const report = densityReport(study, arms);
  const agon = cellsOf(report, 'main-length').find((row) => row.method === 'agon' && row.stage === 'final')!;
  assert.ok(Number(agon['own right']) < 60 && Number(agon['own wrong']) >= 60);
  const zero = cellsOf(report, 'main-density').find((row) => row.method === 'zero-shot')!;
  const per = arms
    .filter((arm) => arm.method.name === 'zero-shot')
    .map(({ chosen: { stages } }) => {
      const sum = (values: readonly number[]) => values.reduce((total, v) => total + v, 0);
      return (100 * sum(stages[0]!.useful)) / sum(stages[0]!.completionTokens);
    });
  const mean = per.reduce((sum, v) => sum + v, 0) / per.length;
  assert.equal(Number(zero.useful), Math.round(100 * mean) / 100);
  assert.ok(report.notes.some((note) => note.includes('useful steps per 100 tokens')));
});
