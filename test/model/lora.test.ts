/** Adapters: initialisation, merging, independence of the two, PEFT folders. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import {
  type Adapter,
  adapterShapes,
  downloadAdapter,
  forward,
  initAdapter,
  type LoraTensors,
  logits,
  loraConfig,
  loraName,
  type Model,
  makeConfig,
  mergeAdapter,
  parameterShare,
  readAdapter,
  uploadAdapter,
  writeAdapter,
} from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { assertClose, realLogits, scratch, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

const IDS = [[3, 1, 4, 1, 5, 9, 2, 6]];
const MASK = [IDS[0]!.map(() => 1)];
const free = (lora: LoraTensors) => tf.dispose(lora.weights as Record<string, tf.Tensor>);
const newAdapter = (model: Model, kind: 'A' | 'B', noise = 0.1) =>
  initAdapter(model, loraConfig({ r: 4 }), stream('lora test', kind), kind, { absolute: noise });

test('A starts as the base; B lies off it by the asked noise', () => {
  const model = smallModel();
  const plain = realLogits(model, IDS, MASK);
  const A = newAdapter(model, 'A');
  const loraA = uploadAdapter(A);
  assertClose(realLogits(model, IDS, MASK, loraA), plain, 0, 'adapter A');
  const nameB = loraName('model.layers.1.mlp.gate_proj', 'B');
  assert.ok(A.weights[nameB]!.data.every((x) => x === 0));
  const nameA = loraName('model.layers.1.mlp.gate_proj', 'A');
  const bound = 1 / Math.sqrt(24);
  const largest = Math.max(...A.weights[nameA]!.data.map(Math.abs));
  assert.ok(largest <= bound && largest > 0.9 * bound, `kaiming-uniform bound ${bound}, largest ${largest}`);

  const std = (x: Float32Array) => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length);
  assertClose(std(newAdapter(model, 'B', 0.1).weights[nameB]!.data), 0.1, 0.02, 'absolute noise');
  // The small model's weights are drawn with std 0.3.
  const relative = initAdapter(model, loraConfig({ r: 4 }), stream('r'), 'B', { relative: 0.5 });
  assertClose(std(relative.weights[nameB]!.data), 0.15, 0.03, 'relative noise');
  const byDefault = initAdapter(model, loraConfig({ r: 4 }), stream('r'), 'B');
  assertClose(std(byDefault.weights[nameB]!.data), 3e-4, 6e-5, 'default noise');
  free(loraA);
  model.dispose();
});

test('rank 16 is the default, alpha 2r, on every linear layer; the share of parameters follows', () => {
  const config = loraConfig();
  assert.deepEqual([config.r, config.alpha, config.targetModules.length], [16, 32, 7]);
  // Qwen3-0.6B: 10,092,544 LoRA parameters of 596,049,920: the paper's "about 2%".
  const qwen = makeConfig({
    hidden_size: 1024,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    intermediate_size: 3072,
    vocab_size: 151936,
    tie_word_embeddings: true,
  });
  assertClose(parameterShare(qwen, config), 10092544 / 596049920, 1e-9, 'share');
  assert.equal(adapterShapes(qwen, loraConfig({ targetModules: ['q_proj', 'v_proj'] })).size, 28 * 2 * 2);
  assert.throws(() => loraConfig({ targetModules: ['query' as 'q_proj'] }), /q_proj/);
});

test('merged = unmerged; the base is held once, and disposing the merged model leaves it whole', () => {
  const model = smallModel();
  const adapter = initAdapter(
    model,
    loraConfig({ r: 4, targetModules: ['q_proj', 'down_proj'] }),
    stream('m'),
    'B',
    {
      absolute: 0.1,
    },
  );
  const lora = uploadAdapter(adapter);
  const unmerged = realLogits(model, IDS, MASK, lora);
  free(lora);
  const plain = realLogits(model, IDS, MASK);
  const memory = tf.memory();
  const merged = mergeAdapter(model, adapter);
  // Two layers, each q_proj [24, 32] and down_proj [40, 24], four bytes a number.
  assert.equal(tf.memory().numBytes - memory.numBytes, 2 * (24 * 32 + 40 * 24) * 4);
  assert.equal(merged.weights['model.embed_tokens.weight'], model.weights['model.embed_tokens.weight']);
  assertClose(realLogits(merged, IDS, MASK), unmerged, 1e-5, 'merged logits');
  assert.throws(() => assertClose(unmerged, plain, 1e-3));
  merged.dispose();
  assert.equal(tf.memory().numTensors, memory.numTensors, 'tensors left over');
  assertClose(realLogits(model, IDS, MASK), plain, 0, 'the base');
  model.dispose();
});

test('a step on A leaves B and the base bit-identical, and the reverse', () => {
  const model = smallModel();
  const adapters = { A: newAdapter(model, 'A'), B: newAdapter(model, 'B') };
  const tensors = { A: uploadAdapter(adapters.A), B: uploadAdapter(adapters.B) };
  const base = Object.values(model.weights).map((w) => w.dataSync().slice());
  const bytesOf = (adapter: Adapter) => Object.values(adapter.weights).map(({ data }) => data);
  for (const [trained, other] of [
    ['A', 'B'],
    ['B', 'A'],
  ] as const) {
    const otherBefore = bytesOf(downloadAdapter(adapters[other].config, tensors[other]));
    const ownBefore = bytesOf(downloadAdapter(adapters[trained].config, tensors[trained]));
    const lora = tensors[trained];
    const grads = tf.grads(() => {
      const hidden = forward(
        model,
        tf.tensor2d(IDS, undefined, 'int32'),
        tf.tensor2d(MASK, undefined, 'int32'),
        lora,
      );
      return tf.mean(tf.square(logits(model, hidden)));
    })(Object.values(lora.weights));
    const stepped = Object.entries(lora.weights).map(
      ([name, w], i) => [name, tf.tidy(() => tf.sub(w, tf.mul(grads[i]!, 0.1)) as tf.Tensor2D)] as const,
    );
    tf.dispose(grads);
    free(lora);
    tensors[trained] = { ...lora, weights: Object.fromEntries(stepped) };
    assert.notDeepEqual(bytesOf(downloadAdapter(adapters[trained].config, tensors[trained])), ownBefore);
    assert.deepEqual(bytesOf(downloadAdapter(adapters[other].config, tensors[other])), otherBefore);
  }
  assert.deepEqual(
    Object.values(model.weights).map((w) => w.dataSync()),
    base,
  );
  free(tensors.A);
  free(tensors.B);
  model.dispose();
  assert.equal(tf.memory().numTensors, 0);
});

test('a PEFT folder comes back as it was; one that asks for more, or does not fit, is refused', () => {
  const model = smallModel();
  const adapter = newAdapter(model, 'B');
  const folder = scratch();
  writeAdapter(folder, adapter, 'some/base');
  assert.deepEqual(readAdapter(folder, model.config), adapter);
  assert.throws(
    () => readAdapter(folder, { ...model.config, intermediate_size: 44 }),
    /adapter_model\.safetensors: tensor '.*gate_proj\.lora_B\.weight' has shape \[40,4\], the model wants \[44,4\]/,
  );
  assert.throws(
    () => readAdapter(folder, { ...model.config, num_hidden_layers: 3 }),
    /tensor '.*layers\.2.*' \[4,24\] is missing/,
  );
  assert.throws(
    () => readAdapter(folder, { ...model.config, num_hidden_layers: 1 }),
    /tensor '.*layers\.1.*' belongs to no targeted layer/,
  );
  const path = join(folder, 'adapter_config.json');
  const json = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  writeFileSync(path, JSON.stringify({ ...json, use_dora: true }));
  assert.throws(
    () => readAdapter(folder, model.config),
    /adapter_config\.json[\s\S]*use_dora: this variant of LoRA/,
  );
  writeFileSync(path, JSON.stringify({ ...json, target_modules: ['lm_head'] }));
  assert.throws(() => readAdapter(folder, model.config), /target_modules\.0/);
  model.dispose();
});
