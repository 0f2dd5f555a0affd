/**
 * Competition or difficulty weighting? Agon's bonus against the same bonus by the group's share of failed drafts, and
 * what competition adds beside a rival that learns against what it adds beside one that does not. Says which explanation
 * the numbers favour, and that there is nothing to explain where there is not.
 */
import type { ArmResult, Study } from '../../experiments/study.js';
import { type Cell, fixed, percent, round, span } from '../cells.js';
import { pairedOverSeeds, type SeedDifference, sideOfZero } from '../stats.js';
import {
  type Comparison,
  compare,
  comparisonWords,
  DIFFERENCES_CAPTION,
  differenceNotes,
  differenceRows,
  present,
  tellsApart,
} from './differences.js';
import { comparisonFigure } from './labels.js';
import { METHODS_CAPTION, methodRows, RUNS_CAPTION, runRows } from './methods.js';
import { reportTable, type StudyReport } from './report.js';
import { findSeries, seriesOf } from './series.js';

export function controlReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const pair = (a: string, b: string, what: string) => compare(findSeries(all, a), findSeries(all, b), what);
  const competition = pair('agon', 'cooperative', 'competition');
  const beyond = pair('agon', 'difficulty-weighted', 'the paired rival, not its difficulty');
  const weighting = pair('difficulty-weighted', 'cooperative', 'difficulty weighting');
  const frozen = pair('frozen-agon', 'frozen-cooperative', 'competition, frozen rival');
  const comparisons = present([
    competition,
    beyond,
    weighting,
    frozen,
    pair('cooperative', 'frozen-cooperative', 'a rival that learns'),
    pair('agon', 'frozen-agon', 'a rival that learns'),
  ]);
  const interaction = competition && frozen ? interactionOf(competition, frozen) : undefined;
  return {
    tables: [
      ...reportTable(study.name, `${study.title}. ${METHODS_CAPTION}`, methodRows(all)),
      ...reportTable(`${study.name}-differences`, `${study.title}. ${DIFFERENCES_CAPTION}`, [
        ...differenceRows(comparisons),
        ...(interaction ? [interactionRow(interaction)] : []),
      ]),
      ...reportTable(`${study.name}-runs`, `${study.title}. ${RUNS_CAPTION}`, runRows(arms)),
    ],
    figures: comparisons.length > 0 ? [comparisonFigure(study.name, study.title, comparisons)] : [],
    notes: [
      `Asked: ${study.question}`,
      ...verdict(competition, beyond, weighting),
      ...(interaction ? [interactionWords(interaction)] : []),
      ...differenceNotes(comparisons),
    ],
  };
}

/** Which explanation of Agon over cooperation the three differences favour. */
function verdict(
  competition: Comparison | undefined,
  beyond: Comparison | undefined,
  weighting: Comparison | undefined,
): string[] {
  if (!competition || !beyond || !weighting) return [];
  const words = [competition, beyond, weighting].map(comparisonWords).join('; ');
  const up = (c: Comparison) => tellsApart(c) && c.overSeeds.value > 0;
  const down = (c: Comparison) => tellsApart(c) && c.overSeeds.value < 0;
  const finding = down(competition)
    ? 'Competition costs accuracy here, so there is no gain for either explanation to explain'
    : !up(competition)
      ? 'Competition does not gain over cooperation here as far as the seeds can tell, so there is no gain for either explanation to explain'
      : up(beyond) && !up(weighting)
        ? 'The numbers favour the paired rival: Agon gains over the same bonus paid by difficulty, which does not gain over cooperation'
        : up(weighting) && !up(beyond)
          ? 'The numbers favour difficulty weighting: it gains over cooperation by itself, and Agon does not gain over it'
          : up(weighting) && up(beyond)
            ? 'Both are seen: difficulty weighting gains over cooperation, and Agon over difficulty weighting'
            : 'Competition gains over cooperation, but the seeds cannot tell whether by the paired rival or by difficulty';
  return [`${finding} (${words}).`];
}

/** What competition adds beside a rival that learns, less what it adds beside a frozen one, over the seeds of both. */
function interactionOf(moving: Comparison, frozen: Comparison): SeedDifference | undefined {
  const seeds = moving.seeds.filter((seed) => frozen.seeds.includes(seed));
  if (seeds.length === 0) return undefined;
  const of = (c: Comparison) => seeds.map((seed) => c.differences[c.seeds.indexOf(seed)]!);
  return pairedOverSeeds(of(moving), of(frozen));
}

function interactionRow({ value, interval, p, count }: SeedDifference): Record<string, Cell> {
  return {
    label: '',
    comparison: '(agon \u2212 cooperative) \u2212 (frozen-agon \u2212 frozen-cooperative)',
    what: 'competition, beside a rival that learns more than beside a frozen one',
    seeds: count,
    'difference, points': percent(value),
    't interval over seeds': span(interval, 100),
    'sign-flip p': round(p, 4),
    'bootstrap over problems and seeds': '',
    'lowest seed': Number.NaN,
    'highest seed': Number.NaN,
  };
}

function interactionWords(difference: SeedDifference): string {
  const { value, interval, count } = difference;
  return (
    `Competition adds ${fixed(100 * value)} points more beside a rival that learns than beside a frozen one ` +
    `(${interval ? `95% t interval over ${count} seeds ${span(interval, 100)}` : 'one seed'}): ` +
    `${sideOfZero(difference) !== 0 ? 'told apart from none' : 'not told apart from none'}.`
  );
}
