/**
 * Counts what a countdown trace does, leaf by leaf: new and true, written before, entered although it was known to be
 * dead, false. Also the proposal it settles for. It reads the grammar of trace.ts, whatever
 * a trained policy makes of it: words outside the grammar are passed over.
 *
 * Left out: whether the answer is right, and what a trace says of a leaf (the results after `left`, the verdict).
 */
import type { Completion, Problem } from '../../records.js';
import type { TraceCounts } from '../task.js';
import { words } from '../words.js';
import { afterStep, evaluate, LARGEST, largerFirst, lastOperator, type Step, stepKey } from './arithmetic.js';
import { readAnswer, readDead, readPath, readQuestion, readStep, writePath } from './grammar.js';

/** An operation with the larger operand first: 3 + 5 and 5 + 3 are one step. */
function ordered<T extends Omit<Step, 'result'>>(step: T): T {
  return step.op !== '-' && step.left < step.right ? { ...step, left: step.right, right: step.left } : step;
}

/** `N op N`, operands in order. */
function operation(step: Omit<Step, 'result'>): string {
  const { left, op, right } = ordered(step);
  return `${left} ${op} ${right}`;
}

/** Path and last operation; undefined where either is not there to read. */
export function countdownProposal({ summary, answer }: Completion): string | undefined {
  const path = readPath(summary);
  const last = answer === undefined ? undefined : readAnswer(answer);
  return path && last && `${writePath([ordered(path[0]), ordered(path[1])])} then ${operation(last)}`;
}

/** One leaf as a trace wrote it, operands in order. */
interface WrittenLeaf {
  readonly first: Step;
  readonly second: Step;
  /** Written in the block that redoes the rival's path. */
  readonly check: boolean;
}

/**
 * `try STEP` opens a first step, each `then STEP` under it is a leaf; `check STEP then STEP` is one leaf, and a check
 * that stops at its first step is none. A path inside of reasoning that was never closed is not searched but settled.
 */
function leavesWritten(think: string): WrittenLeaf[] {
  const w = words(think);
  const leaves: WrittenLeaf[] = [];
  let first: Step | undefined;
  let check = false;
  w.forEach((word, i) => {
    if (word !== 'try' && word !== 'check' && word !== 'path' && word !== 'then') return;
    const written = readStep(w.slice(i + 1, i + 6));
    const step = written && ordered(written);
    if (word !== 'then') {
      first = word === 'path' ? undefined : step;
      check = word === 'check';
    } else if (first && step) {
      leaves.push({ first, second: step, check });
      check = false;
    }
  });
  return leaves;
}

/** The two numbers that a leaf leaves; undefined where a step is not legal or its result false. */
function restOf(numbers: readonly number[], { first, second }: WrittenLeaf): [number, number] | undefined {
  const holds = (s: Step) =>
    evaluate(s.left, s.op, s.right) === s.result && s.result >= 1 && s.result <= LARGEST;
  const three = holds(first) && holds(second) ? afterStep(numbers, first) : undefined;
  const two = three && afterStep(three, second);
  return two && largerFirst(two);
}

/** The first steps that a text calls dead, operands in order. */
function deadIn(text: string): string[] {
  return [...readDead(text)].flatMap((key) => {
    const step = readAnswer(key);
    return step ? [operation(step)] : [];
  });
}

/**
 * A leaf is a step, and one with another result is another. A dead end is a first step: one that the rival's summary
 * calls dead, or one that this trace tried and left for another. Coming back to it counts in `deadAgain`, once for
 * each time; the leaves written there are `useful` where they are new and the rival had not ruled them out – or where
 * one of them hits, since then the rival was wrong.
 */
export function countTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const { numbers, target } = readQuestion(problem.question);
  const leaves = leavesWritten(think);
  const ruledOut = new Set(shown === undefined ? [] : deadIn(shown));
  const abandoned = new Set<string>();
  const seen = new Set<string>();
  let [useful, repeated, deadAgain, wrong] = [0, 0, 0, 0];
  leaves.forEach((leaf, i) => {
    const first = stepKey(leaf.first);
    const key = writePath([leaf.first, leaf.second]);
    const before = leaves[i - 1];
    const entered = !before || before.check !== leaf.check || stepKey(before.first) !== first;
    if (before && stepKey(before.first) !== first) abandoned.add(stepKey(before.first));
    const against = ruledOut.has(first) && !leaf.check;
    if (entered && !leaf.check && (against || abandoned.has(first))) deadAgain++;
    const rest = restOf(numbers, leaf);
    if (!rest) wrong++;
    else if (!seen.has(key) && (!against || lastOperator(rest, target))) useful++;
    if (seen.has(key)) repeated++;
    seen.add(key);
  });
  return { steps: leaves.length, useful, repeated, deadAgain, wrong };
}
