/**
 * The countdown verifier: exact, on the path in the summary and the last operation in the answer. The path's
 * arithmetic must be true, intermediates within 1..60, every given number and every intermediate consumed exactly
 * once, and the last operation must make the target. Also the spellings under which an answer has to be withheld.
 * Left out: the format, which the parser judges (an answer counts even where the format does not hold).
 */
import type { Completion, Problem } from '../../records.js';
import { afterStep, evaluate, LARGEST, type Step } from './arithmetic.js';
import { readAnswer, readPath, readQuestion } from './grammar.js';

function isTrue(step: Step): boolean {
  return (
    evaluate(step.left, step.op, step.right) === step.result && step.result >= 1 && step.result <= LARGEST
  );
}

/** Whether a completion solves the problem. @throws when the problem is not a countdown question */
export function verifyCountdown(problem: Problem, completion: Completion): boolean {
  const { numbers, target } = readQuestion(problem.question);
  const path = readPath(completion.summary);
  const last = completion.answer === undefined ? undefined : readAnswer(completion.answer);
  if (path === undefined || last === undefined) return false;
  let left: number[] | undefined = [...numbers];
  for (const step of path) {
    if (!isTrue(step)) return false;
    left = afterStep(left, step);
    if (left === undefined) return false;
  }
  const result = evaluate(last.left, last.op, last.right);
  return result === target && afterStep(left, { ...last, result })?.length === 1;
}

const SIGNS = { '+': ['+'], '-': ['-', '\u2212'], x: ['x', '*', '\u00d7'] } as const;

/**
 * The spellings of an answer: the last operation in both orders, with and without its result. An answer outside
 * the grammar has only the spelling it came in.
 */
export function countdownSpellings(completion: Completion): string[] {
  if (completion.answer === undefined) return [];
  const last = readAnswer(completion.answer);
  if (last === undefined) return [completion.answer];
  const result = Math.abs(evaluate(last.left, last.op, last.right));
  return SIGNS[last.op].flatMap((sign) =>
    [`${last.left} ${sign} ${last.right}`, `${last.right} ${sign} ${last.left}`].flatMap((operation) => [
      `${operation} = ${result}`,
      `${result} = ${operation}`,
      operation,
    ]),
  );
}
