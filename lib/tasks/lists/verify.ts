/**
 * The verifier of list programs: hidden unit tests. The program is the path of the summary and the operation of the
 * answer; it is right when it gives the right output on both shown examples and on eight hidden inputs, drawn by a
 * stream that the problem's id names. Also the spellings under which an answer has to be withheld. Left out: the
 * format, which the parser judges (an answer counts even where the format does not hold).
 */
import { type Random, stream } from '../../random.js';
import type { Completion, Problem } from '../../records.js';
import { LONGEST, type Path, readAnswer, readPath, readProgram, readQuestion } from './grammar.js';
import { type List, OPS, type Pair, type Program, passes, run } from './programs.js';

/** Hidden inputs per problem. */
export const HIDDEN_TESTS = 8;
const LARGEST_INPUT = 6;

/** An input: four numbers 0..6. */
export function drawInput(random: Random): List {
  return Array.from({ length: LONGEST }, () => random.int(LARGEST_INPUT + 1));
}

/** What a program makes of a list. */
export function pairOf(program: Program, input: List): Pair {
  return { input, output: run(program, input) };
}

/** The hidden tests of a problem, from its id and its program alone. */
export function hiddenTests(id: string, program: Program): Pair[] {
  const random = stream('lists', 'hidden', id);
  return Array.from({ length: HIDDEN_TESTS }, () => pairOf(program, drawInput(random)));
}

/** Path and last operation as one program; undefined where either is not there to read. */
export function readSubmission({ summary, answer }: Completion): Program | undefined {
  const path: Path | undefined = readPath(summary);
  const last = answer === undefined ? undefined : readAnswer(answer);
  return path && last && [...path, last];
}

/** Whether a completion solves the problem. @throws when the problem is not one about lists */
export function verifyLists(problem: Problem, completion: Completion): boolean {
  const shown = readQuestion(problem.question);
  const hidden = hiddenTests(problem.id, readProgram(problem.gold));
  const program = readSubmission(completion);
  return program !== undefined && passes(program, [...shown, ...hidden]);
}

const OP = `(?:${OPS.join('|')})(?!\\S)`;
/** Where a summary may name an operation. */
const IN_PLACE = new RegExp(`(?<!\\S)(?:dead\\s+${OP}|path\\s+${OP}\\s+then\\s+${OP})`, 'g');

/**
 * The spellings of an answer beside its own. An operation may well stand among the dead ends or in the path: there it
 * says nothing about the last one. Where it stands anywhere else in the summary, its bare word is a spelling too, and
 * goes everywhere.
 */
export function listsSpellings({ summary, answer }: Completion): string[] {
  const last = answer === undefined ? undefined : readAnswer(answer);
  if (last === undefined) return [];
  const elsewhere = summary.toLowerCase().replace(IN_PLACE, ' ');
  return new RegExp(`(?<![a-z0-9])${last}(?![a-z0-9])`).test(elsewhere) ? [last] : [];
}
