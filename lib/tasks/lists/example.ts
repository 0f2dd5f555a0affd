/**
 * One training example for the lists base: a problem of the train split, a prompt (half plain, half with a rival) and
 * a completion. The rival is another trace of the same problem, with its answer withheld by the function that the
 * cascade uses, so that the base meets in training what it will read later.
 */
import type { Random } from '../../random.js';
import type { Problem } from '../../records.js';
import { parseCompletion } from '../../text/parse.js';
import { ARENA_STYLE, buildPrompt, type Message } from '../../text/prompts.js';
import { shownSummary } from '../../text/withhold.js';
import { readQuestion } from './grammar.js';
import { drawLists } from './problems.js';
import { LISTS_TRACE_DEFAULTS, type ListsTraceOptions, listsTrace } from './trace.js';
import { listsSpellings } from './verify.js';

export interface ListsExampleOptions {
  /** Share of examples with a challenger's prompt. */
  readonly challenge: number;
  /** Share of those whose rival left no summary. */
  readonly withoutSummary: number;
  readonly minDifficulty: number;
  readonly maxDifficulty: number;
  readonly trace: ListsTraceOptions;
}

export const LISTS_EXAMPLE_DEFAULTS: ListsExampleOptions = {
  challenge: 0.5,
  withoutSummary: 0.1,
  minDifficulty: 1,
  maxDifficulty: Infinity,
  trace: LISTS_TRACE_DEFAULTS,
};

/** What the base is trained on; the loss belongs on the completion and the end-of-sequence token. */
export interface ListsExample {
  readonly problem: Problem;
  readonly prompt: readonly Message[];
  /** Without the end-of-sequence token. */
  readonly completion: string;
}

/** What a rival would be shown of a trace. */
export function shownListsTrace(problem: Problem, trace: string): string | undefined {
  const completion = parseCompletion(trace, 'stop');
  return shownSummary(
    { problem, rollout: { finishReason: 'stop' }, completion },
    { answerSpellings: (_, c) => listsSpellings(c) },
  );
}

/** Draws one example. */
export function listsExample(
  random: Random,
  options: ListsExampleOptions = LISTS_EXAMPLE_DEFAULTS,
): ListsExample {
  const { minDifficulty, maxDifficulty } = options;
  const problem = drawLists(random, { split: 'train', minDifficulty, maxDifficulty });
  const shown = readQuestion(problem.question);
  if (random.uniform() >= options.challenge) {
    const completion = listsTrace(shown, undefined, random, options.trace);
    return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'draft'), completion };
  }
  const rival =
    random.uniform() < options.withoutSummary
      ? undefined
      : shownListsTrace(problem, listsTrace(shown, undefined, random, options.trace));
  const completion = listsTrace(shown, rival, random, options.trace);
  return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'challenge', rival), completion };
}
