/**
 * What the evaluation of one trained method on one split says, as one flat record: the only thing the tables
 * and figures of results read. Left out: the answers themselves, which stay in the run's eval.jsonl.
 */

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
