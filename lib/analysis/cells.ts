/**
 * Numbers as cells of a table: percent with one decimal, ranges as text, NaN where there is nothing, and rows of cells
 * as a DataFrame. Left out: alignment and escapes, which belong to the file format (formats.ts).
 */
import { DataFrame } from 'danfojs-node';
import type { Interval } from './stats.js';

export type Cell = number | string;

/**
 * Rows with the same columns as a DataFrame; their values are texts, numbers, booleans, or nothing (NaN in the table).
 * @throws when there are no rows, a row has other columns than the first, or a value is something else
 */
export function frameOf(rows: readonly object[]): DataFrame {
  const columns = Object.keys(rows[0] ?? {});
  if (columns.length === 0)
    throw new Error('there is nothing to show: a table needs at least one row and one column');
  const records = rows.map((row, i) => {
    if (Object.keys(row).join() !== columns.join())
      throw new Error(
        `row ${i + 1} has the columns ${Object.keys(row).join(', ')}; row 1 has ${columns.join(', ')}`,
      );
    return new Map<string, unknown>(Object.entries(row));
  });
  const cell = (name: string, i: number) => {
    const value = records[i]!.get(name) ?? Number.NaN;
    if (typeof value === 'object' || typeof value === 'function')
      throw new Error(
        `row ${i + 1}, ${name}: found ${JSON.stringify(value)}; allowed are texts, numbers, booleans`,
      );
    return value;
  };
  return new DataFrame(Object.fromEntries(columns.map((name) => [name, rows.map((_, i) => cell(name, i))])));
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
