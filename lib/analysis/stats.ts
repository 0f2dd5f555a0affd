/**
 * The statistics behind the tables and the figures: an exact interval for a share, a t interval for a mean, the
 * difference of two methods paired over training seeds and over problems, the overlap of two sets, and the spread over
 * seeds.
 *
 * Shares are fractions in [0, 1]; percent signs appear first in the tables. Left out: corrections for many comparisons
 * (who compares says how many there were).
 */
import betaQuantile from '@stdlib/stats-base-dists-beta-quantile';
import { stream } from '../random.js';

/** A range that covers the true value in `level` of all repetitions of the experiment. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** A value and the interval around it, all in the same unit. */
export interface Estimate extends Interval {
  readonly value: number;
}

/** What several training runs of one method gave. `sd` has ddof 1, and is undefined for a single run. */
export interface Spread {
  readonly count: number;
  readonly mean: number;
  readonly sd: number | undefined;
  readonly min: number;
  readonly max: number;
}

/**
 * The exact (Clopper-Pearson) interval of a share. The paper's intervals are these to within 0.2 points, and
 * exactly these for its cooperative and agon rows (138 and 183 of 300).
 * @param correct successes; a fraction is allowed, for the mean over several seeds on the same problems
 * @param total trials, at least 1
 * @throws when correct is not within [0, total], total is not positive, or level is not within (0, 1)
 * @source Clopper and Pearson 1934, through the quantiles of the beta distribution
 */
export function clopperPearson(correct: number, total: number, level = 0.95): Estimate {
  if (!(total > 0 && Number.isFinite(total)))
    throw new Error(`total is ${total}; a positive number is needed`);
  if (!(correct >= 0 && correct <= total)) {
    throw new Error(`correct is ${correct}; it must lie between 0 and total (${total})`);
  }
  const tail = (1 - checkLevel(level)) / 2;
  return {
    value: correct / total,
    low: correct === 0 ? 0 : betaQuantile(tail, correct, total - correct + 1),
    high: correct === total ? 1 : betaQuantile(1 - tail, correct + 1, total - correct),
  };
}

/**
 * The mean with its t interval; for means of many values, such as tokens per problem.
 * @throws on fewer than two values: one value says nothing about its own spread
 */
export function meanInterval(values: readonly number[], level = 0.95): Estimate {
  const { mean, sd, count } = spread(values);
  if (sd === undefined) throw new Error('a t interval needs at least 2 values, found 1');
  const degrees = count - 1;
  // t^2 / (degrees + t^2) follows Beta(1/2, degrees/2), so the two-sided quantile of t needs no other library.
  const share = betaQuantile(checkLevel(level), 0.5, degrees / 2);
  const half = Math.sqrt((degrees * share) / (1 - share)) * (sd / Math.sqrt(count));
  return { value: mean, low: mean - half, high: mean + half };
}

/** Options of {@link pairedDifference}. */
export interface BootstrapOptions {
  /** Names the random stream: the same seed gives the same interval. Default 0. */
  readonly seed?: number;
  /** How often the problems are drawn again. Default 10000. */
  readonly resamples?: number;
  /** Default 0.95. */
  readonly level?: number;
}

/**
 * mean(a) - mean(b) with a percentile bootstrap interval that draws *problems*: what makes a problem hard for
 * both methods cancels, so this is sharper than comparing two separate intervals.
 * @param a one score per problem (1/0 for right/wrong, or tokens)
 * @param b the other method's scores on the same problems, in the same order
 * @throws when the lengths differ or are zero
 * @source Efron and Tibshirani 1993, chapter 13 (percentile interval)
 */
export function pairedDifference(
  a: readonly number[],
  b: readonly number[],
  { seed = 0, resamples = 10_000, level = 0.95 }: BootstrapOptions = {},
): Estimate {
  if (a.length !== b.length) {
    throw new Error(`paired scores must be of the same problems: found ${a.length} and ${b.length} of them`);
  }
  const differences = a.map((score, i) => score - b[i]!);
  const value = spread(differences).mean;
  const random = stream(seed, 'bootstrap');
  const means = new Float64Array(resamples);
  for (let r = 0; r < resamples; r++) {
    let sum = 0;
    for (let i = 0; i < differences.length; i++) sum += differences[random.int(differences.length)]!;
    means[r] = sum / differences.length;
  }
  means.sort();
  const tail = (1 - checkLevel(level)) / 2;
  return { value, low: quantileOfSorted(means, tail), high: quantileOfSorted(means, 1 - tail) };
}

