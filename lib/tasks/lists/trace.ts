/**
 * Writes how a mediocre solver searches for a program: the completions that the lists base learns from. It tries
 * operations on the first example, writes every list out, puts the needed output beside the list that two operations
 * leave, and applies a last one that may close the gap. What hits the first example need not be the program: half of
 * such hits are coincidences, and only a thorough solver runs the program on the second example too. It slips now and
 * then, sometimes calls a give-up a hit, and sometimes knows where to look. With a rival it copies, verifies, ignores,
 * or continues from the rival's dead ends. Reinforcement learning has all of this to sort out.
 *
 *   <think> [check RUN [test RUN]] { try OP LIST { then OP LIST need LIST last OP LIST verdict } [test RUN] } </think>
 *   { dead OP } path OP then OP <answer> last OP </answer>
 *
 * with RUN for `OP LIST then OP LIST need LIST last OP LIST verdict`. Left out: the chat around it (example.ts) and
 * the end-of-sequence token (the tokenizer's).
 */
import type { Random } from '../../random.js';
import { type Path, readDead, readPath, type Shown, writeList, writePath } from './grammar.js';
import { apply, LARGEST, type List, OPS, type Op, opsBetween, type Pair, sameList } from './programs.js';

/** What a trace does with a rival's summary. */
export const LISTS_RIVAL_MODES = ['copy', 'verify', 'ignore', 'continue'] as const;
export type ListsRivalMode = (typeof LISTS_RIVAL_MODES)[number];

/** How the traces are written; the numbers are shares and chances unless they say otherwise. */
export interface ListsTraceOptions {
  /** Programs tried before the solver gives up: each trace draws its patience uniformly from 1 to this. */
  readonly maxPrograms: number;
  /** Trying another second operation under the same first one. */
  readonly stay: number;
  /** Seeing the last operation that closes the gap, where there is one. */
  readonly sight: number;
  /** Traces that run what hits the first example on the second one too. */
  readonly thorough: number;
  /** A list in which one number is written wrong. */
  readonly slip: number;
  /** A give-up that is written as a hit. */
  readonly disguise: number;
  /** Traces that know where to look, and how often such a trace goes straight to a path that hits. */
  readonly skilled: number;
  readonly insight: number;
  /** Dead first operations that the summary lists at most. */
  readonly maxDead: number;
  /** With a rival's summary: take its path over whatever comes of it; check it on both examples and search on if it
   * is dead; do not look; check it and search on outside of its dead ends. Shares that sum to 1. */
  readonly rival: Readonly<Record<ListsRivalMode, number>>;
}

export const LISTS_TRACE_DEFAULTS: ListsTraceOptions = {
  maxPrograms: 7,
  stay: 0.5,
  sight: 0.9,
  thorough: 0.4,
  slip: 0.01,
  disguise: 1 / 3,
  skilled: 0.5,
  insight: 0.5,
  maxDead: 4,
  rival: { copy: 0.35, verify: 0.25, ignore: 0.15, continue: 0.25 },
};

/** How a run of a program on one example ends. */
type Verdict = 'hit' | 'dead' | 'guess';

/** What a solver has at hand. */
interface Solver {
  readonly shown: Shown;
  readonly random: Random;
  readonly options: ListsTraceOptions;
}

/** The result of an operation as this solver writes it: now and then with a wrong number. */
function applied(op: Op, list: List, { random, options }: Solver): List {
  const result = apply(op, list);
  if (result.length === 0 || random.uniform() >= options.slip) return result;
  const at = random.int(result.length);
  const wrong = result[at]! + random.pick([-2, -1, 1, 2]);
  return wrong < 0 || wrong > LARGEST ? result : result.map((n, i) => (i === at ? wrong : n));
}

/** How much of a needed list another one has: places that agree, one more for the same length. */
function likeness(list: List, needed: List): number {
  const alike = list.filter((n, i) => n === needed[i]).length;
  return alike + (list.length === needed.length ? 1 : 0);
}

/** The operation that looks as if it closed the gap. */
function lastOp(from: List, needed: List, { random, options }: Solver): Op {
  const exact = opsBetween(from, needed);
  if (exact.length > 0 && random.uniform() < options.sight) return random.pick(exact);
  const others = random.shuffle(OPS.filter((op) => !exact.includes(op)));
  const closeness = others.map((op) => likeness(apply(op, from), needed));
  return others[closeness.indexOf(Math.max(...closeness))]!;
}

/** `OP LIST` */
function writeApplied(op: Op, list: List): string {
  return `${op} ${writeList(list)}`;
}

/** The last operation on what two have left, and whether it makes the output. */
interface Closing {
  readonly last: Op;
  readonly hit: boolean;
  /** Up to the verdict. The needed list stands between the two that are compared with it. */
  readonly text: string;
}

function close(from: List, { output }: Pair, solver: Solver, last = lastOp(from, output, solver)): Closing {
  const result = applied(last, from, solver);
  const text = `need ${writeList(output)} last ${writeApplied(last, result)}`;
  return { last, hit: sameList(result, output), text };
}

/** Runs a path on an example, with a given last operation or one that looks right. */
function runOn(pair: Pair, [first, second]: Path, solver: Solver, last?: Op): Closing {
  const one = applied(first, pair.input, solver);
  const two = applied(second, one, solver);
  const closing = close(two, pair, solver, last);
  const text = `${writeApplied(first, one)} then ${writeApplied(second, two)} ${closing.text}`;
  return { ...closing, text };
}

