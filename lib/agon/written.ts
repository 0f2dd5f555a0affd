/**
 * A group of eight hand-written attempts, to try a reward on before anything is sampled: right and wrong ones beside a
 * wrong rival, a right one and one that left nothing, one without the format, one that was cut off. They are records
 * like any other, of one countdown problem, and the task's verifier agrees with what they say of themselves.
 *
 * Left out: what the numbers mean (grpo/advantages.ts) and how they are shown (notebook/check.ts).
 */
import type { Attempt, Completion, Problem, Reward } from '../records.js';
import { rewardOf } from './rewards.js';

/** Which stream a reward is for: challenges have a rival each, drafts (and single policies) have none. */
export type RewardedStream = 'challenge' | 'draft';

/** An attempt, and in words what it is. */
export interface WrittenAttempt {
  readonly own: 'right' | 'wrong' | 'right, no format' | 'cut off';
  readonly rival: 'right' | 'wrong' | 'left nothing' | 'none';
  readonly attempt: Attempt;
}

const PROBLEM: Problem = {
  id: 'countdown-3-5-6-11-34',
  question: 'numbers 5 6 11 3 target 34',
  gold: '34',
  difficulty: 12,
  split: 'train',
};

const FIRST_TRY = 'try 6 x 5 = 30 then 11 - 3 = 8 left 30 8 : 38 22 big target 34 dead';
const RIGHT: Completion = {
  think: `${FIRST_TRY} try 11 x 3 = 33 then 6 - 5 = 1 left 33 1 : 34 32 big target 34 hit`,
  summary: 'dead 6 x 5 path 11 x 3 = 33 then 6 - 5 = 1',
  answer: '33 + 1',
  formatted: true,
};
const WRONG: Completion = {
  think: FIRST_TRY.replace('dead', 'hit'),
  summary: 'path 6 x 5 = 30 then 11 - 3 = 8',
  answer: '30 + 8',
  formatted: true,
};
const NO_FORMAT: Completion = { ...RIGHT, formatted: false };
const CUT_OFF: Completion = { think: FIRST_TRY, summary: '', answer: undefined, formatted: false };

const COMPLETIONS = {
  right: RIGHT,
  wrong: WRONG,
  'right, no format': NO_FORMAT,
  'cut off': CUT_OFF,
  'left nothing': CUT_OFF,
} as const;

/** Own, its tokens, the rival, its tokens. The second is shorter than its right rival, so that a tiebreak shows. */
const GROUP = [
  ['right', 90, 'wrong', 70],
  ['right', 80, 'right', 110],
  ['right', 120, 'left nothing', 200],
  ['wrong', 70, 'wrong', 70],
  ['wrong', 60, 'right', 110],
  ['wrong', 100, 'left nothing', 200],
  ['right, no format', 90, 'wrong', 70],
  ['cut off', 200, 'right', 110],
] as const;

function written(kind: keyof typeof COMPLETIONS, tokens: number, more: Pick<Attempt, 'adapter' | 'role'>) {
  const completion = COMPLETIONS[kind];
  return {
    problem: PROBLEM,
    ...more,
    rollout: {
      promptIds: Array.from({ length: 12 }, () => 0),
      completionIds: Array.from({ length: tokens }, () => 0),
      logProbs: Array.from({ length: tokens }, () => -0.3),
      finishReason: completion === CUT_OFF ? ('length' as const) : ('stop' as const),
    },
    completion,
    correct: completion === RIGHT || completion === NO_FORMAT,
    formatted: completion.formatted,
  };
}

/** The eight attempts: one group of `numGenerations` 8 at one problem. */
export function writtenAttempts(stream: RewardedStream = 'challenge'): WrittenAttempt[] {
  return GROUP.map(([own, tokens, rival, rivalTokens]) =>
    stream === 'draft'
      ? { own, rival: 'none', attempt: written(own, tokens, { adapter: 'A', role: 'draft' }) }
      : {
          own,
          rival,
          attempt: {
            ...written(own, tokens, { adapter: 'B', role: 'challenge' }),
            rival: written(rival, rivalTokens, { adapter: 'A', role: 'draft' }),
          },
        },
  );
}

/**
 * What a reward pays for the written attempts, in order; undefined where it does not apply.
 * @throws naming the attempt, when the reward fails, gives something that is no number, or gives another number when it
 *   is asked again: a run that is resumed would end elsewhere
 */
export function payments(reward: Reward, stream: RewardedStream = 'challenge'): (number | undefined)[] {
  const all = writtenAttempts(stream);
  const group = all.map(({ attempt }) => attempt);
  const pay = () =>
    all.map(({ own, rival, attempt }, i) =>
      rewardOf(
        reward,
        attempt,
        group,
        `written attempt ${i + 1} (own: ${own}; rival: ${rival}; ${attempt.rollout.completionIds.length} tokens)`,
      ),
    );
  const [paid, again] = [pay(), pay()];
  const other = paid.findIndex((value, i) => value !== again[i]);
  if (other >= 0)
    throw new Error(
      `the reward of written attempt ${other + 1} is ${paid[other]} and, asked again, ${again[other]}: ` +
        'it must follow from own, rival and group alone, or a run that is resumed ends elsewhere',
    );
  return paid;
}
