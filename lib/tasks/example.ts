/**
 * One training example for a base, whatever the task: a problem of the train split, a prompt (plain or with a rival)
 * and a completion. The rival is another trace of the same problem, with its answer withheld by the function that the
 * cascade uses, so that the base meets in training what it will read later.
 *
 * Left out: how a task draws its problems and writes its traces.
 */
import type { Random } from '../random.js';
import type { Problem } from '../records.js';
import { parseCompletion } from '../text/parse.js';
import { ARENA_STYLE, buildPrompt, type Message } from '../text/prompts.js';
import { shownSummary } from '../text/withhold.js';
import type { Task } from './task.js';

/** How often a base reads a rival. */
export interface RivalShares {
  /** Share of examples with a challenger's prompt. */
  readonly challenge: number;
  /** Share of those whose rival left no summary. */
  readonly withoutSummary: number;
}

export const RIVAL_SHARES: RivalShares = { challenge: 0.5, withoutSummary: 0.1 };

/** What a base is trained on; the loss belongs on the completion and the end-of-sequence token. */
export interface Example {
  readonly problem: Problem;
  readonly prompt: readonly Message[];
  /** Without the end-of-sequence token. */
  readonly completion: string;
}

/** What a rival would be shown of a trace. */
export function shownOfTrace(
  problem: Problem,
  trace: string,
  answerSpellings: Task['answerSpellings'],
): string | undefined {
  const completion = parseCompletion(trace, 'stop');
  return shownSummary({ problem, rollout: { finishReason: 'stop' }, completion }, { answerSpellings });
}

/**
 * Draws what follows the problem.
 * @param write a trace of the problem, after reading what is shown of a rival if there is one
 */
export function drawExample(
  problem: Problem,
  random: Random,
  { challenge, withoutSummary }: RivalShares,
  write: (rival: string | undefined) => string,
  answerSpellings: Task['answerSpellings'],
): Example {
  if (random.uniform() >= challenge)
    return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'draft'), completion: write(undefined) };
  const rival =
    random.uniform() < withoutSummary ? undefined : shownOfTrace(problem, write(undefined), answerSpellings);
  return { problem, prompt: buildPrompt(ARENA_STYLE, problem, 'challenge', rival), completion: write(rival) };
}
