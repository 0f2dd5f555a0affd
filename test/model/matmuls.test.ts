/** The floor's products, counted by hand on a model small enough to do so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeConfig } from '../../lib/model/index.js';
import { flops, merged, samplingProducts, trainingProducts } from '../../lib/model/matmuls.js';

const config = makeConfig({
  hidden_size: 8,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 2,
  intermediate_size: 10,
  vocab_size: 5,
  tie_word_embeddings: true,
});
/** Multiplications of one token through the linear layers of one layer: q, k, v, o and the MLP's three. */
const PER_TOKEN = 8 * 8 + 2 * (8 * 4) + 8 * 8 + 3 * 8 * 10;

test('equal shapes are added up, and flops do not change by it', () => {
  const product = { batch: 1, m: 2, k: 3, n: 4, count: 1 };
  const products = [product, { ...product, n: 5 }, { ...product, count: 2 }];
  assert.deepEqual(
    merged(products).map((p) => p.count),
    [3, 1],
  );
  assert.equal(flops(products), flops(merged(products)));
  assert.equal(flops([product]), 2 * 2 * 3 * 4);
});

test('sampling: prompts and one token a step through every layer, heads stacked on keys', () => {
  const found = samplingProducts(config, { rows: 3, prompt: 4, completion: 6 }, 3);
  const linear = 2 * 3 * (4 + 5) * PER_TOKEN; // layers, rows, tokens that are read
  const prefill = 2 * 3 * 4 * (2 * 4 * 4 * 2); // layers, rows, heads; scores and values of 4 x 4 positions
  const decode = 2 * 3 * 4 * (2 * 7 * 2) * 5; // one query against 7 keys in the mean, five times
  const head = 3 * 8 * 5 * 6;
  assert.equal(flops(found), 2 * (linear + prefill + decode + head));
});

test('sampling in smaller batches is the same arithmetic in other shapes', () => {
  const shape = { rows: 5, prompt: 4, completion: 6 };
  const [whole, cut] = [samplingProducts(config, shape, 5), samplingProducts(config, shape, 2)];
  assert.equal(flops(cut), flops(whole));
  assert.deepEqual([...new Set(cut.filter((p) => p.k === 8 && p.n === 5).map((p) => p.m))], [2, 1]);
});

test('sampling: equal prompts of a batch are read once', () => {
  const shape = { rows: 6, prompt: 4, completion: 6 };
  const read = (group: number, batchRows: number) =>
    flops(samplingProducts(config, { ...shape, group }, batchRows));
  const onePrompt = flops(samplingProducts(config, { rows: 1, prompt: 4, completion: 1 }, 1));
  assert.equal(read(1, 6) - read(3, 6), 4 * onePrompt);
  assert.equal(read(1, 6) - read(3, 2), 3 * onePrompt); // groups are cut: three batches read one prompt each
});

test('training: forward, input gradients except below the first adapters, LoRA twice each way', () => {
  const [rows, length, completion, r] = [2, 5, 3, 2];
  const found = trainingProducts(config, { rows, prompt: 2, completion }, 2, r);
  const M = rows * length;
  const firstInputs = 8 * 8 + 2 * (8 * 4); // q, k, v of layer 0 need no gradient of their input
  const base = M * (2 * PER_TOKEN + 2 * PER_TOKEN - firstInputs);
  const sizes = [
    [8, 8],
    [8, 4],
    [8, 4],
    [8, 8],
    [8, 10],
    [8, 10],
    [10, 8],
  ] as const;
  const lora = sizes.reduce((sum, [i, o]) => sum + 2 * M * r * (2 * i + 2 * o), 0);
  const square = rows * 4 * length * length * 2; // rows, heads, positions squared, head size
  const attention = 2 * square * (2 + 4);
  const head = 2 * rows * completion * 8 * 5;
  assert.equal(flops(found), 2 * (base + lora + attention + head));
});
