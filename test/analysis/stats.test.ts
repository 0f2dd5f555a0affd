import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clopperPearson, differs, meanInterval, pairedDifference, spread } from '../../lib/analysis/stats.js';
import { stream } from '../../lib/random.js';

const near = (found: number, wanted: number, tolerance: number) =>
  assert.ok(Math.abs(found - wanted) <= tolerance, `found ${found}, wanted ${wanted} within ${tolerance}`);

/** P(X <= k) for X ~ Binomial(n, p), summed term by term. */
function binomialCdf(k: number, n: number, p: number): number {
  let [term, sum] = [(1 - p) ** n, 0];
  for (let i = 0; i <= k; i++) {
    sum += term;
    term *= ((n - i) / (i + 1)) * (p / (1 - p));
  }
  return sum;
}

test('Clopper-Pearson gives the published intervals', () => {
  // The paper's cooperative and agon rows, and R's binom.test for 69 of 300.
  for (const [correct, low, high] of [
    [138, 40.3, 51.8],
    [183, 55.2, 66.6],
    [69, 18.4, 28.2],
  ] as const) {
    const found = clopperPearson(correct, 300);
    assert.equal(found.value, correct / 300);
    assert.equal((100 * found.low).toFixed(1), low.toFixed(1));
    assert.equal((100 * found.high).toFixed(1), high.toFixed(1));
  }
});

test('Clopper-Pearson ends where the binomial tails hold 2.5% each', () => {
  for (const [k, n] of [
    [1, 12],
    [69, 300],
    [11, 12],
  ] as const) {
    const { low, high } = clopperPearson(k, n);
    near(1 - binomialCdf(k - 1, n, low), 0.025, 1e-9);
    near(binomialCdf(k, n, high), 0.025, 1e-9);
  }
});

test('Clopper-Pearson at the edges: the rule of three, exactly', () => {
  const none = clopperPearson(0, 10);
  assert.equal(none.low, 0);
  near(none.high, 1 - 0.025 ** (1 / 10), 1e-12);
  const all = clopperPearson(10, 10);
  assert.equal(all.high, 1);
  near(all.low, 0.025 ** (1 / 10), 1e-12);
});

test('Clopper-Pearson names what does not fit', () => {
  assert.throws(() => clopperPearson(11, 10), /correct is 11; it must lie between 0 and total \(10\)/);
  assert.throws(() => clopperPearson(-1, 10), /correct is -1/);
  assert.throws(() => clopperPearson(0, 0), /total is 0/);
  assert.throws(() => clopperPearson(1, 10, 95), /level is 95/);
});

test('the t interval uses the textbook quantiles', () => {
  // Student's t, 4 degrees of freedom, two-sided 95%: 2.776445; sd of 1..5 is sqrt(2.5).
  const { value, low, high } = meanInterval([1, 2, 3, 4, 5]);
  assert.equal(value, 3);
  near(high - 3, 2.776445 * Math.sqrt(2.5 / 5), 1e-5);
  near(3 - low, high - 3, 1e-12);
  assert.throws(() => meanInterval([1]), /at least 2 values/);
});

test('spread has ddof 1, and none for a single value', () => {
  assert.deepEqual(spread([2, 4, 9]), { count: 3, mean: 5, sd: Math.sqrt(13), min: 2, max: 9 });
  assert.equal(spread([0.5]).sd, undefined);
  assert.throws(() => spread([]), /empty/);
});

test('the paired bootstrap repeats itself and is sharper than unpaired intervals', () => {
  const random = stream('paired fixture');
  const hard = Array.from({ length: 300 }, () => random.uniform() < 0.5);
  const a = hard.map((isHard) => (isHard ? 0 : 1));
  // b additionally loses every twelfth problem that a solves.
  const b = a.map((score, i) => (i % 12 === 0 ? 0 : score));
  const found = pairedDifference(a, b, { seed: 3, resamples: 2000 });
  assert.deepEqual(found, pairedDifference(a, b, { seed: 3, resamples: 2000 }));
  assert.ok(found.low > 0 && found.low < found.value && found.value < found.high);
  const sum = (scores: readonly number[]) => scores.reduce((total, score) => total + score, 0);
  assert.ok(!differs(clopperPearson(sum(a), 300), clopperPearson(sum(b), 300)), 'separate intervals overlap');
  assert.throws(() => pairedDifference([1], [1, 0]), /found 1 and 2/);
});

test('the paired bootstrap agrees with the normal approximation', () => {
  const random = stream('normal fixture');
  const a = Array.from({ length: 400 }, () => random.normal());
  const zeros = a.map(() => 0);
  const { value, low, high } = pairedDifference(a, zeros, { resamples: 4000 });
  near((high - low) / 2, (1.96 * spread(a).sd!) / 20, 0.008);
  near((high + low) / 2, value, 0.008);
});

test('differs means that the intervals lie apart', () => {
  assert.equal(differs({ low: 0, high: 0.3 }, { low: 0.31, high: 0.5 }), true);
  assert.equal(differs({ low: 0.31, high: 0.5 }, { low: 0, high: 0.3 }), true);
  assert.equal(differs({ low: 0, high: 0.3 }, { low: 0.3, high: 0.5 }), false);
});
