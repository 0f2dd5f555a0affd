/** Made-up results and metrics, for tests only; they say nothing about any method. */
import type { MethodResult } from '../../lib/experiments/result.js';

const rows: readonly (readonly [method: string, correct: number, draft: number, final: number])[] = [
  ['zero-shot', 66, 0, 41.5],
  ['grpo', 98, 0, 48.25],
  ['self-refinement', 104, 44, 45],
  ['moa-untrained', 76, 41.5, 42],
  ['cooperative', 124, 45, 38],
  ['agon', 166, 46, 35],
  ['agon-margin', 120, 46, 37],
];

/** Seven methods, two seeds each, 300 problems; the second seed is four problems better. */
export const FIXTURE_RESULTS: readonly MethodResult[] = rows.flatMap(
  ([method, correct, draftTokens, finalTokens]) =>
    [0, 1].map((seed) => ({
      method,
      seed,
      correct: correct + 4 * seed,
      total: 300,
      draftTokens,
      finalTokens,
      totalTokens: draftTokens + finalTokens,
      promptTokens: draftTokens > 0 ? 30.5 : 12,
      secondsPerProblem: 0.01,
      direction: draftTokens > 0 ? 'A>B' : '-',
      ...(draftTokens > 0 ? { draftCorrect: 90, keep: 0.9, convert: 0.25 } : {}),
      usefulPer100: 8,
      repeatedPer100: 1,
      wrongPer100: 0.5,
      steps: 10,
      backend: 'wasm',
      runId: `${method}-fixture-${seed}`,
    })),
);

/** Metrics of a run of 12 steps with the given streams; smooth curves with a ripple. */
export function fixtureMetrics(offset: number, streams: readonly string[]): Record<string, number>[] {
  const rounded = (value: number) => Math.round(value * 1000) / 1000;
  return Array.from({ length: 12 }, (_, step) => {
    const ripple = step % 2 === 0 ? 0.1 : -0.1;
    const row: Record<string, number> = { step };
    for (const stream of streams) {
      row[`${stream}/reward`] = rounded(0.5 + offset + step / 20 + ripple);
      row[`${stream}/completions/mean_length`] = rounded(48 - offset * 5 - step / 2 + 10 * ripple);
    }
    return row;
  });
}
