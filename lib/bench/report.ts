/**
 * A bench's numbers as tables: what everybody reached, the ratios that have to hold and whether they do, how close
 * training comes to the matmul rate, and where the rest of its time goes. Left out: the figure (figure.ts).
 */
import { DataFrame } from 'danfojs-node';
import { toMarkdown } from '../analysis/formats.js';
import type { Machine } from './machine.js';
import type { Measure } from './protocol.js';
import type { CurvePoint, Measured, ModelResult } from './run.js';
import { fitLine, type Line, type Summary, speedup, summary } from './statistics.js';
import { SAMPLING_ROWS } from './workload.js';

export interface BenchResult {
  /** ISO 8601. */
  readonly date: string;
  readonly machine: Machine;
  /** Cores that everybody was given. */
  readonly threads: number;
  readonly models: readonly ModelResult[];
  /** Who was not there, and how to get them. */
  readonly absent: readonly string[];
}

const TITLES: Readonly<Record<Measure, string>> = {
  sample: 'sampling (tokens/s)',
  train: 'training (tokens/s)',
  grpo: 'GRPO step (s)',
  agon: 'Agon step (s)',
};

/** Tokens per second of fixed lengths, seconds of whole steps. */
function values({ measure, timings }: Measured): number[] {
  return timings.map(({ seconds, tokens }) =>
    measure === 'sample' || measure === 'train' ? tokens / seconds : seconds,
  );
}

/** What grows when it is faster. */
function rates({ measure, timings }: Measured): number[] {
  return timings.map(({ seconds, tokens }) =>
    measure === 'sample' || measure === 'train' ? tokens / seconds : 1 / seconds,
  );
}

/** Everybody's numbers: one row per model, measurement and participant that has repetitions. */
export function measuredTable(result: BenchResult): DataFrame {
  const rows = result.models.flatMap((model) =>
    model.measured
      .filter(({ timings }) => timings.length > 0)
      .map((measured) => {
        const reached = summary(values(measured));
        const floor = model.floors.find((f) => f.measure === measured.measure);
        const seconds = summary(measured.timings.map((t) => t.seconds)).median;
        const own = floor?.own[measured.participant];
        const tokens = summary(measured.timings.map((t) => t.tokens)).median;
        return {
          model: model.plan.model,
          measurement: TITLES[measured.measure],
          participant: measured.participant,
          median: digits(reached.median),
          range: range(reached),
          repetitions: reached.repetitions,
          tokens: Math.round(tokens),
          'own matmul rate reached (%)': own === undefined ? '' : digits((100 * own) / seconds),
          "machine's (%)": floor === undefined ? '' : digits((100 * floor.machine) / seconds),
          'peak memory (MB)':
            measured.peakBytes === undefined ? Number.NaN : Math.round(measured.peakBytes / 1e6),
        };
      }),
  );
  return new DataFrame(rows);
}

/** A ratio that this project promises. */
export interface Claim {
  readonly measure: Measure;
  readonly ours: 'native' | 'wasm';
  readonly theirs: string;
  readonly atLeast: number;
}

export const CLAIMS: readonly Claim[] = [
  { measure: 'sample', ours: 'native', theirs: 'transformers', atLeast: 5 },
  { measure: 'sample', ours: 'native', theirs: 'pytorch', atLeast: 1.5 },
  { measure: 'sample', ours: 'wasm', theirs: 'transformers', atLeast: 1.5 },
  { measure: 'grpo', ours: 'native', theirs: 'trl', atLeast: 3 },
  { measure: 'grpo', ours: 'native', theirs: 'pytorch', atLeast: 1 },
  { measure: 'grpo', ours: 'wasm', theirs: 'trl', atLeast: 1 },
];

/** A claim beside what was measured; undefined where one of the two did not take part. */
export interface Judged extends Claim {
  readonly speedup: Summary | undefined;
  readonly holds: boolean | undefined;
}

