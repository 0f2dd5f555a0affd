/**
 * Counts what a lists trace does, run by run: new and true, written before, entered although it was known to be dead,
 * false. Also the parts of a summary and the proposal it settles for. It reads the grammar of trace.ts, whatever a
 * trained policy makes of it: words outside the grammar are passed over. Left out: whether the program is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { SummaryParts, TraceCounts } from '../task.js';
import { readDead, readList, readOp, readQuestion, words, writeProgram } from './grammar.js';
import { apply, type List, type Op, sameList } from './programs.js';
import { readSubmission } from './verify.js';

/** The dead first operations, and the path. */
export function listsParts(summary: string): SummaryParts {
  const clauses = summary.trim().split(/\s+(?=(?:dead|path)(?:\s|$))/);
  const part = (word: string) => clauses.filter((clause) => words(clause)[0] === word).join(' ');
  return { deadEnds: part('dead'), path: part('path') };
}

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
      first = applicationAt(i + 1);
      second = undefined;
    } else if (word === 'then') {
      second = applicationAt(i + 1);
      needed = undefined;
    } else if (word === 'need') needed = readList(w.slice(i + 1, i + 8));
    else if (word === 'last') {
      const last = applicationAt(i + 1);
      if (first && second && needed && last) runs.push({ block, first, second, needed, last });
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
 * A run of a program on one of the two examples is a step: testing a program on the second example is a step of its
 * own. A dead end is a first operation: one that the rival's summary calls dead, or one that this trace tried and left
 * for another.
 */
export function countListsTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const runs = runsWritten(think);
  const dead = new Set(shown === undefined ? [] : readDead(shown));
  const seen = new Set<string>();
  let [useful, repeated, deadAgain, wrong] = [0, 0, 0, 0];
  let entered: Op | undefined;
  for (const run of runs) {
    const { block, first } = run;
    if (entered !== undefined && entered !== first.op) dead.add(entered);
    const again = block === 'try' && dead.has(first.op);
    if (again && entered !== first.op) deadAgain++;
    const key = [block === 'test', first.op, run.second.op, run.last.op].join();
    if (!isTrue(run, problem.question)) wrong++;
    else if (!seen.has(key) && !again) useful++;
    if (seen.has(key)) repeated++;
    seen.add(key);
    entered = first.op;
  }
  return { steps: runs.length, useful, repeated, deadAgain, wrong };
}
