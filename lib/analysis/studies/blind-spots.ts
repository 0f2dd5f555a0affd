/**
 * Blind spots, measured: do A and B fail at different problems, more so than two samples of one adapter or two adapters
 * trained apart? Who converts whose failures, what is copied, and how all of it develops over training together with the
 * distance between the policies. Left out: what it earns, which is the main table's.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Evaluation, finalStage, type Stage } from '../../experiments/evaluation.js';
import { type DistanceLine, distanceSchema } from '../../experiments/pair.js';
import type { ArmResult, Study } from '../../experiments/study.js';
import { readJsonl } from '../../files.js';
import { type Cell, fixed, percent, round, span } from '../cells.js';
import { meanOverlap, type Overlap, overlap, type Reading, readingOf } from '../complementarity.js';
import { type Panel, type PanelSeries, panelsFigure } from '../panels.js';
import {
  type Estimate,
  FEWEST_RUNS,
  type Interval,
  meanInterval,
  pairedOverSeeds,
  pairsInterval,
  sideOfZero,
} from '../stats.js';
import { type ReportFigure, reportTable, type StudyReport } from './report.js';
import { findSeries, heldoutOf, overSeeds, type Series, seriesOf } from './series.js';

export function blindSpotsReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const pairs = all.filter((series) => pairOf(series.arms[0]!.method) !== undefined);
  const grpo = findSeries(all, 'grpo');
  const spots: Spot[] = [
    ...pairs.map((series) => spotOf(`A and B of ${series.method}`, series, draftsOverlap)),
    ...all
      .filter((series) => samplesOf(series.arms[0]!).length > 1)
      .map((series) => spotOf(`two samples of ${series.method}`, series, samplesOverlap)),
    ...(grpo && grpo.arms.length > 1 ? [betweenSeeds(grpo)] : []),
  ];
  const one = spots.find((spot) => spot.name === 'two samples of grpo');
  const development = pairs.flatMap(developmentOf);
  return {
    tables: [
      ...reportTable(
        `${study.name}-blind-spots`,
        'Overlap of wrong answers on the held-out problems: the first stages of A and of B, two samples of one adapter ' +
          '(mean over all pairs of its samples) and two GRPO adapters of different seeds. Jaccard grows with the share ' +
          'of wrong answers; phi is 0 where two sets overlap as chance would have it. 95% t intervals over seeds ' +
          '(jackknife over seeds for pairs of seeds).',
        spots.map((spot) => spotRow(spot, one)),
      ),
      ...reportTable(
        `${study.name}-conversion`,
        'Who makes what of whose draft, on the held-out problems, both directions: of right drafts the share kept, of ' +
          'wrong drafts the share converted, of drafts that propose something the share copied; means over seeds with 95% ' +
          't intervals.',
        all.flatMap(conversionRows),
      ),
      ...reportTable(
        `${study.name}-pair-over-training`,
        'The pair at its kept checkpoints, on validation problems, means over seeds and both directions; KL in nats per ' +
          'token on drafts sampled at temperature 1.',
        development.map(({ row }) => row),
      ),
    ],
    figures: developmentFigures(study, development),
    notes: spotNotes(spots, one),
  };
}

/** One line of the overlap table. */
interface Spot {
  readonly name: string;
  readonly seeds: readonly number[];
  readonly mean: Overlap;
  readonly jaccard: Interval | undefined;
  readonly phi: Interval | undefined;
  /** phi by seed, where the line has one per seed. */
  readonly phis: ReadonlyMap<number, number>;
}

function spotOf(name: string, series: Series, measure: (arm: ArmResult) => Overlap): Spot {
  const found = series.arms.map((arm) => ({ seed: arm.seed, overlap: measure(arm) }));
  return {
    name,
    seeds: found.map(({ seed }) => seed),
    mean: meanOverlap(found.map((f) => f.overlap)),
    jaccard: overSeeds(found.map((f) => f.overlap.jaccard)).interval,
    phi: overSeeds(found.map((f) => f.overlap.phi)).interval,
    phis: new Map(found.flatMap((f) => (f.overlap.phi === undefined ? [] : [[f.seed, f.overlap.phi]]))),
  };
}

