/**
 * What the evaluation of one trained method on one split says, as one flat record: the only thing the tables
 * and figures of results read. Left out: the answers themselves, which stay in the run's eval.jsonl.
 */
import { z } from 'zod';

const share = z.number().min(0).max(1);
const count = z.int().min(0);
const tokens = z.number().min(0);

/** One method, one training seed, one evaluation. */
export const methodResultSchema = z.strictObject({
  /** A name of the table of methods, such as `agon`. */
  method: z.string(),
  seed: count,
  /** Problems whose final answer is right, of `total` evaluated. */
  correct: count,
  total: count,
  /** Mean generated tokens per problem in the first stage; 0 for a method of one pass. */
  draftTokens: tokens,
  /** Mean generated tokens per problem in the stage that answers (the length the paper reports). */
  finalTokens: tokens,
  /** Mean generated tokens per problem over both stages. */
  totalTokens: tokens,
  /** Mean prefilled tokens per problem over both stages. */
  promptTokens: tokens,
  /** Wall-clock of the evaluation, batched as it was, per problem. */
  secondsPerProblem: z.number().min(0),
  /** The deployment that was chosen, such as `A>B`; `-` where a method has only one. */
  direction: z.string(),
  /** Problems whose draft was right, for methods of two stages. */
  draftCorrect: count.optional(),
  /** Share of right drafts whose final answer is right too. */
  keep: share.optional(),
  /** Share of wrong drafts whose final answer is right. */
  convert: share.optional(),
  /** Share of final answers that settle for the rival's own proposal, where it made one. */
  copied: share.optional(),
  /** Steps of the final stage per 100 of its tokens: true and new, written before, false (Task.countTrace). */
  usefulPer100: tokens,
  repeatedPer100: tokens,
  wrongPer100: tokens,
  /** Optimizer steps of the training run. */
  steps: count,
  /** Median over the run's steps. */
  secondsPerStep: tokens.optional(),
  /** Tokens sampled in training, prompts included. */
  trainingTokens: count.optional(),
  /** The folder the numbers come from, and the backend they were computed on. */
  runId: z.string(),
  backend: z.string(),
});
export type MethodResult = z.infer<typeof methodResultSchema>;
