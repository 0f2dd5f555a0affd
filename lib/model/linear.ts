/**
 * A linear layer under a LoRA adapter, as one operation: y = x W' with W' = W + s A^T B^T, merged once per call and
 * not added per token. The base is frozen; the gradient goes through two rank-r products to A and B, and nothing of
 * the size of W is made for it.
 *
 * Every product is of two untransposed matrices, which is what wasm multiplies fast: what is transposed explicitly
 * is a weight or has r columns, never activations. Left out: a trainable base (tf.matMul has that), dropout.
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
  return tf.tidy(() => tf.add(W, product(A, tf.mul(B, scale), true, true)));
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
        const u = product(x, tf.mul(A, scale), false, true);
        const v = product(dy, tf.mul(B, scale), false, false);
        const dA = product(v, x, true, false);
        const dB = tf.transpose(product(u, dy, true, false));
        return frozenInput ? [dA, dB] : [dA, dB, product(dy, merged, false, true)];
      },
    };
  });
  return (frozenInput ? op(A, B) : op(A, B, x)) as tf.Tensor2D;
}

/** The product of two matrices, either transposed: natively by a flag, on wasm by hand (see above). */
function product(a: tf.Tensor2D, b: tf.Tensor2D, transposeA: boolean, transposeB: boolean): tf.Tensor2D {
  if (tf.getBackend() === 'tensorflow') return tf.matMul(a, b, transposeA, transposeB);
  const untransposed = (x: tf.Tensor2D, is: boolean): tf.Tensor2D => (is ? tf.transpose(x) : x);
  return tf.matMul(untransposed(a, transposeA), untransposed(b, transposeB));
}
