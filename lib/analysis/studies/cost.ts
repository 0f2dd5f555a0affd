/**
 * Cost, whole: what every method drafts, prefills, answers and takes in time, in training and per problem, and what the
 * one-pass methods reach at a cascade's *total* tokens by voting over samples, by taking the likeliest, and with an
 * oracle. Left out: tokens of a server that shares prompts between problems.
 */
import { finalStage } from '../../experiments/evaluation.js';
import type { ArmResult, Study } from '../../experiments/study.js';
import { type Cell, fixed, percent, round, span } from '../cells.js';
import { type Panel, type PanelSeries, panelsFigure } from '../panels.js';
import { FEWEST_RUNS, pairedOverSeeds, sideOfZero } from '../stats.js';
import { atTokens, type SamplePoint, sampleCurve } from '../votes.js';
import { type ReportFigure, reportTable, type StudyReport } from './report.js';
import { accuracyOf, heldoutOf, overSeeds, type Series, seriesOf } from './series.js';

const STRATEGIES = [
  { name: 'majority vote', deployable: true, value: (point: SamplePoint) => point.vote },
  { name: 'best of n by log-probability', deployable: true, value: (point: SamplePoint) => point.best },
  { name: 'oracle (needs a verifier)', deployable: false, value: (point: SamplePoint) => point.oracle },
] as const;

/** The one-pass method that a cascade of this training is compared with. */
const onePassOf = ({ arms }: Series) => (arms[0]!.method.training ? 'grpo' : 'zero-shot');

export function costReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const curves = all.flatMap((series): Curve[] => {
    const bySeed = new Map(series.arms.map((arm) => [arm.seed, curveOf(arm)]));
    return [...bySeed.values()].some((curve) => curve.length > 1) ? [{ method: series.method, bySeed }] : [];
  });
  const budgets = all
    .filter((series) => series.arms[0]!.chosen.stages.length > 1)
    .flatMap((series) => budgetsOf(series, curves));
  return {
    tables: [
      ...reportTable(
        `${study.name}-cost`,
        'Cost per held-out problem (means over seeds): tokens prefilled, drafted and answered, their sum, and wall-clock ' +
          'of the evaluation as it was batched on the machine it ran on; in training the tokens sampled, prompts included, ' +
          'and the seconds of a median step.',
        all.map(costRow),
      ),
      ...reportTable(
        `${study.name}-samples`,
        'One-pass methods with n samples per problem: total tokens (the prompt is prefilled once, then n completions), and ' +
          'the share of problems right by majority vote over proposals (ties to the larger summed log-probability), by the ' +
          'sample of the largest mean log-probability, and by an oracle that needs a verifier. Means over all ways to take ' +
          'n of the samples and over seeds, 95% t intervals over seeds.',
        curves.flatMap(curveRows),
      ),
      ...reportTable(
        `${study.name}-equal-tokens`,
        "A cascade against a one-pass method at the cascade's own total tokens (prefilled and generated, both stages): " +
          'between two numbers of samples the line between them, which is what taking the one for some problems and the ' +
          'other for the rest gives. Differences paired over seeds, in points, with 95% t intervals and the exact sign-flip p.',
        budgets.map((budget) => budget.row),
      ),
    ],
    figures: curveFigures(study, all, curves),
    notes: budgetNotes(budgets),
  };
}

function costRow({ method, arms }: Series): Record<string, Cell> {
  const mean = (value: (arm: ArmResult) => number | undefined) => overSeeds(arms.map(value)).mean;
  const seconds = arms.map((arm) => arm.result.secondsPerProblem);
  return {
    method,
    seeds: arms.length,
    'pass@1 %': percent(mean(accuracyOf)),
    'prefilled tokens': round(mean((arm) => arm.result.promptTokens)),
    'drafted tokens': round(mean((arm) => arm.result.draftTokens)),
    'answered tokens': round(mean((arm) => arm.result.finalTokens)),
    'all tokens': round(mean(allTokens)),
    'ms per problem': round(1000 * mean((arm) => arm.result.secondsPerProblem)!),
    'fastest seed': round(1000 * Math.min(...seconds)),
    'slowest seed': round(1000 * Math.max(...seconds)),
    'training tokens': round(
      mean((arm) => arm.result.trainingTokens),
      0,
    ),
    'training s per step': round(
      mean((arm) => arm.result.secondsPerStep),
      2,
    ),
  };
}

/** Prefilled and generated tokens per problem, over all stages. */
function allTokens({ result }: ArmResult): number {
  return result.promptTokens + result.totalTokens;
}

/** What n samples of a one-pass method give, by seed. */
interface Curve {
  readonly method: string;
  readonly bySeed: ReadonlyMap<number, readonly SamplePoint[]>;
}

function curveOf(arm: ArmResult): SamplePoint[] {
  if (arm.chosen.stages.length > 1) return [];
  const stages = [finalStage(arm.chosen)];
  for (let sample = 1; ; sample++) {
    const evaluation = heldoutOf(arm, arm.chosen.deployment, sample);
    if (!evaluation) return sampleCurve(stages);
    stages.push(finalStage(evaluation));
  }
}

/** Points of the same n over all seeds. */
function meanPoints({ bySeed }: Curve): { n: number; points: SamplePoint[] }[] {
  const curves = [...bySeed.values()];
  const longest = Math.max(...curves.map((curve) => curve.length));
  return Array.from({ length: longest }, (_, i) => ({
    n: i + 1,
    points: curves.flatMap((curve) => curve[i] ?? []),
  }));
}

