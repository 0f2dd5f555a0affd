/**
 * The log-probability of given tokens under rows of logits, with a hand-written gradient.
 *
 * d logp / d z = (onehot - softmax(z / T)) / T: one fused backward instead of a chain of five small ops. Left
 * out: vocabularies so large that [rows, vocabulary] does not fit; callers slice the rows first.
 */
import * as tf from '@tensorflow/tfjs';

/**
 * @param logits [n, vocabulary]
 * @param targets [n] int32
 * @param temperature divides the logits
 * @returns [n] log-probs in nats; differentiable with respect to `logits`
 */
export function selectedLogProbs(
  logits: tf.Tensor2D,
  targets: tf.Tensor1D,
  temperature: number,
): tf.Tensor1D {
  const vocabulary = logits.shape[1];
  const op = tf.customGrad((z, save) => {
    const scaled = tf.div(z as tf.Tensor2D, temperature) as tf.Tensor2D;
    // As int32, then cast: wasm writes integers' bits into a float32 one-hot.
    const oneHot = tf.cast(tf.oneHot(targets, vocabulary), 'float32') as tf.Tensor2D;
    const value = tf.sub(tf.sum(tf.mul(scaled, oneHot), 1), tf.logSumExp(scaled, 1)) as tf.Tensor1D;
    (save as tf.GradSaveFunc)([scaled, oneHot]);
    return {
      value,
      gradFunc: (dy: tf.Tensor, saved: tf.Tensor[]) => {
        const [s, hot] = saved as [tf.Tensor2D, tf.Tensor2D];
        const scale = tf.div(tf.reshape(dy, [-1, 1]), temperature);
        return tf.mul(tf.sub(hot, tf.softmax(s)), scale);
      },
    };
  });
  return op(logits) as tf.Tensor1D;
}

/** The entropy (nats) of each row's distribution at this temperature; [n], not differentiable. */
export function entropies(logits: tf.Tensor2D, temperature: number): tf.Tensor1D {
  return tf.tidy(() => {
    const scaled = tf.div(logits, temperature);
    const mean = tf.sum(tf.mul(tf.softmax(scaled), scaled), 1);
    return tf.sub(tf.logSumExp(scaled, 1), mean) as tf.Tensor1D;
  });
}
