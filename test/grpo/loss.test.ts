/** The loss on plain numbers: hand-computed cases, and TRL's own `_compute_loss`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  k3,
  LOSS_TYPES,
  type LossOptions,
  type LossType,
  sequenceLoss,
  tokenWeights,
} from '../../lib/grpo/loss.js';
import { assertClose } from '../model/support.js';
import { golden } from './golden.js';

const PLAIN: LossOptions = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0 };

/** On-policy loss of sequences by length and advantage. */
function onPolicy(lossType: LossType, lengths: number[], advantages: number[], cap: number): number {
  const weights = tokenWeights(lossType, lengths, cap);
  return lengths.reduce((sum, length, i) => {
    const logProbs = new Array<number>(length).fill(-1);
    return sum + sequenceLoss(logProbs, logProbs, undefined, advantages[i]!, weights[i]!, PLAIN).loss;
  }, 0);
}

test('check 5: lengths 1 and 3, A = +-1, L_max 4: grpo 0.0, bnpo and dapo 0.5, dr_grpo 0.25', () => {
  // -A summed over the tokens: -1 + 3 = 2 of 4 tokens; means per sequence: -1 and +1
  const expected = { grpo: 0, bnpo: 0.5, dapo: 0.5, dr_grpo: 0.25 };
  for (const type of LOSS_TYPES) {
    assertClose(onPolicy(type, [1, 3], [1, -1], 4), expected[type], 1e-12, type);
    assertClose(onPolicy(type, [1, 3], [-1, 1], 4), -expected[type], 1e-12, type);
  }
});

test("check 6: dapo's denominator counts exactly the tokens of the numerator; a masked sequence is in neither", () => {
  assert.deepEqual(tokenWeights('dapo', [1, 3, 0], 4), [1 / 4, 1 / 4, 1 / 4]);
  assert.equal(onPolicy('dapo', [1, 3, 0], [1, -1, 5], 4), onPolicy('dapo', [1, 3], [1, -1], 4));
  // TRL's grpo and dr_grpo average over all sequences, masked ones included.
  assertClose(onPolicy('grpo', [2, 0], [1, 5], 4), -0.5, 1e-12);
  assertClose(onPolicy('dr_grpo', [2, 0], [1, 5], 4), -2 / 8, 1e-12);
});

test('check 7: everything masked: weights are finite and the loss is 0', () => {
  for (const type of LOSS_TYPES) {
    assert.ok(tokenWeights(type, [0, 0], 4).every(Number.isFinite));
    assert.equal(onPolicy(type, [0, 0], [1, -1], 4), 0);
  }
});

test('check 12: on policy the derivative is -A w, the clip fractions are 0, and A = 0 has none', () => {
  for (const A of [1.5, -0.3, 0]) {
    const part = sequenceLoss([-1, -2, -0.5], [-1, -2, -0.5], undefined, A, 0.25, PLAIN);
    assertClose([...part.dLogProbs], [-A / 4, -A / 4, -A / 4], 1e-7);
    assertClose(part.loss, (-A * 3) / 4, 1e-12);
    assert.deepEqual([part.clippedLow, part.clippedHigh], [0, 0]);
  }
});

test('clipping: a ratio beyond the bound stops pushing, but is never kept from coming back', () => {
  const at = (ratio: number, A: number) =>
    sequenceLoss([Math.log(ratio)], [0], undefined, A, 1, { ...PLAIN, epsilonHigh: 0.5 });
  const cases = [
    // ratio, A, loss, derivative, clipped low, clipped high
    [2, 1, -1.5, 0, 0, 1],
    [2, -1, 2, 2, 0, 0],
    [0.5, -1, 0.8, 0, 1, 0],
    [0.5, 1, -0.5, -0.5, 0, 0],
    [1.4, 1, -1.4, -1.4, 0, 0],
  ] as const;
  for (const [ratio, A, loss, slope, low, high] of cases) {
    const part = at(ratio, A);
    assertClose([part.loss, part.dLogProbs[0]!], [loss, slope], 1e-6, `ratio ${ratio}, A ${A}`);
    assert.deepEqual([part.clippedLow, part.clippedHigh], [low, high]);
  }
});

