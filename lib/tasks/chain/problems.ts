/**
 * The problems of the chain: a start value and some steps. There are far more of them than can be listed, so they are
 * drawn from a seeded stream and kept where the hash of their content falls into the wanted split: the splits are
 * disjoint by construction, whoever draws. Difficulty is the number of steps.
 */
import { type Random, stream } from '../../random.js';
import type { Problem, Split } from '../../records.js';
import { splitOfId } from '../split.js';
import { DIGITS, evaluate, HARD_FACTORS, MODULUS, type Operation } from './facts.js';
import { type Chain, LETTERS, type Link, valuesOf, writeClaim, writeQuestion } from './grammar.js';

/** Bounds on the number of steps; fewer than three would leave too few different problems. */
export const MIN_STEPS = 3;
export const MAX_STEPS = LETTERS.length;

/** More than this is not drawn: it is a few hundred times what any run asks for, and drawing stays a matter of seconds. */
const MOST = 1_000_000;

/** Of the steps, how many are products; of the products, how many are hard. The rest are sums and differences. */
const PRODUCTS = 0.6;
const HARD = 0.75;

export interface ChainFilter {
  readonly split: Split;
  /** Steps, both inclusive; default 5 to 10. */
  readonly minDifficulty?: number;
  readonly maxDifficulty?: number;
}

/** The split of a chain. */
export function chainSplitOf(chain: Chain): Split {
  return splitOfId(idOf(chain));
}

function idOf({ start, links }: Chain): string {
  return ['chain', start, ...links.map(({ op, right }) => `${op}${right}`)].join(' ');
}

function drawLink(random: Random): Link {
  if (random.uniform() >= PRODUCTS) return { op: random.pick(['+', '-']), right: random.pick(DIGITS) };
  return { op: 'x', right: random.pick<number>(random.uniform() < HARD ? HARD_FACTORS : DIGITS) };
}

/** A chain in which no value is 0: from there, products lead nowhere and nothing can go wrong. */
function draw(random: Random, steps: number): Chain {
  const start = 1 + random.int(MODULUS - 1);
  const links: Link[] = [];
  let value = start;
  while (links.length < steps) {
    const operation: Operation = { left: value, ...drawLink(random) };
    const result = evaluate(operation);
    if (result === 0) continue;
    links.push({ op: operation.op, right: operation.right });
    value = result;
  }
  return { start, links };
}

/** The range of steps that a filter allows. @throws when it is empty */
function rangeOf({ minDifficulty = 5, maxDifficulty = MAX_STEPS }: ChainFilter): readonly [number, number] {
  const range = [
    Math.max(MIN_STEPS, Math.ceil(minDifficulty)),
    Math.min(MAX_STEPS, Math.floor(maxDifficulty)),
  ] as const;
  if (!(range[0] <= range[1]))
    throw new Error(
      `chain: no problem has difficulty ${minDifficulty}..${maxDifficulty}; allowed are ${MIN_STEPS}..${MAX_STEPS} steps`,
    );
  return range;
}

/** One problem, each number of steps equally likely. @throws when the bounds allow none */
export function drawChain(random: Random, filter: ChainFilter): Problem {
  const [min, max] = rangeOf(filter);
  for (;;) {
    const chain = draw(random, min + random.int(max - min + 1));
    if (chainSplitOf(chain) !== filter.split) continue;
    const steps = chain.links.length;
    const gold = writeClaim({ at: steps - 1, value: valuesOf(chain).at(-1)! });
    return {
      id: idOf(chain),
      question: writeQuestion(chain),
      gold,
      difficulty: steps,
      split: filter.split,
    };
  }
}

/**
 * `count` different problems of a split, which depend on the seed and the bounds only. A larger count begins with the
 * same problems.
 * @throws when the bounds allow none, or for more than a million
 */
export function chainProblems(
  options: ChainFilter & { readonly count: number; readonly seed: number },
): Problem[] {
  const { count, seed, ...filter } = options;
  if (count > MOST) throw new Error(`chain: count is ${count}, allowed is at most ${MOST}`);
  const random = stream(seed, 'chain', filter.split);
  const problems = new Map<string, Problem>();
  while (problems.size < count) {
    const problem = drawChain(random, filter);
    problems.set(problem.id, problem);
  }
  return [...problems.values()];
}
