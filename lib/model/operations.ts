/**
 * The transformer's operations with hand-written gradients: RMS normalisation, rotary positions, SwiGLU,
 * attention, and the embedding. Each is one node on the gradient tape: fewer tensors are kept and fewer kernels
 * run than the composed operations need, and the embedding avoids a kernel that wasm lacks.
 *
 * What is trained never has to be stated: TensorFlow.js asks an operation for its gradient only when a watched
 * tensor leads to it. Left out: second derivatives, dropout.
 */
import * as tf from '@tensorflow/tfjs';
import { hasKernel } from '../tensors/kernels.js';

/** Added to the score of a key that must not be seen. Finite, so that a row of padding only stays finite. */
const MASKED = -1e9;

/** x / rms(x) * weight over the last axis. RMSNorm, arXiv 1910.07467 eq. 4. */
export function rmsNorm<T extends tf.Tensor>(x: T, weight: tf.Tensor1D, eps: number): T {
  if (!hasKernel('RmsNorm')) return tf.mul(rmsNormalise(x, eps), weight);
  const op = tf.customGrad((...args) => {
    const [x, weight, save] = args as unknown as [tf.Tensor, tf.Tensor1D, tf.GradSaveFunc];
    save([x, weight]);
    return {
      value: run('RmsNorm', { x, weight }, { eps }),
      gradFunc: (dy, saved) => {
        const [x, weight] = saved as [tf.Tensor, tf.Tensor1D];
        return runAll('RmsNormGrad', { x, weight, dy }, { eps });
      },
    };
  });
  return op(x, weight) as T;
}

/** x / rms(x) over the last axis, for a weight that is folded into what follows. */
export function rmsNormalise<T extends tf.Tensor>(x: T, eps: number): T {
  const op = tf.customGrad((input, save) => {
    const x = input as tf.Tensor;
    const inverse = tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), eps));
    const y = tf.mul(x, inverse);
    (save as tf.GradSaveFunc)([y, inverse]);
    return {
      value: y,
      gradFunc: (dy, saved) => {
        const [y, inverse] = saved as [tf.Tensor, tf.Tensor];
        return tf.mul(inverse, tf.sub(dy, tf.mul(y, tf.mean(tf.mul(dy, y), -1, true))));
      },
    };
  });
  return op(x) as T;
}

/** cos and sin of every position's angles, and the signed permutation that makes rotate-half a matMul. */
export interface Rotary {
  /** [R, 1, T, hd] */
  readonly cos: tf.Tensor4D;
  /** [R, 1, T, hd] */
  readonly sin: tf.Tensor4D;
  /** [hd, hd]: x @ swap = concat(-x[hd/2:], x[:hd/2]) */
  readonly swap: tf.Tensor2D;
}

/** The rotary tables of positions [R, T] (float). RoPE, arXiv 2104.09864, in the half-split layout of Llama and Qwen. */
export function rotary(positions: tf.Tensor2D, headDim: number, theta: number): Rotary {
  return tf.tidy(() => {
    const half = headDim / 2;
    const frequencies = Float32Array.from({ length: headDim }, (_, i) => theta ** (-(i % half) / half));
    const angles = tf.mul(
      tf.reshape(positions, [positions.shape[0], 1, positions.shape[1], 1]),
      tf.tensor1d(frequencies),
    );
    const swap = new Float32Array(headDim * headDim);
    for (let i = 0; i < half; i++) {
      swap[(i + half) * headDim + i] = -1;
      swap[i * headDim + i + half] = 1;
    }
    return {
      cos: tf.cos(angles) as tf.Tensor4D,
      sin: tf.sin(angles) as tf.Tensor4D,
      swap: tf.tensor2d(swap, [headDim, headDim]),
    };
  });
}

/** Turns each pair of x [R, H, T, hd] by its position's angle; the gradient turns back. */
export function rotate(x: tf.Tensor4D, table: Rotary): tf.Tensor4D {
  const op = tf.customGrad((input, save) => {
    const x = input as tf.Tensor4D;
    // Kept by the tape: the caller's tidy may end before the gradient is asked for.
    (save as tf.GradSaveFunc)([table.cos, table.sin, table.swap]);
    const turn = (x: tf.Tensor4D, { cos, sin, swap }: Rotary, sign: 1 | -1): tf.Tensor => {
      if (hasKernel('Rotate')) return run('Rotate', { x, cos, sin }, { sign });
      const across = tf.mul(swapHalves(x, swap), sin);
      return sign === 1 ? tf.add(tf.mul(x, cos), across) : tf.sub(tf.mul(x, cos), across);
    };
    return {
      value: turn(x, table, 1),
      gradFunc: (dy, saved) => {
        const [cos, sin, swap] = saved as [tf.Tensor4D, tf.Tensor4D, tf.Tensor2D];
        return turn(dy as tf.Tensor4D, { cos, sin, swap }, -1);
      },
    };
  });
  return op(x) as tf.Tensor4D;
}

