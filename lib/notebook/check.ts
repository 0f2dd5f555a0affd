/**
 * Tries a reward on hand-written attempts, at once and without a model: what it pays, and what the group makes of it as
 * advantages, beside the cooperative and Agon's reward. Left out: training with it (lab.ts).
 */
import type { DataFrame } from 'danfojs-node';
import { adversarial, outcome } from '../agon/rewards.js';
import { payments, type RewardedStream, writtenAttempts } from '../agon/written.js';
import { frameOf, round } from '../analysis/cells.js';
import { groupAdvantages } from '../grpo/advantages.js';
import type { Reward } from '../records.js';
import { showMarkdown, showTable } from './display.js';

/**
 * One row per written attempt: what it is, its tokens, and for each reward what it pays and the advantage inside the
 * group of eight. Missing where the reward does not apply.
 * @param stream `challenge`: everybody has a rival; `draft`: nobody has, as for drafts and single policies
 * @throws naming the attempt, when the reward fails or gives something that is no number
 */
export function rewardTable(reward: Reward, stream: RewardedStream = 'challenge'): DataFrame {
  const columns = [
    { name: nameOf(reward), paid: payments(reward, stream) },
    { name: 'outcome', paid: payments(outcome, stream) },
    ...(stream === 'challenge' ? [{ name: 'agon', paid: payments(adversarial, stream) }] : []),
  ].map((column) => ({ ...column, ...groupAdvantages(column.paid, column.paid.length) }));
  return frameOf(
    writtenAttempts(stream).map(({ own, rival, attempt }, i) => ({
      own,
      rival,
      tokens: attempt.rollout.completionIds.length,
      ...Object.fromEntries(
        columns.flatMap(({ name, paid, advantages }) => [
          [name, round(paid[i], 3)],
          [`${name}, advantage`, round(paid[i] === undefined ? undefined : advantages[i], 2)],
        ]),
      ),
    })),
  );
}

/** Shows the table of {@link rewardTable}, and says so where the group would teach nothing. */
export function checkReward(reward: Reward, stream: RewardedStream = 'challenge'): void {
  showTable(rewardTable(reward, stream));
  const paid = payments(reward, stream);
  if (groupAdvantages(paid, paid.length).fracRewardZeroStd === 1)
    showMarkdown(
      'All eight are paid the same: a group without spread has no advantages and teaches nothing.',
    );
}

/** The name of the user's function; one that would stand twice in the table is called `yours`. */
function nameOf({ name }: Reward): string {
  return ['', 'outcome', 'agon', 'own', 'rival', 'tokens'].includes(name) ? 'yours' : name;
}
