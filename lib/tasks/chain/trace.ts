/**
 * Writes how a mediocre reckoner works: the completions that the chain's base learns from. Step by step, it recalls
 * results that are partly wrong (facts.ts); a careful one does a step over, in the same way or by parts, and once more
 * where the results differ. With a rival it copies, verifies every step, verifies some, or ignores. What care costs
 * in tokens and what it buys is for reinforcement learning to find out.
 *
 *   <think> { [take LETTER N] LETTER FACT [rival N] { again FACT | split FACT FACT } [so N] } </think>
 *   { LETTER N } <answer> LETTER N </answer>
 *
 * `take` takes the rival's value over, with all that led to it; `rival N` sets its claim beside the own result, since
 * a small base compares what is side by side; `so` says which value is gone on with where the results differ. Left out:
 * the chat around it (example.ts) and the end-of-sequence token (the tokenizer's).
 */
import type { Random } from '../../random.js';
import { DOUBT_DEFAULTS, type Doubts, digitsOf, isHard, type Operation, recall } from './facts.js';
import { type Chain, LETTERS, readClaims, writeClaim, writeFact } from './grammar.js';

/** What a trace does with a rival's summary. */
export const CHAIN_MODES = ['copy', 'verify', 'some', 'ignore'] as const;
export type ChainMode = (typeof CHAIN_MODES)[number];

/** How the traces are written: shares and chances. */
export interface ChainTraceOptions {
  readonly doubts: Doubts;
  /** How much a trace does over: nothing, some steps, all steps. Shares that sum to 1. */
  readonly care: Readonly<Record<'none' | 'some' | 'all', number>>;
  /** Where some steps are done over: each of them. */
  readonly over: number;
  /** A hard product that is done over by parts rather than in the same way. */
  readonly split: number;
  /** Where two results differ: a third. */
  readonly third: number;
  /** Where the own result and the rival's differ: doing it over. */
  readonly differing: number;
  /** Where some of a rival's steps are verified: each of them. */
  readonly check: number;
  /** With a rival's summary. Shares that sum to 1. */
  readonly rival: Readonly<Record<ChainMode, number>>;
}

export const CHAIN_TRACE_DEFAULTS: ChainTraceOptions = {
  doubts: DOUBT_DEFAULTS,
  care: { none: 0.4, some: 0.4, all: 0.2 },
  over: 0.35,
  split: 0.6,
  third: 0.5,
  differing: 0.75,
  check: 0.5,
  rival: { copy: 0.2, verify: 0.35, some: 0.25, ignore: 0.2 },
};

/** The value with most votes; where several have as many, any of them. */
function settle(values: readonly number[], random: Random): number {
  const votes = (value: number) => values.filter((v) => v === value).length;
  const most = Math.max(...values.map(votes));
  return random.pick([...new Set(values)].filter((value) => votes(value) === most));
}

/** An operation done over: its text and its result. */
function doOver(operation: Operation, random: Random, { doubts, split }: ChainTraceOptions) {
  if (!isHard(operation) || random.uniform() >= split) {
    const fact = recall(operation, random, doubts);
    return { text: `again ${writeFact(fact)}`, result: fact.result };
  }
  const [one, other] = digitsOf(operation.right);
  const first = recall({ ...operation, right: one }, random, doubts);
  const second = recall({ left: first.result, op: 'x', right: other }, random, doubts);
  return { text: `split ${writeFact(first)} ${writeFact(second)}`, result: second.result };
}

/**
 * One step as it is worked out.
 * @param care chance of doing it over where nothing speaks against the result
 * @param claimed the rival's value, if it is compared with
 */
function workOut(
  at: number,
  operation: Operation,
  care: number,
  claimed: number | undefined,
  random: Random,
  options: ChainTraceOptions,
): { readonly text: string; readonly value: number } {
  const own = recall(operation, random, options.doubts);
  const parts = [`${LETTERS[at]!} ${writeFact(own)}`];
  const values = [own.result];
  if (claimed !== undefined) {
    parts.push(`rival ${claimed}`);
    values.push(claimed);
  }
  const again = () => {
    const { text, result } = doOver(operation, random, options);
    parts.push(text);
    values.push(result);
  };
  const undecided = () => new Set(values).size === values.length && values.length > 1;
  if (random.uniform() < (undecided() ? options.differing : care)) {
    again();
    if (undecided() && random.uniform() < options.third) again();
  }
  const value = settle(values, random);
  if (new Set(values).size > 1) parts.push(`so ${value}`);
  return { text: parts.join(' '), value };
}

/**
 * One completion for a problem.
 * @param rival the summary that is shown of a rival; undefined for the plain prompt and for a rival that left none
 *   (there, and where the summary claims nothing for a step, the step is worked out as if alone)
 */
export function chainTrace(
  { start, links }: Chain,
  rival: string | undefined,
  random: Random,
  options: ChainTraceOptions = CHAIN_TRACE_DEFAULTS,
): string {
  const care = { none: 0, some: options.over, all: 1 }[random.pickShare(options.care)];
  const mode = rival === undefined ? 'ignore' : random.pickShare(options.rival);
  const check = { copy: 0, verify: 1, some: options.check, ignore: 1 }[mode];
  // Once the own value differs from the rival's, its later claims are about another chain.
  let claims = rival === undefined || mode === 'ignore' ? new Map<number, number>() : readClaims(rival);
  const last = links.length - 1;
  const parts = ['<think>'];
  const summary: string[] = [];
  let value = start;
  let taken: string | undefined;
  links.forEach((link, at) => {
    const claimed = at === last ? undefined : claims.get(at);
    if (claimed !== undefined && random.uniform() >= check) {
      value = claimed;
      taken = `take ${writeClaim({ at, value })}`;
    } else {
      if (taken !== undefined) parts.push(taken);
      taken = undefined;
      const step = workOut(at, { left: value, ...link }, care, claimed, random, options);
      parts.push(step.text);
      value = step.value;
      if (claimed !== undefined && value !== claimed) claims = new Map();
    }
    if (at < last) summary.push(writeClaim({ at, value }));
  });
  parts.push('</think>', ...summary, `<answer> ${writeClaim({ at: last, value })} </answer>`);
  return parts.join(' ');
}
