/** The two middles of a list of numbers. Left out: spread and intervals (analysis/stats.ts). */

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
