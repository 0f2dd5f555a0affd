/**
 * What two policies get wrong together, and what one makes of the other's draft: read off the columns of evaluations.
 * Left out: how far the policies lie apart (experiments/distance.ts), and what a report says of it (studies/).
 */
import {
  copiedShare,
  draftStage,
  type Evaluation,
  finalStage,
  flagsOf,
  type Stage,
} from '../experiments/evaluation.js';
import { jaccard, phi, spread } from './stats.js';

/** Two sets of wrong answers to the same problems; shares of all problems. */
export interface Overlap {
  readonly firstWrong: number;
  readonly secondWrong: number;
  readonly bothWrong: number;
  /** Undefined where neither is ever wrong. */
  readonly jaccard: number | undefined;
  /** 0 is what chance gives; undefined where one is always or never wrong. */
  readonly phi: number | undefined;
}

/** @throws when the stages answer different numbers of problems */
export function overlap(first: Stage, second: Stage): Overlap {
  const [a, b] = [first, second].map((stage) => flagsOf(stage.correct).map((right) => !right)) as [
    boolean[],
    boolean[],
  ];
  const coefficients = { jaccard: jaccard(a, b), phi: phi(a, b) };
  return {
    firstWrong: shareOf(a),
    secondWrong: shareOf(b),
    bothWrong: shareOf(a.map((wrong, i) => wrong && b[i]!)),
    ...coefficients,
  };
}

/** The mean of several overlaps; a coefficient that one of them lacks is the mean of the others. */
export function meanOverlap(all: readonly Overlap[]): Overlap {
  const mean = (value: (o: Overlap) => number) => spread(all.map(value)).mean;
  const known = (value: (o: Overlap) => number | undefined) => {
    const found = all.map(value).filter((v) => v !== undefined);
    return found.length > 0 ? spread(found).mean : undefined;
  };
  return {
    firstWrong: mean((o) => o.firstWrong),
    secondWrong: mean((o) => o.secondWrong),
    bothWrong: mean((o) => o.bothWrong),
    jaccard: known((o) => o.jaccard),
    phi: known((o) => o.phi),
  };
}

/** What the second stage of a cascade makes of the first; shares, undefined where they would be of nothing. */
export interface Reading {
  readonly draftRight: number;
  readonly finalRight: number;
  /** Of right drafts those whose final answer is right. */
  readonly kept: number | undefined;
  /** Of wrong drafts those whose final answer is right. */
  readonly converted: number | undefined;
  /** Of drafts that propose something those whose proposal is the final answer's: all, and by the draft's outcome. */
  readonly copied: number | undefined;
  readonly copiedRight: number | undefined;
  readonly copiedWrong: number | undefined;
}

/** @throws when the evaluation is of one pass */
export function readingOf(evaluation: Evaluation): Reading {
  const draft = draftStage(evaluation);
  if (!draft) throw new Error(`deployment ${evaluation.deployment} reads no draft: it is one pass`);
  const [before, after] = [flagsOf(draft.correct), flagsOf(finalStage(evaluation).correct)];
  const rightAfter = (was: boolean) => {
    const own = after.filter((_, i) => before[i] === was);
    return own.length > 0 ? shareOf(own) : undefined;
  };
  return {
    draftRight: shareOf(before),
    finalRight: shareOf(after),
    kept: rightAfter(true),
    converted: rightAfter(false),
    copied: copiedShare(evaluation),
    copiedRight: copiedShare(evaluation, (i) => before[i]!),
    copiedWrong: copiedShare(evaluation, (i) => !before[i]!),
  };
}

function shareOf(flags: readonly boolean[]): number {
  return flags.filter(Boolean).length / flags.length;
}
