/**
 * A linear layer under a LoRA adapter, as one operation: y = x W' with W' = W + s A^T B^T, merged once per call and
 * not added per token. The base is frozen; the gradient goes through two rank-r products to A and B, and nothing of
 * the size of W is made for it.
 *
 * Left out: a trainable base (tf.matMul has that), dropout.
 */
import * as tf from '@tensorflow/tfjs';

/** A frozen linear layer with a LoRA adapter on it. */
export interface AdaptedLinear {
  /** [in, out] */
  readonly W: tf.Tensor2D;
  /** [r, in] */
  readonly A: tf.Tensor2D;
  /** [out, r] */
  readonly B: tf.Tensor2D;
  /** alpha / r */
  readonly scale: number;
}

/** W + s A^T B^T [in, out]: the weight of the layer with its adapter. */
export function mergedWeight({ W, A, B, scale }: AdaptedLinear): tf.Tensor2D {
  return tf.tidy(() => tf.add(W, tf.matMul(A, tf.mul(B, scale), true, true)));
}

/**
 * x W', differentiable in x, A and B.
 * @param x [N, in]
 * @param frozenInput nothing that is trained leads to x: its gradient, a product as large as the forward one, is
 *   not made
 * @returns [N, out]
 */
export function adaptedLinear(x: tf.Tensor2D, layer: AdaptedLinear, frozenInput = false): tf.Tensor2D {
  const { A, B, scale } = layer;
  const op = tf.customGrad((...args) => {
    const save = args.pop() as unknown as tf.GradSaveFunc;
    const merged = mergedWeight(layer);
    save([x, A, B, merged]);
    return {
      value: tf.matMul(x, merged),
      gradFunc: (gradient, saved) => {
        const dy = gradient as tf.Tensor2D;
        const [x, A, B, merged] = saved as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
        const u = tf.matMul(x, tf.mul(A, scale), false, true);
        const v = tf.matMul(dy, tf.mul(B, scale));
        const dA = tf.matMul(v, x, true);
        const dB = tf.matMul(dy, u, true);
        return frozenInput ? [dA, dB] : [dA, dB, tf.matMul(dy, merged, false, true)];
      },
    };
  });
  return (frozenInput ? op(A, B) : op(A, B, x)) as tf.Tensor2D;
}
