/** Selected log-probs, their gradient and entropies against TRL's and torch's, and against plain numbers. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { initBackend } from '../../lib/tensors/backend.js';
import { entropies, selectedLogProbs } from '../../lib/tensors/logprobs.js';
import { golden } from '../grpo/golden.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend('wasm');
});

test("log-probs, entropies and gradient at temperature 0.6 are TRL's", () => {
  const { temperature, logits, targets, weights, logProbs, entropies: expected, dLogits } = golden.logProbs;
  const before = tf.memory().numTensors;
  tf.tidy(() => {
    const z = tf.tensor2d(logits);
    const ids = tf.tensor1d(targets, 'int32');
    const weighted = (z: tf.Tensor) =>
      tf.sum(tf.mul(selectedLogProbs(z as tf.Tensor2D, ids, temperature), tf.tensor1d(weights))) as tf.Scalar;
    assertClose(selectedLogProbs(z, ids, temperature).arraySync(), logProbs, 1e-5, 'log-probs');
    assertClose(entropies(z, temperature).arraySync(), expected, 1e-5, 'entropies');
    assertClose(tf.grad(weighted)(z).arraySync(), dLogits, 2e-6, 'gradient');
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
    ] as const)
      assert.equal(selectedLogProbs(z, tf.tensor1d([id], 'int32'), 1).arraySync()[0], expected);
    assert.equal(entropies(z, 1).arraySync()[0], 0);
  });
});
