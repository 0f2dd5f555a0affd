/**
 * Differences between methods: for each pair the mean over seeds with its t interval and the exact sign-flip p, beside
 * it a bootstrap over problems and seeds, as a table and in words. Left out: corrections for many comparisons; the words
 * say how many were made.
 */
import { type Cell, fixed, listed, percent, round, span } from '../cells.js';
import {
  type Estimate,
  pairedOverProblems,
  pairedOverSeeds,
  type SeedDifference,
  sideOfZero,
} from '../stats.js';
import { accuracyOf, nameOf, pairedArms, type Series, scoresOf } from './series.js';

/** pass@1 of `a` less that of `b`, fractions. */
export interface Comparison {
  readonly a: Series;
  readonly b: Series;
  /** What the difference is called, such as `competition`; '' where it has no name. */
  readonly what: string;
  readonly seeds: readonly number[];
  /** One difference per seed, in the order of `seeds`. */
  readonly differences: readonly number[];
  readonly overSeeds: SeedDifference;
  /** Undefined where the two do not answer the same problems. */
  readonly overProblems: Estimate | undefined;
}

/** Compares two series over the seeds that both have; undefined where they share none. */
export function compare(a: Series | undefined, b: Series | undefined, what = ''): Comparison | undefined {
  const pairs = a && b ? pairedArms(a, b) : [];
  if (!a || !b || pairs.length === 0) return undefined;
  const [ours, theirs] = [pairs.map(([arm]) => accuracyOf(arm)), pairs.map(([, arm]) => accuracyOf(arm))];
  const problems = pairs[0]![0].chosen.problems.join();
  const same = pairs.flat().every((arm) => arm.chosen.problems.join() === problems);
  return {
    a,
    b,
    what,
    seeds: pairs.map(([arm]) => arm.seed),
    differences: ours.map((value, i) => value - theirs[i]!),
    overSeeds: pairedOverSeeds(ours, theirs),
    overProblems: same
      ? pairedOverProblems(
          pairs.map(([arm]) => scoresOf(arm)),
          pairs.map(([, arm]) => scoresOf(arm)),
        )
      : undefined,
  };
}

/** The comparisons that there are runs for. */
export function present(comparisons: readonly (Comparison | undefined)[]): Comparison[] {
  return comparisons.filter((c) => c !== undefined);
}

/** `agon − cooperative`, with what differs in the labels. */
export function comparisonName({ a, b }: Comparison): string {
  if (a.label === b.label) return `${a.method} \u2212 ${b.method}`;
  if (a.method === b.method) return `${a.method}: ${a.label} \u2212 ${b.label}`;
  return `${nameOf(a)} \u2212 ${nameOf(b)}`;
}

/**
 * Whether the t interval over seeds leaves out zero, and so does the bootstrap over problems and seeds where there is
 * one: what "differs" means in the words. Either alone is not enough: a handful of seeds can agree by chance more closely
 * than answers to so many problems can, and the bootstrap of few seeds is too narrow.
 */
export function tellsApart({ overSeeds, overProblems }: Comparison): boolean {
  const side = sideOfZero(overSeeds);
  if (!overProblems) return side !== 0;
  return side > 0 ? overProblems.low > 0 : side < 0 && overProblems.high < 0;
}

export const DIFFERENCES_CAPTION =
  'Differences of pass@1 in points, paired over training seeds: mean, 95% t interval over seeds, exact two-sided ' +
  'sign-flip p, and a 95% bootstrap interval that draws problems and seeds.';

/** One row per comparison. */
export function differenceRows(comparisons: readonly Comparison[]): Record<string, Cell>[] {
  const labelled = comparisons.some(({ a }) => a.label !== '');
  return comparisons.map((c) => ({
    ...(labelled ? { label: c.a.label === c.b.label ? c.a.label : '' } : {}),
    comparison: comparisonName(c),
    ...(comparisons.some(({ what }) => what !== '') ? { what: c.what } : {}),
    seeds: c.seeds.length,
    'difference, points': percent(c.overSeeds.value),
    't interval over seeds': span(c.overSeeds.interval, 100),
    'sign-flip p': round(c.overSeeds.p, 4),
    'bootstrap over problems and seeds': span(c.overProblems, 100),
    'lowest seed': percent(Math.min(...c.differences)),
    'highest seed': percent(Math.max(...c.differences)),
  }));
}

/** One comparison with its t interval: `agon − cooperative +1.2 (-0.4 to 2.8)`, in points. */
export function comparisonWords(c: Comparison): string {
  const { value, interval } = c.overSeeds;
  const where = c.a.label === c.b.label && c.a.label !== '' ? `${c.a.label}: ` : '';
  const points = `${value > 0 ? '+' : ''}${fixed(100 * value)}`;
  return `${where}${comparisonName(c)} ${points} (${interval ? span(interval, 100) : 'one seed'})`;
}

/** Which differ and which do not, and what the number of seeds and of comparisons does to that. */
export function differenceNotes(comparisons: readonly Comparison[]): string[] {
  if (comparisons.length === 0) return [];
  const apart = comparisons.filter(tellsApart);
  const alike = comparisons.filter((c) => !tellsApart(c));
  const counts = comparisons.map((c) => c.seeds.length);
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)];
  const notes = [
    apart.length > 0
      ? 'Told apart, by the t interval over seeds and by the bootstrap over problems and seeds (points of pass@1, 95% t ' +
        `interval): ${listed(apart.map(comparisonWords))}.`
      : 'No two of the methods compared are told apart by both the t interval over seeds and the bootstrap.',
  ];
  if (apart.length > 0 && alike.length > 0)
    notes.push(`Not told apart: ${listed(alike.map(comparisonWords))}.`);
  else if (alike.length > 0) notes.push(`The differences: ${listed(alike.map(comparisonWords))}.`);
  notes.push(
    `${comparisons.length} ${comparisons.length === 1 ? 'pair is' : 'pairs are'} compared without a correction: by ` +
      `chance alone about ${round(0.05 * comparisons.length, 2)} would be told apart. The sign-flip test of ` +
      `${fewest === most ? most : `${fewest} to ${most}`} seeds cannot give a p below ${round(2 ** (1 - most), 4)}.`,
  );
  return notes;
}
