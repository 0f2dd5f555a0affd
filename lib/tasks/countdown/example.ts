/** Training examples for the arena's base. Left out: what they have in common with other tasks' (tasks/example.ts). */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { drawExample, type Example, RIVAL_SHARES, type RivalShares, shownOfTrace } from '../example.js';
import { readQuestion } from './grammar.js';
import { drawCountdown } from './problems.js';
import { countdownTrace, TRACE_DEFAULTS, type TraceOptions } from './trace.js';
import { countdownSpellings } from './verify.js';

export interface ExampleOptions extends RivalShares {
  readonly minDifficulty: number;
  readonly maxDifficulty: number;
  readonly trace: TraceOptions;
}

export const EXAMPLE_DEFAULTS: ExampleOptions = {
  ...RIVAL_SHARES,
  minDifficulty: 1,
  maxDifficulty: Infinity,
  trace: TRACE_DEFAULTS,
};

const spellings: Parameters<typeof shownOfTrace>[2] = (_, completion) => countdownSpellings(completion);

/** What a rival would be shown of a trace. */
export function shownTrace(problem: Problem, trace: string): string | undefined {
  return shownOfTrace(problem, trace, spellings);
}

/** Draws one example. */
export function countdownExample(random: Random, options: ExampleOptions = EXAMPLE_DEFAULTS): Example {
  const { minDifficulty, maxDifficulty, trace } = options;
  const problem = drawCountdown(random, { split: 'train', minDifficulty, maxDifficulty });
  const puzzle = readQuestion(problem.question);
  const write = (rival: string | undefined) => countdownTrace(puzzle, rival, random, trace);
  return drawExample(problem, random, options, write, spellings);
}