/** Two deployments of a method whose first stages are by different adapters; undefined where there are no two. */
function pairOf({ deployments }: ArmResult['method']): readonly [string, string] | undefined {
  const first = deployments[0]!;
  const other = deployments.find((deployment) => deployment[0] !== first[0]);
  return other && [first.join('>'), other.join('>')];
}

function draftsOverlap(arm: ArmResult): Overlap {
  const [a, b] = pairOf(arm.method)!.map((deployment) => heldoutOf(arm, deployment)!.stages[0]!);
  return overlap(a!, b!);
}

/** All samples of a one-pass method on the held-out problems. */
function samplesOf(arm: ArmResult): Stage[] {
  const { deployments } = arm.method;
  if (deployments.length > 1 || deployments[0]!.length > 1) return [];
  const found: Stage[] = [];
  for (let sample = 0; ; sample++) {
    const evaluation = heldoutOf(arm, deployments[0]!.join('>'), sample);
    if (!evaluation) return found;
    found.push(finalStage(evaluation));
  }
}

function samplesOverlap(arm: ArmResult): Overlap {
  const samples = samplesOf(arm);
  return meanOverlap(samples.flatMap((a, i) => samples.slice(i + 1).map((b) => overlap(a, b))));
}

/** Two adapters of different seeds on the same problems: the mean over pairs of seeds, sample by sample. */
function betweenSeeds(series: Series): Spot {
  const samples = series.arms.map(samplesOf);
  const count = series.arms.length;
  const known = new Map<string, Overlap>();
  const between = (i: number, j: number): Overlap => {
    const key = `${i} ${j}`;
    const shared = Math.min(samples[i]!.length, samples[j]!.length);
    if (!known.has(key))
      known.set(
        key,
        meanOverlap(Array.from({ length: shared }, (_, k) => overlap(samples[i]![k]!, samples[j]![k]!))),
      );
    return known.get(key)!;
  };
  const pairs: Overlap[] = [];
  for (let i = 0; i < count; i++) for (let j = i + 1; j < count; j++) pairs.push(between(i, j));
  const mean = meanOverlap(pairs);
  const whole = (value: (o: Overlap) => number | undefined): Estimate | undefined =>
    count > 2 && pairs.every((pair) => value(pair) !== undefined)
      ? pairsInterval(count, (i, j) => value(between(i, j))!)
      : undefined;
  return {
    name: `two ${series.method} adapters, different seeds`,
    seeds: series.arms.map((arm) => arm.seed),
    mean,
    jaccard: whole((o) => o.jaccard),
    phi: whole((o) => o.phi),
    phis: new Map(),
  };
}

/** phi of a line less that of another, over the seeds that both have. */
function phiDifference(spot: Spot, other: Spot | undefined) {
  const seeds = other ? [...spot.phis.keys()].filter((seed) => other.phis.has(seed)) : [];
  if (!other || spot === other || seeds.length === 0) return undefined;
  return pairedOverSeeds(
    seeds.map((seed) => spot.phis.get(seed)!),
    seeds.map((seed) => other.phis.get(seed)!),
  );
}

function spotRow(spot: Spot, one: Spot | undefined): Record<string, Cell> {
  const { mean } = spot;
  const difference = phiDifference(spot, one);
  return {
    pair: spot.name,
    seeds: spot.seeds.length,
    'first wrong %': percent(mean.firstWrong),
    'second wrong %': percent(mean.secondWrong),
    'both wrong %': percent(mean.bothWrong),
    'either right %': percent(1 - mean.bothWrong),
    Jaccard: round(mean.jaccard, 3),
    'Jaccard interval': span(spot.jaccard, 1, 3),
    phi: round(mean.phi, 3),
    'phi interval': span(spot.phi, 1, 3),
    'phi less two samples of grpo': round(difference?.value, 3),
    'interval of that': span(difference?.interval, 1, 3),
  };
}

