/**
 * The report of a study that varies one thing: a row per label and method, what exchange and competition add under each
 * label, every other method against Agon, and both differences as a forest plot. Left out: the studies that have
 * questions of their own (main.ts, control.ts).
 */
import type { ArmResult, Study } from '../../experiments/study.js';
import { type Cell, percent, round, span } from '../cells.js';
import { type ForestPanel, type ForestValue, forestFigure } from '../forest.js';
import { FEWEST_RUNS, pairedOverSeeds } from '../stats.js';
import {
  type Comparison,
  compare,
  comparisonName,
  DIFFERENCES_CAPTION,
  differenceNotes,
  differenceRows,
  present,
  tellsApart,
} from './differences.js';
import { METHODS_CAPTION, methodRows, RUNS_CAPTION, runRows } from './methods.js';
import { type ReportFigure, type ReportTable, reportTable, type StudyReport } from './report.js';
import { findSeries, type Series, seriesOf } from './series.js';

/** What a difference between two methods of one label is called. */
const NAMED: readonly (readonly [a: string, b: string, what: string])[] = [
  ['moa-untrained', 'zero-shot', 'exchange, untrained'],
  ['cooperative', 'grpo', 'exchange'],
  ['agon', 'cooperative', 'competition'],
  ['agon', 'grpo', 'exchange and competition'],
];
/** The two that the figure draws. */
const DRAWN = ['exchange', 'competition'];

/** Studies whose labels are compared with one of them, method by method. */
const REFERENCE_LABEL: Readonly<Record<string, string>> = {
  'group-size': 'N = 8',
  'init-noise': 'std 0.01',
};
/** Further pairs of single studies. */
const FURTHER: Readonly<Record<string, readonly (readonly [a: string, b: string])[]>> = {
  signals: [
    ['class-baseline', 'cooperative'],
    ['agon-bonus-0.25', 'cooperative'],
  ],
};

export function labelsReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const comparisons = comparisonsOf(study.name, all);
  const pooled = pooledRows(comparisons);
  return {
    tables: [
      ...reportTable(study.name, `${study.title}. ${METHODS_CAPTION}`, methodRows(all)),
      ...reportTable(
        `${study.name}-differences`,
        `${study.title}. ${DIFFERENCES_CAPTION}`,
        differenceRows(comparisons),
      ),
      ...pooledTable(study, pooled),
      ...reportTable(`${study.name}-runs`, `${study.title}. ${RUNS_CAPTION}`, runRows(arms)),
    ],
    figures: comparisons.length > 0 ? [comparisonFigure(study.name, study.title, comparisons)] : [],
    notes: [`Asked: ${study.question}`, ...differenceNotes(comparisons), ...pooledNotes(pooled)],
  };
}

function comparisonsOf(study: string, all: readonly Series[]): Comparison[] {
  const labels = [...new Set(all.map((s) => s.label))];
  const named = new Set(NAMED.flatMap((pair) => pair.slice(0, 2)));
  const within = labels.flatMap((label) => {
    const at = (method: string) => findSeries(all, method, label);
    const others = all.filter((s) => s.label === label && !named.has(s.method));
    return present([
      ...NAMED.map(([a, b, what]) => compare(at(a), at(b), what)),
      ...others.map((s) => compare(s, at('agon'))),
      ...(FURTHER[study] ?? []).map(([a, b]) => compare(at(a), at(b))),
    ]);
  });
  const reference = REFERENCE_LABEL[study];
  const across = all
    .filter((s) => reference !== undefined && s.label !== reference)
    .map((s) => compare(s, findSeries(all, s.method, reference)));
  return [...within, ...present(across)];
}

/** One named difference over all labels. */
interface Pooled {
  readonly what: string;
  readonly labels: number;
  readonly means: readonly number[];
}

/** Named differences that at least three labels have, each with runs of its own. */
function pooledRows(comparisons: readonly Comparison[]): Pooled[] {
  return DRAWN.flatMap((what) => {
    const own = comparisons.filter((c) => c.what === what);
    const runs = own.flatMap((c) => [...c.a.arms, ...c.b.arms].map((arm) => arm.result.runId));
    if (own.length < 3 || new Set(runs).size < runs.length) return [];
    return [{ what, labels: own.length, means: own.map((c) => c.overSeeds.value) }];
  });
}

function pooledTable({ name, title }: Study, pooled: readonly Pooled[]): ReportTable[] {
  const caption =
    `${title}: the mean difference over all labels in points, each label counted once, with a 95% t interval and an ` +
    'exact sign-flip p over labels: what an average one of these labels shows.';
  const rows = pooled.map(({ what, labels, means }): Record<string, Cell> => {
    const { value, interval, p } = overLabels(means);
    return {
      what,
      labels,
      'above zero': means.filter((mean) => mean > 0).length,
      'difference, points': percent(value),
      't interval over labels': span(interval, 100),
      'sign-flip p': round(p, 4),
      'lowest label': percent(Math.min(...means)),
      'highest label': percent(Math.max(...means)),
    };
  });
  return reportTable(`${name}-pooled`, caption, rows);
}

function pooledNotes(pooled: readonly Pooled[]): string[] {
  return pooled.map(({ what, labels, means }) => {
    const { value, interval, p } = overLabels(means);
    return (
      `Over the ${labels} labels, each counted once, ${what} adds ${percent(value)} points (95% t interval over labels ` +
      `${span(interval, 100)}, sign-flip p ${round(p, 4)}); it is above zero in ${means.filter((m) => m > 0).length}.`
    );
  });
}

const overLabels = (means: readonly number[]) =>
  pairedOverSeeds(
    means,
    means.map(() => 0),
  );

/** Exchange and competition side by side over the labels; where a study has neither, all comparisons in one panel. */
export function comparisonFigure(
  name: string,
  title: string,
  comparisons: readonly Comparison[],
): ReportFigure {
  const drawn = comparisons.filter((c) => DRAWN.includes(c.what));
  const labels = [...new Set(drawn.map((c) => c.a.label))];
  const panels: ForestPanel[] =
    labels.length > 1
      ? DRAWN.flatMap((what) => {
          const own = drawn.filter((c) => c.what === what);
          if (own.length === 0) return [];
          const [first] = own;
          return [
            {
              title: `${what}: ${first!.a.method} \u2212 ${first!.b.method}`,
              values: labels.map((label) => forestValue(own.find((c) => c.a.label === label))),
            },
          ];
        })
      : [{ title: '', values: comparisons.map(forestValue) }];
  const spec = forestFigure({
    title,
    subtitle:
      'squares: mean over seeds; line: 95% t interval; filled: it and the bootstrap over problems leave out zero; rings: seeds',
    axis: 'difference of pass@1 (points)',
    rows: labels.length > 1 ? labels : comparisons.map(comparisonName),
    panels,
  });
  return { name, spec };
}

function forestValue(c: Comparison | undefined): ForestValue | undefined {
  if (!c) return undefined;
  const { value, interval: found, count } = c.overSeeds;
  const interval = count < FEWEST_RUNS ? undefined : found;
  return {
    value: 100 * value,
    interval: interval && { low: 100 * interval.low, high: 100 * interval.high },
    filled: tellsApart(c),
    points: c.differences.map((d) => 100 * d),
  };
}
