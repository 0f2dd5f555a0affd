/**
 * The list language: twelve operations, programs of exactly three of them, and the tests that judge programs. Its
 * interpreter is total and bounded: every operation takes every list of whole numbers 0..24 to another, none makes a
 * list longer, and results past 24 are written as 24. Nothing is evaluated: an operation is looked up by its word.
 * Left out: text (grammar.ts), problems and splits (problems.ts).
 */

/** Whole numbers 0..24. */
export type List = readonly number[];

/** Results stop here; 24 is also the largest number with a word of its own. */
export const LARGEST = 24;

const APPLY = {
  /** Backwards. */
  rev: (list: List) => [...list].reverse(),
  /** Ascending. */
  sort: (list: List) => [...list].sort((a, b) => a - b),
  /** The first and the last number change places. */
  swap: (list: List) => (list.length < 2 ? [...list] : [list.at(-1)!, ...list.slice(1, -1), list[0]!]),
  /** The first number goes to the end. */
  rot: (list: List) => [...list.slice(1), ...list.slice(0, 1)],
  /** Without the first. */
  tail: (list: List) => list.slice(1),
  /** Without the last. */
  init: (list: List) => list.slice(0, -1),
  /** Of equal numbers the first. */
  uniq: (list: List) => [...new Set(list)],
  inc: (list: List) => list.map((n) => Math.min(n + 1, LARGEST)),
  dbl: (list: List) => list.map((n) => Math.min(2 * n, LARGEST)),
  /** Rounded down. */
  half: (list: List) => list.map((n) => Math.floor(n / 2)),
  /** Each number added to all before it. */
  sums: (list: List) => {
    let sum = 0;
    return list.map((n) => {
      sum = Math.min(sum + n, LARGEST);
      return sum;
    });
  },
  /** How far neighbours are apart: one number fewer. */
  diffs: (list: List) => list.slice(1).map((n, i) => Math.abs(n - list[i]!)),
} as const satisfies Record<string, (list: List) => number[]>;

export type Op = keyof typeof APPLY;
export const OPS = Object.keys(APPLY) as readonly Op[];

/** Three operations, the first one first. */
export type Program = readonly [Op, Op, Op];

/** What a program is to make of a list. */
export interface Pair {
  readonly input: List;
  readonly output: List;
}

/** The result of one operation. */
export function apply(op: Op, list: List): List {
  return APPLY[op](list);
}

/** The result of a program. */
export function run(program: Program, input: List): List {
  return program.reduce<List>((list, op) => apply(op, list), input);
}

export function sameList(a: List, b: List): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]);
}

/** Whether a program gives the right output everywhere. */
export function passes(program: Program, tests: readonly Pair[]): boolean {
  return tests.every(({ input, output }) => sameList(run(program, input), output));
}

/** The operations that take one list to another. */
export function opsBetween(from: List, to: List): Op[] {
  return OPS.filter((op) => sameList(apply(op, from), to));
}

/** Every program that passes, of the 12 x 12 x 12 there are. @param tests at least one */
export function programsPassing(tests: readonly Pair[]): Program[] {
  const [{ input, output }, ...others] = tests as readonly [Pair, ...Pair[]];
  const found: Program[] = [];
  const last = new Map<string, Op[]>();
  for (const a of OPS) {
    const one = apply(a, input);
    for (const b of OPS) {
      const two = apply(b, one);
      // Many pairs of operations meet in the same list.
      const key = two.join();
      let ops = last.get(key);
      if (ops === undefined) {
        ops = opsBetween(two, output);
        last.set(key, ops);
      }
      for (const c of ops) if (passes([a, b, c], others)) found.push([a, b, c]);
    }
  }
  return found;
}
