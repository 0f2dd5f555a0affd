/**
 * The plain records that stand between the arrows of the method:
 *
 *   Problem --prompt--> Rollout --parse--> Completion --verify--> Attempt --reward--> number
 *
 * All of them are serialisable. This file holds no logic: what makes and what reads a record lives in the
 * room named after the arrow (tasks, rollouts, text, verifiers, agon, grpo).
 */

/** Which part of the data a problem belongs to; the three are disjoint by construction. */
export type Split = 'train' | 'validation' | 'heldout';

/** One problem of a task. `gold` is what the verifier compares with, written as text. */
export interface Problem {
  readonly id: string;
  readonly question: string;
  readonly gold: string;
  /** In the task's own unit; for countdown the number of hitting leaves (fewer is harder). */
  readonly difficulty: number;
  readonly split: Split;
}

/** What a policy may read beside its prompt: keys and values that a rival has computed (lib/latent). */
export interface Memory {
  /** S, at least 1. */
  readonly places: number;
  /** Per layer, each [key heads, S, head size]; keys are rotated for the places -S to -1, right before the prompt. */
  readonly layers: readonly { readonly k: Float32Array; readonly v: Float32Array }[];
}

/** One sampled continuation of one prompt. */
export interface Rollout {
  readonly promptIds: readonly number[];
  /** Includes the end-of-sequence token when `finishReason` is `stop`. */
  readonly completionIds: readonly number[];
  /** Log-probability (nats) of each completion token under the sampling policy at its temperature. */
  readonly logProbs: readonly number[];
  /** `stop`: the model ended the sequence; `length`: it was cut at the token cap. */
  readonly finishReason: 'stop' | 'length';
  /** What was read beside the prompt. */
  readonly memory?: Memory;
}

/** A completion taken apart: private reasoning, summary for others, final answer. */
export interface Completion {
  readonly think: string;
  readonly summary: string;
  readonly answer: string | undefined;
  /** phi of the paper: `<think>` closed, then a summary, then exactly one `<answer>`, and ended by itself. */
  readonly formatted: boolean;
}

/** The adapters of the pair, and a third for a ring; `base` is the frozen base without an adapter. */
export type AdapterName = 'A' | 'B' | 'C' | 'base';

/** What the policy was asked to do: draft (plain prompt, read by a rival), challenge (reads a rival), solo. */
export type Role = 'draft' | 'challenge' | 'solo';

/** One try at one problem, judged. */
export interface Attempt {
  readonly problem: Problem;
  readonly adapter: AdapterName;
  readonly role: Role;
  readonly rollout: Rollout;
  readonly completion: Completion;
  /** c of the paper: the verifier's verdict on the final answer. */
  readonly correct: boolean;
  /** phi of the paper. */
  readonly formatted: boolean;
  /** The attempt whose summary this one has read (or, for the shared opponent, is scored against unseen). */
  readonly rival?: Attempt;
}

/**
 * The reward of one attempt. `group` is every attempt at the same problem in the same stream, itself included.
 * `undefined` means "not applicable": the attempt is left out of its group's statistics and gets advantage 0.
 */
export type Reward = (
  own: Attempt,
  rival: Attempt | undefined,
  group: readonly Attempt[],
) => number | undefined;
