/**
 * The sentences that belong under the main table: which rows do not differ, whether the paper's order is seen,
 * and what the intervals do not cover. Written from the numbers, so that a table cannot be shown without them.
 */

import type { MethodResult } from '../experiments/result.js';
import { listed } from './cells.js';
import type { Paper } from './paper.js';
import { differs } from './stats.js';
import { type MethodSummary, summarise } from './tables.js';

/** One sentence per finding, plain text. */
export function honestNotes(results: readonly MethodResult[], paper: Paper): string[] {
  const rows = summarise(results);
  return [...overlapNotes(rows), ...orderNotes(rows, paper), ...seedNotes(rows)];
}

const named = (row: MethodSummary): string => `${row.method} (${(row.accuracy.value * 100).toFixed(1)}%)`;

/** Each pair of rows whose intervals overlap is named once. */
function overlapNotes(rows: readonly MethodSummary[]): string[] {
  const notes = rows.flatMap((row, i) => {
    const close = rows.slice(i + 1).filter((other) => !differs(row.accuracy, other.accuracy));
    if (close.length === 0) return [];
    return [`${named(row)} differs by less than the 95% intervals from ${listed(close.map(named))}.`];
  });
  if (rows.length > 1 && notes.length === 0) return ['All rows differ by more than their 95% intervals.'];
  return notes;
}

/** Of the pairs the paper puts in an order, how many stand in that order here, and how firmly. */
function orderNotes(rows: readonly MethodSummary[], paper: Paper): string[] {
  const reported = new Map(paper.main.map((row) => [row.method, row.pass1]));
  const known = rows.filter((row) => reported.has(row.method));
  let [pairs, same, firm] = [0, 0, 0];
  const reversed: string[] = [];
  for (const better of known) {
    for (const worse of known) {
      if (reported.get(better.method)! <= reported.get(worse.method)!) continue;
      pairs++;
      const apart = differs(better.accuracy, worse.accuracy);
      if (better.accuracy.value > worse.accuracy.value) {
        same++;
        if (apart) firm++;
      } else if (apart) {
        reversed.push(`${named(worse)} over ${named(better)}`);
      }
    }
  }
  if (pairs === 0) return ['No two rows stand in an order that the paper reports.'];
  const notes = [
    `Of the ${pairs} pairs that the paper orders by pass@1, ${same} stand in the same order here, ` +
      `${firm} of them by more than their intervals.`,
  ];
  if (reversed.length > 0) notes.push(`Against the paper, by more than the intervals: ${listed(reversed)}.`);
  return notes;
}

/** What the intervals leave out: another training run. */
function seedNotes(rows: readonly MethodSummary[]): string[] {
  const single = rows.filter((row) => row.acrossSeeds.count === 1);
  const notes: string[] = [];
  if (single.length === rows.length) {
    notes.push('Every row is one training run: the intervals cover the choice of problems, not another run.');
  } else if (single.length > 0) {
    notes.push(`One training run only: ${listed(single.map((row) => row.method))}.`);
  }
  const pairs = rows.flatMap((row, i) => rows.slice(i + 1).map((other) => [row, other] as const));
  for (const [row, other] of pairs) {
    if (row.acrossSeeds.count < 2 || other.acrossSeeds.count < 2) continue;
    const apart = (a: MethodSummary, b: MethodSummary) => a.acrossSeeds.min > b.acrossSeeds.max;
    if (differs(row.accuracy, other.accuracy) && !apart(row, other) && !apart(other, row)) {
      notes.push(
        `${row.method} and ${other.method} differ by more than their intervals, but their runs overlap.`,
      );
    }
  }
  return notes;
}
