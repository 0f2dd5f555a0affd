/**
 * What the bench asks of a participant, and what comes back: one JSON line each way. A participant is a process of
 * its own – one of our backends, or a Python peer – that loads a model once and then does one measurement per
 * request, so that the repetitions of different participants can be interleaved (A B A B).
 *
 * Requests come on stdin and replies go to file descriptor 3, so that nothing a library prints gets between them.
 * Left out: how a process is started and watched (participant.ts).
 */
import { z } from 'zod';
import type { RunConfig } from '../experiments/config.js';
import type { Product } from '../model/matmuls.js';
import type { Problem } from '../records.js';

/** What can be measured; a participant says which of these it does. */
export const MEASURES = ['sample', 'train', 'grpo', 'agon'] as const;
export type Measure = (typeof MEASURES)[number];

/** Everything participants must have in common. */
export interface Workload {
  /** Folder of the base model. */
  readonly base: string;
  /** Cores each participant may use. */
  readonly threads: number;
  /** Sizes, LoRA, optimizer and sampling of our trainer; the peers take the same. */
  readonly run: RunConfig;
  /** For fixed lengths: prompts in groups of 2N equal ones, and random completions of the context's length. */
  readonly prompts: readonly (readonly number[])[];
  readonly completions: readonly (readonly number[])[];
  /** For whole steps: consecutive slices of `run.problemsPerStep`. */
  readonly problems: readonly { readonly problem: Problem; readonly prompt: string }[];
  /** Rewards alternate instead of being earned: a random model earns none, and then nothing is trained. */
  readonly alternateRewards: boolean;
}

export type Request =
  | { readonly ask: 'open'; readonly workload: Workload }
  /** Seconds of one product of each shape, all threads at work. */
  | { readonly ask: 'rates'; readonly products: readonly Product[] }
  /** Fixed lengths: end-of-sequence is ignored, every row gets `completion` tokens. */
  | { readonly ask: 'sample' | 'train'; readonly rows: number; readonly completion: number }
  /** One whole step: rollouts to end-of-sequence or the cap, rewards, one update. */
  | { readonly ask: 'grpo' | 'agon'; readonly step: number }
  /** Where the time of one thread goes. */
  | {
      readonly ask: 'profile';
      readonly what: 'sample' | 'train';
      readonly rows: number;
      readonly completion: number;
    };

export const openedSchema = z.strictObject({
  /** What is installed, by name. */
  versions: z.record(z.string(), z.string()),
  device: z.string(),
  measures: z.array(z.enum(MEASURES)),
});
export type Opened = z.infer<typeof openedSchema>;

export const ratesSchema = z.strictObject({ seconds: z.array(z.number().positive()) });

/** `tokens`: completion tokens for sampling and steps, prompt and completion tokens for training. */
export const timingSchema = z.strictObject({
  seconds: z.number().positive(),
  tokens: z.number().positive(),
  /** Of a whole step, where it can be told apart. */
  samplingSeconds: z.number().positive().optional(),
});
export type Timing = z.infer<typeof timingSchema>;

export const profileSchema = z.strictObject({
  /** Wall clock of the profiled piece, by a run without timers. */
  seconds: z.number().positive(),
  parts: z.array(
    z.strictObject({
      name: z.string(),
      calls: z.number(),
      seconds: z.number(),
      /** Of products only. */
      flops: z.number().optional(),
    }),
  ),
});
export type Profile = z.infer<typeof profileSchema>;

export const failureSchema = z.strictObject({ error: z.string() });
