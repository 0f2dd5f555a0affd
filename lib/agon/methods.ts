/**
 * The table of methods: who drafts, who challenges, what is shown, which reward, how it is deployed. A method
 * or an ablation is a row here and nothing else; step.ts and cascade.ts read the row and branch on no name.
 *
 * Every trained row spends 2N rollouts per training problem. Left out: schedules, sizes, seeds (experiments/).
 */
import type { AdapterName } from '../records.js';
import type { RewardName } from './rewards.js';

/** What the challenger may know of the rival. */
export type Exchange =
  /** No second stream: one stream of 2N plain attempts. */
  | 'none'
  /** The i-th challenge reads the summary of the i-th draft. */
  | 'paired'
  /** The challenge gets the plain prompt and its whole group is scored against one hidden draft. */
  | 'shared-hidden';

/** How adapters are trained. Two methods that name the same row share one training run. */
export interface TrainingRow {
  readonly name: string;
  readonly adapters: readonly ('A' | 'B')[];
  /** `rotating`: (A, B) at even steps and (B, A) at odd ones; with one adapter both roles are A. */
  readonly roles: 'rotating' | 'fixed';
  readonly exchange: Exchange;
  readonly draftReward: RewardName;
  readonly challengeReward: RewardName;
}

/** One pass by a policy, or a cascade: the first drafts, the second reads the summary and answers. */
export type Deployment = readonly [AdapterName] | readonly [AdapterName, AdapterName];

export interface Method {
  readonly name: string;
  /** `undefined`: the frozen base, untrained. */
  readonly training: TrainingRow | undefined;
  /** The ways it is run; with more than one, the better on the validation split is reported. */
  readonly deployments: readonly Deployment[];
}

const plain = {
  roles: 'fixed',
  exchange: 'none',
  draftReward: 'outcome',
  challengeReward: 'outcome',
} as const;
const pair = { adapters: ['A', 'B'], roles: 'rotating', exchange: 'paired', draftReward: 'outcome' } as const;

const GRPO: TrainingRow = { name: 'grpo', adapters: ['A'], ...plain };
const SELF: TrainingRow = { ...plain, name: 'self-refinement', adapters: ['A'], exchange: 'paired' };
const SHARED: TrainingRow = {
  ...pair,
  name: 'shared-opponent',
  exchange: 'shared-hidden',
  challengeReward: 'adversarial',
};
const COOPERATIVE: TrainingRow = { ...pair, name: 'cooperative', challengeReward: 'outcome' };
const AGON: TrainingRow = { ...pair, name: 'agon', challengeReward: 'adversarial' };

const BOTH_WAYS = [
  ['A', 'B'],
  ['B', 'A'],
] as const;
const EITHER = [['A'], ['B']] as const;

/** The main table (paper, table 1), in its order, then the ablations. */
export const METHODS: readonly Method[] = [
  { name: 'zero-shot', training: undefined, deployments: [['base']] },
  { name: 'grpo', training: GRPO, deployments: [['A']] },
  { name: 'self-refinement', training: SELF, deployments: [['A', 'A']] },
  { name: 'grpo-self-cascade', training: GRPO, deployments: [['A', 'A']] },
  { name: 'moa-untrained', training: undefined, deployments: [['base', 'base']] },
  { name: 'shared-opponent', training: SHARED, deployments: EITHER },
  { name: 'cooperative', training: COOPERATIVE, deployments: BOTH_WAYS },
  { name: 'agon', training: AGON, deployments: BOTH_WAYS },
  {
    name: 'agon-margin',
    training: { ...AGON, name: 'agon-margin', challengeReward: 'margin' },
    deployments: BOTH_WAYS,
  },
  {
    name: 'agon-fixed-roles',
    training: { ...AGON, name: 'agon-fixed-roles', roles: 'fixed' },
    deployments: BOTH_WAYS,
  },
  {
    name: 'agon-tiebreak',
    training: { ...AGON, name: 'agon-tiebreak', challengeReward: 'adversarialTiebreak' },
    deployments: BOTH_WAYS,
  },
];

export const METHOD_NAMES = METHODS.map((method) => method.name);

/** @throws naming the methods there are */
export function methodByName(name: string): Method {
  const found = METHODS.find((method) => method.name === name);
  if (!found) throw new Error(`unknown method '${name}': allowed are ${METHOD_NAMES.join(', ')}`);
  return found;
}

/** Who drafts and who challenges at step t (paper: roles swap every step). */
export function rolesAt(row: TrainingRow, step: number): { draft: 'A' | 'B'; challenge: 'A' | 'B' } {
  const [first, second = first] = row.adapters;
  if (!first || !second) throw new Error(`training row '${row.name}' names no adapter`);
  return row.roles === 'rotating' && step % 2 === 1
    ? { draft: second, challenge: first }
    : { draft: first, challenge: second };
}

/** A deployment as text: `A`, `A>B`, `base>base`. */
export function deploymentName(deployment: Deployment): string {
  return deployment.join('>');
}