function spotNotes(spots: readonly Spot[], one: Spot | undefined): string[] {
  if (!one) return [];
  return spots.flatMap((spot) => {
    const difference = spot.name.startsWith('A and B') ? phiDifference(spot, one) : undefined;
    if (!difference?.interval) return [];
    const { value, interval, count } = difference;
    const side = sideOfZero(difference);
    const verdict =
      side < 0
        ? 'they fail at more different problems'
        : side > 0
          ? 'they fail at more of the same problems'
          : 'the two are not told apart';
    return [
      `${spot.name}: phi of the wrong drafts ${fixed(spot.mean.phi!, 3)}, against ${fixed(one.mean.phi!, 3)} for two ` +
        `samples of one GRPO adapter: ${fixed(value, 3)} (95% t interval over ${count} seeds ${span(interval, 1, 3)}): ${verdict}.`,
    ];
  });
}

function conversionRows({ method, arms }: Series): Record<string, Cell>[] {
  return arms[0]!.method.deployments
    .filter((deployment) => deployment.length === 2)
    .map((deployment) => {
      const readings = arms.flatMap((arm) => {
        const evaluation = heldoutOf(arm, deployment.join('>'));
        return evaluation ? [readingOf(evaluation)] : [];
      });
      const mean = (value: (r: Reading) => number | undefined) => overSeeds(readings.map(value));
      const [kept, converted, copied] = [
        mean((r) => r.kept),
        mean((r) => r.converted),
        mean((r) => r.copied),
      ];
      return {
        method,
        direction: deployment.join('>'),
        seeds: readings.length,
        'draft right %': percent(mean((r) => r.draftRight).mean),
        'kept %': percent(kept.mean),
        'kept interval': span(kept.interval, 100),
        'converted %': percent(converted.mean),
        'converted interval': span(converted.interval, 100),
        'final right %': percent(mean((r) => r.finalRight).mean),
        'copied %': percent(copied.mean),
        'copied interval': span(copied.interval, 100),
        'copied where the draft is right %': percent(mean((r) => r.copiedRight).mean),
        'copied where the draft is wrong %': percent(mean((r) => r.copiedWrong).mean),
      };
    });
}

/** The pair of one method at one kept checkpoint. */
interface Development {
  readonly method: string;
  readonly step: number;
  readonly phi: readonly (number | undefined)[];
  readonly kept: readonly (number | undefined)[];
  readonly converted: readonly (number | undefined)[];
  readonly distance: readonly (number | undefined)[];
  readonly row: Record<string, Cell>;
}

function developmentOf(series: Series): Development[] {
  const runs = series.arms.map((arm) => ({ byStep: stepsOf(arm), distances: distancesOf(arm) }));
  const steps = [...new Set(runs.flatMap((run) => [...run.byStep.keys()]))].sort((a, b) => a - b);
  return steps.map((step) => {
    const at = runs.flatMap((run) => {
      const evaluations = run.byStep.get(step);
      return evaluations ? [{ evaluations, distances: run.distances.filter((d) => d.step === step) }] : [];
    });
    const overlaps = at.map(({ evaluations: [a, b] }) =>
      a && b ? overlap(a.stages[0]!, b.stages[0]!) : undefined,
    );
    const reading = (value: (r: Reading) => number | undefined) =>
      at.map(
        ({ evaluations }) =>
          overSeeds(evaluations.filter((e) => e.stages.length > 1).map((e) => value(readingOf(e)))).mean,
      );
    const nats = (from: string, to: string) =>
      at.map(({ distances }) => distances.find((d) => d.from === from && d.to === to)?.nats);
    const both = (pairs: readonly (readonly [string, string])[]) =>
      at.map((_, i) => overSeeds(pairs.map(([from, to]) => nats(from, to)[i])).mean);
    const phi = overlaps.map((o) => o?.phi);
    const [kept, converted] = [reading((r) => r.kept), reading((r) => r.converted)];
    const copied = reading((r) => r.copied);
    const mean = (values: readonly (number | undefined)[]) => overSeeds(values).mean;
    return {
      method: series.method,
      step,
      phi,
      kept,
      converted,
      distance: both([
        ['A', 'B'],
        ['B', 'A'],
      ]),
      row: {
        method: series.method,
        step,
        seeds: at.length,
        'first wrong %': percent(mean(overlaps.map((o) => o?.firstWrong))),
        'second wrong %': percent(mean(overlaps.map((o) => o?.secondWrong))),
        Jaccard: round(mean(overlaps.map((o) => o?.jaccard)), 3),
        phi: round(mean(phi), 3),
        'phi interval': span(overSeeds(phi).interval, 1, 3),
        'kept %': percent(mean(kept)),
        'converted %': percent(mean(converted)),
        'copied %': percent(mean(copied)),
        'KL A from B': round(mean(nats('A', 'B')), 4),
        'KL B from A': round(mean(nats('B', 'A')), 4),
        'KL A from base': round(mean(nats('A', 'base')), 4),
        'KL B from base': round(mean(nats('B', 'base')), 4),
      },
    };
  });
}