/** The claims on one model. A claim holds by the median of its neighbouring repetitions. */
export function judgeClaims(model: ModelResult): Judged[] {
  const find = (measure: Measure, fits: (m: Measured) => boolean) =>
    model.measured.find((m) => m.measure === measure && m.timings.length > 0 && fits(m));
  return CLAIMS.map((claim) => {
    const ours = find(
      claim.measure,
      (m) => m.side === 'ours' && (m.participant === 'wasm') === (claim.ours === 'wasm'),
    );
    const theirs = find(claim.measure, (m) => m.participant === claim.theirs);
    const ratio = ours && theirs && speedup(rates(ours), rates(theirs));
    return { ...claim, speedup: ratio, holds: ratio && ratio.median >= claim.atLeast };
  });
}

const PEER_NAMES = ['transformers', 'trl', 'pytorch'];

/** How many times faster each of ours is than each peer: the median of neighbouring repetitions. */
export function speedupTable(result: BenchResult): DataFrame {
  return new DataFrame(
    result.models.flatMap((model) =>
      model.measured
        .filter(({ side, timings, measure }) => side === 'ours' && timings.length > 0 && measure !== 'agon')
        .map((ours) => {
          const over = PEER_NAMES.map((name) => {
            const theirs = model.measured.find((m) => m.participant === name && m.measure === ours.measure);
            const known = theirs && theirs.timings.length > 0;
            return [`over ${name}`, known ? digits(speedup(rates(ours), rates(theirs)).median) : ''];
          });
          return {
            model: model.plan.model,
            measurement: plainTitle(ours.measure),
            ours: ours.participant,
            ...(Object.fromEntries(over) as Record<string, string>),
          };
        }),
    ),
  );
}