function swapHalves(x: tf.Tensor4D, swap: tf.Tensor2D): tf.Tensor4D {
  return tf.reshape(tf.matMul(tf.reshape(x, [-1, x.shape[3]]), swap), x.shape);
}

/** silu(gate) * up, elementwise. SwiGLU, arXiv 2002.05202. */
export function swiglu(gate: tf.Tensor2D, up: tf.Tensor2D): tf.Tensor2D {
  const op = hasKernel('SwiGLU') ? swigluKernel() : swigluComposed();
  return op(gate, up) as tf.Tensor2D;
}

function swigluKernel() {
  return tf.customGrad((...args) => {
    const [gate, up, save] = args as unknown as [tf.Tensor, tf.Tensor, tf.GradSaveFunc];
    save([gate, up]);
    return {
      value: run('SwiGLU', { gate, up }),
      gradFunc: (dy, saved) => {
        const [gate, up] = saved as [tf.Tensor, tf.Tensor];
        return runAll('SwiGLUGrad', { gate, up, dy });
      },
    };
  });
}

function swigluComposed() {
  return tf.customGrad((...args) => {
    const [gate, up, save] = args as unknown as [tf.Tensor, tf.Tensor, tf.GradSaveFunc];
    const sigmoid = tf.sigmoid(gate);
    const silu = tf.mul(gate, sigmoid);
    save([sigmoid, silu, up]);
    return {
      value: tf.mul(silu, up),
      gradFunc: (dy, saved) => {
        const [sigmoid, silu, up] = saved as [tf.Tensor, tf.Tensor, tf.Tensor];
        // silu' = sigmoid + silu (1 - sigmoid)
        const slope = tf.sub(tf.add(sigmoid, silu), tf.mul(silu, sigmoid));
        return [tf.mul(tf.mul(dy, up), slope), tf.mul(dy, silu)];
      },
    };
  });
}

/**
 * Softmax attention with grouped queries: query head h reads key head floor(h / (H / Hkv)).
 * The query heads of one key head are stacked in the rows of one matrix, so no key is repeated.
 * @param q [R, H, T, hd]
 * @param k [R, Hkv, S, hd]
 * @param v [R, Hkv, S, hd]
 * @param bias [R, 1, T, S], added to the scores (see attentionBias)
 * @returns [R, H, T, hd]
 */
export function attention(q: tf.Tensor4D, k: tf.Tensor4D, v: tf.Tensor4D, bias: tf.Tensor4D): tf.Tensor4D {
  if (hasKernel('Attention')) return attentionByKernel(q, k, v, bias);
  const [R, H, T, hd] = q.shape;
  const [Hkv, S] = [k.shape[1], k.shape[2]];
  const stackQueries = (x: tf.Tensor) => tf.reshape(x, [R * Hkv, (H / Hkv) * T, hd]) as tf.Tensor3D;
  const stackKeys = (x: tf.Tensor) => tf.reshape(x, [R * Hkv, S, hd]) as tf.Tensor3D;
  const scale = 1 / Math.sqrt(hd);
  const op = tf.customGrad((qInput, kInput, vInput, save) => {
    const query = tf.mul(stackQueries(qInput as tf.Tensor), scale);
    const key = stackKeys(kInput as tf.Tensor);
    const value = stackKeys(vInput as tf.Tensor);
    const scores = tf.reshape(tf.matMul(query, key, false, true), [R, H, T, S]);
    const p = tf.reshape(tf.softmax(tf.add(scores, bias)), [R * Hkv, (H / Hkv) * T, S]) as tf.Tensor3D;
    const out = tf.matMul(p, value);
    (save as tf.GradSaveFunc)([query, key, value, p, out]);
    return {
      value: tf.reshape(out, q.shape),
      gradFunc: (dy, saved) => {
        const [query, key, value, p, out] = saved as [
          tf.Tensor3D,
          tf.Tensor3D,
          tf.Tensor3D,
          tf.Tensor3D,
          tf.Tensor3D,
        ];
        const dOut = stackQueries(dy);
        const dV = tf.matMul(p, dOut, true, false);
        const dP = tf.matMul(dOut, value, false, true);
        // The softmax's gradient needs sum_s dP p, which is dOut . out (arXiv 2205.14135, appendix B.4).
        const dScores = tf.mul(p, tf.sub(dP, tf.sum(tf.mul(dOut, out), -1, true))) as tf.Tensor3D;
        const dQ = tf.mul(tf.matMul(dScores, key), scale);
        const dK = tf.matMul(dScores, query, true, false);
        return [tf.reshape(dQ, q.shape), tf.reshape(dK, k.shape), tf.reshape(dV, v.shape)];
      },
    };
  });
  return op(q, k, v) as tf.Tensor4D;
}

