/** Training examples for the lists base. Left out: what they have in common with other tasks' (tasks/example.ts). */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { drawExample, type Example, RIVAL_SHARES, type RivalShares, shownOfTrace } from '../example.js';
import { readQuestion } from './grammar.js';
import { drawLists } from './problems.js';
import { LISTS_TRACE_DEFAULTS, type ListsTraceOptions, listsTrace } from './trace.js';
import { listsSpellings } from './verify.js';

export interface ListsExampleOptions extends RivalShares {
  readonly minDifficulty: number;
  readonly maxDifficulty: number;
  readonly trace: ListsTraceOptions;
}

export const LISTS_EXAMPLE_DEFAULTS: ListsExampleOptions = {
  ...RIVAL_SHARES,
  minDifficulty: 1,
  maxDifficulty: Infinity,
  trace: LISTS_TRACE_DEFAULTS,
};

const spellings: Parameters<typeof shownOfTrace>[2] = (_, completion) => listsSpellings(completion);

/** What a rival would be shown of a trace. */
export function shownListsTrace(problem: Problem, trace: string): string | undefined {
  return shownOfTrace(problem, trace, spellings);
}

/** Draws one example. */
export function listsExample(random: Random, options: ListsExampleOptions = LISTS_EXAMPLE_DEFAULTS): Example {
  const { minDifficulty, maxDifficulty, trace } = options;
  const problem = drawLists(random, { split: 'train', minDifficulty, maxDifficulty });
  const shown = readQuestion(problem.question);
  const write = (rival: string | undefined) => listsTrace(shown, rival, random, trace);
  return drawExample(problem, random, options, write, spellings);
}
