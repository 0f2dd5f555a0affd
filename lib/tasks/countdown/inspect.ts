/**
 * Counts what a countdown trace does, leaf by leaf: new and true, written before, entered although it was known to be
 * dead, false; and marks the leaves so, copied and corrected ones too. Also the proposal it settles for. It reads the grammar of trace.ts, whatever
 * a trained policy makes of it: words outside the grammar are passed over.
 *
 * Left out: whether the answer is right, and what a trace says of a leaf (the results after `left`, the verdict).
 */
import type { Completion, Problem } from '../../records.js';
import type { MarkedStep, TraceCounts } from '../task.js';
import { marksOf, words } from '../words.js';
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

/** A stretch of reasoning that holds one leaf at most. */
interface Piece {
  readonly text: string;
  /** The step that it opens with, where it does not go on under an earlier one; operands in order. */
  readonly opens?: Step | undefined;
  readonly leaf?: WrittenLeaf | undefined;
}

/**
 * `try STEP` opens a first step, each `then STEP` under it is a leaf; `check STEP then STEP` is one leaf, and a check
 * that stops at its first step is none. A path inside of reasoning that was never closed is not searched but settled.
 */
function piecesWritten(think: string): Piece[] {
  const w = words(think);
  const pieces: Piece[] = [];
  let begin = 0;
  let opens: Step | undefined;
  let leaf: WrittenLeaf | undefined;
  let hasSecond = false;
  let first: Step | undefined;
  let check = false;
  const close = (end: number) => {
    if (end > begin) pieces.push({ text: w.slice(begin, end).join(' '), opens, leaf });
    begin = end;
    opens = undefined;
    leaf = undefined;
    hasSecond = false;
  };
  w.forEach((word, i) => {
    if (word !== 'try' && word !== 'check' && word !== 'path' && word !== 'then') return;
    if (word !== 'then' || hasSecond) close(i);
    const written = readStep(w.slice(i + 1, i + 6));
    const step = written && ordered(written);
    if (word !== 'then') {
      first = word === 'path' ? undefined : step;
      opens = first;
      check = word === 'check';
    } else {
      hasSecond = true;
      if (!first || !step) return;
      leaf = { first, second: step, check };
      check = false;
    }
  });
  close(w.length);
  return pieces;
}

/** Whether the result of a step is what it should be. */
function holds({ left, op, right, result }: Step): boolean {
  return evaluate(left, op, right) === result && result >= 1 && result <= LARGEST;
}

/** The two numbers that a leaf leaves; undefined where a step is not legal or its result false. */
function restOf(numbers: readonly number[], { first, second }: WrittenLeaf): [number, number] | undefined {
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

/** What holds of one leaf, in its place. */
interface JudgedLeaf {
  readonly key: string;
  readonly useful: boolean;
  readonly repeated: boolean;
  readonly deadAgain: boolean;
  readonly wrong: boolean;
  /** Hits under a first step that the rival has ruled out. */
  readonly refutes: boolean;
}

/**
 * A leaf is a step, and one with another result is another. A dead end is a first step: one that the rival's summary
 * calls dead, or one that this trace tried and left for another. Coming back to it counts in `deadAgain`, once for
 * each time; the leaves written there are `useful` where they are new and the rival had not ruled them out – or where
 * one of them hits, since then the rival was wrong.
 */
function judgeLeaves(problem: Problem, leaves: readonly WrittenLeaf[], shown?: string): JudgedLeaf[] {
  const { numbers, target } = readQuestion(problem.question);
  const ruledOut = new Set(shown === undefined ? [] : deadIn(shown));
  const abandoned = new Set<string>();
  const seen = new Set<string>();
  return leaves.map((leaf, i) => {
    const first = stepKey(leaf.first);
    const key = keyOf(leaf);
    const before = leaves[i - 1];
    const entered = !before || before.check !== leaf.check || stepKey(before.first) !== first;
    if (before && stepKey(before.first) !== first) abandoned.add(stepKey(before.first));
    const against = ruledOut.has(first) && !leaf.check;
    const rest = restOf(numbers, leaf);
    const repeated = seen.has(key);
    const refutes = against && rest !== undefined && lastOperator(rest, target) !== undefined;
    seen.add(key);
    return {
      key,
      useful: rest !== undefined && !repeated && (!against || refutes),
      repeated,
      deadAgain: entered && !leaf.check && (against || abandoned.has(first)),
      wrong: rest === undefined,
      refutes,
    };
  });
}

function keyOf({ first, second }: { readonly first: Step; readonly second: Step }): string {
  return writePath([first, second]);
}

function orderedPath(
  summary: string | undefined,
): { readonly first: Step; readonly second: Step } | undefined {
  const path = summary === undefined ? undefined : readPath(summary);
  return path && { first: ordered(path[0]), second: ordered(path[1]) };
}

function leavesOf(pieces: readonly Piece[]): WrittenLeaf[] {
  return pieces.flatMap(({ leaf }) => leaf ?? []);
}

export function countTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const leaves = judgeLeaves(problem, leavesOf(piecesWritten(think)), shown);
  const count = (name: Exclude<keyof JudgedLeaf, 'key'>) => leaves.filter((leaf) => leaf[name]).length;
  return {
    steps: leaves.length,
    useful: count('useful'),
    repeated: count('repeated'),
    deadAgain: count('deadAgain'),
    wrong: count('wrong'),
  };
}

/**
 * The leaves, and what stands between them. A step is `corrected` where it is an operation of the rival's path with
 * another result, the true one, or where a leaf hits under a first step that the rival has ruled out.
 */
export function markTrace(problem: Problem, completion: Completion, shown?: string): MarkedStep[] {
  const pieces = piecesWritten(completion.think);
  const judged = judgeLeaves(problem, leavesOf(pieces), shown);
  const rival = orderedPath(shown);
  const own = orderedPath(completion.summary);
  const corrects = (step: Step | undefined, claimed: Step | undefined) =>
    step && claimed && stepKey(step) === stepKey(claimed) && step.result !== claimed.result && holds(step);
  let at = 0;
  return pieces.map(({ text, opens, leaf }) => {
    const judgement = leaf && judged[at++]!;
    const corrected =
      corrects(opens, rival?.first) || corrects(leaf?.second, rival?.second) || judgement?.refutes;
    // A check that stopped at its first step has dropped the rival's path.
    const left = leaf !== undefined || (opens !== undefined && text.startsWith('check'));
    const settled = own !== undefined && judgement?.key === keyOf(own);
    return {
      text,
      marks: marksOf({
        copied: rival !== undefined && judgement?.key === keyOf(rival),
        corrected,
        settled,
        abandoned: left && !settled && (own !== undefined || at < judged.length),
        wrong: judgement?.wrong,
        repeated: judgement?.repeated,
        'dead again': judgement?.deadAgain && !judgement.refutes,
      }),
    };
  });
}
