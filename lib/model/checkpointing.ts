/**
 * Gradient checkpointing (arXiv 1604.06174; transformers' `gradient_checkpointing`): of a part of the computation
 * only the input is kept, and the backward pass computes the part again, under a tape of its own, before it goes
 * through it. Memory for one part's activations at a time, for a forward pass more. Left out: which parts; a trained
 * base.
 */
import * as tf from '@tensorflow/tfjs';

/**
 * f(x, trained, constants), differentiable in x and `trained`, without what f computes on the way.
 * @param f a pure function; besides its arguments it may read only tensors that outlive the backward pass
 */
export function checkpoint(
  f: (x: tf.Tensor2D, trained: readonly tf.Tensor[], constants: readonly tf.Tensor[]) => tf.Tensor2D,
  x: tf.Tensor2D,
  trained: readonly tf.Tensor[],
  constants: readonly tf.Tensor[],
): tf.Tensor2D {
  const op = tf.customGrad((...args) => {
    const save = args.pop() as unknown as tf.GradSaveFunc;
    save([x, ...trained, ...constants]);
    return {
      value: f(x, trained, constants),
      gradFunc: (dy, saved) => {
        const inputs = saved.slice(0, 1 + trained.length);
        const constants = saved.slice(1 + trained.length);
        const again = (...given: tf.Tensor[]) => f(given[0] as tf.Tensor2D, given.slice(1), constants);
        return withTapeOfItsOwn(() => tf.grads(again)(inputs, dy));
      },
    };
  });
  return op(x, ...trained) as tf.Tensor2D;
}

/** TensorFlow.js has one tape and lets go of it after a gradient: the outer one is put back, with what it still frees. */
function withTapeOfItsOwn<T>(run: () => T): T {
  const { state } = tf.engine();
  const outer = state.activeTape;
  try {
    return run();
  } finally {
    state.activeTape = outer;
  }
}
