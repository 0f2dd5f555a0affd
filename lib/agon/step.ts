/**
 * One training step of any method: attempts, rewards and advantages of its streams (METHOD, "One optimizer
 * step"). What a row of the table of methods says is all that differs between GRPO and Agon here.
 *
 * Draft and challenge groups are normalised apart, and each adapter trains on its own stream only. Left out:
 * the optimizer step itself (grpo/update.ts) and the loop over steps (experiments/run.ts).
 */
import { type Advantages, groupAdvantages, type ScaleRewards } from '../grpo/advantages.js';
import type { AdapterName, Attempt, Problem, Reward, Role } from '../records.js';
import { type Adapters, type Assignment, attempt, type Sampling, type World } from './attempt.js';
import { rolesAt, type TrainingRow } from './methods.js';
import { REWARDS, rewardsOf } from './rewards.js';

/** One stream of a step: contiguous groups of `groupSize` attempts, one group per problem. */
export interface Stream extends Advantages {
  readonly role: Role;
  readonly adapter: AdapterName;
  readonly groupSize: number;
  readonly attempts: readonly Attempt[];
  /** One per attempt; `undefined` where the reward does not apply. */
  readonly rewards: readonly (number | undefined)[];
}

export interface StepOptions extends Sampling {
  /** N: attempts per problem and stream. */
  readonly numGenerations: number;
  readonly scaleRewards: ScaleRewards;
  readonly seed: number;
  /** Rewards of the user's own in place of the row's: for the challenge stream, and for drafts or single policies. */
  readonly challengeReward?: Reward;
  readonly draftReward?: Reward;
}

/**
 * Samples and judges the streams of step `step` on `problems`. Nothing is trained yet.
 * @returns one stream (`solo`, 2N per problem) where nothing is exchanged, else `draft` and `challenge` of N
 */
export async function sampleStep(
  world: World,
  row: TrainingRow,
  adapters: Adapters,
  problems: readonly Problem[],
  step: number,
  options: StepOptions,
): Promise<Stream[]> {
  const { numGenerations: n, scaleRewards, seed } = options;
  const { draft, challenge } = rolesAt(row, step);
  const names = [seed, 'rollout', step];
  const draftReward = options.draftReward ?? REWARDS[row.draftReward]();
  const judge = (
    role: Role,
    adapter: AdapterName,
    attempts: Attempt[],
    reward: Reward,
    groupSize: number,
  ): Stream => {
    const rewards = rewardsOf(reward, attempts, groupSize);
    return {
      role,
      adapter,
      groupSize,
      attempts,
      rewards,
      ...groupAdvantages(rewards, groupSize, scaleRewards),
    };
  };
  if (row.exchange === 'none') {
    if (options.challengeReward)
      throw new Error(`training row '${row.name}' has no challenge stream to reward`);
    const tries = repeat(problems, 2 * n);
    const attempts = await attempt(world, adapters, draft, 'solo', tries, options, names);
    return [judge('solo', draft, attempts, draftReward, 2 * n)];
  }
  const challengeReward = options.challengeReward ?? REWARDS[row.challengeReward](row.rewardWeight);
  const drafts = await attempt(world, adapters, draft, 'draft', repeat(problems, n), options, names);
  // A hidden rival leaves no trace in the prompt: whoever does not read it is asked as a solo policy is.
  const asked = row.exchange === 'paired' ? 'challenge' : 'solo';
  const challenges = await attempt(world, adapters, challenge, asked, pairUp(row, drafts, n), options, names);
  return [
    judge('draft', draft, drafts, draftReward, n),
    judge('challenge', challenge, challenges, challengeReward, n),
  ];
}

function repeat(problems: readonly Problem[], times: number): Assignment[] {
  return problems.flatMap((problem) => Array.from({ length: times }, () => ({ problem })));
}

/** Which draft each challenge meets: its own, shown, or the group's first, hidden. */
export function pairUp(row: TrainingRow, drafts: readonly Attempt[], groupSize: number): Assignment[] {
  return drafts.map((own, i) =>
    row.exchange === 'paired'
      ? { problem: own.problem, reads: own, ...(row.shows ? { shows: row.shows } : {}) }
      : { problem: own.problem, rival: drafts[i - (i % groupSize)]! },
  );
}
