/**
 * The problems of countdown: four numbers 1..13 and a target 10..60. There are 1,820 multisets of numbers and 51
 * targets; all 92,820 pairs are enumerated once (under half a second), so that drawing is a shuffle of a
 * list and asking for more problems than there are is an error and not a loop. The split is a hash of (sorted
 * numbers, target): the same problem with its numbers shuffled is in the same split by construction.
 */
import { type Random, stream } from '../../random.js';
import type { Problem, Split } from '../../records.js';
import { splitOfId } from '../split.js';
import { lastOperator, leavesOf } from './arithmetic.js';
import { type Puzzle, writeQuestion } from './grammar.js';

const MAX_NUMBER = 13;
const MIN_TARGET = 10;
const MAX_TARGET = 60;

/** Which problems; difficulty is the number of leaves from which one last operation hits (fewer is harder). */
export interface CountdownFilter {
  readonly split: Split;
  /** Default 1: only problems that can be solved. */
  readonly minDifficulty?: number;
  /** Default: no limit. */
  readonly maxDifficulty?: number;
}

interface Entry extends Puzzle {
  readonly difficulty: number;
  readonly split: Split;
}

/** The split of a problem. */
export function splitOf({ numbers, target }: Puzzle): Split {
  return splitOfId(puzzleId({ numbers, target }));
}

/** The same for every order of the numbers. */
function puzzleId({ numbers, target }: Puzzle): string {
  return `countdown-${[...numbers].sort((a, b) => a - b).join('-')}-${target}`;
}

/** How many leaves hit the target. */
export function difficultyOf({ numbers, target }: Puzzle): number {
  return leavesOf(numbers).filter((leaf) => lastOperator(leaf.rest, target) !== undefined).length;
}

function enumerate(): Entry[] {
  const entries: Entry[] = [];
  for (let a = 1; a <= MAX_NUMBER; a++)
    for (let b = a; b <= MAX_NUMBER; b++)
      for (let c = b; c <= MAX_NUMBER; c++)
        for (let d = c; d <= MAX_NUMBER; d++) {
          const numbers = [a, b, c, d];
          const hits = new Array<number>(MAX_TARGET + 1).fill(0);
          for (const { rest } of leavesOf(numbers)) {
            const [u, v] = rest;
            // A set: 2 + 2 and 2 x 2 are one hitting leaf.
            for (const value of new Set([u + v, u - v, u * v])) if (value <= MAX_TARGET) hits[value]!++;
          }
          for (let target = MIN_TARGET; target <= MAX_TARGET; target++) {
            entries.push({ numbers, target, difficulty: hits[target]!, split: splitOf({ numbers, target }) });
          }
        }
  return entries;
}

let all: Entry[] | undefined;
const selections = new Map<string, readonly Entry[]>();

function select({ split, minDifficulty = 1, maxDifficulty = Infinity }: CountdownFilter): readonly Entry[] {
  const key = `${split} ${minDifficulty} ${maxDifficulty}`;
  let entries = selections.get(key);
  if (entries === undefined) {
    all ??= enumerate();
    entries = all.filter(
      (e) => e.split === split && e.difficulty >= minDifficulty && e.difficulty <= maxDifficulty,
    );
    selections.set(key, entries);
  }
  return entries;
}

function toProblem(entry: Entry, random: Random): Problem {
  const { numbers, target, difficulty, split } = entry;
  const question = writeQuestion({ numbers: random.shuffle(numbers), target });
  return { id: puzzleId(entry), question, gold: String(target), difficulty, split };
}

function describe({ split, minDifficulty = 1, maxDifficulty = Infinity }: CountdownFilter): string {
  return `split ${split}, difficulty ${minDifficulty}..${maxDifficulty}`;
}

/**
 * `count` different problems of a split, in an order and with shuffled numbers that depend on the seed only.
 * A larger count begins with the same problems.
 * @throws when there are fewer
 */
export function countdownProblems(
  options: CountdownFilter & { readonly count: number; readonly seed: number },
): Problem[] {
  const { count, seed, ...filter } = options;
  const entries = select(filter);
  if (count > entries.length) {
    throw new Error(`countdown: count is ${count}, but ${describe(filter)} has ${entries.length} problems`);
  }
  const random = stream(seed, 'countdown', filter.split);
  return random
    .shuffle(entries)
    .slice(0, count)
    .map((entry) => toProblem(entry, random));
}

/** One problem, each of the selection equally likely. @throws when the selection is empty */
export function drawCountdown(random: Random, filter: CountdownFilter): Problem {
  const entries = select(filter);
  if (entries.length === 0) throw new Error(`countdown: ${describe(filter)} has no problems`);
  return toProblem(random.pick(entries), random);
}

/** How many problems a selection holds. */
export function countCountdown(filter: CountdownFilter): number {
  return select(filter).length;
}
