/**
 * One training example for the chain's base: a problem of the train split, a prompt (half plain, half with a rival)
 * and a completion. The rival is another trace of the same problem, with its answer withheld by the function that the
 * cascade uses.
 */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { parseCompletion } from '../../text/parse.js';
import { ARENA_STYLE, buildPrompt, type Message } from '../../text/prompts.js';
import { shownSummary } from '../../text/withhold.js';
import { readQuestion } from './grammar.js';
import { drawChain, MAX_STEPS, MIN_STEPS } from './problems.js';
import { CHAIN_TRACE_DEFAULTS, type ChainTraceOptions, chainTrace } from './trace.js';
import { chainSpellings } from './verify.js';

export interface ChainExampleOptions {
  /** Share of examples with a challenger's prompt. */
  readonly challenge: number;
  /** Share of those whose rival left no summary. */
  readonly withoutSummary: number;
  readonly trace: ChainTraceOptions;
}

export const CHAIN_EXAMPLE_DEFAULTS: ChainExampleOptions = {
  challenge: 0.5,
  withoutSummary: 0.1,
  trace: CHAIN_TRACE_DEFAULTS,
};

/** What the base is trained on; the loss belongs on the completion and the end-of-sequence token. */
export interface ChainExample {
  readonly problem: Problem;
  readonly prompt: readonly Message[];
  /** Without the end-of-sequence token. */
  readonly completion: string;
}

/** What a rival would be shown of a trace. */
export function shownChain(problem: Problem, trace: string): string | undefined {
  const completion = parseCompletion(trace, 'stop');
  return shownSummary(
    { problem, rollout: { finishReason: 'stop' }, completion },
    { answerSpellings: chainSpellings },
  );
}

/** Draws one example. */
export function chainExample(
  random: Random,
  options: ChainExampleOptions = CHAIN_EXAMPLE_DEFAULTS,
): ChainExample {
  const problem = drawChain(random, {
    split: 'train',
    minDifficulty: MIN_STEPS,
    maxDifficulty: MAX_STEPS,
  });
  const chain = readQuestion(problem.question);
  if (random.uniform() >= options.challenge) {
    const completion = chainTrace(chain, undefined, random, options.trace);
    return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'draft'), completion };
  }
  const rival =
    random.uniform() < options.withoutSummary
      ? undefined
      : shownChain(problem, chainTrace(chain, undefined, random, options.trace));
  const completion = chainTrace(chain, rival, random, options.trace);
  return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'challenge', rival), completion };
}