/** A measurement's title without its unit. */
function plainTitle(measure: Measure): string {
  return TITLES[measure].replace(/ \(.*/, '');
}

/** Every claim on every model. */
export function claimTable(result: BenchResult): DataFrame {
  return new DataFrame(
    result.models.flatMap((model) =>
      judgeClaims(model).map(({ measure, ours, theirs, atLeast, speedup: ratio, holds }) => ({
        model: model.plan.model,
        claim: `${plainTitle(measure)}: ${ours} over ${theirs}`,
        'at least': atLeast,
        measured: ratio ? digits(ratio.median) : '',
        range: ratio ? range(ratio) : '',
        holds: holds === undefined ? 'not measured' : holds ? 'yes' : 'no',
      })),
    ),
  );
}

/** How long the matrices alone take: at each participant's own rate, and at the machine's best per shape. */
export function floorTable(result: BenchResult): DataFrame {
  return new DataFrame(
    result.models.flatMap((model) =>
      model.floors.flatMap(({ measure, flops, own, machine }) =>
        [...Object.entries(own), ['best of all at each shape', machine] as const].map(([name, seconds]) => ({
          model: model.plan.model,
          'products of': measure === 'sample' ? 'sampling' : 'training',
          GFLOP: digits(flops / 1e9),
          'multiplied by': name,
          'floor (s)': digits(seconds),
          'GFLOP/s': digits(flops / 1e9 / seconds),
        })),
      ),
    ),
  );
}

/** Where the time of one thread goes: kinds of work, in percent of the profiled time. */
export function profileTable(result: BenchResult): DataFrame {
  return new DataFrame(
    result.models.flatMap((model) =>
      model.profiles.flatMap(({ participant, measure, kinds }) => {
        const total = kinds.reduce((sum, kind) => sum + kind.seconds, 0);
        return kinds.map(({ name, calls, seconds, flops }) => ({
          model: model.plan.model,
          measurement: measure === 'sample' ? 'sampling' : 'training',
          participant,
          work: name,
          'time (%)': digits((100 * seconds) / total),
          seconds: digits(seconds),
          calls,
          'GFLOP/s': flops === undefined ? '' : digits(flops / seconds / 1e9),
        }));
      }),
    ),
  );
}

/** How straight one participant's cost is in rows or in completion tokens. */
export interface Straightness extends Line {
  readonly participant: string;
  readonly measure: CurvePoint['measure'];
  readonly vary: CurvePoint['vary'];
  /** Seconds per token at the largest point, as a multiple of those at the middle one. */
  readonly lastOverMiddle: number;
}

export function straightness(curve: readonly CurvePoint[]): Straightness[] {
  const keys = [...new Set(curve.map((p) => [p.participant, p.measure, p.vary].join('|')))];
  return keys.map((key) => {
    const points = curve.filter((p) => [p.participant, p.measure, p.vary].join('|') === key);
    const { participant, measure, vary } = points[0]!;
    const perToken = (p: CurvePoint) => p.seconds / p.tokens;
    const lastOverMiddle = perToken(points.at(-1)!) / perToken(points[Math.floor(points.length / 2)]!);
    const line = fitLine(points.map((p) => ({ x: p[vary], y: p.seconds })));
    return { participant, measure, vary, ...line, lastOverMiddle };
  });
}

function straightnessTable(model: ModelResult): DataFrame {
  return new DataFrame(
    straightness(model.curve).map((s) => ({
      measurement: s.measure === 'sample' ? 'sampling' : 'training',
      participant: s.participant,
      'cost in': s.vary === 'rows' ? 'rollouts' : 'completion tokens',
      'explained by a straight line (%)': digits(100 * s.explained),
      'seconds per token, last over middle point': digits(s.lastOverMiddle),
    })),
  );
}

/** The whole report. */
export function benchMarkdown(result: BenchResult): string {
  const { machine, threads, date, models, absent } = result;
  const versions = Object.entries(
    Object.assign({}, ...models.flatMap((m) => m.participants.map((p) => p.versions))) as Record<
      string,
      string
    >,
  );
  const plans = models.map(
    ({ plan, parameters }) =>
      `- ${plan.model}: ${(parameters / 1e6).toFixed(2)} M parameters; fixed lengths: ${plan.rows} rows of ` +
      `${plan.completion} completion tokens; a whole step: ${plan.problemsPerStep} problems x 16 rollouts to ` +
      `end-of-sequence or 150 tokens; ${plan.repetitions} repetitions after ${plan.warmUps} rounds of warm-up, going round the participants.`,
  );
  const curved = models.find((m) => m.curve.length > 0);
  const failures = models.flatMap((m) => m.failures.map((f) => `- ${m.plan.model}: ${f.split('\n')[0]}`));
  const section = (title: string, body: string) => `## ${title}\n\n${body}\n`;
  return [
    '# Bench\n',
    `${date.slice(0, 16).replace('T', ' ')} UTC; ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGB} GB, ` +
      `${machine.system}; ${threads} threads for everybody; float32. ` +
      `Versions: ${versions.map(([name, version]) => `${name} ${version}`).join(', ')}.\n`,
    `${plans.join('\n')}\n- Batches of fixed-length sampling: ours of at most ${SAMPLING_ROWS.kernels} (wasm) or ${SAMPLING_ROWS.graphs} ` +
      '(native) rows, one after another per core; peers all rows at once: for each the fastest that was tried.\n',
    ...(absent.length > 0 ? [`${absent.map((line) => `- ${line}`).join('\n')}\n`] : []),
    section('How many times faster', toMarkdown(speedupTable(result))),
    section(
      'Claims',
      `${toMarkdown(claimTable(result))}\n\nWhere one does not hold, the profile below shows where the time goes, and ` +
        'results/LOG.md what was tried.',
    ),
    section(
      'Measured',
      `${toMarkdown(measuredTable(result))}\n\nA matmul rate is what a participant reaches at the workload's own shapes, one ` +
        "at a time (the floor, below); the machine's is the best of all participants at each shape. More than 100% says " +
        'that the shapes were slower alone than in the work, as where weights come from memory each time.',
    ),
    section('The floor: the matrix products alone', toMarkdown(floorTable(result))),
    section('Where the time goes (one thread)', toMarkdown(profileTable(result))),
    ...(curved
      ? [section('Is cost linear?', `${toMarkdown(straightnessTable(curved))}\n![cost](curve.png)\n`)]
      : []),
    ...(failures.length > 0 ? [section('Left out', `${failures.join('\n')}\n`)] : []),
  ].join('\n');
}

/** Three digits that count, as text: one column holds tokens per second and seconds. */
function digits(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function range({ min, max }: Summary): string {
  return `${digits(min)}..${digits(max)}`;
}
