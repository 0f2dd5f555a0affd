/**
 * The verifier of the chain: the answer names the last step and its value. Nothing else is looked at, so a wrong
 * intermediate value shows nowhere. Also what gives an answer away. Left out: the format, which the parser judges.
 */
import type { Completion, Problem } from '../../records.js';
import { isSummary, readAnswer, readQuestion, valuesOf } from './grammar.js';

/** Whether a completion solves the problem. @throws when the problem is not a chain's question */
export function verifyChain(problem: Problem, completion: Completion): boolean {
  const values = valuesOf(readQuestion(problem.question));
  const answer = completion.answer === undefined ? undefined : readAnswer(completion.answer);
  return answer !== undefined && answer.at === values.length - 1 && answer.value === values.at(-1);
}

/**
 * What has to be withheld beside the answer as written. In a summary that holds the grammar every number belongs to an
 * intermediate step, and one that equals the answer is no answer; in any other the number is hidden wherever it stands.
 */
export function chainSpellings(problem: Problem, { summary, answer }: Completion): string[] {
  const steps = readQuestion(problem.question).links.length;
  if (answer === undefined || isSummary(summary, steps)) return [];
  return answer.match(/\d+/g) ?? [];
}
