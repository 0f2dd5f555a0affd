/**
 * The rate at which the running backend multiplies matrices of given shapes: what a machine's matmul rate is worth
 * at the sizes a model really has. Measured with every thread at work, as in sampling and training.
 *
 * Left out: transposed operands (the shapes count, not the layout) and the peers' rates (bench/peers).
 */
import * as tf from '@tensorflow/tfjs';
import type { Product } from '../model/matmuls.js';
import type { JobFunction, Pool } from '../tensors/pool.js';

/** A shape is measured for about as long as this, and at least twice. */
const MILLISECONDS = 40;

const RATES: JobFunction<readonly Product[], number[]> = {
  module: import.meta.url,
  name: 'timeProducts',
  call: timeProducts,
};

/**
 * Seconds of one product of each shape (`count` is not looked at) when there are many of them: where every worker
 * multiplies its own, one is done in a worker's time divided by the workers.
 */
export async function measureProducts(pool: Pool, products: readonly Product[]): Promise<number[]> {
  const threads = Math.max(1, pool.workers);
  const found = await pool.map(
    RATES,
    Array.from({ length: threads }, () => products),
  );
  return products.map((_, i) => found.reduce((sum, seconds) => sum + seconds[i]!, 0) / threads ** 2);
}

/** The pool's job: seconds of one product of each shape in this thread. */
export async function timeProducts(products: readonly Product[]): Promise<number[]> {
  const seconds: number[] = [];
  for (const { batch, m, k, n } of products) {
    const a = tf.randomUniform(batch > 1 ? [batch, m, k] : [m, k]);
    const b = tf.randomUniform(batch > 1 ? [batch, k, n] : [k, n]);
    await timeRepeats(a, b, 1);
    let repeats = 2;
    let elapsed = await timeRepeats(a, b, repeats);
    while (elapsed < MILLISECONDS) {
      repeats = Math.ceil(Math.min(16, (1.2 * MILLISECONDS) / Math.max(elapsed, 0.01)) * repeats);
      elapsed = await timeRepeats(a, b, repeats);
    }
    seconds.push(elapsed / repeats / 1000);
    tf.dispose([a, b]);
  }
  return seconds;
}

/** Milliseconds of `repeats` products; reading one number waits for a GPU's queue. */
async function timeRepeats(a: tf.Tensor, b: tf.Tensor, repeats: number): Promise<number> {
  const start = performance.now();
  for (let i = 1; i < repeats; i++) tf.dispose(tf.matMul(a, b));
  const last = tf.matMul(a, b);
  const first = tf.tidy(() => tf.slice(tf.reshape(last, [-1]), [0], [1]));
  await first.data();
  const elapsed = performance.now() - start;
  tf.dispose([last, first]);
  return elapsed;
}