function curveRows(curve: Curve): Record<string, Cell>[] {
  return meanPoints(curve).map(({ n, points }) => ({
    method: curve.method,
    n,
    seeds: points.length,
    'all tokens': round(overSeeds(points.map((p) => p.tokens)).mean),
    ...Object.fromEntries(
      STRATEGIES.flatMap(({ name, value }) => {
        const { mean, interval } = overSeeds(points.map(value));
        return [
          [`${name} %`, percent(mean)],
          [`${name}: interval`, span(interval, 100)],
        ];
      }),
    ),
  }));
}

/** A cascade at its own tokens beside a one-pass method at as many. */
interface Budget {
  readonly words: string;
  readonly apart: -1 | 0 | 1;
  readonly strategy: string;
  readonly row: Record<string, Cell>;
}

function budgetsOf(cascade: Series, curves: readonly Curve[]): Budget[] {
  const curve = curves.find(({ method }) => method === onePassOf(cascade));
  if (!curve) return [];
  return STRATEGIES.flatMap(({ name, value }) => {
    const found = cascade.arms.flatMap((arm) => {
      const points = curve.bySeed.get(arm.seed) ?? [];
      const tokens = allTokens(arm);
      const theirs = atTokens(points, tokens, value);
      const n = atTokens(points, tokens, (point) => point.n);
      return theirs === undefined ? [] : [{ ours: accuracyOf(arm), theirs, tokens, n: n! }];
    });
    if (found.length === 0) return [];
    const difference = pairedOverSeeds(
      found.map((f) => f.ours),
      found.map((f) => f.theirs),
    );
    const { interval } = difference;
    const mean = (value: (f: (typeof found)[number]) => number) => overSeeds(found.map(value)).mean!;
    return [
      {
        strategy: name,
        apart: sideOfZero(difference),
        words: `${cascade.method} ${fixed(100 * difference.value)} points (${interval ? span(interval, 100) : 'one seed'})`,
        row: {
          cascade: cascade.method,
          against: curve.method,
          by: name,
          seeds: found.length,
          'all tokens': round(mean((f) => f.tokens)),
          samples: round(
            mean((f) => f.n),
            2,
          ),
          'cascade %': percent(mean((f) => f.ours)),
          'one pass %': percent(mean((f) => f.theirs)),
          'difference, points': percent(difference.value),
          't interval over seeds': span(interval, 100),
          'sign-flip p': round(difference.p, 4),
        },
      },
    ];
  });
}

function budgetNotes(budgets: readonly Budget[]): string[] {
  return STRATEGIES.filter(({ deployable }) => deployable).flatMap(({ name }) => {
    const own = budgets.filter((budget) => budget.strategy === name);
    const list = (apart: number, verdict: string) => {
      const words = own.filter((budget) => budget.apart === apart).map((budget) => budget.words);
      return words.length > 0 ? [`${verdict}: ${words.join(', ')}`] : [];
    };
    if (own.length === 0) return [];
    const parts = [...list(1, 'above it'), ...list(-1, 'below it'), ...list(0, 'not told apart from it')];
    return [`At equal total tokens, against one pass with ${name}: ${parts.join('; ')}.`];
  });
}

/** Accuracy against total tokens: lines for samples of a one-pass method, points for the cascades. */
function curveFigures(
  { name, title }: Study,
  all: readonly Series[],
  curves: readonly Curve[],
): ReportFigure[] {
  const panels = curves.flatMap((curve): Panel[] => {
    const lines = STRATEGIES.map((strategy): PanelSeries => {
      const points = meanPoints(curve).map(({ points }) => ({
        x: overSeeds(points.map((p) => p.tokens)).mean!,
        ...percentOf(points.map(strategy.value)),
      }));
      return seriesFrom(strategy.name, points);
    });
    const cascades = all
      .filter((series) => series.arms[0]!.chosen.stages.length > 1 && onePassOf(series) === curve.method)
      .map((series) =>
        seriesFrom(series.method, [
          { x: overSeeds(series.arms.map(allTokens)).mean!, ...percentOf(series.arms.map(accuracyOf)) },
        ]),
      );
    return [
      {
        title: `${curve.method}, n samples, and cascades`,
        x: 'prefilled and generated tokens per problem',
        y: 'problems right (%)',
        share: true,
        series: [...lines, ...cascades],
      },
    ];
  });
  if (panels.length === 0) return [];
  const spec = panelsFigure(
    `${title}: accuracy at equal total tokens`,
    'lines: n samples of one pass (prompt counted once); single points: cascades; bars: 95% t intervals over seeds',
    panels,
  );
  return [{ name: `${name}-equal-tokens`, spec }];
}

function percentOf(values: readonly number[]) {
  const { mean, interval, count } = overSeeds(values);
  const drawn = count < FEWEST_RUNS ? undefined : interval;
  return { y: 100 * mean!, interval: drawn && { low: 100 * drawn.low, high: 100 * drawn.high } };
}

function seriesFrom(
  name: string,
  points: readonly { readonly x: number; readonly y: number; readonly interval: PanelInterval }[],
): PanelSeries {
  return {
    name,
    x: points.map((point) => point.x),
    y: points.map((point) => point.y),
    intervals: points.map((point) => point.interval),
  };
}

type PanelInterval = NonNullable<PanelSeries['intervals']>[number];
