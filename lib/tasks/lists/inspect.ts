/**
 * Counts what a lists trace does, run by run: new and true, written before, entered although it was known to be dead,
 * false. Also the proposal it settles for. It reads the grammar of trace.ts, whatever a
 * trained policy makes of it: words outside the grammar are passed over. Left out: whether the program is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { TraceCounts } from '../task.js';
import { words } from '../words.js';
import { readDead, readList, readOp, readQuestion, writeProgram } from './grammar.js';
import { apply, type List, type Op, sameList } from './programs.js';
import { readSubmission } from './verify.js';

/** The whole program; undefined where the path or the answer is not there to read. */
export function listsProposal(completion: Completion): string | undefined {
  const program = readSubmission(completion);
  return program && writeProgram(program);
}

/** An operation and the list it is said to leave. */
interface Application {
  readonly op: Op;
  readonly result: List;
}

/** One program on one of the examples, as a trace wrote it. */
interface WrittenRun {
  /** Which block it stands in: the rival's path redone, a search on the first example, a test on the second. */
  readonly block: 'check' | 'try' | 'test';
  /** Whether it is the first of its block. */
  readonly opens: boolean;
  readonly first: Application;
  readonly second: Application;
  readonly needed: List;
  readonly last: Application;
}

/** Every `last OP LIST` for which the two operations before it and the needed list can be read is a run. */
function runsWritten(think: string): WrittenRun[] {
  const w = words(think);
  const runs: WrittenRun[] = [];
  let block: WrittenRun['block'] = 'try';
  let opens = true;
  let first: Application | undefined;
  let second: Application | undefined;
  let needed: List | undefined;
  const applicationAt = (i: number): Application | undefined => {
    const [op, result] = [readOp(w[i]), readList(w.slice(i + 1, i + 8))];
    return op && result && { op, result };
  };
  w.forEach((word, i) => {
    if (word === 'check' || word === 'try' || word === 'test') {
      block = word;
      opens = true;
      first = applicationAt(i + 1);
      second = undefined;
    } else if (word === 'then') {
      second = applicationAt(i + 1);
      needed = undefined;
    } else if (word === 'need') needed = readList(w.slice(i + 1, i + 8));
    else if (word === 'last') {
      const last = applicationAt(i + 1);
      if (!first || !second || !needed || !last) return;
      runs.push({ block, opens, first, second, needed, last });
      opens = false;
    }
  });
  return runs;
}

function isTrue({ block, first, second, needed, last }: WrittenRun, question: string): boolean {
  const { input, output } = readQuestion(question)[block === 'test' ? 1 : 0];
  let list = input;
  for (const { op, result } of [first, second, last]) {
    if (!sameList(apply(op, list), result)) return false;
    list = result;
  }
  return sameList(needed, output);
}

/**
 * A run of a program on one of the two examples is a step, so testing a program on the second one is a step of its own,
 * and one with another result is another. A dead end is a first operation: one that the rival's summary calls dead, or
 * one that this trace tried and left for another. Coming back to it counts in `deadAgain`, once for each time; the runs
 * written there are `useful` where they are new and the rival had not ruled them out, or where one of them hits, since
 * then the rival was wrong.
 */
export function countListsTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const runs = runsWritten(think);
  const ruledOut = new Set(shown === undefined ? [] : readDead(shown));
  const abandoned = new Set<Op>();
  const seen = new Set<string>();
  let [useful, repeated, deadAgain, wrong] = [0, 0, 0, 0];
  runs.forEach((run, i) => {
    const { block, opens, first, second, needed, last } = run;
    const before = runs[i - 1]?.first.op;
    if (before && before !== first.op) abandoned.add(before);
    const against = block === 'try' && ruledOut.has(first.op);
    if (block === 'try' && opens && (against || abandoned.has(first.op))) deadAgain++;
    const key = JSON.stringify([block === 'test', first, second, last]);
    if (!isTrue(run, problem.question)) wrong++;
    else if (!seen.has(key) && (!against || sameList(last.result, needed))) useful++;
    if (seen.has(key)) repeated++;
    seen.add(key);
  });
  return { steps: runs.length, useful, repeated, deadAgain, wrong };
}
