/**
 * Log-probabilities and entropies of given tokens, with hand-written gradients: from logits, and from hidden states
 * without ever holding [tokens, vocabulary], which for a vocabulary of 150,000 would be most of the memory.
 *
 * d logp / d z = (onehot - softmax(z)) / T. A row's slope at the hidden states does not depend on what comes from
 * above except by a factor, so it is made with the forward pass, block by block, and no logits are kept or computed
 * again (as in Liger Kernel's fused linear cross-entropy, arXiv 2410.10989). Left out: a trained output matrix there
 * (pretraining goes through the logits).
 */
import * as tf from '@tensorflow/tfjs';

/** Logits that exist at once in `scoreTokens`; with softmax and one-hot it is four tensors of 4-byte floats. */
export const MAX_LOGITS = 2 ** 24;

/** The matrix that turns hidden states into logits. */
export interface OutputHead {
  readonly weight: tf.Tensor2D;
  /** True: [vocabulary, d], the embedding's own table. False: [d, vocabulary]. */
  readonly transposed: boolean;
}

export interface TokenScores {
  /** [n], nats */
  readonly logProbs: tf.Tensor1D;
  /** [n], nats; not differentiable */
  readonly entropies: tf.Tensor1D;
}

export interface ScoreOptions {
  /** Divides the logits. */
  readonly temperature: number;
  /** Whether a gradient will be asked for: it costs as much again. */
  readonly differentiable: boolean;
  readonly maxLogits?: number;
}

/**
 * Log-probs of the targets and entropies of the distributions they were drawn from.
 * @param hidden [n, d]
 * @param targets [n] int32
 * @returns differentiable with respect to `hidden`; the head is frozen
 */
export function scoreTokens(
  hidden: tf.Tensor2D,
  head: OutputHead,
  targets: tf.Tensor1D,
  options: ScoreOptions,
): TokenScores {
  const { differentiable, maxLogits = MAX_LOGITS } = options;
  const vocabulary = head.weight.shape[head.transposed ? 0 : 1];
  const rows = hidden.shape[0];
  const rowsAtOnce = Math.max(1, Math.floor(maxLogits / vocabulary));
  const inBlocks = (hidden: tf.Tensor2D): Block => {
    if (rows <= rowsAtOnce) return scoreBlock(hidden, head, targets, options);
    const blocks: Block[] = [];
    for (let start = 0; start < rows; start += rowsAtOnce) {
      const size = Math.min(rowsAtOnce, rows - start);
      const part = tf.slice(hidden, [start, 0], [size, -1]);
      blocks.push(scoreBlock(part, head, tf.slice(targets, [start], [size]), options));
    }
    return {
      scores: tf.concat(
        blocks.map((b) => b.scores),
        1,
      ),
      ...(differentiable ? { slopes: tf.concat(blocks.map((b) => b.slopes!)) } : {}),
    };
  };
  const op = tf.customGrad((...args) => {
    const [hidden, save] = args as unknown as [tf.Tensor2D, tf.GradSaveFunc];
    const { scores, slopes } = inBlocks(hidden);
    if (slopes) save([slopes]);
    return {
      value: scores,
      gradFunc: (dy, [slopes]) => tf.mul(slopes!, tf.reshape(tf.slice(dy, [0, 0], [1, -1]), [-1, 1])),
    };
  });
  const [logProbs, entropies] = tf.unstack(op(hidden)) as [tf.Tensor1D, tf.Tensor1D];
  return { logProbs, entropies };
}

interface Block {
  /** [2, n]: log-probs and entropies. */
  readonly scores: tf.Tensor2D;
  /** [n, d]: d logp / d hidden. */
  readonly slopes?: tf.Tensor2D;
}

function scoreBlock(
  hidden: tf.Tensor2D,
  { weight, transposed }: OutputHead,
  targets: tf.Tensor1D,
  { temperature, differentiable }: ScoreOptions,
): Block {
  return tf.tidy(() => {
    const shifted = tf.tidy(() => shift(tf.matMul(tf.div(hidden, temperature), weight, false, transposed)));
    const { logProbs, entropies, p, oneHot } = distribution(shifted, targets);
    const scores = tf.stack([logProbs, entropies()]) as tf.Tensor2D;
    if (!differentiable) return { scores };
    const toLogits = tf.sub<tf.Tensor2D>(oneHot, p);
    return {
      scores,
      slopes: tf.div<tf.Tensor2D>(tf.matMul(toLogits, weight, false, !transposed), temperature),
    };
  });
}

/**
 * Log-probs of the targets from logits, for where the output matrix is trained too.
 * @param logits [n, vocabulary]
 * @param targets [n] int32
 * @returns [n] nats; differentiable with respect to `logits`
 */
export function selectedLogProbs(logits: tf.Tensor2D, targets: tf.Tensor1D): tf.Tensor1D {
  const op = tf.customGrad((...args) => {
    const [z, save] = args as unknown as [tf.Tensor2D, tf.GradSaveFunc];
    const { logProbs, p, oneHot } = distribution(shift(z), targets);
    save([tf.sub(oneHot, p)]);
    return { value: logProbs, gradFunc: (dy, [slopes]) => tf.mul(slopes!, tf.reshape(dy, [-1, 1])) };
  });
  return op(logits) as tf.Tensor1D;
}

/** Logits without each row's largest: no exponential overflows. */
function shift(logits: tf.Tensor2D): tf.Tensor2D {
  return tf.sub(logits, tf.max(logits, 1, true));
}

/**
 * Softmax p, and what log-probs, entropies and slopes are made of; frees what else is of that size on the way.
 * @param shifted [n, vocabulary], as `shift` gives them
 */
function distribution(shifted: tf.Tensor2D, targets: tf.Tensor1D) {
  const { p, total } = tf.tidy(() => {
    const exp = tf.exp(shifted);
    const total = tf.sum(exp, 1, true);
    return { p: tf.div<tf.Tensor2D>(exp, total), total };
  });
  const logTotal = tf.log(tf.reshape(total, [-1]));
  // As int32, then cast: wasm writes integers' bits into a float32 one-hot.
  const oneHot = tf.tidy(() =>
    tf.cast<tf.Tensor2D>(tf.oneHot(targets, shifted.shape[1]) as tf.Tensor2D, 'float32'),
  );
  const sumOver = (weights: tf.Tensor2D) => tf.tidy(() => tf.sum(tf.mul(shifted, weights), 1));
  return {
    p,
    oneHot,
    logProbs: tf.sub<tf.Tensor1D>(sumOver(oneHot), logTotal),
    entropies: () => tf.sub<tf.Tensor1D>(logTotal, sumOver(p)),
  };
}