/** Where a trace has come to. */
interface Found {
  readonly text: string;
  readonly path: Path;
  readonly last: Op;
  /** Whether the solver stays with it. */
  readonly taken: boolean;
}

/** Takes over the rival's path as it stands. */
function copy(path: Path, solver: Solver): Found {
  const run = runOn(solver.shown[0], path, solver);
  const hit = run.hit || solver.random.uniform() < solver.options.disguise;
  return { text: `check ${run.text} ${hit ? 'hit' : 'guess'}`, path, last: run.last, taken: true };
}

/** Runs the rival's path on both examples, and drops it where one is missed. */
function verify(path: Path, solver: Solver): Found {
  const run = runOn(solver.shown[0], path, solver);
  const checked = `check ${run.text} ${run.hit ? 'hit' : 'dead'}`;
  if (!run.hit) return { text: checked, path, last: run.last, taken: false };
  const again = runOn(solver.shown[1], path, solver, run.last);
  const text = `${checked} test ${again.text} ${again.hit ? 'hit' : 'dead'}`;
  return { text, path, last: run.last, taken: again.hit };
}

/** Whether some last operation hits the first example when this one comes second. */
function promises(op: Op, one: List, { shown }: Solver): boolean {
  return opsBetween(apply(op, one), shown[0].output).length > 0;
}

/** Operations that leave enough numbers for the output come first: none makes a list longer. */
function order(from: List, ops: readonly Op[], { shown, random }: Solver): Op[] {
  const fits = (op: Op) => apply(op, from).length >= shown[0].output.length;
  const shuffled = random.shuffle(ops);
  return [...shuffled.filter(fits), ...shuffled.filter((op) => !fits(op))];
}

/** The search: tries programs until one hits or patience ends. */
function search(avoid: ReadonlySet<Op>, solver: Solver): Found & { readonly dead: readonly Op[] } {
  const { shown, random, options } = solver;
  const patience = 1 + random.int(options.maxPrograms);
  const insight = random.uniform() < options.skilled ? options.insight : 0;
  const thorough = random.uniform() < options.thorough;

  const { input } = shown[0];
  const fresh = OPS.filter((op) => !avoid.has(op));
  let firsts = order(input, fresh, solver);
  const parts: string[] = [];
  const tried: Op[] = [];
  let first: Op | undefined;
  let one: List = [];
  let seconds: Op[] = [];
  for (let program = 1; ; program++) {
    const knows = random.uniform() < insight;
    const promising = (op: Op) => promises(op, one, solver);
    const stays = knows ? seconds.some(promising) : random.uniform() < options.stay;
    if (first === undefined || seconds.length === 0 || !stays) {
      if (firsts.length === 0) firsts = order(input, OPS, solver);
      const good = knows
        ? firsts.findIndex((a) => OPS.some((b) => promises(b, apply(a, input), solver)))
        : -1;
      first = firsts.splice(Math.max(good, 0), 1)[0]!;
      one = applied(first, input, solver);
      seconds = order(one, OPS, solver);
      tried.push(first);
      parts.push(`try ${writeApplied(first, one)}`);
    }
    const good = knows ? seconds.findIndex(promising) : -1;
    const second = seconds.splice(Math.max(good, 0), 1)[0]!;
    const two = applied(second, one, solver);
    const closing = close(two, shown[0], solver);
    const path: Path = [first, second];
    const out = program === patience;
    const verdict = (hit: boolean): Verdict =>
      hit ? 'hit' : !out ? 'dead' : random.uniform() < options.disguise ? 'hit' : 'guess';
    parts.push(`then ${writeApplied(second, two)} ${closing.text} ${closing.hit ? 'hit' : verdict(false)}`);
    let { hit } = closing;
    if (hit && thorough) {
      const again = runOn(shown[1], path, solver, closing.last);
      hit = again.hit;
      parts.push(`test ${again.text} ${verdict(hit)}`);
      // The lists of the first example are far back now: on with another first operation.
      if (!hit) seconds = [];
    }
    if (hit || out)
      return { text: parts.join(' '), path, last: closing.last, taken: true, dead: tried.slice(0, -1) };
  }
}

/**
 * One completion for a question.
 * @param rival the summary that is shown of a rival; undefined for the plain prompt and for a rival that left none
 *   (there, and where the summary holds no path, the solver searches as if alone)
 */
export function listsTrace(
  shown: Shown,
  rival: string | undefined,
  random: Random,
  options: ListsTraceOptions = LISTS_TRACE_DEFAULTS,
): string {
  const solver: Solver = { shown, random, options };
  const claimed = rival === undefined ? undefined : readPath(rival);
  const mode = claimed ? random.pickShare(options.rival) : 'ignore';

  const parts = ['<think>'];
  const dead: Op[] = [];
  const avoid = new Set<Op>();
  let found: Found | undefined;
  if (claimed && mode !== 'ignore') {
    const check = (mode === 'copy' ? copy : verify)(claimed, solver);
    parts.push(check.text);
    if (check.taken) found = check;
    else dead.push(claimed[0]);
    if (mode === 'continue') for (const op of [...readDead(rival!), claimed[0]]) avoid.add(op);
  }
  if (found === undefined) {
    const searched = search(avoid, solver);
    parts.push(searched.text);
    dead.push(...searched.dead);
    found = searched;
  }
  const [final] = found.path;
  const listed = [...new Set(dead)].filter((op) => op !== final).slice(0, options.maxDead);
  parts.push('</think>', ...listed.map((op) => `dead ${op}`));
  parts.push(`path ${writePath(found.path)}`, `<answer> last ${found.last} </answer>`);
  return parts.join(' ');
}
