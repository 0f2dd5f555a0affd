/**
 * The statistics behind the tables and the figures: an exact interval for a share, a t interval for a mean, a
 * paired bootstrap for the difference of two methods on the same problems, and the spread over training seeds.
 *
 * Shares are fractions in [0, 1]; percent signs appear first in the tables. Left out: p-values, and corrections
 * for many comparisons (`differs` is conservative instead, see there).
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
 * The exact (Clopper-Pearson) interval of a share. The paper's intervals are these to within 0.15 points, and
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