function attentionByKernel(q: tf.Tensor4D, k: tf.Tensor4D, v: tf.Tensor4D, bias: tf.Tensor4D): tf.Tensor4D {
  const attrs = { scale: 1 / Math.sqrt(q.shape[3]) };
  const op = tf.customGrad((...args) => {
    const [q, k, v, save] = args as unknown as [tf.Tensor, tf.Tensor, tf.Tensor, tf.GradSaveFunc];
    const [out, p] = runAll('Attention', { q, k, v, bias }, attrs) as [tf.Tensor, tf.Tensor];
    save([q, k, v, bias, p, out]);
    return {
      value: out,
      gradFunc: (dOut, saved) => {
        const [q, k, v, bias, p, out] = saved as tf.Tensor[];
        const inputs = { q: q!, k: k!, v: v!, bias: bias!, p: p!, out: out!, dOut: dOut as tf.Tensor };
        return runAll('AttentionGrad', inputs, attrs);
      },
    };
  });
  return op(q, k, v) as tf.Tensor4D;
}

/**
 * The bias that keeps a query from keys after it and from padding.
 * @param mask [R, T] float, 1 at real tokens
 * @returns [R, 1, T, T], 0 where seen
 */
export function attentionBias(mask: tf.Tensor2D): tf.Tensor4D {
  return tf.tidy(() => {
    const [R, T] = mask.shape;
    const causal = Float32Array.from({ length: T * T }, (_, i) => (i % T <= Math.floor(i / T) ? 1 : 0));
    const seen = tf.mul(tf.reshape(mask, [R, 1, 1, T]), tf.tensor(causal, [1, 1, T, T]));
    return hidingBias(seen) as tf.Tensor4D;
  });
}

/** 0 where `seen` is 1, and a very negative number where it is 0. */
export function hidingBias<T extends tf.Tensor>(seen: T): T {
  return tf.tidy(() => tf.mul(tf.sub(1, seen), MASKED) as T);
}

/**
 * x [n, d] with these rows [m] (int32) written, values [m, d]. Native TensorFlow writes in place: x and all that
 * shares its memory is not for use afterwards. Without gradient.
 */
export function writeRows(x: tf.Tensor2D, rows: tf.Tensor1D, values: tf.Tensor2D): tf.Tensor2D {
  if (hasKernel('WriteRows')) return run('WriteRows', { x, rows, values }, {}) as tf.Tensor2D;
  return tf.tensorScatterUpdate(x, tf.reshape(rows, [-1, 1]), values) as tf.Tensor2D;
}

/** Rows of the table [V, d] at ids [N] (int32). The gradient is a one-hot product: wasm has no scatter-add. */
export function embed(table: tf.Tensor2D, ids: tf.Tensor1D): tf.Tensor2D {
  const op = tf.customGrad((table, save) => {
    (save as tf.GradSaveFunc)([ids]);
    return {
      value: hasKernel('GatherRows')
        ? run('GatherRows', { table: table as tf.Tensor2D, ids })
        : tf.gather(table as tf.Tensor2D, ids),
      gradFunc: (dy, saved) => {
        // As int32, then cast: wasm writes integers' bits into a float32 one-hot.
        const oneHot = tf.cast(
          tf.oneHot(saved[0] as tf.Tensor1D, (table as tf.Tensor2D).shape[0]),
          'float32',
        );
        return tf.matMul(tf.transpose(oneHot), dy as tf.Tensor2D);
      },
    };
  });
  return op(table) as tf.Tensor2D;
}

/** Runs one of our own kernels (tensors/kernels.ts) and gives its one output. */
function run(name: string, inputs: Record<string, tf.Tensor>, attrs: Record<string, number> = {}): tf.Tensor {
  return tf.engine().runKernel(name, inputs, attrs) as tf.Tensor;
}

/** The same for kernels of several outputs. */
function runAll(
  name: string,
  inputs: Record<string, tf.Tensor>,
  attrs: Record<string, number> = {},
): tf.Tensor[] {
  return tf.engine().runKernel(name, inputs, attrs) as tf.Tensor[];
}
