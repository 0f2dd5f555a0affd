/**
 * The problems of lists: a hidden program of three operations, and two examples of what it does. There are too many to
 * enumerate, so they are drawn: a seed names a stream of candidates, of which a query keeps what it asks for. The
 * split is a hash of the shown examples, whatever their order: the same problem is in the same split by construction.
 */
import { type Random, stream } from '../../random.js';
import type { Problem, Split } from '../../records.js';
import { splitOfId } from '../split.js';
import { type Shown, writeProgram, writeQuestion } from './grammar.js';
import { OPS, type Program, programsPassing, sameList } from './programs.js';
import { drawInput, hiddenTests, pairOf } from './verify.js';

/** An example whose output is shorter than this says too little. */
const SHORTEST_OUTPUT = 2;

/** Candidates in a row whose difficulty is out of bounds before a query is given up: a few seconds. */
const MAX_MISSES = 10_000;

/**
 * Which problems; difficulty is the number of programs, of the 1,728 there are, that pass every test, shown and
 * hidden (fewer is harder; 1 when the hidden program has no equal).
 */
export interface ListsFilter {
  readonly split: Split;
  /** Default 1. */
  readonly minDifficulty?: number;
  /** Default: no limit. */
  readonly maxDifficulty?: number;
}

/** The same for both orders of the examples. */
function problemId(shown: Shown): string {
  const texts = shown.map(({ input, output }) => `${input.join('.')}_${output.join('.')}`);
  return `lists-${texts.sort().join('-')}`;
}

/** The split of a problem. */
export function listsSplitOf(shown: Shown): Split {
  return splitOfId(problemId(shown));
}

/** How many programs pass every test of a problem. */
export function listsDifficultyOf(shown: Shown, program: Program): number {
  return programsPassing([...shown, ...hiddenTests(problemId(shown), program)]).length;
}

function describe({ split, minDifficulty = 1, maxDifficulty = Infinity }: ListsFilter): string {
  return `split ${split}, difficulty ${minDifficulty}..${maxDifficulty}`;
}

/** One problem of a selection. @throws when none of many candidates is in it */
export function drawLists(random: Random, filter: ListsFilter): Problem {
  const { split, minDifficulty = 1, maxDifficulty = Infinity } = filter;
  let misses = 0;
  while (misses < MAX_MISSES) {
    const program: Program = [random.pick(OPS), random.pick(OPS), random.pick(OPS)];
    const shown: Shown = [pairOf(program, drawInput(random)), pairOf(program, drawInput(random))];
    if (shown.some(({ output }) => output.length < SHORTEST_OUTPUT)) continue;
    if (sameList(shown[0].input, shown[1].input) || listsSplitOf(shown) !== split) continue;
    const difficulty = listsDifficultyOf(shown, program);
    if (difficulty >= minDifficulty && difficulty <= maxDifficulty) {
      const [id, question] = [problemId(shown), writeQuestion(shown)];
      return { id, question, gold: writeProgram(program), difficulty, split };
    }
    misses++;
  }
  throw new Error(`lists: ${MAX_MISSES} candidates in a row, and none is of ${describe(filter)}`);
}

/**
 * `count` different problems of a split, in an order that depends on the seed only. A larger count begins with the same
 * problems.
 * @throws when so many are not found
 */
export function listsProblems(
  options: ListsFilter & { readonly count: number; readonly seed: number },
): Problem[] {
  const { count, seed, ...filter } = options;
  const random = stream(seed, 'lists', filter.split);
  const found = new Map<string, Problem>();
  for (let repeats = 0; found.size < count; ) {
    const problem = drawLists(random, filter);
    if (!found.has(problem.id)) found.set(problem.id, problem);
    else if (++repeats > MAX_MISSES)
      throw new Error(
        `lists: count is ${count}, but ${describe(filter)} gave ${found.size} different problems`,
      );
  }
  return [...found.values()];
}
