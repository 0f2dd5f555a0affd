/**
 * One training example for the arena's base: a problem of the train split, a prompt (half plain, half with a rival)
 * and a completion. The rival is another trace of the same problem, with its answer withheld by the function that the
 * cascade uses, so that the base meets in training what it will read later.
 */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { parseCompletion } from '../../text/parse.js';
import { ARENA_STYLE, buildPrompt, type Message } from '../../text/prompts.js';
import { shownSummary } from '../../text/withhold.js';
import { readQuestion } from './grammar.js';
import { drawCountdown } from './problems.js';
import { countdownTrace, TRACE_DEFAULTS, type TraceOptions } from './trace.js';
import { countdownSpellings } from './verify.js';

export interface ExampleOptions {
  /** Share of examples with a challenger's prompt. */
  readonly challenge: number;
  /** Share of those whose rival left no summary. */
  readonly withoutSummary: number;
  readonly minDifficulty: number;
  readonly maxDifficulty: number;
  readonly trace: TraceOptions;
}

export const EXAMPLE_DEFAULTS: ExampleOptions = {
  challenge: 0.5,
  withoutSummary: 0.1,
  minDifficulty: 1,
  maxDifficulty: Infinity,
  trace: TRACE_DEFAULTS,
};

/** What the base is trained on; the loss belongs on the completion and the end-of-sequence token. */
export interface CountdownExample {
  readonly problem: Problem;
  readonly prompt: readonly Message[];
  /** Without the end-of-sequence token. */
  readonly completion: string;
}

/** What a rival would be shown of a trace. */
export function shownTrace(problem: Problem, trace: string): string | undefined {
  const completion = parseCompletion(trace, 'stop');
  return shownSummary(
    { problem, rollout: { finishReason: 'stop' }, completion },
    { answerSpellings: (_, c) => countdownSpellings(c) },
  );
}

/** Draws one example. */
export function countdownExample(
  random: Random,
  options: ExampleOptions = EXAMPLE_DEFAULTS,
): CountdownExample {
  const { minDifficulty, maxDifficulty } = options;
  const problem = drawCountdown(random, { split: 'train', minDifficulty, maxDifficulty });
  const puzzle = readQuestion(problem.question);
  if (random.uniform() >= options.challenge) {
    const completion = countdownTrace(puzzle, undefined, random, options.trace);
    return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'draft'), completion };
  }
  const rival =
    random.uniform() < options.withoutSummary
      ? undefined
      : shownTrace(problem, countdownTrace(puzzle, undefined, random, options.trace));
  const completion = countdownTrace(puzzle, rival, random, options.trace);
  return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'challenge', rival), completion };
}
