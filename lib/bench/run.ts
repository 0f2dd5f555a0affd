/**
 * The order of a bench: for each model all participants are started, each measurement is warmed up, and then
 * its repetitions go round the participants (A B A B), so that a slow minute of the machine hits everybody.
 *
 * A participant that fails is left out from then on, and the result says so. Left out: what is made of the
 * numbers (report.ts).
 */
import { join } from 'node:path';
import { countParameters, type ModelConfig, readConfig } from '../model/index.js';
import {
  flops,
  merged,
  type Product,
  type Rectangle,
  samplingProducts,
  trainingProducts,
} from '../model/matmuls.js';
import { Participant, type ParticipantSpec } from './participant.js';
import { grouped, type Part } from './profile.js';
import {
  MEASURES,
  type Measure,
  profileSchema,
  type Request,
  ratesSchema,
  type Timing,
  timingSchema,
  type Workload,
} from './protocol.js';
import { curvePoints, type Plan } from './workload.js';

/** All repetitions of one measurement on one participant. */
export interface Measured {
  readonly participant: string;
  readonly side: 'ours' | 'peer';
  readonly measure: Measure;
  readonly timings: readonly Timing[];
  /** The process's largest resident set in these repetitions. */
  readonly peakBytes: number | undefined;
}

/** The arithmetic of the matrices alone, in seconds. */
export interface Floor {
  readonly measure: 'sample' | 'train';
  readonly flops: number;
  /** At each participant's own rate. */
  readonly own: Readonly<Record<string, number>>;
  /** At the best rate that anybody reached at each shape. */
  readonly machine: number;
}

/** One point of the curve of cost. */
export interface CurvePoint {
  readonly participant: string;
  readonly measure: 'sample' | 'train';
  readonly vary: 'rows' | 'completion';
  readonly rows: number;
  readonly completion: number;
  readonly seconds: number;
  readonly tokens: number;
}

export interface ProfileResult {
  readonly participant: string;
  readonly measure: 'sample' | 'train';
  readonly rows: number;
  readonly seconds: number;
  /** Kinds of work, and the single operations they are made of. */
  readonly kinds: readonly Part[];
  readonly operations: readonly Part[];
}

export interface ModelResult {
  readonly plan: Plan;
  readonly parameters: number;
  readonly participants: readonly {
    readonly name: string;
    readonly side: 'ours' | 'peer';
    readonly device: string;
    readonly versions: Readonly<Record<string, string>>;
  }[];
  readonly measured: readonly Measured[];
  readonly floors: readonly Floor[];
  readonly curve: readonly CurvePoint[];
  readonly profiles: readonly ProfileResult[];
  /** Who was left out of what, and why. */
  readonly failures: readonly string[];
}

export interface BenchOptions {
  readonly curve: boolean;
  readonly log: (line: string) => void;
}

const WHOLE: readonly Measure[] = ['sample', 'train', 'grpo'];

/** Measures one model with everybody. */
export async function benchModel(
  plan: Plan,
  workload: Workload,
  specs: readonly ParticipantSpec[],
  { curve, log }: BenchOptions,
): Promise<ModelResult> {
  const config = readConfig(join(workload.base, 'config.json'));
  const failures: string[] = [];
  const fail = (error: unknown) => {
    failures.push((error as Error).message.split('\n').slice(0, 12).join('\n'));
    log(`  left out: ${(error as Error).message}`);
  };
  const everybody = specs.map((spec) => new Participant(spec));
  const end = () => {
    for (const participant of everybody) participant.close();
  };
  process.once('exit', end);
  try {
    const present: Participant[] = [];
    for (const participant of everybody) {
      try {
        await participant.open(workload);
        present.push(participant);
        log(`  ${participant.name}: ${participant.opened.device}`);
      } catch (error) {
        fail(error);
      }
    }
    // One peer stands for PyTorch's rate and course: the one that does all that ours do.
    const whole = present.filter((p) => WHOLE.every((measure) => p.opened.measures.includes(measure)));
    const floors = await measureFloors(plan, workload, config, whole);
    const measured: Measured[] = [];
    for (const measure of MEASURES) {
      const who = present.filter((p) => p.opened.measures.includes(measure));
      measured.push(...(await interleave(plan, measure, who, log, fail)));
    }
    const ours = present.filter((p) => p.spec.side === 'ours');
    return {
      plan,
      parameters: countParameters(config),
      participants: present.map((p) => ({
        name: p.name,
        side: p.spec.side,
        device: p.opened.device,
        versions: p.opened.versions,
      })),
      measured,
      floors,
      curve: curve ? await measureCurve(plan, workload, config, whole, log, fail) : [],
      profiles: await measureProfiles(plan, ours, log, fail),
      failures,
    };
  } finally {
    process.removeListener('exit', end);
    end();
  }
}

function requestOf(plan: Plan, measure: Measure, step: number): Request {
  return measure === 'sample' || measure === 'train'
    ? { ask: measure, rows: plan.rows, completion: plan.completion }
    : { ask: measure, step };
}

