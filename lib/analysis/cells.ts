/**
 * Numbers as cells of a table: percent with one decimal, ranges as text, NaN where there is nothing, and rows of cells
 * as a DataFrame. Left out: alignment and escapes, which belong to the file format (formats.ts).
 */
import { DataFrame } from 'danfojs-node';
import type { Interval } from './stats.js';

export type Cell = number | string;

/** Rows with the same columns as a DataFrame. @throws when there are none, or a row has other columns */
export function frameOf(rows: readonly Readonly<Record<string, Cell>>[]): DataFrame {
  const columns = Object.keys(rows[0] ?? {});
  if (columns.length === 0) throw new Error('a table needs at least one row and one column');
  for (const [i, row] of rows.entries())
    if (Object.keys(row).join() !== columns.join())
      throw new Error(
        `row ${i} has the columns ${Object.keys(row).join(', ')}, row 0 has ${columns.join(', ')}`,
      );
  return new DataFrame(Object.fromEntries(columns.map((name) => [name, rows.map((row) => row[name]!)])));
}

/** Rounded to a number of decimals; NaN where there is no value. */
export function round(value: number | undefined, decimals = 1): number {
  if (value === undefined || !Number.isFinite(value)) return Number.NaN;
  const scale = 10 ** decimals;
  const rounded = Math.round(value * scale) / scale;
  return rounded === 0 ? 0 : rounded;
}

/** A share in percent, one decimal. */
export function percent(share: number | undefined): number {
  return round(share === undefined ? undefined : 100 * share);
}

/** Rounded, as text: `-0.017`, `0.000`. */
export function fixed(value: number, decimals = 1): string {
  return round(value, decimals).toFixed(decimals);
}

/** `30.1–38.6`, of values that cannot be negative. */
export function range(low: number, high: number): string {
  return `${low.toFixed(1)}\u2013${high.toFixed(1)}`;
}

/** An interval in percent as `30.1–38.6`; empty where there is none. */
export function percentRange(interval: Interval | undefined): string {
  return interval === undefined ? '' : range(100 * interval.low, 100 * interval.high);
}

/** `-1.2 to 3.4`, of values that can be negative; empty where there is none. */
export function span(interval: Interval | undefined, scale = 1, decimals = 1): string {
  if (interval === undefined) return '';
  const text = (value: number) => fixed(scale * value, decimals);
  return `${text(interval.low)} to ${text(interval.high)}`;
}

/** Names as a sentence lists them: `a, b and c`. */
export function listed(items: readonly string[]): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}
