/**
 * Few numbers about few repetitions: median and range, ratios inside one run, and how straight a curve is. A
 * bench has three to five repetitions on a machine with neighbours; the median and the range say all there is.
 */
import { mean, median } from '../numbers.js';

/** Repetitions of one measurement. */
export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly repetitions: number;
}

/** @throws on an empty list */
export function summary(values: readonly number[]): Summary {
  if (values.length === 0) throw new Error('no repetitions to summarise');
  const sorted = [...values].sort((a, b) => a - b);
  return { median: median(values), min: sorted[0]!, max: sorted.at(-1)!, repetitions: sorted.length };
}

/**
 * How many times faster `ours` is than `theirs`: the ratio of neighbouring repetitions, which saw the same weather.
 * @param ours and @param theirs rates (more is better) in the order of measuring
 */
export function speedup(ours: readonly number[], theirs: readonly number[]): Summary {
  const pairs = Math.min(ours.length, theirs.length);
  return summary(Array.from({ length: pairs }, (_, i) => ours[i]! / theirs[i]!));
}

/** A straight line through points by least squares, and how much of the spread it explains. */
export interface Line {
  readonly intercept: number;
  readonly slope: number;
  /** R squared. */
  readonly explained: number;
}

/** @throws when there are fewer than two different x */
export function fitLine(points: readonly { readonly x: number; readonly y: number }[]): Line {
  const [mx, my] = [mean(points.map((p) => p.x)), mean(points.map((p) => p.y))];
  const sum = (term: (p: { x: number; y: number }) => number) => points.reduce((s, p) => s + term(p), 0);
  const xx = sum((p) => (p.x - mx) ** 2);
  if (!(xx > 0)) throw new Error('a line needs two different x');
  const slope = sum((p) => (p.x - mx) * (p.y - my)) / xx;
  const intercept = my - slope * mx;
  const yy = sum((p) => (p.y - my) ** 2);
  const rest = sum((p) => (p.y - intercept - slope * p.x) ** 2);
  return { intercept, slope, explained: yy === 0 ? 1 : 1 - rest / yy };
}
