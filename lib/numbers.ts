/** The middles of a list of numbers, and its moving mean. Left out: spread and intervals (analysis/stats.ts). */

/** The mean; NaN for an empty list. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The middle value, or the mean of the two in the middle. @throws on an empty list */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('an empty list has no median');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The mean over `reach` values on either side, fewer at both ends. */
export function smooth(values: readonly number[], reach: number): number[] {
  return values.map((_, i) => mean(values.slice(Math.max(0, i - reach), i + reach + 1)));
}
