/** Decoding several tokens in one pure function against the full forward pass, with padding and a growing past. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { decodeBlock, flatten, joinWeights, prefillBlocks, unflatten } from '../../lib/model/index.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { assertClose, FAMILIES, realLogits, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

const PROMPTS = [[5, 6, 7, 8, 9], [11, 12], [1]];
const WIDTH = 5;
const STEPS = 3;

for (const [tied, family] of [true, false].flatMap((tied) => FAMILIES.map((f) => [tied, f] as const)))
  test(`${family}: three calls of ${STEPS} tokens give the logits of the full pass (head ${tied ? 'tied' : 'of its own'})`, () => {
    const model = smallModel(0, tied, family);
    const tensors = tf.memory().numTensors;
    tf.tidy(() => {
      const left = (row: number[], fill: (i: number) => number) => [
        ...new Array<number>(WIDTH - row.length).fill(0),
        ...row.map((_, i) => fill(i)),
      ];
      const ids = tf.tensor2d(
        PROMPTS.map((row) => left(row, (i) => row[i]!)),
        undefined,
        'int32',
      );
      const mask = tf.tensor2d(PROMPTS.map((row) => left(row, () => 1)));
      const joined = joinWeights(model);
      const weights = unflatten(flatten(joined), model.config);
      assert.deepEqual(Object.keys(weights.layers[0]!), Object.keys(joined.layers[0]!));
      const started = prefillBlocks(model, ids, mask);
      let { long, bias } = started;
      const full = PROMPTS.map((row) => [...row]);
      const expected = () => full.map((row) => realLogits(model, [row], [row.map(() => 1)])[0]!.at(-1)!);
      assertClose(started.logits.arraySync(), expected(), 1e-5, 'prefill');
      for (let call = 0; call < 3; call++) {
        const last = full.map((row, r) => {
          row.push((r + 7 * call) % 19);
          return row.at(-1)!;
        });
        const positions = tf.tensor2d(full.map((row) => [row.length - 1]));
        const next = (logits: tf.Tensor2D, step: number) => {
          assertClose(logits.arraySync(), expected(), 1e-5, `call ${call}, step ${step}`);
          const chosen = full.map((row, r) => (3 * r + step + row.length) % 19);
          if (step < STEPS - 1) for (const [r, id] of chosen.entries()) full[r]!.push(id);
          return tf.tensor1d(chosen, 'int32');
        };
        const inputs = { weights, long, bias, ids: tf.tensor1d(last, 'int32'), positions, next };
        const after = decodeBlock(model.config, inputs, STEPS);
        assert.equal(after.long[0]!.k.shape[1], long[0]!.k.shape[1] + STEPS);
        ({ long, bias } = after);
      }
      tf.dispose(started.long.flatMap(({ k, v }) => [k, v]));
    });
    assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
    model.dispose();
  });
