/**
 * How list problems are written: the question, lists, programs, the summary, the answer. One fixed grammar over words
 * between white space, read by the verifier, by the traces that the base learns from, and by nothing else; what does
 * not fit is not read, and nothing is evaluated. Left out: whether what was written is true (verify.ts).
 *
 *   list      N { N } | nil                 one to four numbers 0..24, or none
 *   question  in LIST out LIST in LIST out LIST
 *   summary   { dead OP } path OP then OP
 *   answer    last OP
 *   gold      OP then OP then OP
 *
 * An answer is two words, so that withholding it does not mask the operation where the path has it too.
 */
import { words } from '../words.js';
import { LARGEST, type List, OPS, type Op, type Pair, type Program } from './programs.js';

/** The two examples that a question shows. */
export type Shown = readonly [Pair, Pair];

/** The first two operations of a program. */
export type Path = readonly [Op, Op];

/** Numbers that a list has at most. */
export const LONGEST = 4;

/** The empty list. */
export const NIL = 'nil';

export function readOp(word: string | undefined): Op | undefined {
  return OPS.find((op) => op === word);
}

function numberOf(word: string | undefined): number | undefined {
  const number = word !== undefined && /^(0|[1-9]\d?)$/.test(word) ? Number(word) : LARGEST + 1;
  return number <= LARGEST ? number : undefined;
}

/** `3 1 4`, or `nil` */
export function writeList(list: List): string {
  return list.length === 0 ? NIL : list.join(' ');
}

/**
 * Reads the list at the start of some words, as far as its numbers go.
 * @returns undefined where there is none, or more than four numbers
 */
export function readList(w: readonly string[]): List | undefined {
  if (w[0] === NIL) return [];
  const end = w.findIndex((word) => numberOf(word) === undefined);
  const list = w.slice(0, end < 0 ? w.length : end).map(Number);
  return list.length >= 1 && list.length <= LONGEST ? list : undefined;
}

/** The question's text. */
export function writeQuestion(shown: Shown): string {
  return shown.map(({ input, output }) => `in ${writeList(input)} out ${writeList(output)}`).join(' ');
}

/** @throws when the text is not a question about lists */
export function readQuestion(text: string): Shown {
  const w = words(text);
  const lists: List[] = [];
  let at = 0;
  for (const mark of ['in', 'out', 'in', 'out']) {
    const list = w[at] === mark ? readList(w.slice(at + 1)) : undefined;
    if (list === undefined) break;
    lists.push(list);
    at += 1 + Math.max(list.length, 1);
  }
  const [a, b, c, d] = lists;
  if (!a || !b || !c || !d || at !== w.length)
    throw new Error(
      `not a lists question: ${JSON.stringify(text)}; expected "in LIST out LIST in LIST out LIST"`,
    );
  return [
    { input: a, output: b },
    { input: c, output: d },
  ];
}

/** `rev then inc then sort` */
export function writeProgram(program: Program): string {
  return program.join(' then ');
}

/** Reads what `writeProgram` wrote. @throws when the text is not a program */
export function readProgram(text: string): Program {
  const [a, b, c, ...rest] = text.split(' then ').map(readOp);
  if (!a || !b || !c || rest.length > 0)
    throw new Error(
      `not a program: ${JSON.stringify(text)}; expected "OP then OP then OP" of ${OPS.join(', ')}`,
    );
  return [a, b, c];
}

/** `rev then inc` */
export function writePath([first, second]: Path): string {
  return `${first} then ${second}`;
}

/**
 * Reads the path of a summary: exactly one `path`, then two operations and nothing more. What stands before it is
 * not read.
 */
export function readPath(summary: string): Path | undefined {
  const w = words(summary);
  const at = w.indexOf('path');
  if (at < 0 || at !== w.lastIndexOf('path')) return undefined;
  const [first, then, second, ...rest] = w.slice(at + 1);
  const path = [readOp(first), readOp(second)] as const;
  return path[0] && path[1] && then === 'then' && rest.length === 0 ? [path[0], path[1]] : undefined;
}

/** The first operations that a summary calls dead. */
export function readDead(summary: string): Set<Op> {
  const w = words(summary);
  return new Set(
    w.flatMap((word, i) => {
      const op = word === 'dead' ? readOp(w[i + 1]) : undefined;
      return op ? [op] : [];
    }),
  );
}

/** Reads an answer, `last OP` and nothing more. */
export function readAnswer(answer: string): Op | undefined {
  const [last, op, ...rest] = words(answer);
  return last === 'last' && rest.length === 0 ? readOp(op) : undefined;
}
