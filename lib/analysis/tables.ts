/**
 * Results as tables for people: one row per method, the runs of several seeds pooled, the paper's figures beside
 * ours. A table is a danfojs DataFrame, so a notebook can sort and filter it; formats.ts writes it as CSV,
 * Markdown and LaTeX. Left out: choosing a cascade's direction (that is done on the validation split, before).
 */
import { DataFrame } from 'danfojs-node';
import type { MethodResult } from '../experiments/result.js';
import { percent, percentRange, range, round, span } from './cells.js';
import type { Paper } from './paper.js';
import { clopperPearson, type Estimate, meanInterval, type Spread, spread } from './stats.js';

/** All runs of one method, summarised. */
export interface MethodSummary {
  readonly method: string;
  /** The directions of the runs, such as `A>B` or `A>B, B>A` where seeds chose differently; `-` for one pass. */
  readonly direction: string;
  /** Problems evaluated per run. */
  readonly problems: number;
  /**
   * Share right over all runs, with the exact interval of *that share of one run's problems*. Runs answer the
   * same problems, so counting every answer as a new trial would promise more precision than there is.
   */
  readonly accuracy: Estimate;
  /** Accuracy over training runs, a fraction. */
  readonly acrossSeeds: Spread;
  /** The t interval of that accuracy over training runs; undefined for a single run. */
  readonly seedInterval: Estimate | undefined;
  readonly draftTokens: number;
  readonly finalTokens: number;
  readonly totalTokens: number;
  readonly promptTokens: number;
}

/**
 * Pools the runs of each method, in order of first appearance.
 * @throws when a method has two results of one seed, or runs over different numbers of problems
 */
export function summarise(results: readonly MethodResult[]): MethodSummary[] {
  return [...groupByMethod(results)].map(([method, runs]) => {
    const first = runs[0]!;
    const mean = (value: (run: MethodResult) => number) => spread(runs.map(value)).mean;
    const accuracies = runs.map((run) => run.correct / run.total);
    return {
      method,
      direction: [...new Set(runs.map((run) => run.direction))].sort().join(', '),
      problems: first.total,
      accuracy: clopperPearson(
        mean((run) => run.correct),
        first.total,
      ),
      acrossSeeds: spread(accuracies),
      seedInterval: runs.length > 1 ? meanInterval(accuracies) : undefined,
      draftTokens: mean((run) => run.draftTokens),
      finalTokens: mean((run) => run.finalTokens),
      totalTokens: mean((run) => run.totalTokens),
      promptTokens: mean((run) => run.promptTokens),
    };
  });
}

/**
 * The main table. Columns: method, direction, seeds, n (problems per run), pass@1 and its 95% interval in percent (exact,
 * over problems), over seeds the standard deviation in points, the lowest and the highest run and the t interval of the
 * mean, mean tokens per problem, and the paper's figures. A method the paper does not have gets NaN (or an empty
 * interval) there, and so does the spread of a single seed.
 * @param bestOnHeldout the same runs with the direction chosen as the paper did, for a column beside pass@1
 */
export function mainTable(
  results: readonly MethodResult[],
  paper: Paper,
  bestOnHeldout?: readonly MethodResult[],
): DataFrame {
  const rows = summarise(results);
  const best = bestOnHeldout && summarise(bestOnHeldout);
  const reported = rows.map((row) => paper.main.find((entry) => entry.method === row.method));
  return new DataFrame({
    method: rows.map((row) => row.method),
    direction: rows.map((row) => row.direction),
    seeds: rows.map((row) => row.acrossSeeds.count),
    n: rows.map((row) => row.problems),
    'pass@1 %': rows.map((row) => percent(row.accuracy.value)),
    '95% interval': rows.map((row) => percentRange(row.accuracy)),
    ...(best && {
      'direction by held-out: pass@1 %': rows.map((row) =>
        percent(best.find((other) => other.method === row.method)?.accuracy.value),
      ),
    }),
    'sd over seeds': rows.map((row) => percent(row.acrossSeeds.sd)),
    'lowest %': rows.map((row) => percent(row.acrossSeeds.min)),
    'highest %': rows.map((row) => percent(row.acrossSeeds.max)),
    't interval over seeds': rows.map((row) => span(row.seedInterval, 100)),
    'draft tokens': rows.map((row) => round(row.draftTokens)),
    'final tokens': rows.map((row) => round(row.finalTokens)),
    'total tokens': rows.map((row) => round(row.totalTokens)),
    'prefilled tokens': rows.map((row) => round(row.promptTokens)),
    'paper pass@1 %': reported.map((entry) => entry?.pass1 ?? Number.NaN),
    'paper 95% interval': reported.map((entry) => (entry ? range(...entry.ci95) : '')),
    'paper final tokens': reported.map((entry) => entry?.final_stage_tokens ?? Number.NaN),
  });
}

/**
 * What the second stage makes of the first, one row per run of a method of two stages: the draft's pass@1, the
 * share of right drafts kept and of wrong drafts converted, and the final pass@1, all in percent.
 * @throws when no result has a draft
 */
export function cascadeTable(results: readonly MethodResult[]): DataFrame {
  const rows = results.filter((result) => result.draftCorrect !== undefined);
  if (rows.length === 0)
    throw new Error('no result has draftCorrect: a cascade table needs methods of two stages');
  return new DataFrame({
    method: rows.map((row) => row.method),
    direction: rows.map((row) => row.direction),
    seed: rows.map((row) => row.seed),
    'draft pass@1 %': rows.map((row) => percent(row.draftCorrect! / row.total)),
    'kept %': rows.map((row) => percent(row.keep)),
    'converted %': rows.map((row) => percent(row.convert)),
    'final pass@1 %': rows.map((row) => percent(row.correct / row.total)),
  });
}

function groupByMethod(results: readonly MethodResult[]): Map<string, MethodResult[]> {
  if (results.length === 0) throw new Error('there are no results to summarise');
  const groups = new Map<string, MethodResult[]>();
  for (const result of results) {
    const group = groups.get(result.method) ?? [];
    const twin = group.find((other) => other.seed === result.seed);
    if (twin) {
      throw new Error(
        `${result.method}: two results of seed ${result.seed} (runs ${twin.runId}, ${result.runId}); ` +
          'one per seed is allowed: choose the direction on the validation split first',
      );
    }
    if (group[0] && group[0].total !== result.total) {
      throw new Error(
        `${result.method}: run ${result.runId} has total ${result.total}, run ${group[0].runId} has ` +
          `${group[0].total}; runs are pooled over the same problems only`,
      );
    }
    group.push(result);
    groups.set(result.method, group);
  }
  return groups;
}
