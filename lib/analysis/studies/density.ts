/**
 * Does the trace get denser? How long answers are by their own outcome and by the rival's, and what a hundred of their
 * tokens hold: steps that are true and new, steps written before, dead ends entered again, false steps. Left out:
 * density over training; checkpoints are looked at for blind spots.
 */
import {
  draftStage,
  type Evaluation,
  finalStage,
  flagsOf,
  type Stage,
} from '../../experiments/evaluation.js';
import type { ArmResult, Study } from '../../experiments/study.js';
import { type Cell, fixed, round, span } from '../cells.js';
import { pairedOverSeeds, type SeedDifference, sideOfZero } from '../stats.js';
import { reportTable, type StudyReport } from './report.js';
import { findSeries, overSeeds, pairedArms, type Series, seriesOf } from './series.js';

/** What is measured of one stage of one run. */
interface Measure {
  readonly name: string;
  readonly decimals: number;
  readonly of: (stage: Stage, draft: Stage | undefined) => number | undefined;
}

const LENGTHS: readonly Measure[] = [
  { name: 'tokens', decimals: 1, of: (stage) => meanWhere(stage.completionTokens, () => true) },
  { name: 'own right', decimals: 1, of: (stage) => meanWhere(stage.completionTokens, rightIn(stage)) },
  { name: 'own wrong', decimals: 1, of: (stage) => meanWhere(stage.completionTokens, not(rightIn(stage))) },
  {
    name: 'rival right',
    decimals: 1,
    of: (stage, draft) => draft && meanWhere(stage.completionTokens, rightIn(draft)),
  },
  {
    name: 'rival wrong',
    decimals: 1,
    of: (stage, draft) => draft && meanWhere(stage.completionTokens, not(rightIn(draft))),
  },
  {
    name: 'right beside a wrong rival',
    decimals: 1,
    of: (stage, draft) => {
      if (!draft) return undefined;
      const [own, rival] = [rightIn(stage), rightIn(draft)];
      return meanWhere(stage.completionTokens, (i) => own(i) && !rival(i));
    },
  },
];

const per100 = (column: 'steps' | 'useful' | 'repeated' | 'deadAgain' | 'wrong') => (stage: Stage) => {
  const tokens = stage.completionTokens.reduce((sum, n) => sum + n, 0);
  return tokens === 0 ? undefined : (100 * stage[column].reduce((sum, n) => sum + n, 0)) / tokens;
};

const DENSITIES: readonly Measure[] = [
  { name: 'steps', decimals: 2, of: per100('steps') },
  { name: 'useful', decimals: 2, of: per100('useful') },
  { name: 'repeated', decimals: 2, of: per100('repeated') },
  { name: 'dead ends again', decimals: 2, of: per100('deadAgain') },
  { name: 'wrong', decimals: 2, of: per100('wrong') },
];

/** Which methods' final stages are compared. */
const PAIRS = [
  ['grpo', 'zero-shot'],
  ['cooperative', 'grpo'],
  ['agon', 'grpo'],
  ['agon', 'cooperative'],
] as const;

export function densityReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const differences = PAIRS.flatMap(([a, b]) => differencesOf(findSeries(all, a), findSeries(all, b)));
  return {
    tables: [
      ...reportTable(
        `${study.name}-length`,
        'Generated tokens of each stage, over all held-out problems and by outcome: means over seeds with 95% t intervals.',
        all.flatMap((series) => stageRows(series, LENGTHS)),
      ),
      ...reportTable(
        `${study.name}-density`,
        'What 100 generated tokens hold, over all held-out problems: steps written, those true and new (neither in this trace ' +
          "before nor among the rival's dead ends), written before in the same trace, dead ends entered again, and false ones; " +
          'means over seeds with 95% t intervals.',
        all.flatMap((series) => stageRows(series, DENSITIES)),
      ),
      ...reportTable(
        `${study.name}-density-differences`,
        'Final stages compared, paired over seeds: tokens, and counts per 100 tokens; 95% t intervals over seeds and exact ' +
          'sign-flip p.',
        differences.map(({ row }) => row),
      ),
    ],
    figures: [],
    notes: densityNotes(differences),
  };
}

function stageRows({ method, arms }: Series, measures: readonly Measure[]): Record<string, Cell>[] {
  const two = arms[0]!.chosen.stages.length > 1;
  const rows = [
    ...(two ? [{ stage: 'draft', of: (e: Evaluation) => [draftStage(e)!, undefined] as const }] : []),
    { stage: 'final', of: (e: Evaluation) => [finalStage(e), draftStage(e)] as const },
  ];
  return rows.map(({ stage, of }) => ({
    method,
    stage,
    seeds: arms.length,
    ...Object.fromEntries(
      measures.flatMap((measure) => {
        const { mean, interval } = overSeeds(arms.map((arm) => measure.of(...of(arm.chosen))));
        return [
          [measure.name, round(mean, measure.decimals)],
          [`${measure.name}: interval`, span(interval, 1, measure.decimals)],
        ];
      }),
    ),
  }));
}

interface Difference {
  readonly a: string;
  readonly b: string;
  readonly measure: string;
  readonly overSeeds: SeedDifference;
  readonly row: Record<string, Cell>;
}

function differencesOf(a: Series | undefined, b: Series | undefined): Difference[] {
  const pairs = a && b ? pairedArms(a, b) : [];
  if (!a || !b) return [];
  return [LENGTHS[0]!, ...DENSITIES].flatMap((measure) => {
    const values = pairs.flatMap(([x, y]) => {
      const [ours, theirs] = [x, y].map((arm) => measure.of(finalStage(arm.chosen), draftStage(arm.chosen)));
      return ours === undefined || theirs === undefined ? [] : [{ ours, theirs }];
    });
    if (values.length === 0) return [];
    const difference = pairedOverSeeds(
      values.map((v) => v.ours),
      values.map((v) => v.theirs),
    );
    const { value, interval, p, count } = difference;
    const what = measure.name === 'tokens' ? 'tokens' : `${measure.name} per 100 tokens`;
    return [
      {
        a: a.method,
        b: b.method,
        measure: measure.name,
        overSeeds: difference,
        row: {
          comparison: `${a.method} \u2212 ${b.method}`,
          measure: what,
          seeds: count,
          difference: round(value, 2),
          't interval over seeds': span(interval, 1, 2),
          'sign-flip p': round(p, 4),
        },
      },
    ];
  });
}

function densityNotes(differences: readonly Difference[]): string[] {
  return differences
    .filter(({ measure }) => measure === 'useful')
    .flatMap(({ a, b, overSeeds: difference }) => {
      const { value, interval } = difference;
      if (!interval) return [];
      const side = sideOfZero(difference);
      const verdict =
        side > 0 ? 'are denser than' : side < 0 ? 'are less dense than' : 'are not told apart from';
      return [
        `Final stages of ${a} ${verdict} those of ${b}: ${fixed(value, 2)} useful steps per 100 tokens ` +
          `(95% t interval over seeds ${span(interval, 1, 2)}).`,
      ];
    });
}

function rightIn(stage: Stage): (i: number) => boolean {
  const flags = flagsOf(stage.correct);
  return (i) => flags[i]!;
}

const not = (test: (i: number) => boolean) => (i: number) => !test(i);

function meanWhere(values: readonly number[], test: (i: number) => boolean): number | undefined {
  const found = values.filter((_, i) => test(i));
  return found.length > 0 ? found.reduce((sum, v) => sum + v, 0) / found.length : undefined;
}
