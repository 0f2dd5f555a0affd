/** Training examples for the chain's base. Left out: what they have in common with other tasks' (tasks/example.ts). */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { drawExample, type Example, RIVAL_SHARES, type RivalShares, shownOfTrace } from '../example.js';
import { readQuestion } from './grammar.js';
import { drawChain, MAX_STEPS, MIN_STEPS } from './problems.js';
import { CHAIN_TRACE_DEFAULTS, type ChainTraceOptions, chainTrace } from './trace.js';
import { chainSpellings } from './verify.js';

export interface ChainExampleOptions extends RivalShares {
  readonly trace: ChainTraceOptions;
}

export const CHAIN_EXAMPLE_DEFAULTS: ChainExampleOptions = { ...RIVAL_SHARES, trace: CHAIN_TRACE_DEFAULTS };

/** What a rival would be shown of a trace. */
export function shownChain(problem: Problem, trace: string): string | undefined {
  return shownOfTrace(problem, trace, chainSpellings);
}

/** Draws one example. */
export function chainExample(random: Random, options: ChainExampleOptions = CHAIN_EXAMPLE_DEFAULTS): Example {
  const bounds = { minDifficulty: MIN_STEPS, maxDifficulty: MAX_STEPS };
  const problem = drawChain(random, { split: 'train', ...bounds });
  const chain = readQuestion(problem.question);
  const write = (rival: string | undefined) => chainTrace(chain, rival, random, options.trace);
  return drawExample(problem, random, options, write, chainSpellings);
}
