/**
 * Rewards to advantages: A_i = (r_i - mean) / (std + 1e-4) inside the group of one problem and one stream.
 *
 * The std is the unbiased one (ddof 1) and the 1e-4 is TRL's. A group without spread gives exactly 0, never a
 * rounding residue. Left out: anything about rivals; a group is just a list of numbers here.
 */

/** TRL's `scale_rewards`: divide by the group's std, by the whole batch's, or not at all (Dr. GRPO). */
export type ScaleRewards = 'group' | 'batch' | 'none';

export interface Advantages {
  /** One per reward, in the order given; 0 where the reward does not apply. */
  readonly advantages: number[];
  /** TRL's `reward`: the mean of the group means. */
  readonly reward: number;
  /** The mean of the group stds, whatever scales; TRL 1.x logs the whole batch's std as `reward_std`. */
  readonly rewardStd: number;
  /** TRL's `frac_reward_zero_std`: the share of groups without any spread, which train nothing. */
  readonly fracRewardZeroStd: number;
}

const EPS = 1e-4;

/**
 * @param rewards contiguous groups, one after the other; `undefined` is "not applicable" and is left out.
 * @param groupSize rewards per group (TRL's `num_generations`)
 * @throws when the number of rewards is not a multiple of the group size, or one is not finite
 */
export function groupAdvantages(
  rewards: readonly (number | undefined)[],
  groupSize: number,
  scaleRewards: ScaleRewards = 'group',
): Advantages {
  if (groupSize < 1 || rewards.length === 0 || rewards.length % groupSize !== 0)
    throw new Error(`${rewards.length} rewards do not form whole groups of ${groupSize}`);
  rewards.forEach((r, i) => {
    if (r !== undefined && !Number.isFinite(r))
      throw new Error(`reward ${i} is ${r}: a finite number is needed`);
  });
  const groups = Array.from({ length: rewards.length / groupSize }, (_, g) =>
    rewards.slice(g * groupSize, (g + 1) * groupSize),
  );
  const stats = groups.map((group) => moments(group.filter((r) => r !== undefined)));
  const batchStd = moments(rewards.filter((r) => r !== undefined)).std;
  const advantages = groups.flatMap((group, g) => {
    const { mean, std } = stats[g]!;
    const scale = scaleRewards === 'none' ? 1 : (scaleRewards === 'batch' ? batchStd : std) + EPS;
    return group.map((r) => (r === undefined ? 0 : (r - mean) / scale));
  });
  const judged = stats.filter((s) => s.n > 0);
  const average = (values: number[]) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  return {
    advantages,
    reward: average(judged.map((s) => s.mean)),
    rewardStd: average(judged.map((s) => s.std)),
    fracRewardZeroStd: average(stats.map((s) => (s.std === 0 ? 1 : 0))),
  };
}

/** Mean and unbiased std; equal values have std exactly 0, as has a single one. */
function moments(values: readonly number[]): { n: number; mean: number; std: number } {
  const n = values.length;
  if (n === 0) return { n, mean: 0, std: 0 };
  const first = values[0]!;
  if (values.every((v) => v === first)) return { n, mean: first, std: 0 };
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const square = values.reduce((a, b) => a + (b - mean) ** 2, 0);
  return { n, mean, std: Math.sqrt(square / (n - 1)) };
}
