/** Token scores, their gradient and memory: against TRL's and torch's numbers, plain ones, and finite differences. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import {
  type OutputHead,
  type ScoreOptions,
  scoreTokens,
  selectedLogProbs,
} from '../../lib/tensors/logprobs.js';
import { golden } from '../grpo/golden.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend();
});

/** Hidden states that are the logits themselves. */
const identity = (vocabulary: number): OutputHead => ({ weight: tf.eye(vocabulary), transposed: false });

/** The sum of the log-probs, each with a weight of its own, and its gradient. */
function weightedGradient(
  hidden: tf.Tensor2D,
  head: OutputHead,
  targets: tf.Tensor1D,
  weights: readonly number[],
  options: Omit<ScoreOptions, 'differentiable'>,
) {
  const sum = (hidden: tf.Tensor) => {
    const scores = scoreTokens(hidden as tf.Tensor2D, head, targets, { ...options, differentiable: true });
    return tf.sum(tf.mul(scores.logProbs, tf.tensor1d([...weights]))) as tf.Scalar;
  };
  return tf.valueAndGrad(sum)(hidden);
}

test("log-probs, entropies and gradient at temperature 0.6 are TRL's", () => {
  const { temperature, logits, targets, weights, logProbs, entropies, dLogits } = golden.logProbs;
  const before = tf.memory().numTensors;
  tf.tidy(() => {
    const z = tf.tensor2d(logits);
    const ids = tf.tensor1d(targets, 'int32');
    const head = identity(z.shape[1]);
    const scores = scoreTokens(z, head, ids, { temperature, differentiable: false });
    assertClose(scores.logProbs.arraySync(), logProbs, 1e-5, 'log-probs');
    assertClose(scores.entropies.arraySync(), entropies, 1e-5, 'entropies');
    const { grad } = weightedGradient(z, head, ids, weights, { temperature });
    assertClose(grad.arraySync(), dLogits, 2e-6, 'gradient');

    const ofLogits = (z: tf.Tensor) =>
      tf.sum(
        tf.mul(selectedLogProbs(tf.div(z as tf.Tensor2D, temperature), ids), tf.tensor1d(weights)),
      ) as tf.Scalar;
    assertClose(selectedLogProbs(tf.div(z, temperature), ids).arraySync(), logProbs, 1e-5, 'from logits');
    assertClose(tf.grad(ofLogits)(z).arraySync(), dLogits, 2e-6, 'gradient from logits');
  });
  assert.equal(tf.memory().numTensors, before);
});

test('large logits stay finite', () => {
  tf.tidy(() => {
    const z = tf.tensor2d([[1000, 0, -1000]]);
    for (const [id, expected] of [
      [0, 0],
      [1, -1000],
      [2, -2000],
    ] as const) {
      const targets = tf.tensor1d([id], 'int32');
      const scores = scoreTokens(z, identity(3), targets, { temperature: 1, differentiable: false });
      assert.equal(scores.logProbs.arraySync()[0], expected);
      assert.equal(scores.entropies.arraySync()[0], 0);
      assert.equal(selectedLogProbs(z, targets).arraySync()[0], expected);
    }
  });
});

/** Random hidden states, both forms of one head, and targets. */
function example(rows: number, d: number, vocabulary: number) {
  const random = stream('log-probs', rows, d, vocabulary);
  const normal = (n: number) => Float32Array.from({ length: n }, () => random.normal());
  const table = tf.tensor2d(normal(vocabulary * d), [vocabulary, d]);
  const heads: OutputHead[] = [
    { weight: table, transposed: true },
    { weight: tf.transpose(table), transposed: false },
  ];
  const targets = Array.from({ length: rows }, () => random.int(vocabulary));
  return {
    hidden: tf.tensor2d(normal(rows * d), [rows, d]),
    heads,
    targets: tf.tensor1d(targets, 'int32'),
    weights: [...normal(rows)],
  };
}

test('blocks give the numbers of the whole, whichever way the head lies, and need not divide the rows', () => {
  const before = tf.memory().numTensors;
  tf.tidy(() => {
    const { hidden, heads, targets, weights } = example(11, 5, 7);
    const temperature = 0.7;
    const all = (head: OutputHead, maxLogits?: number) => {
      const limit = maxLogits === undefined ? {} : { maxLogits };
      const options = { temperature, ...limit };
      const scores = scoreTokens(hidden, head, targets, { ...options, differentiable: false });
      const { value, grad } = weightedGradient(hidden, head, targets, weights, options);
      return [scores.logProbs, scores.entropies, value, grad].map((x) => x.dataSync() as Float32Array);
    };
    const whole = all(heads[0]!);
    for (const head of heads)
      for (const maxLogits of [1, 28, 76]) // one row at a time; 4, 4, 3 rows; 10 and 1
        all(head, maxLogits).forEach((found, i) => {
          assertClose(
            found,
            whole[i],
            1e-6 * Math.max(1, ...whole[i]!.map(Math.abs)),
            `output ${i}, ${maxLogits}`,
          );
        });
  });
  assert.equal(tf.memory().numTensors, before);
});

test('the gradient at the hidden states agrees with finite differences', () => {
  tf.tidy(() => {
    const { hidden, heads, targets, weights } = example(6, 4, 9);
    const options = { temperature: 0.8, maxLogits: 18 };
    const { grad } = weightedGradient(hidden, heads[0]!, targets, weights, options);
    const direction = example(6, 4, 10).hidden;
    const at = (step: number) => {
      const moved = tf.add<tf.Tensor2D>(hidden, tf.mul(direction, step));
      return weightedGradient(moved, heads[0]!, targets, weights, options).value.dataSync()[0]!;
    };
    const slope = tf.sum(tf.mul(grad, direction)).dataSync()[0]!;
    const measured = (at(1e-2) - at(-1e-2)) / 2e-2;
    assert.ok(Math.abs(slope) > 0.1, 'the slope is nearly zero, the test could not fail');
    assert.ok(Math.abs(measured - slope) < 5e-3 * Math.abs(slope), `slope ${slope}, measured ${measured}`);
  });
});

test('no more logits than stated exist at once, forward and backward', async () => {
  const [rows, d, vocabulary] = [256, 4, 1000] as const;
  const { hidden, heads, targets, weights } = example(rows, d, vocabulary);
  const peakOf = async (maxLogits: number) => {
    const before = tf.memory().numBytes;
    const { peakBytes } = await tf.profile(() => {
      tf.dispose(
        Object.values(weightedGradient(hidden, heads[0]!, targets, weights, { temperature: 1, maxLogits })),
      );
    });
    return peakBytes - before;
  };
  const logitBytes = 4 * rows * vocabulary;
  assert.ok((await peakOf(rows * vocabulary)) > 3 * logitBytes, 'all at once');
  // An eighth of the logits, four tensors of them; beside them only [rows, d] and [d, vocabulary].
  assert.ok((await peakOf((rows * vocabulary) / 8)) < 0.6 * logitBytes, 'in eight blocks');
  tf.dispose([hidden, targets, ...heads.map((head) => head.weight)]);
});