/** Evaluations at kept checkpoints, the deployments in the method's order. */
function stepsOf({ evaluations, method, chosen }: ArmResult): Map<number, Evaluation[]> {
  const key = JSON.stringify(chosen.eval);
  const order = method.deployments.map((d) => d.join('>'));
  const byStep = new Map<number, Evaluation[]>();
  for (const e of evaluations) {
    if (e.step === undefined || JSON.stringify(e.eval) !== key || !order.includes(e.deployment)) continue;
    byStep.set(e.step, [...(byStep.get(e.step) ?? []), e]);
  }
  for (const list of byStep.values())
    list.sort((a, b) => order.indexOf(a.deployment) - order.indexOf(b.deployment));
  return byStep;
}

function distancesOf({ folder }: ArmResult): DistanceLine[] {
  const path = join(folder, 'distance.jsonl');
  return existsSync(path) ? readJsonl(path, distanceSchema) : [];
}

function developmentFigures(study: Study, development: readonly Development[]): ReportFigure[] {
  const methods = [...new Set(development.map((d) => d.method))];
  const steps = [...new Set(development.map((d) => d.step))].sort((a, b) => a - b);
  // A little apart, so that the bars of methods do not cover each other.
  const apart = (method: string) =>
    0.02 * (methods.indexOf(method) - (methods.length - 1) / 2) * ((steps.at(-1) ?? 0) / steps.length);
  const series = (value: (d: Development) => readonly (number | undefined)[], scale: number): PanelSeries[] =>
    methods.flatMap((name) => {
      const points = development
        .filter((d) => d.method === name)
        .flatMap((d) => {
          const values = value(d).flatMap((v) => (v === undefined ? [] : [scale * v]));
          if (values.length === 0) return [];
          const interval = values.length >= FEWEST_RUNS ? meanInterval(values) : undefined;
          return [
            { x: d.step + apart(name), y: values.reduce((sum, v) => sum + v, 0) / values.length, interval },
          ];
        });
      if (points.length === 0) return [];
      return [
        {
          name,
          x: points.map((p) => p.x),
          y: points.map((p) => p.y),
          intervals: points.map((p) => p.interval),
        },
      ];
    });
  const panel = (title: string, y: string, own: PanelSeries[], share = false): Panel[] =>
    own.length > 0 ? [{ title, x: 'optimizer step', y, share, series: own, ticks: steps }] : [];
  const panels = [
    ...panel(
      'Overlap of wrong drafts',
      'phi',
      series((d) => d.phi, 1),
    ),
    ...panel(
      'Right drafts kept',
      'share (%)',
      series((d) => d.kept, 100),
      true,
    ),
    ...panel(
      'Wrong drafts converted',
      'share (%)',
      series((d) => d.converted, 100),
      true,
    ),
    ...panel(
      'Distance between A and B',
      'KL (nats per token)',
      series((d) => d.distance, 1),
    ),
  ];
  if (panels.length === 0) return [];
  const spec = panelsFigure(
    'The pair over training',
    'validation problems, mean over both directions and all seeds; bars: 95% t intervals over seeds',
    panels,
  );
  return [{ name: `${study.name}-pair-over-training`, spec }];
}
