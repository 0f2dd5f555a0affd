import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  clopperPearson,
  differs,
  jaccard,
  meanInterval,
  pairedDifference,
  pairedOverProblems,
  pairedOverSeeds,
  pairsInterval,
  phi,
  sideOfZero,
  signFlipP,
  spread,
} from '../../lib/analysis/stats.js';
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

// scipy 1.17: ttest_rel(a, b).confidence_interval() and permutation_test(permutation_type='samples', n_resamples=inf).
const RUNS = { a: [0.512, 0.634, 0.548, 0.59, 0.571], b: [0.498, 0.6, 0.56, 0.541, 0.533] };

test('a difference over seeds is paired: t interval and exact sign-flip p as scipy gives them', () => {
  const { value, interval, p, count } = pairedOverSeeds(RUNS.a, RUNS.b);
  near(value, 0.0246, 1e-12);
  near(interval!.low, -0.005272278547027255, 1e-8);
  near(interval!.high, 0.05447227854702721, 1e-8);
  // By hand: of 32 sums only +-147 and +-123 (thousandths) lie as far out as the 123 that was seen.
  assert.equal(p, 4 / 32);
  assert.equal(count, 5);
  assert.equal(signFlipP([1.3, -0.2, 2.1, 0.7, -1.1, 0.4, 0.9, 1.6, -0.3, 0.5]), 0.09375);
});

test('a sign-flip p: its smallest value, no difference, equal sums, one run, many', () => {
  assert.equal(signFlipP([3, 1, 2]), 0.25);
  assert.equal(signFlipP([0.1, 0.2, 0.3, 0.4, 0.5]), 0.0625);
  assert.equal(signFlipP([0, 0, 0]), 1);
  assert.equal(signFlipP([1, -1]), 1);
  // 0.1 + 0.2 and 0.3 are the same sum although their bits differ.
  assert.equal(signFlipP([0.1, 0.2, -0.3]), 1);
  assert.equal(signFlipP([0.1, 0.2, 0.3, -0.3]), 1 - 4 / 16);
  assert.deepEqual(pairedOverSeeds([0.5], [0.25]), { value: 0.25, interval: undefined, p: 1, count: 1 });
  // 30 ones: only the two sums of 30.
  assert.equal(signFlipP(Array.from({ length: 30 }, () => 1)), 2 / 2 ** 30);
  assert.throws(() => signFlipP([]), /1 to 40 differences, found 0/);
  assert.throws(() => pairedOverSeeds([1], [1, 2]), /found 1 and 2/);
});

test('the bootstrap over problems and seeds: no spread, spread over problems only, spread over seeds only', () => {
  const row = (value: (i: number) => number) => Array.from({ length: 200 }, (_, i) => value(i));
  const zeros = [0, 1, 2].map(() => row(() => 0));
  const same = pairedOverProblems(
    [0, 1, 2].map(() => row(() => 1)),
    zeros,
    { resamples: 50 },
  );
  assert.deepEqual(same, { value: 1, low: 1, high: 1 });
  // Every seed has the same half of the problems right: drawing seeds changes nothing, sd of the mean is .5 / sqrt(200).
  const halves = [0, 1, 2].map(() => row((i) => i % 2));
  const overProblems = pairedOverProblems(halves, zeros, { resamples: 4000 });
  near((overProblems.high - overProblems.low) / 2, (1.96 * 0.5) / Math.sqrt(200), 0.006);
  // Seeds of 0, 1 and 2, all problems alike: the means are those of three draws from {0, 1, 2}, whose extremes, three
  // of 0 or three of 2, have 1/27 each, so that the 2.5% quantiles are the extremes.
  const seeds = pairedOverProblems(
    [0, 1, 2].map((s) => row(() => s)),
    zeros,
    { resamples: 4000 },
  );
  assert.deepEqual(seeds, { value: 1, low: 0, high: 2 });
  assert.throws(() => pairedOverProblems([[1]], [[1, 2]]), /found 1 x \[1\] and 1 x \[2\]/);
});

test('Jaccard and phi by hand and as scipy gives them', () => {
  const flags = (text: string) => [...text].map((bit) => bit === '1');
  // 4 in both, 2 and 2 in one, 4 in neither: 4 / 8 and (16 - 4) / 36.
  const [a, b] = [flags('110100101100'), flags('100110100101')];
  assert.equal(jaccard(a, b), 0.5);
  near(phi(a, b)!, 1 / 3, 1e-12);
  assert.equal(phi(a, a), 1);
  near(
    phi(
      a,
      a.map((flag) => !flag),
    )!,
    -1,
    1e-12,
  );
  assert.equal(jaccard(flags('00'), flags('00')), undefined);
  assert.equal(phi(flags('00'), flags('01')), undefined);
  assert.throws(() => jaccard(flags('0'), flags('01')), /found 1 and 2 flags/);
});

test('an interval over pairs of runs: a sum of two runs has the interval of twice their mean', () => {
  const runs = [1, 4, 2, 7];
  const found = pairsInterval(4, (i, j) => runs[i]! + runs[j]!);
  const mean = meanInterval(runs);
  near(found.value, 2 * mean.value, 1e-12);
  near(found.low, 2 * mean.low, 1e-9);
  near(found.high, 2 * mean.high, 1e-9);
  assert.throws(() => pairsInterval(2, () => 1), /at least 3 runs, found 2/);
});

test('two runs tell nothing apart, however alike they are', () => {
  const difference = (...values: number[]) =>
    pairedOverSeeds(
      values,
      values.map(() => 0),
    );
  assert.equal(sideOfZero(difference(1, 1)), 0);
  assert.equal(sideOfZero(difference(1, 1, 1)), 1);
  assert.equal(sideOfZero(difference(-1, -1.1, -0.9)), -1);
  assert.equal(sideOfZero(difference(-1, 1, 2)), 0);
});
