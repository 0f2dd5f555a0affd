/**
 * The rewards of METHOD: plain functions of judged attempts, by name. A notebook cell may pass its own.
 *
 * Notation of the paper: c = correct, phi = formatted, lambda = 0.5 (the format's weight), a = the rival's
 * draft, b = the own answer. Left out: advantages (grpo/), which decide what a reward really teaches.
 */
import { mean } from '../numbers.js';
import type { Attempt, Reward } from '../records.js';

/** lambda of the paper. */
export const FORMAT_WEIGHT = 0.5;

const c = (attempt: Attempt): number => Number(attempt.correct);
const phi = (attempt: Attempt): number => FORMAT_WEIGHT * Number(attempt.formatted);

/** 2c + lambda phi: what drafts and single policies are paid, and the cooperative challenger. */
export const outcome: Reward = (own) => 2 * c(own) + phi(own);

/**
 * 2c(b) + w c(b)(1 - c(a)) + lambda phi(b): Agon's conversion bonus; with the paper's w = 1, 3 where the rival failed
 * and 2 where not.
 */
export const adversarialWith =
  (weight: number): Reward =>
  (own, rival) =>
    outcome(own, rival, [])! + weight * c(own) * (1 - c(needed(own, rival)));
export const adversarial = adversarialWith(1);

/** c(b) - c(a) + lambda phi(b): c(a) does not depend on b's actions, so in expectation it is a baseline. */
export const margin: Reward = (own, rival) => c(own) - c(needed(own, rival)) + phi(own);

/** Adversarial, plus w (lambda' of the paper) where both are right and the own completion is the shorter one. */
export const adversarialTiebreakWith =
  (weight: number): Reward =>
  (own, rival, group) => {
    const other = needed(own, rival);
    const shorter = own.rollout.completionIds.length < other.rollout.completionIds.length;
    return adversarial(own, other, group)! + weight * c(own) * c(other) * Number(shorter);
  };

/**
 * The control for difficulty weighting: the bonus is paid by the share of failed drafts in the group, the same to
 * every right answer of the group, whatever its own rival did.
 */
export const difficultyWeightedWith =
  (weight: number): Reward =>
  (own, rival, group) =>
    outcome(own, rival, group)! + weight * c(own) * mean(group.map((b) => 1 - c(needed(b, b.rival))));

/**
 * Cooperative reward with a baseline inside each context class: the group's answers beside a right rival and those
 * beside a wrong one are compared with their own kind only, so that being right beside a right rival is not pushed
 * down (CHECKS, 23), nor is meeting a right rival rewarded.
 */
export const classBaseline: Reward = (own, rival, group) => {
  const beside = c(needed(own, rival));
  const kind = group.filter((b) => c(needed(b, b.rival)) === beside);
  return outcome(own, rival, group)! - mean(kind.map((b) => outcome(b, b.rival, group)!));
};

/** The rewards by name; where a row gives a weight, it replaces the default of the reward's extra term. */
export const REWARDS = {
  outcome: () => outcome,
  adversarial: (weight = 1) => adversarialWith(weight),
  margin: () => margin,
  // Open in the paper; small enough never to outweigh being right.
  adversarialTiebreak: (weight = 0.5) => adversarialTiebreakWith(weight),
  difficultyWeighted: (weight = 1) => difficultyWeightedWith(weight),
  classBaseline: () => classBaseline,
} as const satisfies Record<string, (weight?: number) => Reward>;
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
 * @throws when a group mixes problems or its size does not divide the stream; naming the attempt, when its reward
 *   fails or is no number
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
    return rewardOf(reward, own, group, `the ${own.role} attempt ${i - start + 1} at ${own.problem.id}`);
  });
}

/**
 * The reward of one attempt, checked.
 * @param which what an error calls the attempt
 */
export function rewardOf(
  reward: Reward,
  own: Attempt,
  group: readonly Attempt[],
  which: string,
): number | undefined {
  let value: unknown;
  try {
    value = reward(own, own.rival, group);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new Error(`the reward fails on ${which}: ${said}`, { cause: error });
  }
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value;
  const found = typeof value === 'string' ? `the text '${value}'` : described(value);
  throw new Error(
    `the reward of ${which} is ${found}: a finite number is needed, or undefined where it does not apply`,
  );
}

function described(value: unknown): string {
  if (value instanceof Promise) return 'a promise (the function is async)';
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}
