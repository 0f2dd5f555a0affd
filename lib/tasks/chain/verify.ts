/**
 * The verifier of the chain: the answer names the last step and its value. Nothing else is looked at, so a wrong
 * intermediate value shows nowhere. Also what gives an answer away. Left out: the format, which the parser judges.
 */
import type { Completion, Problem } from '../../records.js';
import { isSummary, LETTERS, readAnswer, readFacts, readQuestion, valuesOf, writeFact } from './grammar.js';

/** Whether a completion solves the problem. @throws when the problem is not a chain's question */
export function verifyChain(problem: Problem, completion: Completion): boolean {
  const values = valuesOf(readQuestion(problem.question));
  const answer = completion.answer === undefined ? undefined : readAnswer(completion.answer);
  return answer !== undefined && answer.at === values.length - 1 && answer.value === values.at(-1);
}

/**
 * What has to be withheld beside the answer as written: what settles the last step in the reasoning, and, where
 * a summary does not hold the grammar, the number wherever it stands. In one that does, every number belongs to an
 * intermediate step, and one that equals the answer is no answer.
 */
export function chainSpellings(problem: Problem, { think, summary, answer }: Completion): string[] {
  if (answer === undefined) return [];
  const steps = readQuestion(problem.question).links.length;
  const claim = readAnswer(answer);
  if (claim === undefined || !isSummary(summary, steps)) return answer.match(/\d+/g) ?? [];
  const lastStep = think.slice(Math.max(0, think.lastIndexOf(`${LETTERS[claim.at]!} `)));
  const facts = readFacts(lastStep).filter((fact) => fact.result === claim.value);
  return [...facts.map(writeFact), `so ${claim.value}`];
}
