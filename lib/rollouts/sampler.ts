/**
 * Rows of logits to one token each, as tensor operations: temperature, top-p, and one uniform number per row from
 * the row's own stream. Only the ids and their log-probs ever have to leave the backend.
 *
 * The log-prob reported is that of the full softmax at the given temperature, *not* renormalised over the
 * top-p set: it is what the policy gradient needs, and training samples with top-p 1 where the two agree.
 * Left out: top-k, repetition penalties – the paper uses neither.
 */
import * as tf from '@tensorflow/tfjs';
import { hasKernel } from '../tensors/kernels.js';

export interface SamplingOptions {
  /** Divides the logits; 0 takes the most likely token. */
  readonly temperature: number;
  /** The smallest set of most likely tokens whose mass reaches topP; 1 keeps all. */
  readonly topP: number;
}

/** Below it float32 divides logits by next to nothing; 0 says what is meant. */
const LEAST_TEMPERATURE = 1e-6;

/** @throws RangeError naming the option that cannot be */
export function checkSampling({ temperature, topP }: SamplingOptions): void {
  if (!(temperature === 0 || (temperature >= LEAST_TEMPERATURE && Number.isFinite(temperature))))
    throw new RangeError(`temperature ${temperature}: allowed are 0 and numbers from ${LEAST_TEMPERATURE}`);
  if (!(topP > 0 && topP <= 1)) throw new RangeError(`topP ${topP}: allowed are numbers above 0, up to 1`);
}

/** How a token is chosen: each way is a computation of its own. */
export type Choice = 'greedy' | 'full' | 'nucleus';

export function choiceOf({ temperature, topP }: SamplingOptions): Choice {
  if (temperature === 0) return 'greedy';
  return topP < 1 ? 'nucleus' : 'full';
}

/** The options as tensors, so that one recorded computation serves every temperature: the caller's to dispose. */
export interface ChoiceScalars {
  readonly inverseTemperature: tf.Scalar;
  readonly topP: tf.Scalar;
}

export function choiceScalars({ temperature, topP }: SamplingOptions): ChoiceScalars {
  return { inverseTemperature: tf.scalar(temperature > 0 ? 1 / temperature : 1), topP: tf.scalar(topP) };
}

/** A uniform number in [0, 1) as float32 that stays below every total it is multiplied with. */
export function uniformFloat(u: number): number {
  return Math.min(u, 1 - 2 ** -23);
}

/**
 * @param logits [R, V]; a token whose logit is -Infinity is never drawn
 * @param uniforms [R, 1] in [0, 1), see `uniformFloat`
 * @returns ids [R] int32 and log-probs [R] in nats, under softmax(logits / temperature), at temperature 0 under
 *   softmax(logits). A log-prob is NaN where a logit is NaN or +Infinity or all are -Infinity: see `checkLogProb`
 */
export function sampleTokens(
  logits: tf.Tensor2D,
  uniforms: tf.Tensor2D,
  choice: Choice,
  { inverseTemperature, topP }: ChoiceScalars,
): { ids: tf.Tensor1D; logProbs: tf.Tensor1D } {
  if (choice !== 'nucleus' && hasKernel('SampleTokens')) {
    const inputs = { logits, uniforms, inverseTemperature };
    const [ids, logProbs] = tf
      .engine()
      .runKernel('SampleTokens', inputs, { greedy: Number(choice === 'greedy') }) as [
      tf.Tensor1D,
      tf.Tensor1D,
    ];
    return { ids, logProbs };
  }
  return tf.tidy(() => {
    const probabilities = tf.softmax(tf.mul(logits, inverseTemperature)) as tf.Tensor2D;
    const ids =
      choice === 'greedy'
        ? (tf.argMax(probabilities, 1) as tf.Tensor1D)
        : choice === 'full'
          ? firstAbove(tf.cumsum(probabilities, 1), uniforms)
          : drawNucleus(probabilities, uniforms, topP);
    return { ids, logProbs: tf.log(pick(probabilities, ids)) };
  });
}

/** @throws when the log-prob of a drawn token is not a number: its logits were not finite */
export function checkLogProb(logProb: number): number {
  if (Number.isFinite(logProb)) return logProb;
  throw new Error(`logits are not finite: a token was drawn with log-prob ${logProb}`);
}

/** The first place whose cumulative mass [R, n] exceeds the row's share of the total; [R]. */
function firstAbove(cumulative: tf.Tensor2D, shares: tf.Tensor2D): tf.Tensor1D {
  const total = tf.slice(cumulative, [0, cumulative.shape[1] - 1], [-1, 1]);
  return tf.sum(tf.cast(tf.lessEqual(cumulative, tf.mul(shares, total)), 'int32'), 1);
}

function drawNucleus(probabilities: tf.Tensor2D, uniforms: tf.Tensor2D, topP: tf.Scalar): tf.Tensor1D {
  const { values, indices } = tf.topk<tf.Tensor2D>(probabilities, probabilities.shape[1]);
  // A token belongs to the set as long as those before it have not reached topP; the first always does.
  const before = tf.cumsum(values, 1, true);
  const kept = tf.mul(values, tf.cast(tf.less(before, topP), 'float32'));
  return pick(indices, firstAbove(tf.cumsum(kept, 1), uniforms));
}

/** x[r, places[r]] for every row of x [R, n]; [R]. */
function pick(x: tf.Tensor2D, places: tf.Tensor1D): tf.Tensor1D {
  // As int32, then cast: wasm writes integers' bits into a float32 one-hot.
  const oneHot = tf.cast(tf.oneHot(places, x.shape[1]), x.dtype);
  return tf.sum(tf.mul(x, oneHot), 1);
}