/** The difference of two methods over training seeds. */
export interface SeedDifference {
  /** Mean of the differences. */
  readonly value: number;
  /** Its t interval; undefined for a single seed. */
  readonly interval: Interval | undefined;
  /** Two-sided p of the exact sign-flip test. */
  readonly p: number;
  readonly count: number;
}

/**
 * mean(a - b) over training seeds, seed by seed: both methods of a seed saw the same training problems and answer the
 * same held-out ones, so what a seed makes easy for both cancels.
 * @throws when the lengths differ or are zero
 */
export function pairedOverSeeds(a: readonly number[], b: readonly number[], level = 0.95): SeedDifference {
  if (a.length !== b.length)
    throw new Error(`paired runs must be of the same seeds: found ${a.length} and ${b.length} of them`);
  const differences = a.map((value, i) => value - b[i]!);
  const { mean, count } = spread(differences);
  return {
    value: mean,
    interval: count > 1 ? meanInterval(differences, level) : undefined,
    p: signFlipP(differences),
    count,
  };
}

/** Fewer runs than these tell nothing apart: two that happen to be alike would have an interval of no width. */
export const FEWEST_RUNS = 3;

/** 1 or -1 where the t interval of at least three runs leaves out zero, on the side it lies; 0 where it does not. */
export function sideOfZero({ interval, count }: Pick<SeedDifference, 'interval' | 'count'>): -1 | 0 | 1 {
  if (!interval || count < FEWEST_RUNS) return 0;
  return interval.low > 0 ? 1 : interval.high < 0 ? -1 : 0;
}

/** The most differences whose signs are all tried: two halves of 2^20 sums. */
const MOST_FLIPPED = 40;

/**
 * The exact two-sided p of the sign-flip (Fisher-Pitman) test: the share of all 2^n ways to give the differences signs
 * whose sum lies at least as far from zero as the one that was seen. Its smallest value is 2^(1-n): .25 for three
 * seeds, .0625 for five.
 * @throws on an empty list and on more than 40 values
 */
export function signFlipP(differences: readonly number[]): number {
  const n = differences.length;
  if (n === 0 || n > MOST_FLIPPED)
    throw new Error(`a sign-flip test takes 1 to ${MOST_FLIPPED} differences, found ${n}`);
  const size = differences.reduce((sum, value) => sum + Math.abs(value), 0);
  // Sums that are equal on paper must count as equal after rounding.
  const seen = Math.abs(differences.reduce((sum, value) => sum + value, 0)) - 1e-9 * size;
  const middle = Math.floor(n / 2);
  const left = signedSums(differences.slice(0, middle));
  const right = signedSums(differences.slice(middle)).sort();
  let extreme = 0;
  for (const sum of left) extreme += right.length - firstAtLeast(right, seen - sum);
  // Half of all sums are the others with every sign turned, so one tail is counted and doubled.
  return seen <= 0 ? 1 : Math.min(1, (2 * extreme) / 2 ** n);
}

function signedSums(values: readonly number[]): Float64Array {
  let sums = new Float64Array(1);
  for (const value of values) {
    const next = new Float64Array(2 * sums.length);
    for (const [i, sum] of sums.entries()) {
      next[2 * i] = sum + value;
      next[2 * i + 1] = sum - value;
    }
    sums = next;
  }
  return sums;
}

