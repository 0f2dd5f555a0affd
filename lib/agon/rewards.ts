/**
 * The rewards of METHOD: plain functions of judged attempts, by name. A notebook cell may pass its own.
 *
 * Notation of the paper: c = correct, phi = formatted, lambda = 0.5 (the format's weight), a = the rival's
 * draft, b = the own answer. Left out: advantages (grpo/), which decide what a reward really teaches.
 */
import type { Attempt, Reward } from '../records.js';

/** lambda of the paper. */
export const FORMAT_WEIGHT = 0.5;
/** lambda' of the length tiebreak. **Open** in the paper; small enough never to outweigh being right. */
export const TIEBREAK_WEIGHT = 0.5;

const c = (attempt: Attempt): number => Number(attempt.correct);
const phi = (attempt: Attempt): number => FORMAT_WEIGHT * Number(attempt.formatted);

/** 2c + lambda phi: what drafts and single policies are paid, and the cooperative challenger. */
export const outcome: Reward = (own) => 2 * c(own) + phi(own);

/** 2c(b) + c(b)(1 - c(a)) + lambda phi(b): Agon's conversion bonus, 3 where the rival failed and 2 where not. */
export const adversarial: Reward = (own, rival) =>
  2 * c(own) + c(own) * (1 - c(needed(own, rival))) + phi(own);

/** c(b) - c(a) + lambda phi(b): c(a) does not depend on b's actions, so in expectation it is a baseline. */
export const margin: Reward = (own, rival) => c(own) - c(needed(own, rival)) + phi(own);

/** Adversarial, plus lambda' where both are right and the own completion is the shorter one. */
export const adversarialTiebreak: Reward = (own, rival, group) => {
  const other = needed(own, rival);
  const shorter = own.rollout.completionIds.length < other.rollout.completionIds.length;
  return adversarial(own, other, group)! + TIEBREAK_WEIGHT * c(own) * c(other) * Number(shorter);
};

export const REWARDS = { outcome, adversarial, margin, adversarialTiebreak } as const;
export type RewardName = keyof typeof REWARDS;

function needed(own: Attempt, rival: Attempt | undefined): Attempt {
  if (!rival)
    throw new Error(
      `the reward of a '${own.role}' attempt at ${own.problem.id} compares with a rival, and there is none`,
    );
  return rival;
}

/**
 * The rewards of one stream, group after group.
 * @param attempts contiguous groups of `groupSize` attempts at the same problem
 * @throws when a group mixes problems or its size does not divide the stream
 */
export function rewardsOf(
  reward: Reward,
  attempts: readonly Attempt[],
  groupSize: number,
): (number | undefined)[] {
  if (attempts.length % groupSize !== 0)
    throw new Error(`${attempts.length} attempts do not form whole groups of ${groupSize}`);
  return attempts.map((own, i) => {
    const start = i - (i % groupSize);
    const group = attempts.slice(start, start + groupSize);
    if (own.problem.id !== group[0]!.problem.id)
      throw new Error(`a group mixes the problems ${group[0]!.problem.id} and ${own.problem.id}`);
    return reward(own, own.rival, group);
  });
}
