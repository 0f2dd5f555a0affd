/**
 * Runs of one method side by side: the seeds of a method under a label as one series, and two series paired seed by
 * seed. The same seed of two methods means the same training problems, and where the label is the same, the same
 * held-out ones. Left out: tables (methods.ts, differences.ts).
 */
import { type Evaluation, finalStage, flagsOf, type Stage } from '../../experiments/evaluation.js';
import type { ArmResult } from '../../experiments/study.js';
import { meanInterval, spread } from '../stats.js';

/** All runs of one method under one label, by seed. */
export interface Series {
  readonly label: string;
  readonly method: string;
  /** In ascending order of seeds, one each. */
  readonly arms: readonly ArmResult[];
}

/** The runs as series, in order of first appearance. @throws when a method has one seed twice under one label */
export function seriesOf(arms: readonly ArmResult[]): Series[] {
  const groups = new Map<string, ArmResult[]>();
  for (const arm of arms) {
    const key = JSON.stringify([arm.label, arm.method.name]);
    const group = groups.get(key) ?? [];
    if (group.some((other) => other.seed === arm.seed))
      throw new Error(`'${arm.label}': ${arm.method.name} has two runs of seed ${arm.seed}; one is allowed`);
    groups.set(key, [...group, arm]);
  }
  return [...groups.values()].map((group) => ({
    label: group[0]!.label,
    method: group[0]!.method.name,
    arms: group.sort((a, b) => a.seed - b.seed),
  }));
}

export function findSeries(all: readonly Series[], method: string, label?: string): Series | undefined {
  return all.find((s) => s.method === method && (label === undefined || s.label === label));
}

/** The runs of the seeds that both series have, seed by seed. */
export function pairedArms(a: Series, b: Series): [ArmResult, ArmResult][] {
  return a.arms.flatMap((arm): [ArmResult, ArmResult][] => {
    const twin = b.arms.find((other) => other.seed === arm.seed);
    return twin ? [[arm, twin]] : [];
  });
}

/** Share of right final answers of the evaluation that the table reports. */
export function accuracyOf({ result }: ArmResult): number {
  return result.correct / result.total;
}

/** Which final answers are right, as 1 and 0. */
export function scoresOf({ chosen }: ArmResult): number[] {
  return flagsOf(finalStage(chosen).correct).map(Number);
}

/** Another evaluation of the same run on the same held-out problems: another deployment, another sample. */
export function heldoutOf(
  { chosen, evaluations }: ArmResult,
  deployment: string,
  sample = 0,
): Evaluation | undefined {
  const key = keyOf(chosen);
  return evaluations.find(
    (e) =>
      e.deployment === deployment &&
      e.split === 'heldout' &&
      e.step === undefined &&
      e.sample === sample &&
      keyOf(e) === key,
  );
}

const keyOf = ({ eval: key, problems }: Evaluation) => JSON.stringify([key, problems]);

/** The wrong answers of a stage. */
export function wrongOf({ correct }: Stage): boolean[] {
  return flagsOf(correct).map((right) => !right);
}

/** A mean over seeds; its interval where there are at least two, and nothing where no seed has a value. */
export interface SeedMean {
  readonly mean: number | undefined;
  readonly interval: { readonly low: number; readonly high: number } | undefined;
  readonly count: number;
}

/** @param values one per seed; undefined where a seed has none, such as a share of nothing */
export function overSeeds(values: readonly (number | undefined)[]): SeedMean {
  const found = values.filter((value) => value !== undefined);
  return {
    mean: found.length > 0 ? spread(found).mean : undefined,
    interval: found.length > 1 ? meanInterval(found) : undefined,
    count: found.length,
  };
}

/** `agon`, or with its label `agon (N = 4)`. */
export function nameOf({ method, label }: Pick<Series, 'method' | 'label'>): string {
  return label === '' ? method : `${method} (${label})`;
}
