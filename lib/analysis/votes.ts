/**
 * What several samples of a one-pass method are worth: majority vote, best of n by the policy's own log-probability, and
 * an oracle that knows which sample is right (pass@n; it needs a verifier at inference), against the tokens they cost.
 *
 * Every point is the mean over all ways to take n of the samples that were drawn, so none depends on their order. Left
 * out: voting over stages of a cascade.
 */

import { flagsOf, type Stage } from '../experiments/evaluation.js';
import { mean } from '../numbers.js';

/** n samples per problem: what they cost and what share of problems each way of choosing gets right. */
export interface SamplePoint {
  readonly n: number;
  /** Mean tokens per problem: the prompt once, n completions. */
  readonly tokens: number;
  readonly vote: number;
  readonly best: number;
  readonly oracle: number;
}

/** All subsets are tried: 2^10 for each problem. */
const MOST_SAMPLES = 10;

/**
 * The curve over n = 1, 2, ... samples.
 * @param samples one stage per sample, of the same problems; at most the first ten are taken
 * @throws on no samples
 */
export function sampleCurve(samples: readonly Stage[]): SamplePoint[] {
  const taken = samples.slice(0, MOST_SAMPLES);
  const [first] = taken;
  if (!first) throw new Error('a curve over samples needs at least one sample');
  const problems = first.correct.length;
  const right = taken.map((stage) => flagsOf(stage.correct));
  const sums = Array.from({ length: taken.length + 1 }, () => ({ sets: 0, vote: 0, best: 0, oracle: 0 }));
  for (let set = 1; set < 2 ** taken.length; set++) {
    const members = taken.flatMap((stage, k) => ((set >> k) & 1 ? [{ stage, right: right[k]! }] : []));
    const sum = sums[members.length]!;
    sum.sets++;
    for (let i = 0; i < problems; i++) {
      const answers = members.map((m) => ({
        right: m.right[i]!,
        proposal: m.stage.proposal[i]!,
        logProb: m.stage.logProb[i]!,
      }));
      sum.vote += majority(answers);
      sum.best += Number(answers.reduce((best, a) => (a.logProb > best.logProb ? a : best)).right);
      sum.oracle += Number(answers.some((a) => a.right));
    }
  }
  const completion = mean(taken.map((stage) => mean(stage.completionTokens)));
  return sums.slice(1).map(({ sets, vote, best, oracle }, i) => ({
    n: i + 1,
    tokens: mean(first.promptTokens) + (i + 1) * completion,
    vote: vote / (sets * problems),
    best: best / (sets * problems),
    oracle: oracle / (sets * problems),
  }));
}

interface Answer {
  readonly right: boolean;
  /** Equal for equal proposals; null where nothing is proposed, which is no vote. */
  readonly proposal: number | null;
  readonly logProb: number;
}

/** 1 where the most frequent proposal is right, ties going to the larger sum of log-probabilities. */
function majority(answers: readonly Answer[]): number {
  const parties = new Map<number, { count: number; logProb: number; right: number }>();
  for (const { proposal, logProb, right } of answers) {
    if (proposal === null) continue;
    const party = parties.get(proposal) ?? { count: 0, logProb: 0, right: 0 };
    party.count++;
    party.logProb += logProb;
    party.right += Number(right);
    parties.set(proposal, party);
  }
  let winner: { count: number; logProb: number; right: number } | undefined;
  for (const party of parties.values())
    if (
      !winner ||
      party.count > winner.count ||
      (party.count === winner.count && party.logProb > winner.logProb)
    )
      winner = party;
  return winner ? winner.right / winner.count : 0;
}

/**
 * The curve's value at a budget between two of its points, on the line between them: what taking n samples for some
 * problems and n + 1 for the others gives. Undefined outside the curve.
 */
export function atTokens(
  curve: readonly SamplePoint[],
  tokens: number,
  value: (point: SamplePoint) => number,
): number | undefined {
  for (const [i, point] of curve.entries()) {
    if (point.tokens === tokens) return value(point);
    const next = curve[i + 1];
    if (!next || tokens < point.tokens || tokens > next.tokens) continue;
    const share = (tokens - point.tokens) / (next.tokens - point.tokens);
    return value(point) + share * (value(next) - value(point));
  }
  return undefined;
}
