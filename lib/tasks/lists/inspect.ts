/**
 * Counts what a lists trace does, run by run: new and true, written before, entered although it was known to be dead,
 * false; and marks the runs so, copied and corrected ones too. Also the proposal it settles for. It reads the grammar of trace.ts, whatever a
 * trained policy makes of it: words outside the grammar are passed over. Left out: whether the program is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { MarkedStep, TraceCounts } from '../task.js';
import { marksOf, words } from '../words.js';
import { readDead, readList, readOp, readPath, readQuestion, writePath, writeProgram } from './grammar.js';
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

/** A stretch of reasoning that holds one run at most. */
interface Piece {
  readonly text: string;
  readonly run?: WrittenRun | undefined;
}

/** Every `last OP LIST` for which the two operations before it and the needed list can be read is a run. */
function piecesWritten(think: string): Piece[] {
  const w = words(think);
  const pieces: Piece[] = [];
  let begin = 0;
  let run: WrittenRun | undefined;
  let hasSecond = false;
  let block: WrittenRun['block'] = 'try';
  let opens = true;
  let first: Application | undefined;
  let second: Application | undefined;
  let needed: List | undefined;
  const close = (end: number) => {
    if (end > begin) pieces.push({ text: w.slice(begin, end).join(' '), run });
    begin = end;
    run = undefined;
    hasSecond = false;
  };
  const applicationAt = (i: number): Application | undefined => {
    const [op, result] = [readOp(w[i]), readList(w.slice(i + 1, i + 8))];
    return op && result && { op, result };
  };
  w.forEach((word, i) => {
    if (word === 'check' || word === 'try' || word === 'test') {
      close(i);
      block = word;
      opens = true;
      first = applicationAt(i + 1);
      second = undefined;
    } else if (word === 'then') {
      if (hasSecond || run) close(i);
      hasSecond = true;
      second = applicationAt(i + 1);
      needed = undefined;
    } else if (word === 'need') needed = readList(w.slice(i + 1, i + 8));
    else if (word === 'last') {
      const last = applicationAt(i + 1);
      if (!first || !second || !needed || !last) return;
      // A second `last` under the same two operations is a run of its own.
      if (run) close(i);
      run = { block, opens, first, second, needed, last };
      opens = false;
    }
  });
  close(w.length);
  return pieces;
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

/** What holds of one run, in its place. */
interface JudgedRun {
  readonly useful: boolean;
  readonly repeated: boolean;
  readonly deadAgain: boolean;
  readonly wrong: boolean;
  /** Hits under a first operation that the rival has ruled out. */
  readonly refutes: boolean;
}

/**
 * A run of a program on one of the two examples is a step, so testing a program on the second one is a step of its own,
 * and one with another result is another. A dead end is a first operation: one that the rival's summary calls dead, or
 * one that this trace tried and left for another. Coming back to it counts in `deadAgain`, once for each time; the runs
 * written there are `useful` where they are new and the rival had not ruled them out, or where one of them hits, since
 * then the rival was wrong.
 */
function judgeRuns(problem: Problem, runs: readonly WrittenRun[], shown?: string): JudgedRun[] {
  const ruledOut = new Set(shown === undefined ? [] : readDead(shown));
  const abandoned = new Set<Op>();
  const seen = new Set<string>();
  return runs.map((run, i) => {
    const { block, opens, first, second, needed, last } = run;
    const before = runs[i - 1]?.first.op;
    if (before && before !== first.op) abandoned.add(before);
    const against = block === 'try' && ruledOut.has(first.op);
    const key = JSON.stringify([block === 'test', first, second, last]);
    const repeated = seen.has(key);
    const wrong = !isTrue(run, problem.question);
    const refutes = against && !wrong && sameList(last.result, needed);
    seen.add(key);
    return {
      useful: !wrong && !repeated && (!against || refutes),
      repeated,
      deadAgain: block === 'try' && opens && (against || abandoned.has(first.op)),
      wrong,
      refutes,
    };
  });
}

function runsOf(pieces: readonly Piece[]): WrittenRun[] {
  return pieces.flatMap(({ run }) => run ?? []);
}

export function countListsTrace(problem: Problem, { think }: Completion, shown?: string): TraceCounts {
  const runs = judgeRuns(problem, runsOf(piecesWritten(think)), shown);
  const count = (name: keyof JudgedRun) => runs.filter((run) => run[name]).length;
  return {
    steps: runs.length,
    useful: count('useful'),
    repeated: count('repeated'),
    deadAgain: count('deadAgain'),
    wrong: count('wrong'),
  };
}

/** The runs, and what stands between them. A run is `corrected` where it hits although the rival has ruled it out. */
export function markListsTrace(problem: Problem, completion: Completion, shown?: string): MarkedStep[] {
  const pieces = piecesWritten(completion.think);
  const judged = judgeRuns(problem, runsOf(pieces), shown);
  const rival = shown === undefined ? undefined : readPath(shown);
  const own = listsProposal(completion);
  let at = 0;
  return pieces.map(({ text, run }) => {
    if (!run) return { text, marks: [] };
    const judgement = judged[at++]!;
    const { first, second, last } = run;
    const settled = own === writeProgram([first.op, second.op, last.op]);
    return {
      text,
      marks: marksOf({
        copied: rival !== undefined && writePath(rival) === writePath([first.op, second.op]),
        corrected: judgement.refutes,
        settled,
        abandoned: !settled && (own !== undefined || at < judged.length),
        wrong: judgement.wrong,
        repeated: judgement.repeated,
        'dead again': judgement.deadAgain && !judgement.refutes,
      }),
    };
  });
}
