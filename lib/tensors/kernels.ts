/**
 * Repairs of TensorFlow.js that the model relies on, registered once after a backend has started.
 *
 * wasm multiplies batches of matrices with a scalar loop; batched-matmul.ts goes before it. It multiplies two
 * matrices fast (about 30 GFLOP/s) only when both are rank 2 and untransposed, but the stock gradient of matMul
 * asks for transposed operands and falls to 1-2 GFLOP/s. The gradient registered here transposes explicitly,
 * which costs a copy and wins an order of magnitude.
 */
import * as tf from '@tensorflow/tfjs';
import { registerBatchedMatMul } from './batched-matmul.js';

let done = false;

/** Registers the repairs that `backend` needs; calling it again changes nothing. */
export function registerKernelFixes(backend: string): void {
  if (done || backend === 'tensorflow') return;
  done = true;
  registerBatchedMatMul();
  tf.unregisterGradient('BatchMatMul');
  tf.registerGradient({
    kernelName: 'BatchMatMul',
    inputsToSave: ['a', 'b'],
    gradFunc: (gradient, saved, attrs) => {
      const dy = gradient as tf.Tensor;
      const [a, b] = saved as [tf.Tensor, tf.Tensor];
      const { transposeA, transposeB } = attrs as unknown as { transposeA: boolean; transposeB: boolean };
      const A = () => (transposeA ? a : swap(a)); // the transpose of what was multiplied
      const B = () => (transposeB ? b : swap(b));
      return {
        a: () => (transposeA ? swap(tf.matMul(dy, B())) : tf.matMul(dy, B())),
        b: () => (transposeB ? swap(tf.matMul(A(), dy)) : tf.matMul(A(), dy)),
      };
    },
  });
}

/** Swaps the last two axes. */
function swap(x: tf.Tensor): tf.Tensor {
  const axes = x.shape.map((_, i) => i);
  const [row, column] = axes.splice(-2) as [number, number];
  return tf.transpose(x, [...axes, column, row]);
}
