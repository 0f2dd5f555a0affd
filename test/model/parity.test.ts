/** The forward pass against transformers and peft (goldens by test/golden/make_model_golden.py), and padding. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import {
  countParameters,
  decodeStep,
  loadModel,
  mergeAdapter,
  parameterNames,
  prefill,
  readAdapter,
  uploadAdapter,
} from '../../lib/model/index.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { assertClose, GOLDEN, readGolden, realLogits, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

/** The families' goldens, and how far a logit (of about 1 to 5) may lie from theirs. */
const GOLDENS = {
  'qwen3-tied': 1e-4,
  'qwen3-untied-bf16': 1e-4,
  'llama-tied': 1e-5,
  'llama-untied': 1e-5,
} as const;

for (const [name, tolerance] of Object.entries(GOLDENS)) {
  test(`${name}: logits of padded batches are those of transformers`, () => {
    const golden = readGolden(join(GOLDEN, name, 'golden.json'));
    const model = loadModel(join(GOLDEN, name));
    assert.equal(countParameters(model.config), golden.parameters);
    assert.deepEqual(Object.keys(model.weights), parameterNames(model.config));
    for (const batch of golden.batches)
      assertClose(
        realLogits(model, batch.ids, batch.mask),
        batch.logits,
        tolerance,
        `${batch.side}-padded logits`,
      );
    model.dispose();
    assert.equal(tf.memory().numTensors, 0);
  });
}

for (const name of ['llama-tied', 'llama-untied'])
  test(`${name}: greedy decoding through the cache gives the tokens of transformers without one`, () => {
    const { batches, greedy } = readGolden(join(GOLDEN, name, 'golden.json'));
    const { ids, mask } = batches.find(({ side }) => side === 'left')!;
    const model = loadModel(join(GOLDEN, name));
    const prompts = [tf.tensor2d(ids, undefined, 'int32'), tf.tensor2d(mask)] as const;
    const { cache, ...started } = prefill(model, ...prompts);
    tf.dispose([...prompts]);
    const rows = ids.map((row, r) => row.filter((_, t) => mask[r]![t] === 1));
    let found = started.logits;
    for (let step = 0; step < greedy![0]!.length; step++) {
      const full = rows.map((row) => realLogits(model, [row], [row.map(() => 1)])[0]!.at(-1)!);
      const cached = found.arraySync() as number[][];
      found.dispose();
      assertClose(cached, full, 1e-5, `logits of step ${step}`);
      const next = cached.map((logits) => logits.indexOf(Math.max(...logits)));
      assert.deepEqual(
        next,
        greedy!.map((row) => row[step]),
        `tokens of step ${step}`,
      );
      for (const [r, row] of rows.entries()) row.push(next[r]!);
      found = decodeStep(cache, next);
    }
    found.dispose();
    cache.dispose();
    model.dispose();
    assert.equal(tf.memory().numTensors, 0);
  });

for (const name of ['qwen3-tied', 'llama-tied'])
  test(`${name}: an adapter written by peft gives its logits, unmerged and merged`, () => {
    const folder = join(GOLDEN, name);
    const golden = readGolden(join(folder, 'golden.json'));
    const { ids, mask, logits: plain } = golden.batches[0]!;
    const base = loadModel(folder);
    const adapter = readAdapter(join(folder, 'adapter'), base.config);
    assert.deepEqual([adapter.config.r, adapter.config.alpha], [4, 8]);
    const lora = uploadAdapter(adapter);
    const unmerged = realLogits(base, ids, mask, lora);
    assertClose(unmerged, golden.adapterLogits, 1e-4, 'unmerged logits');
    const merged = mergeAdapter(base, adapter);
    assertClose(realLogits(merged, ids, mask), golden.adapterLogits, 1e-4, 'merged logits');
    // The adapter must matter, or the lines above could not fail.
    assert.throws(() => assertClose(unmerged, plain, 0.05));
    merged.dispose();
    assertClose(realLogits(base, ids, mask), plain, 1e-4, 'the base after disposing the merged model');
    tf.dispose(lora.weights as Record<string, tf.Tensor>);
    base.dispose();
    assert.equal(tf.memory().numTensors, 0);
  });

test('the arena base: logits are those of transformers', {
  skip: !existsSync(join(GOLDEN, 'arena-model.json')),
}, () => {
  const golden = readGolden(join(GOLDEN, 'arena-model.json'));
  const model = loadModel(join(GOLDEN, '..', '..', 'data', 'arena-base'));
  assert.equal(countParameters(model.config), golden.parameters);
  for (const batch of golden.batches)
    assertClose(realLogits(model, batch.ids, batch.mask), batch.logits, 1e-4, `${batch.side}-padded logits`);
  model.dispose();
});

test('padding on either side gives the numbers of the unpadded row', () => {
  const model = smallModel();
  const row = [3, 1, 4, 1, 5];
  const alone = realLogits(model, [row], [row.map(() => 1)]);
  const pad = (left: number, right: number) =>
    [...Array(left).fill(2), ...row, ...Array(right).fill(2)] as number[];
  const seen = (left: number, right: number) =>
    [...Array(left).fill(0), ...row.map(() => 1), ...Array(right).fill(0)] as number[];
  for (const [left, right] of [
    [4, 0],
    [0, 4],
    [2, 2],
  ] as const) {
    const other = Array.from({ length: 9 }, (_, i) => i);
    const both = realLogits(model, [pad(left, right), other], [seen(left, right), other.map(() => 1)]);
    assertClose(both[0], alone[0], 1e-5, `padded by ${left} and ${right}`);
  }
  model.dispose();
});

test('a token does not see what comes after it', () => {
  const model = smallModel();
  const a = realLogits(model, [[1, 2, 3, 4]], [[1, 1, 1, 1]])[0]!;
  const b = realLogits(model, [[1, 2, 3, 9]], [[1, 1, 1, 1]])[0]!;
  assertClose(a.slice(0, 3), b.slice(0, 3), 0, 'the first three tokens');
  assert.throws(() => assertClose(a[3], b[3], 1e-3));
  model.dispose();
});
