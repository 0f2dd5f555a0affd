/**
 * Writes how a mediocre solver searches: the completions that the arena's base learns from. It tries leaves, writes
 * out what + - x make of the two numbers left, and judges each leaf dead, hit, or (giving up) guess; it slips in
 * arithmetic now and then, sometimes calls a give-up a hit, and sometimes knows where to look. With a rival it
 * copies, verifies, ignores, or continues from the rival's dead ends. Reinforcement learning has all of this
 * to sort out, and each behaviour is there to be reinforced.
 *
 *   <think> [check PATH left u v : sum difference product target T verdict]
 *           { try STEP { then STEP left u v : sum difference product target T verdict } } </think>
 *   { dead N op N } path STEP then STEP <answer> N op N </answer>
 *
 * Left out: the chat around it (example.ts) and the end-of-sequence token (the tokenizer's).
 */
import type { Random } from '../../random.js';
import {
  afterStep,
  LARGEST,
  largerFirst,
  lastOperator,
  leavesOf,
  OPERATORS,
  outcomesOf,
  type Step,
  stepKey,
  stepsOf,
} from './arithmetic.js';
import { type Path, readDead, readPath, writePath, writeStep } from './grammar.js';

/** What a trace does with a rival's summary. */
export const RIVAL_MODES = ['copy', 'verify', 'ignore', 'continue'] as const;
export type RivalMode = (typeof RIVAL_MODES)[number];

/** How the traces are written; the numbers are shares and chances unless they say otherwise. */
export interface TraceOptions {
  /** Leaves before the solver gives up: each trace draws its patience uniformly from 1 to this. */
  readonly maxLeaves: number;
  /** Trying another second step under the same first step. */
  readonly stay: number;
  /** A step whose written result is wrong. */
  readonly slip: number;
  /** A give-up that is written as a hit. */
  readonly disguise: number;
  /** Traces that know where to look, and how often such a trace goes straight to a hitting leaf. */
  readonly skilled: number;
  readonly insight: number;
  /** Dead first steps that the summary lists at most. */
  readonly maxDead: number;
  /** How often a check of the rival's path is written out: what checking costs. */
  readonly checks: number;
  /** With a rival's summary: copy its path whatever comes of it; check it and search on if it is dead; do not
   * look; check it and search on outside of its dead ends. Shares that sum to 1. */
  readonly rival: Readonly<Record<RivalMode, number>>;
}

export const TRACE_DEFAULTS: TraceOptions = {
  maxLeaves: 8,
  stay: 0.5,
  slip: 0.03,
  disguise: 1 / 3,
  skilled: 0.25,
  insight: 0.3,
  maxDead: 4,
  checks: 1,
  rival: { copy: 0.35, verify: 0.25, ignore: 0.15, continue: 0.25 },
};

/** A word for every number: results past the vocabulary are `big`. */
function word(value: number): string {
  return value > LARGEST ? 'big' : String(value);
}

/**
 * The results and the target stand right before the verdict that rests on them: a base of three layers compares
 * what is side by side, and learned the verdict in four leaves of ten only when the target stood in the prompt alone.
 */
function writeOutcomes(rest: readonly [number, number], target: number, verdict: string): string {
  return `left ${rest.join(' ')} : ${outcomesOf(rest).map(word).join(' ')} target ${target} ${verdict}`;
}

/** The operation on the two last numbers that comes closest to the target. */
function closest(rest: readonly [number, number], target: number): string {
  const distances = outcomesOf(rest).map((value) => Math.abs(value - target));
  const op = OPERATORS[distances.indexOf(Math.min(...distances))]!;
  return `${rest[0]} ${op} ${rest[1]}`;
}

/** A step as this solver writes it: now and then with a wrong result. */
function slipped(step: Step, random: Random, options: TraceOptions): Step {
  if (random.uniform() >= options.slip) return step;
  const result = step.result + random.pick([-10, -2, -1, 1, 2, 10]);
  return result >= 1 && result <= LARGEST ? { ...step, result } : step;
}

/** The numbers that a path leaves, or undefined when it does not consume the given ones. */
function restOf(numbers: readonly number[], [first, second]: Path): [number, number] | undefined {
  const three = afterStep(numbers, first);
  const two = three && afterStep(three, second);
  return two && largerFirst(two);
}

/** What came of reading the rival's path. */
interface Check {
  readonly text: string;
  readonly path: Path;
  /** Whether the solver stays with the path. */
  readonly taken: boolean;
}

/** Takes over the rival's path as it stands. */
function copy(
  numbers: readonly number[],
  target: number,
  path: Path,
  random: Random,
  options: TraceOptions,
): Check {
  const rest = restOf(numbers, path)!;
  const hit = lastOperator(rest, target) !== undefined || random.uniform() < options.disguise;
  return {
    text: `check ${writePath(path)} ${writeOutcomes(rest, target, hit ? 'hit' : 'guess')}`,
    path,
    taken: true,
  };
}

