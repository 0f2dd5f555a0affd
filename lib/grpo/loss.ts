/**
 * The GRPO loss on plain numbers: per-token terms, how they are averaged, and their derivative.
 *
 *   l_t = -min(r_t A, clip(r_t, 1 - epsilon, 1 + epsilonHigh) A) + beta k3_t,   r_t = exp(logp_t - old_t)
 *   L   = sum over sequences i and tokens t of w_i l_it
 *
 * What TRL calls `loss_type` is only the weight w_i, so it is computed for the whole optimizer step first and
 * then any split into micro-batches gives the same sum: accumulation is exact for every loss type. The
 * derivative with respect to each log-prob is returned too; the model's backward pass starts from it. Left
 * out: where the log-probs come from (gradient.ts).
 */

/** TRL's `loss_type`. `bnpo` and `dapo` differ in TRL by the scope of the mean; here both see the whole step. */
export const LOSS_TYPES = ['grpo', 'bnpo', 'dr_grpo', 'dapo'] as const;
export type LossType = (typeof LOSS_TYPES)[number];

export interface LossOptions {
  /** Clip below at 1 - epsilon. */
  readonly epsilon: number;
  /** Clip above at 1 + epsilonHigh. */
  readonly epsilonHigh: number;
  /** Weight of the k3 KL to the base model; 0 needs no reference. */
  readonly beta: number;
}

/**
 * The weight w_i of each token of sequence i. A sequence of length 0 here is one that is masked out.
 * - grpo: mean over a sequence's tokens, then over sequences: 1 / (len_i n)
 * - bnpo, dapo: mean over all tokens: 1 / sum(len)
 * - dr_grpo: a constant: 1 / (n maxCompletionLength) (Dr. GRPO, Liu et al. 2025)
 * @param lengths completion tokens in the loss (EOS included), per sequence
 */
export function tokenWeights(
  lossType: LossType,
  lengths: readonly number[],
  maxCompletionLength: number,
): number[] {
  const n = lengths.length;
  const total = lengths.reduce((a, b) => a + b, 0);
  switch (lossType) {
    case 'grpo':
      return lengths.map((length) => 1 / (Math.max(1, length) * n));
    case 'bnpo':
    case 'dapo':
      return lengths.map(() => 1 / Math.max(1, total));
    case 'dr_grpo':
      return lengths.map(() => 1 / (n * maxCompletionLength));
  }
}

export interface SequenceLoss {
  /** The sequence's part of L. */
  readonly loss: number;
  /** dL/dlogp_t, one per token. */
  readonly dLogProbs: Float32Array;
  /** Sums over the tokens, for the metrics. */
  readonly clippedLow: number;
  readonly clippedHigh: number;
  readonly kl: number;
}

/**
 * One sequence's part of the loss and its derivative.
 * @param logProbs under the current policy, per completion token (nats)
 * @param oldLogProbs under the policy that sampled
 * @param refLogProbs under the base model; needed when beta > 0
 */
export function sequenceLoss(
  logProbs: ArrayLike<number>,
  oldLogProbs: ArrayLike<number>,
  refLogProbs: ArrayLike<number> | undefined,
  advantage: number,
  weight: number,
  { epsilon, epsilonHigh, beta }: LossOptions,
): SequenceLoss {
  const n = logProbs.length;
  if (oldLogProbs.length !== n || (refLogProbs && refLogProbs.length !== n))
    throw new Error(
      `log-probs of different lengths: ${n}, old ${oldLogProbs.length}, ref ${refLogProbs?.length}`,
    );
  if (beta > 0 && !refLogProbs) throw new Error(`beta ${beta} needs the reference's log-probs`);
  const dLogProbs = new Float32Array(n);
  const sums = { loss: 0, clippedLow: 0, clippedHigh: 0, kl: 0 };
  for (let t = 0; t < n; t++) {
    const ratio = Math.exp(logProbs[t]! - oldLogProbs[t]!);
    const clipped = Math.min(Math.max(ratio, 1 - epsilon), 1 + epsilonHigh);
    const isClipped = clipped * advantage < ratio * advantage;
    let loss = -Math.min(ratio * advantage, clipped * advantage);
    let slope = isClipped ? 0 : -ratio * advantage;
    if (ratio < 1 - epsilon && advantage < 0) sums.clippedLow += 1;
    if (ratio > 1 + epsilonHigh && advantage > 0) sums.clippedHigh += 1;
    if (refLogProbs) {
      const delta = refLogProbs[t]! - logProbs[t]!;
      const kl = k3(delta);
      sums.kl += kl;
      loss += beta * kl;
      slope += beta * (1 - Math.exp(delta));
    }
    sums.loss += weight * loss;
    dLogProbs[t] = weight * slope;
  }
  return { ...sums, dLogProbs };
}

/** The k3 estimate of KL(policy || ref) (Schulman): exp(d) - d - 1 with d = ref - policy; never negative. */
export function k3(delta: number): number {
  return Math.exp(delta) - delta - 1;
}
