/**
 * How a chain is written: the question, a fact, the summary, the answer. One fixed grammar over words between white
 * space; steps are named by the letters a, b, c ... in their order. Left out: whether what was written is true
 * (verify.ts).
 *
 *   question  start N { LETTER op N }
 *   summary   { LETTER N }               the value after each step but the last
 *   answer    LETTER N                   the last step and its value
 *
 * The answer names its step because an intermediate value may happen to be the same number: what is withheld from a
 * rival is the claim `h 17` and not every 17, which would hide one step and give the answer away by the gap.
 */
import { words } from '../words.js';
import { evaluate, type Fact, MODULUS, OPERATORS, type Operator } from './facts.js';

/** Names of the steps, in order; also the largest number of steps. */
export const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'] as const;

/** One step: what is done to the value so far. */
export interface Link {
  readonly op: Operator;
  readonly right: number;
}

/** What a question asks. */
export interface Chain {
  readonly start: number;
  readonly links: readonly Link[];
}

/** The value that is claimed for a step. */
export interface Claim {
  /** The step's place, from 0. */
  readonly at: number;
  readonly value: number;
}

function numberOf(word: string | undefined): number | undefined {
  const value = word !== undefined && /^(0|[1-9]\d?)$/.test(word) ? Number(word) : undefined;
  return value !== undefined && value < MODULUS ? value : undefined;
}

function operatorOf(word: string | undefined): Operator | undefined {
  return OPERATORS.find((op) => op === word);
}

/** The place that a letter names; -1 for any other word. */
function placeOf(word: string | undefined): number {
  return (LETTERS as readonly (string | undefined)[]).indexOf(word);
}

/** The question's text. */
export function writeQuestion({ start, links }: Chain): string {
  return ['start', start, ...links.flatMap(({ op, right }, i) => [LETTERS[i]!, op, right])].join(' ');
}

/** @throws when the text is not a chain's question */
export function readQuestion(text: string): Chain {
  const [first, second, ...rest] = words(text);
  const start = numberOf(second);
  const links: Link[] = [];
  for (let i = 0; i < rest.length; i += 3) {
    const [op, right] = [operatorOf(rest[i + 1]), numberOf(rest[i + 2])];
    if (placeOf(rest[i]) === i / 3 && op && right !== undefined) links.push({ op, right });
  }
  if (first !== 'start' || start === undefined || rest.length === 0 || links.length * 3 !== rest.length) {
    throw new Error(
      `not a chain's question: ${JSON.stringify(text)}; expected "start N a op N b op N ...", numbers below ${MODULUS}`,
    );
  }
  return { start, links };
}

/** The true values after each step. */
export function valuesOf({ start, links }: Chain): number[] {
  let value = start;
  return links.map((link) => {
    value = evaluate({ left: value, ...link });
    return value;
  });
}

/** `12 x 7 = 37` */
export function writeFact({ left, op, right, result }: Fact): string {
  return `${left} ${op} ${right} = ${result}`;
}

/** Every `N op N = N` in a text, in order; other words are passed over. */
export function readFacts(text: string): Fact[] {
  const w = words(text);
  const facts: Fact[] = [];
  for (let i = 0; i + 4 < w.length; i++) {
    const [left, op, right, result] = [
      numberOf(w[i]),
      operatorOf(w[i + 1]),
      numberOf(w[i + 2]),
      numberOf(w[i + 4]),
    ];
    if (left === undefined || !op || right === undefined || w[i + 3] !== '=' || result === undefined)
      continue;
    facts.push({ left, op, right, result });
    i += 4;
  }
  return facts;
}

/** `c 31` */
export function writeClaim({ at, value }: Claim): string {
  return `${LETTERS[at]!} ${value}`;
}

/** The claims of a summary, the first for each step; other words (a masked value) are passed over. */
export function readClaims(summary: string): Map<number, number> {
  const w = words(summary);
  const claims = new Map<number, number>();
  w.forEach((word, i) => {
    const [at, value] = [placeOf(word), numberOf(w[i + 1])];
    if (at >= 0 && value !== undefined && !claims.has(at)) claims.set(at, value);
  });
  return claims;
}

/** Whether a summary consists of claims alone, in the order of the steps and none past the last but one. */
export function isSummary(summary: string, steps: number): boolean {
  const w = words(summary);
  const places = w.filter((_, i) => i % 2 === 0).map(placeOf);
  return (
    w.length % 2 === 0 &&
    w.every((word, i) => i % 2 === 0 || numberOf(word) !== undefined) &&
    places.every((at, i) => at >= 0 && at < steps - 1 && (i === 0 || at > places[i - 1]!))
  );
}

/** Reads an answer, one claim and nothing more. */
export function readAnswer(answer: string): Claim | undefined {
  const w = words(answer);
  const [at, value] = [placeOf(w[0]), numberOf(w[1])];
  return w.length === 2 && at >= 0 && value !== undefined ? { at, value } : undefined;
}
