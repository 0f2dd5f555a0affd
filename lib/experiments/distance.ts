/**
 * How far two policies lie apart on the same contexts: the Kullback-Leibler divergence per token of each from the
 * other, on drafts that the first one samples at temperature 1 (no top-p), so that the mean log-ratio is an unbiased
 * estimate of KL(first || second) per token.
 *
 * Left out: distance in weights, which says nothing about behaviour.
 */
import { type Adapters, attempt, type World } from '../agon/attempt.js';
import { scoreLogProbs } from '../grpo/gradient.js';
import type { AdapterName, Problem, Rollout } from '../records.js';
import { type Policy, policyOf } from '../rollouts/policy.js';
import { type JobFunction, shardsOf } from '../tensors/pool.js';

interface ScoreShard {
  readonly policy: Policy;
  readonly rollouts: readonly Rollout[];
}

/** The pool's job: log-probs of each rollout's completion under a policy at temperature 1. */
export async function scoreShard({ policy, rollouts }: ScoreShard): Promise<Float32Array[]> {
  return scoreLogProbs(policy, rollouts, 1);
}

const SCORE: JobFunction<ScoreShard, Float32Array[]> = {
  module: import.meta.url,
  name: 'scoreShard',
  call: scoreShard,
};

/** Rows scored at once. */
const ROWS = 24;

/** KL(from || to) in nats per token, with the number of tokens it is a mean of. */
export interface Divergence {
  readonly from: AdapterName;
  readonly to: AdapterName;
  readonly nats: number;
  readonly tokens: number;
}

/**
 * KL(from || to) for each `to`, on one draft per problem by `from`.
 * @param names of the random numbers
 */
export async function divergences(
  world: World,
  adapters: Adapters,
  from: AdapterName,
  to: readonly AdapterName[],
  problems: readonly Problem[],
  options: { readonly maxCompletionLength: number; readonly generationBatchSize: number },
  names: readonly (string | number)[],
): Promise<Divergence[]> {
  const sampling = { ...options, temperature: 1, topP: 1 };
  const tries = problems.map((problem) => ({ problem }));
  const drafts = await attempt(world, adapters, from, 'draft', tries, sampling, [...names, 'distance', from]);
  const rollouts = drafts.map((draft) => draft.rollout);
  const own = rollouts.map((r) => r.logProbs);
  const tokens = own.reduce((sum, row) => sum + row.length, 0);
  const found: Divergence[] = [];
  for (const name of to) {
    const policy = policyOf(world.base, adapters, name);
    const shards = shardsOf(rollouts, ROWS).map((some) => ({ policy, rollouts: some }));
    const theirs = (await world.pool.map(SCORE, shards)).flat();
    const sum = own.reduce(
      (total, row, i) => total + row.reduce((part, logProb, t) => part + logProb - theirs[i]![t]!, 0),
      0,
    );
    found.push({ from, to: name, nats: sum / tokens, tokens });
  }
  return found;
}
