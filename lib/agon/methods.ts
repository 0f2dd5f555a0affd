/**
 * The table of methods: who drafts, who challenges, what is shown, which reward, how it is deployed. A method
 * or an ablation is a row here and nothing else; step.ts and cascade.ts read the row and branch on no name.
 *
 * Every trained row spends 2N rollouts per training problem. Left out: schedules, sizes, seeds (experiments/).
 */
import type { AdapterName } from '../records.js';
import type { Shows } from './exchange.js';
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
  readonly adapters: readonly Exclude<AdapterName, 'base'>[];
  /** `rotating`: (A, B) at even steps and (B, A) at odd ones, a ring of three on the same terms; with one adapter both
   * roles are A. */
  readonly roles: 'rotating' | 'fixed';
  readonly exchange: Exchange;
  readonly draftReward: RewardName;
  readonly challengeReward: RewardName;
  /** Weight of the challenge reward's extra term; default the reward's own. */
  readonly rewardWeight?: number;
  /** What a challenger is shown of its rival; default the summary. */
  readonly shows?: Shows;
  /** A rival that does not learn: the base drafts, every adapter challenges. */
  readonly drafter?: 'base';
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
const RING = [
  ['A', 'B'],
  ['B', 'C'],
  ['C', 'A'],
] as const;
const FROM_BASE = [['base', 'A']] as const;

/** The main table (paper, table 1), in its order. */
const MAIN: readonly Method[] = [
  { name: 'zero-shot', training: undefined, deployments: [['base']] },
  { name: 'grpo', training: GRPO, deployments: [['A']] },
  { name: 'self-refinement', training: SELF, deployments: [['A', 'A']] },
  { name: 'grpo-self-cascade', training: GRPO, deployments: [['A', 'A']] },
  { name: 'moa-untrained', training: undefined, deployments: [['base', 'base']] },
  { name: 'shared-opponent', training: SHARED, deployments: EITHER },
  { name: 'cooperative', training: COOPERATIVE, deployments: BOTH_WAYS },
  { name: 'agon', training: AGON, deployments: BOTH_WAYS },
];

/** A method that differs from Agon in what `changes` says. */
function variant(
  name: string,
  changes: Partial<TrainingRow>,
  deployments: readonly Deployment[] = BOTH_WAYS,
): Method {
  return { name, training: { ...AGON, ...changes, name }, deployments };
}

const shown = (shows: Shows) => variant(`agon-shows-${shows}`, { shows });

const VARIANTS: readonly Method[] = [
  // The paper's ablations.
  variant('agon-margin', { challengeReward: 'margin' }),
  variant('agon-fixed-roles', { roles: 'fixed' }),
  variant('agon-tiebreak', { challengeReward: 'adversarialTiebreak' }),
  variant('agon-tiebreak-0.1', { challengeReward: 'adversarialTiebreak', rewardWeight: 0.1 }),
  variant('agon-tiebreak-1', { challengeReward: 'adversarialTiebreak', rewardWeight: 1 }),
  // What is exchanged.
  shown('nothing'),
  shown('dead-ends'),
  shown('path'),
  shown('trace'),
  shown('answer'),
  // Competition, difficulty weighting, or a rival to learn from?
  variant('difficulty-weighted', { challengeReward: 'difficultyWeighted' }),
  variant('frozen-agon', { adapters: ['A'], roles: 'fixed', drafter: 'base' }, FROM_BASE),
  variant(
    'frozen-cooperative',
    { adapters: ['A'], roles: 'fixed', drafter: 'base', challengeReward: 'outcome' },
    FROM_BASE,
  ),
  // Other signals, more policies.
  variant('class-baseline', { challengeReward: 'classBaseline' }),
  variant('agon-bonus-0.25', { rewardWeight: 0.25 }),
  variant('agon-latent', { shows: 'latent' }),
  variant('agon-latent-summary', { shows: 'latent-summary' }),
  variant('agon-ring', { adapters: ['A', 'B', 'C'] }, RING),
];

/** Every method: the main table's, then the variants. */
export const METHODS: readonly Method[] = [...MAIN, ...VARIANTS];
export const MAIN_METHODS = MAIN.map((method) => method.name);
export const METHOD_NAMES = METHODS.map((method) => method.name);

/** @throws naming the methods there are */
export function methodByName(name: string): Method {
  const found = METHODS.find((method) => method.name === name);
  if (!found) throw new Error(`unknown method '${name}': allowed are ${METHOD_NAMES.join(', ')}`);
  return found;
}

/** Who drafts and who challenges at step t (paper: roles swap every step; a ring of three turns by one). */
export function rolesAt(row: TrainingRow, step: number): { draft: AdapterName; challenge: AdapterName } {
  const { adapters, drafter, roles } = row;
  if (adapters.length === 0) throw new Error(`training row '${row.name}' names no adapter`);
  const turn = roles === 'rotating' ? step : 0;
  const at = (i: number) => adapters[i % adapters.length]!;
  return drafter ? { draft: drafter, challenge: at(turn) } : { draft: at(turn), challenge: at(turn + 1) };
}

/** A deployment as text: `A`, `A>B`, `base>base`. */
export function deploymentName(deployment: Deployment): string {
  return deployment.join('>');
}