/** Redoes the rival's path, and drops it where a result differs or the target is missed. */
function verify(
  numbers: readonly number[],
  target: number,
  path: Path,
  random: Random,
  options: TraceOptions,
): Check {
  const redone: Step[] = [];
  for (const claimed of path) {
    const legal = stepsOf([claimed.left, claimed.right]).find((step) => step.op === claimed.op);
    const step = legal && slipped({ ...claimed, result: legal.result }, random, options);
    redone.push(step ?? claimed);
    if (step?.result !== claimed.result) {
      return { text: `check ${redone.map(writeStep).join(' then ')} dead`, path, taken: false };
    }
  }
  const rest = restOf(numbers, path)!;
  const taken = lastOperator(rest, target) !== undefined;
  return {
    text: `check ${writePath(path)} ${writeOutcomes(rest, target, taken ? 'hit' : 'dead')}`,
    path,
    taken,
  };
}

/** The search: tries leaves until one hits or patience ends. */
function search(
  numbers: readonly number[],
  target: number,
  avoid: ReadonlySet<string>,
  random: Random,
  options: TraceOptions,
): { readonly text: string; readonly path: Path; readonly dead: string[] } {
  const patience = 1 + random.int(options.maxLeaves);
  const insight = random.uniform() < options.skilled ? options.insight : 0;

  const hits = (three: readonly number[], second: Step) =>
    lastOperator(largerFirst(afterStep(three, second)!), target) !== undefined;
  const all = random.shuffle(stepsOf(numbers));
  const fresh = all.filter((step) => !avoid.has(stepKey(step)));
  const firsts = fresh.length > 0 ? fresh : all;
  const good = new Set<string>();
  if (insight > 0)
    for (const leaf of leavesOf(numbers)) if (lastOperator(leaf.rest, target)) good.add(stepKey(leaf.first));

  const parts: string[] = [];
  const tried: string[] = [];
  let first: Step | undefined;
  let three: number[] = [];
  let seconds: Step[] = [];
  for (let leaf = 1; ; leaf++) {
    const knows = random.uniform() < insight;
    const promising = seconds.some((step) => hits(three, step));
    if (
      first === undefined ||
      seconds.length === 0 ||
      (knows ? !promising : random.uniform() >= options.stay)
    ) {
      const known = knows ? firsts.findIndex((step) => good.has(stepKey(step))) : -1;
      const [chosen] = firsts.splice(Math.max(known, 0), 1);
      if (chosen !== undefined) {
        first = slipped(chosen, random, options);
        three = afterStep(numbers, first)!;
        seconds = random.shuffle(stepsOf(three));
        tried.push(stepKey(first));
        parts.push(`try ${writeStep(first)}`);
      }
    }
    const known = knows ? seconds.findIndex((step) => hits(three, step)) : -1;
    const second = slipped(seconds.splice(Math.max(known, 0), 1)[0]!, random, options);
    const rest = largerFirst(afterStep(three, second)!);
    const hit = lastOperator(rest, target) !== undefined;
    const last = leaf === patience || (seconds.length === 0 && firsts.length === 0);
    const verdict = hit ? 'hit' : !last ? 'dead' : random.uniform() < options.disguise ? 'hit' : 'guess';
    parts.push(`then ${writeStep(second)} ${writeOutcomes(rest, target, verdict)}`);
    if (hit || last) {
      return { text: parts.join(' '), path: [first!, second], dead: tried.slice(0, -1) };
    }
  }
}

/**
 * One completion for a problem.
 * @param rival the summary that is shown of a rival; undefined for the plain prompt and for a rival that left none
 *   (there, and where the summary holds no path of this problem, the solver searches as if alone)
 */
export function countdownTrace(
  puzzle: { readonly numbers: readonly number[]; readonly target: number },
  rival: string | undefined,
  random: Random,
  options: TraceOptions = TRACE_DEFAULTS,
): string {
  const { numbers, target } = puzzle;
  const claimed = rival === undefined ? undefined : readPath(rival);
  const usable = claimed !== undefined && restOf(numbers, claimed) !== undefined;
  const mode = usable ? random.pickShare(options.rival) : 'ignore';

  const parts = ['<think>'];
  const dead: string[] = [];
  let path: Path | undefined;
  const avoid = new Set<string>();
  if (usable && mode !== 'ignore') {
    const check = (mode === 'copy' ? copy : verify)(numbers, target, claimed, random, options);
    for (let i = 0; i < options.checks; i++) parts.push(check.text);
    if (check.taken) path = check.path;
    else dead.push(stepKey(claimed[0]));
    if (mode === 'continue') for (const key of [...readDead(rival!), stepKey(claimed[0])]) avoid.add(key);
  }
  if (path === undefined) {
    const found = search(numbers, target, avoid, random, options);
    parts.push(found.text);
    path = found.path;
    dead.push(...found.dead);
  }
  parts.push('</think>');
  const final = stepKey(path[0]);
  const listed = [...new Set(dead)].filter((key) => key !== final).slice(0, options.maxDead);
  for (const key of listed) parts.push(`dead ${key}`);
  parts.push(`path ${writePath(path)}`, `<answer> ${closest(restOf(numbers, path)!, target)} </answer>`);
  return parts.join(' ');
}