test('check 13: k3 is 0.1487 at +0.5 and 0.1065 at -0.5, never negative, 0 only where equal', () => {
  assertClose([k3(0.5), k3(-0.5)], [0.1487, 0.1065], 5e-5);
  assert.equal(k3(0), 0);
  for (const delta of [-20, -1, -1e-3, 1e-3, 1, 5]) assert.ok(k3(delta) > 0);
});

test('check 13: beta k3 enters loss and derivative; its gradient is that of KL(ref || policy), not of KL(policy || ref)', () => {
  const part = sequenceLoss([-1], [-1], [-0.5], 0, 1, { ...PLAIN, beta: 0.1 });
  assertClose([part.kl, part.loss], [0.1487, 0.01487], 5e-5);
  assertClose(part.dLogProbs[0], 0.1 * (1 - Math.exp(0.5)), 1e-7);
  // Over all tokens of a small policy p = softmax(z): expected gradient by z, beside both KL's own.
  const [p, q] = [
    [0.7, 0.2, 0.1],
    [0.3, 0.3, 0.4],
  ];
  const slopes = p.map(
    (_, i) =>
      sequenceLoss([Math.log(p[i]!)], [Math.log(p[i]!)], [Math.log(q[i]!)], 0, 1, { ...PLAIN, beta: 1 })
        .dLogProbs[0]!,
  );
  const byZ = p.map((pj, j) => p.reduce((sum, pi, i) => sum + pi * slopes[i]! * (Number(i === j) - pj), 0));
  const kl = p.reduce((sum, pi, i) => sum + pi * Math.log(pi / q[i]!), 0);
  assertClose(
    byZ,
    p.map((pj, j) => pj - q[j]!),
    1e-6,
  );
  assert.throws(() =>
    assertClose(
      byZ,
      p.map((pj, j) => pj * (Math.log(pj / q[j]!) - kl)),
      0.05,
    ),
  );
});

test('log-probs that do not belong together, and a missing reference, are errors', () => {
  assert.throws(() => sequenceLoss([1, 2], [1], undefined, 1, 1, PLAIN), /different lengths: 2, old 1/);
  assert.throws(() => sequenceLoss([1], [1], [1, 2], 1, 1, PLAIN), /ref 2/);
  assert.throws(
    () => sequenceLoss([1], [1], undefined, 1, 1, { ...PLAIN, beta: 0.1 }),
    /beta 0\.1 needs the reference/,
  );
});

test("loss, derivative, KL and clip fractions are those of TRL's _compute_loss", () => {
  const { logProbs, oldLogProbs, refLogProbs, advantages, truncated, maxCompletionLength, cases } =
    golden.losses;
  assert.deepEqual(new Set(cases.map((c) => c.lossType)), new Set(LOSS_TYPES));
  for (const c of cases) {
    const where = `${c.lossType}, beta ${c.beta}, ${c.maskTruncated ? 'truncated ones masked' : 'all'}`;
    const masked = truncated.map((t) => t && c.maskTruncated);
    const lengths = logProbs.map((row, i) => (masked[i] ? 0 : row.length));
    const weights = tokenWeights(c.lossType, lengths, maxCompletionLength);
    const parts = logProbs.flatMap((row, i) =>
      masked[i]
        ? []
        : [
            {
              i,
              ...sequenceLoss(
                row,
                oldLogProbs[i]!,
                c.beta > 0 ? refLogProbs[i] : undefined,
                advantages[i]!,
                weights[i]!,
                c,
              ),
            },
          ],
    );
    const sum = (key: 'loss' | 'kl' | 'clippedLow' | 'clippedHigh') =>
      parts.reduce((s, part) => s + part[key], 0);
    assertClose(sum('loss'), c.loss, 1e-6, where);
    for (const part of parts) assertClose([...part.dLogProbs], c.dLogProbs[part.i], 1e-6, where);
    const tokens = lengths.reduce((a, b) => a + b, 0);
    assertClose(sum('clippedLow') / tokens, c.metrics['clip_ratio/low_mean'], 1e-6, where);
    assertClose(sum('clippedHigh') / tokens, c.metrics['clip_ratio/high_mean'], 1e-6, where);
    if (c.beta > 0) assertClose(sum('kl') / tokens, c.metrics.kl, 1e-6, where);
  }
});