/** The first place of a sorted list that holds at least `bound`. */
function firstAtLeast(sorted: Float64Array, bound: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! >= bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * mean(a) - mean(b) with a percentile bootstrap interval that draws problems *and* seeds, each with replacement: what
 * another set of problems and other training runs might have given. With few seeds it is too narrow by about
 * sqrt((n - 1) / n), as every bootstrap of n values is; the t interval of {@link pairedOverSeeds} is not.
 * @param a scores [seed][problem]; all seeds answer the same problems in the same order
 * @param b the other method's, of the same seeds and problems
 * @throws when the shapes differ or are empty
 */
export function pairedOverProblems(
  a: readonly (readonly number[])[],
  b: readonly (readonly number[])[],
  { seed = 0, resamples = 4000, level = 0.95 }: BootstrapOptions = {},
): Estimate {
  const problems = a[0]?.length ?? 0;
  if (a.length !== b.length || problems === 0 || [...a, ...b].some((row) => row.length !== problems))
    throw new Error(
      `paired scores must be of the same seeds and problems: found ${shapeOf(a)} and ${shapeOf(b)} of them`,
    );
  const rows = a.map((row, s) => Float64Array.from(row, (score, i) => score - b[s]![i]!));
  const value = spread(rows.map((row) => spread([...row]).mean)).mean;
  const random = stream(seed, 'bootstrap of problems and seeds');
  const means = new Float64Array(resamples);
  const column = new Float64Array(problems);
  for (let r = 0; r < resamples; r++) {
    column.fill(0);
    for (let s = 0; s < rows.length; s++) {
      const row = rows[random.int(rows.length)]!;
      for (let i = 0; i < problems; i++) column[i]! += row[i]!;
    }
    let sum = 0;
    for (let i = 0; i < problems; i++) sum += column[random.int(problems)]!;
    means[r] = sum / (problems * rows.length);
  }
  means.sort();
  const tail = (1 - checkLevel(level)) / 2;
  return { value, low: quantileOfSorted(means, tail), high: quantileOfSorted(means, 1 - tail) };
}

function shapeOf(scores: readonly (readonly number[])[]): string {
  return `${scores.length} x [${[...new Set(scores.map((row) => row.length))]}]`;
}

/** |a and b| / |a or b| of two sets given as flags; undefined where both are empty. */
export function jaccard(a: readonly boolean[], b: readonly boolean[]): number | undefined {
  const { both, onlyA, onlyB } = fourfold(a, b);
  const either = both + onlyA + onlyB;
  return either === 0 ? undefined : both / either;
}

/**
 * The phi coefficient of two sets given as flags (Pearson's r of 0s and 1s): 0 where they overlap as much as chance
 * makes sets of their sizes, 1 where they are the same; undefined where one is empty or holds everything.
 */
export function phi(a: readonly boolean[], b: readonly boolean[]): number | undefined {
  const { both, onlyA, onlyB, neither } = fourfold(a, b);
  const product = (both + onlyA) * (onlyB + neither) * (both + onlyB) * (onlyA + neither);
  return product === 0 ? undefined : (both * neither - onlyA * onlyB) / Math.sqrt(product);
}

function fourfold(a: readonly boolean[], b: readonly boolean[]) {
  if (a.length !== b.length)
    throw new Error(`two sets must be of the same problems: found ${a.length} and ${b.length} flags`);
  const count = (inA: boolean, inB: boolean) => a.filter((flag, i) => flag === inA && b[i] === inB).length;
  return {
    both: count(true, true),
    onlyA: count(true, false),
    onlyB: count(false, true),
    neither: count(false, false),
  };
}

/**
 * The t interval of a mean over all pairs of n runs, by the jackknife: pairs that share a run are not independent, so
 * the runs are left out one at a time.
 * @param value of the pair (i, j), i < j
 * @throws on fewer than three runs
 * @source Efron and Tibshirani 1993, chapter 11 (pseudo-values)
 */
export function pairsInterval(n: number, value: (i: number, j: number) => number, level = 0.95): Estimate {
  if (n < 3) throw new Error(`an interval over pairs needs at least 3 runs, found ${n}`);
  const without = (left?: number) => {
    const values: number[] = [];
    for (let i = 0; i < n; i++)
      for (let j = i + 1; j < n; j++) if (i !== left && j !== left) values.push(value(i, j));
    return spread(values).mean;
  };
  const whole = without();
  const pseudo = Array.from({ length: n }, (_, i) => n * whole - (n - 1) * without(i));
  const { low, high } = meanInterval(pseudo, level);
  // The mean of the pseudo-values of a mean over pairs is that mean.
  return { value: whole, low, high };
}

/** Mean, standard deviation (ddof 1), minimum and maximum. @throws on an empty list */
export function spread(values: readonly number[]): Spread {
  const count = values.length;
  if (count === 0) throw new Error('cannot summarise an empty list of values');
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    count,
    mean,
    sd: count > 1 ? Math.sqrt(squares / (count - 1)) : undefined,
    min: Math.min(...values),
    max: Math.max(...values),
  };
}

/**
 * Whether two intervals lie apart. This is stricter than testing the difference at the same level, on purpose:
 * a table of eight methods has 28 pairs, and the reader can check the verdict by eye in the figure.
 */
export function differs(a: Interval, b: Interval): boolean {
  return a.low > b.high || b.low > a.high;
}

/** Linear interpolation between order statistics (numpy's default). */
function quantileOfSorted(sorted: Float64Array, share: number): number {
  const position = share * (sorted.length - 1);
  const below = Math.floor(position);
  const [low, high] = [sorted[below]!, sorted[Math.ceil(position)]!];
  return low + (high - low) * (position - below);
}

function checkLevel(level: number): number {
  if (!(level > 0 && level < 1))
    throw new Error(`level is ${level}; it must lie between 0 and 1, such as 0.95`);
  return level;
}
