/**
 * Do two backends compute the same on the arena? Each one, in a process of its own, takes the base's logits and one
 * GRPO gradient of fixed inputs, and measures its rate; here they are compared.
 *
 * Left out: starting the processes (cli/setup-native.ts).
 */
import * as tf from '@tensorflow/tfjs';
import { z } from 'zod';
import { gradientShard } from '../grpo/gradient.js';
import { forward, initAdapter, logits, loraConfig } from '../model/index.js';
import { stream } from '../random.js';
import { sharedModel } from '../rollouts/policy.js';
import { currentBackend } from '../tensors/backend.js';

export const paritySampleSchema = z.strictObject({
  backend: z.string(),
  device: z.string(),
  /** Of every token of the sequences. */
  logits: z.array(z.number()),
  /** Of the adapter's matrices, one after another. */
  gradient: z.array(z.number()),
  /** 512 x 512 x 512 matMul, mean over a second. */
  gflops: z.number().positive(),
});
export type ParitySample = z.infer<typeof paritySampleSchema>;

/** The largest difference, absolute and as a share of the reference's largest value. */
export interface Difference {
  readonly absolute: number;
  readonly relative: number;
}

export interface ParityReport {
  readonly logits: Difference;
  readonly gradient: Difference;
  readonly agrees: boolean;
}

/** The largest relative difference of logits and gradient that passes: float32, thousands of additions. */
export const PARITY_LIMIT = 1e-4;

const ROWS = 4;
const PROMPT = 20;
const COMPLETION = 28;

/** What the running backend computes on a base model. */
export async function paritySample(base: string): Promise<ParitySample> {
  const model = sharedModel(base);
  const random = stream('parity');
  const width = PROMPT + COMPLETION;
  const ids = Array.from({ length: ROWS }, () =>
    Array.from({ length: width }, () => random.int(model.config.vocab_size)),
  );
  const values = tf.tidy(() => {
    const input = tf.tensor2d(ids, [ROWS, width], 'int32');
    return logits(model, forward(model, input, tf.ones([ROWS, width]))).dataSync();
  });
  const adapter = initAdapter(model, loraConfig(), random, 'B', { absolute: 0.02 });
  const rows = ids.map((row, i) => ({
    promptIds: row.slice(0, PROMPT),
    completionIds: row.slice(PROMPT),
    oldLogProbs: new Array<number>(COMPLETION).fill(-4),
    advantage: i % 2 === 0 ? 1 : -1,
    weight: 1 / (ROWS * COMPLETION),
  }));
  // No clipping: a ratio at the clip's edge would turn a rounding difference into a token's whole gradient.
  const options = { epsilon: 1, epsilonHigh: 1e9, beta: 0.05, temperature: 0.8 };
  const { grads } = await gradientShard({ policy: { base, adapter }, rows, options });
  const { name, device } = currentBackend();
  return {
    backend: name,
    device,
    logits: [...values],
    gradient: Object.values(grads).flatMap((grad) => [...grad]),
    gflops: await matMulRate(512, 1000),
  };
}

/** @returns 1e9 floating-point operations per second of [n, n] x [n, n] over `milliseconds` */
async function matMulRate(n: number, milliseconds: number): Promise<number> {
  const [a, b] = [tf.randomUniform([n, n]), tf.randomUniform([n, n])];
  const product = async () => {
    const c = tf.matMul(a, b);
    await tf.slice(c, [0, 0], [1, 1]).data();
    c.dispose();
  };
  for (let i = 0; i < 3; i++) await product();
  const start = performance.now();
  let count = 0;
  while (performance.now() - start < milliseconds) {
    await product();
    count += 1;
  }
  const seconds = (performance.now() - start) / 1000;
  tf.dispose([a, b]);
  return (2 * n ** 3 * count) / seconds / 1e9;
}

/** @throws when the two samples have different lengths: they are not of the same base */
export function compareSamples(reference: ParitySample, other: ParitySample): ParityReport {
  const report = {
    logits: difference(reference.logits, other.logits, 'logits'),
    gradient: difference(reference.gradient, other.gradient, 'gradient'),
  };
  const agrees = [report.logits, report.gradient].every(({ relative }) => relative <= PARITY_LIMIT);
  return { ...report, agrees };
}

function difference(reference: readonly number[], other: readonly number[], what: string): Difference {
  if (reference.length !== other.length)
    throw new Error(`${what}: ${other.length} values, the reference has ${reference.length}`);
  let [absolute, largest] = [0, 0];
  reference.forEach((expected, i) => {
    const off = Math.abs(other[i]! - expected);
    absolute = Math.max(absolute, off); // NaN stays NaN, and fails every limit
    largest = Math.max(largest, Math.abs(expected));
  });
  return { absolute, relative: absolute / largest };
}
