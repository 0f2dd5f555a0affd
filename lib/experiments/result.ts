/**
 * What the evaluation of one trained method on one split says, as one flat record: the only thing the tables
 * and figures of results read. Left out: the answers themselves, which stay in the run's eval.jsonl.
 */
import { z } from 'zod';

const share = z.number().min(0).max(1);
const count = z.int().min(0);

export const methodResultSchema = z.strictObject({
  method: z.string(),
  seed: count,
  correct: count,
  total: count,
  draftTokens: z.number().min(0),
  finalTokens: z.number().min(0),
  totalTokens: z.number().min(0),
  direction: z.enum(['A>B', 'B>A', '-']).optional(),
  draftCorrect: count.optional(),
  keep: share.optional(),
  convert: share.optional(),
  steps: count,
  secondsPerStep: z.number().min(0).optional(),
  runId: z.string(),
});

/** One method, one training seed, one evaluation. */
export interface MethodResult {
  /** A name of the table of methods, such as `agon`. */
  readonly method: string;
  readonly seed: number;
  /** Problems whose final answer is right, of `total` evaluated. */
  readonly correct: number;
  readonly total: number;
  /** Mean generated tokens per problem in the first stage; 0 for a method of one pass. */
  readonly draftTokens: number;
  /** Mean generated tokens per problem in the stage that answers (the length the paper reports). */
  readonly finalTokens: number;
  /** Mean tokens per problem that were paid for: both stages. */
  readonly totalTokens: number;
  /** Who drafts and who answers; `-` where one adapter does everything. */
  readonly direction?: 'A>B' | 'B>A' | '-';
  /** Problems whose draft was right, for methods of two stages. */
  readonly draftCorrect?: number;
  /** Share of right drafts whose final answer is right too, in [0, 1]. */
  readonly keep?: number;
  /** Share of wrong drafts whose final answer is right, in [0, 1]. */
  readonly convert?: number;
  /** Optimizer steps of the training run. */
  readonly steps: number;
  readonly secondsPerStep?: number;
  /** The folder the numbers come from. */
  readonly runId: string;
}