/** The warm-ups and the repetitions, everybody in turn. */
async function interleave(
  plan: Plan,
  measure: Measure,
  participants: readonly Participant[],
  log: (line: string) => void,
  fail: (error: unknown) => void,
): Promise<Measured[]> {
  const timings = new Map<Participant, Timing[]>(participants.map((p) => [p, []]));
  for (let step = 0; step < plan.warmUps + plan.repetitions; step++) {
    for (const [participant, own] of timings) {
      if (step === plan.warmUps) participant.resetPeak();
      try {
        const timing = await participant.ask(requestOf(plan, measure, step), timingSchema);
        if (step >= plan.warmUps) own.push(timing);
        const rate = timing.tokens / timing.seconds;
        const counted = step + 1 - plan.warmUps;
        const round = counted > 0 ? `${counted} of ${plan.repetitions}` : 'warm-up';
        log(
          `  ${measure} ${participant.name} (${round}): ${timing.seconds.toFixed(2)} s, ${rate.toFixed(0)} tokens/s`,
        );
      } catch (error) {
        fail(error);
        timings.delete(participant);
      }
    }
  }
  return [...timings].map(([participant, own]) => ({
    participant: participant.name,
    side: participant.spec.side,
    measure,
    timings: own,
    peakBytes: participant.peakBytes(),
  }));
}

/** The products of both fixed-length measurements, timed by each participant. */
async function measureFloors(
  plan: Plan,
  { run, prompts, threads }: Workload,
  config: ModelConfig,
  participants: readonly Participant[],
): Promise<Floor[]> {
  const { rows, completion } = plan;
  const group = 2 * run.grpo.numGenerations;
  const shape: Rectangle = { rows, prompt: prompts[0]!.length, completion, group };
  const needs = {
    sample: samplingProducts(config, shape, Math.ceil(rows / threads)),
    train: trainingProducts(config, shape, run.grpo.perDeviceTrainBatchSize, run.lora.r),
  };
  const shapes = merged([...needs.sample, ...needs.train]);
  const rates = new Map<string, number[]>();
  for (const participant of participants)
    rates.set(
      participant.name,
      (await participant.ask({ ask: 'rates', products: shapes }, ratesSchema)).seconds,
    );
  return (['sample', 'train'] as const).map((measure) => {
    const seconds = (rateOf: (shape: number) => number) =>
      needs[measure].reduce((sum, product) => sum + product.count * rateOf(indexOf(shapes, product)), 0);
    return {
      measure,
      flops: flops(needs[measure]),
      own: Object.fromEntries([...rates].map(([name, own]) => [name, seconds((i) => own[i]!)])),
      machine: seconds((i) => Math.min(...[...rates.values()].map((own) => own[i]!))),
    };
  });
}

function indexOf(shapes: readonly Product[], { batch, m, k, n }: Product): number {
  return shapes.findIndex((s) => s.batch === batch && s.m === m && s.k === k && s.n === n);
}

async function measureCurve(
  plan: Plan,
  { prompts }: Workload,
  config: ModelConfig,
  participants: readonly Participant[],
  log: (line: string) => void,
  fail: (error: unknown) => void,
): Promise<CurvePoint[]> {
  const points = curvePoints(plan, config.max_position_embeddings, prompts[0]!.length);
  const places = [
    ...points.rows.map((rows) => ({ vary: 'rows' as const, rows, completion: plan.completion })),
    ...points.completions.map((completion) => ({
      vary: 'completion' as const,
      rows: points.rowsOfCompletions,
      completion,
    })),
  ];
  const curve: CurvePoint[] = [];
  for (const measure of ['sample', 'train'] as const)
    for (const place of places)
      for (const participant of participants) {
        const { rows, completion } = place;
        try {
          const request = { ask: measure, rows, completion };
          await participant.ask(request, timingSchema); // the first of its size asks the system for memory
          const { seconds, tokens } = await participant.ask(request, timingSchema);
          curve.push({ participant: participant.name, measure, ...place, seconds, tokens });
        } catch (error) {
          fail(error);
        }
      }
  log(`  curve: ${curve.length} points`);
  return curve;
}

async function measureProfiles(
  plan: Plan,
  participants: readonly Participant[],
  log: (line: string) => void,
  fail: (error: unknown) => void,
): Promise<ProfileResult[]> {
  const profiles: ProfileResult[] = [];
  for (const participant of participants)
    for (const measure of ['sample', 'train'] as const) {
      const [rows, completion] = [plan.profileRows, plan.completion];
      try {
        const { seconds, parts } = await participant.ask(
          { ask: 'profile', what: measure, rows, completion },
          profileSchema,
        );
        const kinds = grouped(parts);
        profiles.push({ participant: participant.name, measure, rows, seconds, kinds, operations: parts });
        log(`  profile of ${measure} on ${participant.name}: ${seconds.toFixed(2)} s in one thread`);
      } catch (error) {
        fail(error);
      }
    }
  return profiles;
}
