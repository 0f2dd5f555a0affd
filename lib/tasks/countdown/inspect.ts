/**
 * Counts what a countdown trace does, leaf by leaf: new and true, written before, entered although it was known to be
 * dead, false. Also the parts of a summary and the proposal it settles for. It reads the grammar of trace.ts, whatever
 * a trained policy makes of it: words outside the grammar are passed over. Left out: whether the answer is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { SummaryParts, TraceCounts } from '../task.js';
import { afterStep, evaluate, LARGEST, type Step, stepKey } from './arithmetic.js';
import { readAnswer, readDead, readPath, readQuestion, readStep, words, writePath } from './grammar.js';

/** The dead first steps, and the path. */
export function countdownParts(summary: string): SummaryParts {
  const at = summary.search(/\bpath\b/);
  return at < 0
    ? { deadEnds: summary.trim(), path: '' }
    : { deadEnds: summary.slice(0, at).trim(), path: summary.slice(at).trim() };
}

/** Path and last operation; undefined where either is not there to read. */
export function countdownProposal({ summary, answer }: Completion): string | undefined {
  const path = readPath(summary);
  const last = answer === undefined ? undefined : readAnswer(answer);
  return path && last && `${writePath(path)} then ${last.left} ${last.op} ${last.right}`;
}

/** One leaf as a trace wrote it. */
interface WrittenLeaf {
  readonly first: Step;
  readonly second: Step;
  /** Written in the block that redoes the rival's path. */
  readonly check: boolean;
}

/** `try STEP` opens a first step, each `then STEP` under it is a leaf; `check STEP then STEP` is one leaf. */
function leavesWritten(think: string): WrittenLeaf[] {
  const w = words(think);
  const leaves: WrittenLeaf[] = [];
  let first: Step | undefined;
  let check = false;
  w.forEach((word, i) => {
    if (word !== 'try' && word !== 'then' && word !== 'check') return;
    const step = readStep(w.slice(i + 1, i + 6));
    if (word !== 'then') {
      first = step;
      check = word === 'check';
    } else if (first && step) leaves.push({ first, second: step, check });
  });
  return leaves;
}

/** Whether both steps are legal and their results true. */
function isTrue(numbers: readonly number[], { first, second }: WrittenLeaf): boolean {
  const holds = (s: Step) =>
    evaluate(s.left, s.op, s.right) === s.result && s.result >= 1 && s.result <= LARGEST;
  const three = afterStep(numbers, first);
  return holds(first) && holds(second) && three !== undefined && afterStep(three, second) !== undefined;
}

/**
 * A leaf is a step. A dead end is a first step: one that the rival's summary calls dead, or one that this trace tried
 * and left for another.
 */
export function countTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const { numbers } = readQuestion(problem.question);
  const leaves = leavesWritten(think);
  const dead = new Set(shown === undefined ? [] : readDead(shown));
  const seen = new Set<string>();
  let [useful, repeated, deadAgain, wrong] = [0, 0, 0, 0];
  leaves.forEach((leaf, i) => {
    const first = stepKey(leaf.first);
    const key = `${first} then ${stepKey(leaf.second)}`;
    const entered = i === 0 || stepKey(leaves[i - 1]!.first) !== first;
    const again = dead.has(first) && !leaf.check;
    if (entered && again) deadAgain++;
    if (!isTrue(numbers, leaf)) wrong++;
    else if (!seen.has(key) && !again) useful++;
    if (seen.has(key)) repeated++;
    seen.add(key);
    const next = leaves[i + 1];
    if (next && stepKey(next.first) !== first) dead.add(first);
  });
  return { steps: leaves.length, useful, repeated, deadAgain, wrong };
}
