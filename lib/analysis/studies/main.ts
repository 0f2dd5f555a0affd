/**
 * The report of the main table: eight methods beside the paper's, every run, and the pairs that the paper's story is
 * about. Left out: blind spots, cost and density, which the same runs answer (blind-spots.ts, cost.ts, density.ts).
 */
import type { Metrics } from '../../experiments/store.js';
import type { ArmResult, Study } from '../../experiments/study.js';
import { mainFigure } from '../figures.js';
import { honestNotes } from '../notes.js';
import { readPaper } from '../paper.js';
import { mainTable } from '../tables.js';
import { trainingFigure } from '../training.js';
import { compare, DIFFERENCES_CAPTION, differenceNotes, differenceRows, present } from './differences.js';
import { comparisonFigure } from './labels.js';
import { RUNS_CAPTION, runRows } from './methods.js';
import { type ReportFigure, reportTable, type StudyReport } from './report.js';
import { findSeries, type Series, seriesOf } from './series.js';

const PAIRS: readonly (readonly [a: string, b: string, what: string])[] = [
  ['agon', 'cooperative', 'competition'],
  ['cooperative', 'grpo', 'exchange'],
  ['agon', 'grpo', 'exchange and competition'],
  ['agon', 'grpo-self-cascade', 'a trained rival'],
  ['agon', 'self-refinement', 'a second adapter'],
  ['agon', 'shared-opponent', 'reading the rival'],
  ['cooperative', 'self-refinement', 'a second adapter'],
  ['cooperative', 'grpo-self-cascade', 'a trained rival'],
  ['self-refinement', 'grpo', 'reading oneself, trained'],
  ['grpo-self-cascade', 'grpo', 'reading oneself, untrained'],
  ['grpo', 'zero-shot', 'training'],
  ['moa-untrained', 'zero-shot', 'exchange, untrained'],
];

export function mainReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const paper = readPaper();
  const results = arms.map((arm) => arm.result);
  const best = arms.map((arm) => arm.bestOnHeldout);
  const comparisons = present(
    PAIRS.map(([a, b, what]) => compare(findSeries(all, a), findSeries(all, b), what)),
  );
  return {
    tables: [
      {
        name: study.name,
        caption:
          `${study.title}: pass@1 with the exact 95% interval over problems (direction chosen on the validation split; ` +
          'beside it as the paper chose, on the held-out problems themselves), its spread over training seeds with the ' +
          '95% t interval of the mean, mean tokens per problem, and what the paper reports.',
        frame: mainTable(results, paper, best),
      },
      ...reportTable(
        `${study.name}-differences`,
        `${study.title}. ${DIFFERENCES_CAPTION}`,
        differenceRows(comparisons),
      ),
      ...reportTable(`${study.name}-runs`, `${study.title}. ${RUNS_CAPTION}`, runRows(arms)),
    ],
    figures: [
      { name: study.name, spec: mainFigure(results, paper, { title: study.title }) },
      ...(comparisons.length > 0
        ? [comparisonFigure(`${study.name}-differences`, `${study.title}: differences`, comparisons)]
        : []),
      ...trainingFigures(study, all),
    ],
    notes: [...honestNotes(results, paper), ...differenceNotes(comparisons)],
  };
}

/** One line per training row: the mean over its seeds. */
function trainingFigures({ name, title }: Study, all: readonly Series[]): ReportFigure[] {
  const rows = new Map<string, Record<string, number>[]>();
  for (const { arms } of all) {
    const row = arms[0]!.method.training?.name;
    if (row !== undefined && !rows.has(row)) rows.set(row, meanMetrics(arms.map((arm) => arm.metrics)));
  }
  if (rows.size === 0) return [];
  const spec = trainingFigure(Object.fromEntries(rows), { title: `${title}: training, mean over seeds` });
  return [{ name: `${name}-training`, spec }];
}

/** Metrics averaged over runs step by step; a metric that a run did not log at a step is the mean of the others. */
function meanMetrics(runs: readonly (readonly Metrics[])[]): Record<string, number>[] {
  const steps = Math.min(...runs.map((run) => run.length));
  return Array.from({ length: steps }, (_, t) => {
    const lines = runs.map((run) => run[t]!);
    const names = [...new Set(lines.flatMap((line) => Object.keys(line)))];
    return Object.fromEntries(
      names.map((name) => {
        const values = lines.flatMap((line) => line[name] ?? []);
        return [name, values.reduce((sum, value) => sum + value, 0) / values.length];
      }),
    );
  });
}
