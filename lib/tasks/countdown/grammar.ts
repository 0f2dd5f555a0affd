/**
 * How countdown is written: the question, a step, the summary, the answer. One fixed grammar over words between
 * white space, read by the verifier, by the traces that the base learns from, and by nothing else; nothing is
 * evaluated. Left out: whether what was written is true (verify.ts).
 *
 *   question  numbers N N N N target N
 *   summary   { dead N op N } path N op N = N then N op N = N
 *   answer    N op N
 */
import { words } from '../words.js';
import { OPERATORS, type Operator, type Step } from './arithmetic.js';

/** What a question asks. */
export interface Puzzle {
  readonly numbers: readonly number[];
  readonly target: number;
}

/** The two steps that lead to the last operation. */
export type Path = readonly [Step, Step];

function numberOf(word: string | undefined): number | undefined {
  return word !== undefined && /^(0|[1-9]\d{0,2})$/.test(word) ? Number(word) : undefined;
}

function operatorOf(word: string | undefined): Operator | undefined {
  return OPERATORS.find((op) => op === word);
}

/** The question's text. */
export function writeQuestion({ numbers, target }: Puzzle): string {
  return `numbers ${numbers.join(' ')} target ${target}`;
}

/** @throws when the text is not a countdown question */
export function readQuestion(text: string): Puzzle {
  const w = words(text);
  const numbers = w.slice(1, 5).map(numberOf);
  const target = numberOf(w[6]);
  const complete = numbers.length === 4 && numbers.every((n) => n !== undefined);
  if (w.length !== 7 || w[0] !== 'numbers' || w[5] !== 'target' || !complete || target === undefined) {
    throw new Error(`not a countdown question: ${JSON.stringify(text)}; expected "numbers N N N N target N"`);
  }
  return { numbers: numbers as number[], target };
}

/** `8 + 5 = 13` */
export function writeStep({ left, op, right, result }: Step): string {
  return `${left} ${op} ${right} = ${result}`;
}

/** Reads `N op N = N` at the start of some words. */
export function readStep(w: readonly string[]): Step | undefined {
  const [left, op, right, result] = [numberOf(w[0]), operatorOf(w[1]), numberOf(w[2]), numberOf(w[4])];
  if (left === undefined || op === undefined || right === undefined || w[3] !== '=' || result === undefined) {
    return undefined;
  }
  return { left, op, right, result };
}

/** `8 + 5 = 13 then 7 - 3 = 4` */
export function writePath([first, second]: Path): string {
  return `${writeStep(first)} then ${writeStep(second)}`;
}

/**
 * Reads the path of a summary: exactly one `path`, then two steps and nothing more. What stands before it is
 * not read.
 */
export function readPath(summary: string): Path | undefined {
  const w = words(summary);
  const at = w.indexOf('path');
  if (at < 0 || at !== w.lastIndexOf('path')) return undefined;
  const steps = w.slice(at + 1);
  if (steps.length !== 11 || steps[5] !== 'then') return undefined;
  const [first, second] = [readStep(steps.slice(0, 5)), readStep(steps.slice(6))];
  return first && second ? [first, second] : undefined;
}

/** The first steps that a summary calls dead, by their keys (`8 + 5`). */
export function readDead(summary: string): Set<string> {
  const w = words(summary);
  const dead = new Set<string>();
  w.forEach((word, i) => {
    if (word === 'dead' && operatorOf(w[i + 2])) dead.add(w.slice(i + 1, i + 4).join(' '));
  });
  return dead;
}

/** Reads an answer, `N op N` and nothing more. */
export function readAnswer(answer: string): Omit<Step, 'result'> | undefined {
  const w = words(answer);
  const [left, op, right] = [numberOf(w[0]), operatorOf(w[1]), numberOf(w[2])];
  if (w.length !== 3 || left === undefined || op === undefined || right === undefined) return undefined;
  return { left, op, right };
}
