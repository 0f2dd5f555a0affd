/** Cached decoding against the full forward pass; rows that leave, rows that multiply; nothing leaks. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { decodeStep, initModel, type Model, makeConfig, prefill } from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { assertClose, FAMILIES, realLogits, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

const PROMPTS = [
  [5, 6, 7, 8, 9, 10],
  [11, 12, 13],
  [1, 2, 3, 4],
];
const WIDTH = 6;
const ids = PROMPTS.map((p) => [...Array(WIDTH - p.length).fill(0), ...p] as number[]);
const mask = PROMPTS.map((p) => [...Array(WIDTH - p.length).fill(0), ...p.map(() => 1)] as number[]);
const start = (model: Model) => {
  const [idTensor, maskTensor] = [
    tf.tensor2d(ids, undefined, 'int32'),
    tf.tensor2d(mask, undefined, 'int32'),
  ];
  const started = prefill(model, idTensor, maskTensor);
  tf.dispose([idTensor, maskTensor]);
  return started;
};
const tokenAt = (row: number, step: number) => (row * 7 + step * 3) % 19;

for (const family of FAMILIES)
  test(`${family}: decoding 40 tokens with a cache gives the logits of the full forward pass`, () => {
    const model = smallModel(0, true, family);
    const tensors = tf.memory().numTensors;
    const { logits, cache } = start(model);
    const rows = PROMPTS.map((p) => [...p]);
    let last = logits.arraySync() as number[][];
    logits.dispose();
    for (let step = 0; step <= 40; step++) {
      const full = rows.map((row) => realLogits(model, [row], [row.map(() => 1)])[0]!.at(-1)!);
      assertClose(last, full, 1e-5, `step ${step}`);
      const next = rows.map((row, r) => {
        row.push(tokenAt(r, step));
        return row.at(-1)!;
      });
      const out = decodeStep(cache, next);
      last = out.arraySync() as number[][];
      out.dispose();
    }
    assert.equal(cache.length, WIDTH + 41);
    cache.dispose();
    assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
    model.dispose();
  });

test('keep drops rows, reorders them, and makes one prompt into several rows', () => {
  const model = smallModel();
  const tensors = tf.memory().numTensors;
  const { logits, cache } = start(model);
  logits.dispose();
  const rows = PROMPTS.map((p) => [...p]);
  const step = (tokens: number[]) => {
    for (const [r, token] of tokens.entries()) rows[r]!.push(token);
    const out = decodeStep(cache, tokens);
    const found = out.arraySync() as number[][];
    out.dispose();
    const full = rows.map((row) => realLogits(model, [row], [row.map(() => 1)])[0]!.at(-1)!);
    assertClose(found, full, 1e-5, `rows of ${rows.length}`);
  };
  step([1, 2, 3]);
  for (const picked of [[2, 0, 0, 1], [3, 1], [0]]) {
    cache.keep(picked);
    rows.splice(0, rows.length, ...picked.map((r) => [...rows[r]!]));
    assert.equal(cache.rows, picked.length);
    step(picked.map((r) => r + 4));
  }
  assert.throws(() => cache.keep([1]), /row 1 is not in the cache: allowed are 0 to 0/);
  assert.throws(() => decodeStep(cache, [1, 2]), /2 token ids for 1 rows/);
  cache.dispose();
  assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
  model.dispose();
});

test("the cache outlives the caller's tidy", () => {
  const model = smallModel();
  const { logits, cache } = start(model);
  logits.dispose();
  const first = tf.tidy(() => decodeStep(cache, [1, 2, 3]).arraySync() as number[][]);
  const second = tf.tidy(() => decodeStep(cache, [4, 5, 6]).arraySync() as number[][]);
  assert.throws(() => assertClose(first, second, 1e-3));
  cache.dispose();
  model.dispose();
  assert.equal(tf.memory().numTensors, 0);
});

for (const family of FAMILIES)
  test(`${family}: other head sizes and groups, over more tokens than a cache first has room for`, () => {
    for (const [heads, keyHeads, headDim, hidden] of [
      [3, 1, 16, 24],
      [2, 2, 24, 16],
      [4, 1, 8, 12],
      [2, 1, 4, 10], // nothing that the wasm kernels take
    ] as const) {
      const config = makeConfig({
        model_type: family,
        hidden_size: hidden,
        num_hidden_layers: 1,
        num_attention_heads: heads,
        num_key_value_heads: keyHeads,
        head_dim: headDim,
        intermediate_size: 13,
        vocab_size: 19,
      });
      const model = initModel(config, stream('heads', headDim), 0.3);
      const { logits, cache } = start(model);
      logits.dispose();
      const rows = PROMPTS.map((p) => [...p]);
      for (let step = 0; step < 75; step++) {
        const next = rows.map((row, r) => {
          row.push(tokenAt(r, step));
          return row.at(-1)!;
        });
        if (step === 60) {
          cache.keep([2, 0]);
          rows.splice(0, 3, rows[2]!, rows[0]!);
          next.splice(0, 3, next[2]!, next[0]!);
        }
        const out = decodeStep(cache, next);
        const found = out.arraySync() as number[][];
        out.dispose();
        if (step % 12 !== 2) continue;
        const full = rows.map((row) => realLogits(model, [row], [row.map(() => 1)])[0]!.at(-1)!);
        assertClose(found, full, 2e-5, `heads of ${headDim}, step ${step}`);
      }
      cache.dispose();
      model.dispose();
    }
  });

test("on wasm a row's logits are the same bits whatever rows are around it", () => {
  if (tf.getBackend() !== 'wasm') return;
  const model = smallModel();
  const run = (rows: readonly number[]) => {
    const started = start(model);
    started.logits.dispose();
    started.cache.keep(rows);
    const out = [1, 2, 3].map((token) => {
      const step = decodeStep(
        started.cache,
        rows.map((row) => row + token),
      );
      const values = step.arraySync() as number[][];
      step.dispose();
      return values;
    });
    started.cache.dispose();
    return out;
  };
  const whole = run([0, 1, 2]);
  for (const rows of [[1], [2, 2, 0, 1, 1], [0, 2]])
    assert.deepEqual(
      run(rows),
      whole.map((step) => rows.map((row) => step[row])),
    );
  model.dispose();
});
