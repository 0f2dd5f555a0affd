/** Rows of logits to one token each. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { stream } from '../../lib/random.js';
import {
  checkLogProb,
  choiceOf,
  choiceScalars,
  type SamplingOptions,
  sampleTokens,
  uniformFloat,
} from '../../lib/rollouts/sampler.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { golden } from '../grpo/golden.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend();
});

/** One token per uniform number, all from the same row of logits. */
function draw(
  logits: Float32Array,
  options: SamplingOptions,
  us: readonly number[],
): { id: number; logProb: number }[] {
  return tf.tidy(() => {
    const rows = tf.tile(tf.tensor2d(logits, [1, logits.length]), [us.length, 1]) as tf.Tensor2D;
    const uniforms = tf.tensor2d(us.map(uniformFloat), [us.length, 1]);
    const { ids, logProbs } = sampleTokens(rows, uniforms, choiceOf(options), choiceScalars(options));
    const values = logProbs.dataSync();
    return Array.from(ids.dataSync(), (id, i) => ({ id, logProb: checkLogProb(values[i]!) }));
  });
}
const sampleToken = (logits: Float32Array, options: SamplingOptions, u: number) =>
  draw(logits, options, [u])[0]!;

/** Probabilities .5, .3, .15, .05, in this order: ids 2, 0, 3, 1. */
const P = [0.3, 0.05, 0.5, 0.15];
const LOGITS = Float32Array.from(P, (p) => Math.log(p) + 3);
/** The largest number that a stream can give. */
const ALMOST_1 = 4294967295 / 4294967296;

test('temperature 0 takes the most likely token, the first of equals, whatever the random number', () => {
  for (const u of [0, 0.5, ALMOST_1]) {
    const { id, logProb } = sampleToken(LOGITS, { temperature: 0, topP: 1 }, u);
    assert.equal(id, 2);
    assertClose(logProb, Math.log(0.5), 1e-6);
    assert.equal(sampleToken(Float32Array.of(1, 4, 4), { temperature: 0, topP: 0.5 }, u).id, 1);
  }
});

test('the uniform number walks through the tokens in order; 0 gives the first, almost 1 the last', () => {
  const id = (u: number) => sampleToken(LOGITS, { temperature: 1, topP: 1 }, u).id;
  assert.deepEqual(
    [0, 0.2999, 0.3001, 0.3499, 0.3501, 0.8499, 0.8501, ALMOST_1].map(id),
    [0, 0, 1, 1, 2, 2, 3, 3],
  );
});

test('a token without any mass is never drawn, at either end', () => {
  const logits = Float32Array.of(-Infinity, -2000, 0, 0, -Infinity);
  for (const topP of [1, 0.99])
    assert.deepEqual(
      [0, ALMOST_1].map((u) => sampleToken(logits, { temperature: 0.5, topP }, u).id),
      [2, 3],
    );
});

test('tokens come with the frequency of softmax(logits / T), and so do the log-probs', () => {
  const N = 40_000;
  for (const temperature of [1, 0.6, 1.7]) {
    const random = stream('frequencies', temperature);
    const powers = P.map((p) => p ** (1 / temperature));
    const expected = powers.map((x) => x / powers.reduce((a, b) => a + b));
    const counts = [0, 0, 0, 0];
    const us = Array.from({ length: N }, () => random.uniform());
    draw(LOGITS, { temperature, topP: 1 }, us).forEach(({ id, logProb }, i) => {
      counts[id]! += 1;
      if (i < 50) assertClose(logProb, Math.log(expected[id]!), 1e-6);
    });
    const chi2 = counts.reduce((sum, n, id) => sum + (n - N * expected[id]!) ** 2 / (N * expected[id]!), 0);
    assert.ok(chi2 < 16.3, `T ${temperature}: chi-square with 3 degrees of freedom is ${chi2} (p < 0.001)`);
  }
});

test("top-p keeps the tokens that transformers' keeps", () => {
  for (const { topP, logits, kept } of golden.nuclei) {
    const row = Float32Array.from(logits);
    const random = stream('nucleus', topP);
    const us = Array.from({ length: 20_000 }, () => random.uniform());
    const seen = new Set(draw(row, { temperature: 1, topP }, us).map(({ id }) => id));
    assert.deepEqual(
      [...seen].sort((a, b) => a - b),
      kept,
      `topP ${topP}`,
    );
  }
});

test('top-p: the smallest set whose mass reaches topP, likeliest first; inside it the proportions stay', () => {
  const id = (topP: number, u: number) => sampleToken(LOGITS, { temperature: 1, topP }, u).id;
  assert.deepEqual(
    [0, ALMOST_1].map((u) => id(0.4, u)),
    [2, 2],
  );
  assert.deepEqual(
    [0, 0.6249, 0.6251, ALMOST_1].map((u) => id(0.7, u)),
    [2, 2, 0, 0],
  ); // .5 : .3
  assert.deepEqual(
    [0, ALMOST_1].map((u) => id(0.999, u)),
    [2, 1],
  );
  assert.deepEqual(
    [0, ALMOST_1].map((u) => id(1e-9, u)),
    [2, 2],
  );
});

test('check 11: top-p does not renormalise the log-prob: it is that of the full softmax at the temperature', () => {
  for (const temperature of [1, 0.6]) {
    const powers = P.map((p) => p ** (1 / temperature));
    const full = Math.log(powers[2]! / powers.reduce((a, b) => a + b));
    const { id, logProb } = sampleToken(LOGITS, { temperature, topP: 0.4 }, 0.9);
    assert.equal(id, 2);
    assertClose(logProb, full, 1e-6); // renormalised over the one token that is kept it would be 0
    assert.ok(logProb < -0.1);
  }
});

test('logits that are NaN or infinite are an error, wherever they stand', () => {
  for (const temperature of [0, 1])
    for (let at = 0; at < 4; at++) {
      const bad = (value: number) => Float32Array.from(LOGITS, (z, i) => (i === at ? value : z));
      const options = { temperature, topP: 1 };
      assert.throws(() => sampleToken(bad(Number.NaN), options, 0.5), /not finite/);
      assert.throws(() => sampleToken(bad(Infinity), options, 0.5), /not finite/);
    }
  assert.throws(
    () => sampleToken(new Float32Array(3).fill(-Infinity), { temperature: 1, topP: 1 }, 0.5),
    /not finite/,
  );
});
