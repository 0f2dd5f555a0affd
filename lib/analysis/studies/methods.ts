/**
 * The tables that every study has: one row per label and method, and one row per run, which is where each number of
 * the others comes from. Left out: differences (differences.ts).
 */
import { countCorrect, finalStage, flagsOf } from '../../experiments/evaluation.js';
import type { MethodResult } from '../../experiments/result.js';
import type { ArmResult } from '../../experiments/study.js';
import { type Cell, percent, percentRange, round, span } from '../cells.js';
import { clopperPearson } from '../stats.js';
import { summarise } from '../tables.js';
import { overSeeds, type Series } from './series.js';

export const METHODS_CAPTION =
  'pass@1 with the exact 95% interval over problems, then over training seeds the standard deviation and the 95% t ' +
  'interval of the mean; mean tokens per problem; of right drafts the share kept, of wrong drafts the share converted, ' +
  "and the share of final answers that are the rival's own.";

/** One row per label and method. */
export function methodRows(series: readonly Series[]): Record<string, Cell>[] {
  const labelled = series.some(({ label }) => label !== '');
  return series.map(({ label, method, arms }) => {
    const results = arms.map((arm) => arm.result);
    const [row] = summarise(results);
    const mean = (value: (result: MethodResult) => number | undefined) => overSeeds(results.map(value)).mean;
    return {
      ...(labelled ? { label } : {}),
      method,
      direction: row!.direction,
      seeds: results.length,
      n: row!.problems,
      'pass@1 %': percent(row!.accuracy.value),
      '95% interval': percentRange(row!.accuracy),
      'sd over seeds': percent(row!.acrossSeeds.sd),
      't interval over seeds': span(row!.seedInterval, 100),
      'draft tokens': round(row!.draftTokens),
      'final tokens': round(row!.finalTokens),
      'total tokens': round(row!.totalTokens),
      'draft pass@1 %': percent(mean(draftAccuracy)),
      'kept %': percent(mean((r) => r.keep)),
      'converted %': percent(mean((r) => r.convert)),
      'copied %': percent(mean((r) => r.copied)),
    };
  });
}

function draftAccuracy({ draftCorrect, total }: MethodResult): number | undefined {
  return draftCorrect === undefined ? undefined : draftCorrect / total;
}

export const RUNS_CAPTION =
  'One row per run: right answers on the held-out problems with the exact 95% interval, the direction as chosen on the ' +
  "validation split, and what the paper's choice on the held-out problems themselves would have reported; of the final " +
  'stages the shares that are well formed and cut at the cap.';

/** One row per run. */
export function runRows(arms: readonly ArmResult[]): Record<string, Cell>[] {
  const labelled = arms.some(({ label }) => label !== '');
  return arms.map(({ label, method, seed, result, bestOnHeldout, chosen, validation }) => {
    const exact = clopperPearson(result.correct, result.total);
    const share = (column: string) => flagsOf(column).filter(Boolean).length / column.length;
    const final = finalStage(chosen);
    return {
      ...(labelled ? { label } : {}),
      method: method.name,
      seed,
      correct: result.correct,
      n: result.total,
      'pass@1 %': percent(exact.value),
      '95% interval': percentRange(exact),
      direction: result.direction,
      'validation pass@1 %': percent(countCorrect(validation) / validation.problems.length),
      'direction by held-out': bestOnHeldout.direction,
      'direction by held-out: pass@1 %': percent(bestOnHeldout.correct / bestOnHeldout.total),
      'well formed %': percent(share(final.formatted)),
      'cut at the cap %': percent(share(final.truncated)),
      'draft tokens': round(result.draftTokens),
      'final tokens': round(result.finalTokens),
      'total tokens': round(result.totalTokens),
      'prefilled tokens': round(result.promptTokens),
      'training tokens': round(result.trainingTokens, 0),
      backend: result.backend,
      run: result.runId,
    };
  });
}
