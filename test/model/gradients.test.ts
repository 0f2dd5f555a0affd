/** Hand-written gradients against a plain composition of stock operations, and against finite differences. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import {
  forward,
  initAdapter,
  initModel,
  type LoraTensors,
  logits,
  loraConfig,
  loraName,
  type Model,
  type Span,
  uploadAdapter,
} from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { countBytes } from '../support/peak.js';
import { assertClose, FAMILIES, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

const IDS = [
  [0, 0, 5, 6, 7, 8],
  [11, 12, 13, 1, 0, 0],
];
const MASK = [
  [0, 0, 1, 1, 1, 1],
  [1, 1, 1, 1, 0, 0],
];

/** The same model from stock operations only: keys repeated, rotate-half by slices, one-hot embedding. [R, T, V] */
function plainLogits(model: Model, lora?: LoraTensors): tf.Tensor3D {
  const { config, weights } = model;
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd, hidden_size: d } = config;
  const [R, T] = [IDS.length, IDS[0]!.length];
  const norm = (x: tf.Tensor, name: string) =>
    tf.mul(tf.div(x, tf.sqrt(tf.add(tf.mean(tf.square(x), -1, true), config.rms_norm_eps))), weights[name]!);
  const linear = (x: tf.Tensor, module: string): tf.Tensor => {
    const flat = tf.reshape(x, [R * T, -1]);
    let y: tf.Tensor = tf.matMul(flat, weights[`${module}.weight`]!);
    const [A, B] = [lora?.weights[loraName(module, 'A')], lora?.weights[loraName(module, 'B')]];
    if (lora && A && B) {
      const low = tf.matMul(flat, A, false, true);
      y = tf.add(y, tf.mul(tf.matMul(low, B, false, true), lora.scale));
    }
    return tf.reshape(y, [R, T, -1]);
  };
  const positions = MASK.flatMap((row) =>
    row.map((_, t) => Math.max(0, row.slice(0, t + 1).reduce((a, b) => a + b, 0) - 1)),
  );
  const angles = positions.flatMap((p) =>
    Array.from({ length: hd }, (_, i) => p * config.rope_theta ** (-(2 * (i % (hd / 2))) / hd)),
  );
  const cos = tf.tensor(angles.map(Math.cos), [R, 1, T, hd]);
  const sin = tf.tensor(angles.map(Math.sin), [R, 1, T, hd]);
  const turn = (x: tf.Tensor) => {
    const [first, second] = tf.split(x, 2, -1) as [tf.Tensor, tf.Tensor];
    return tf.add(tf.mul(x, cos), tf.mul(tf.concat([tf.neg(second), first], -1), sin));
  };
  const heads = (x: tf.Tensor, n: number) => tf.transpose(tf.reshape(x, [R, T, n, hd]), [0, 2, 1, 3]);
  const repeat = (x: tf.Tensor) => {
    const flat = tf.reshape(x, [R * Hkv, T * hd]);
    return tf.reshape(tf.concat(Array<tf.Tensor>(H / Hkv).fill(flat), 1), [R, H, T, hd]);
  };
  const hidden = MASK.flatMap((row) =>
    row.flatMap((_, t) => row.map((seen, s) => (seen === 1 && s <= t ? 0 : -1e9))),
  );
  const bias = tf.tensor(hidden, [R, 1, T, T]);

  const table = weights['model.embed_tokens.weight'] as tf.Tensor2D;
  const ids = tf.tensor1d(IDS.flat(), 'int32');
  let x: tf.Tensor = tf.reshape(tf.matMul(tf.oneHot(ids, config.vocab_size).toFloat(), table), [R, T, d]);
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const at = `model.layers.${layer}`;
    const normed = norm(x, `${at}.input_layernorm.weight`);
    const turned = (name: string, n: number) => {
      const x = heads(linear(normed, `${at}.self_attn.${name}_proj`), n);
      return turn(config.model_type === 'llama' ? x : norm(x, `${at}.self_attn.${name}_norm.weight`));
    };
    const [q, k] = [turned('q', H), turned('k', Hkv)];
    const v = heads(linear(normed, `${at}.self_attn.v_proj`), Hkv);
    const scores = tf.matMul(q, tf.transpose(repeat(k), [0, 1, 3, 2]));
    const p = tf.softmax(tf.add(tf.div(scores, Math.sqrt(hd)), bias));
    const mixed = tf.reshape(tf.transpose(tf.matMul(p, repeat(v)), [0, 2, 1, 3]), [R, T, H * hd]);
    x = tf.add(x, linear(mixed, `${at}.self_attn.o_proj`));
    const normed2 = norm(x, `${at}.post_attention_layernorm.weight`);
    const gate = linear(normed2, `${at}.mlp.gate_proj`);
    const inner = tf.mul(tf.mul(gate, tf.sigmoid(gate)), linear(normed2, `${at}.mlp.up_proj`));
    x = tf.add(x, linear(inner, `${at}.mlp.down_proj`));
  }
  const head = config.tie_word_embeddings ? tf.transpose(table) : weights['lm_head.weight']!;
  const flat = tf.matMul(tf.reshape(norm(x, 'model.norm.weight'), [R * T, d]), head);
  return tf.reshape(flat, [R, T, config.vocab_size]);
}

function ourLogits(model: Model, lora?: LoraTensors): tf.Tensor3D {
  const [ids, mask] = [tf.tensor2d(IDS, undefined, 'int32'), tf.tensor2d(MASK, undefined, 'int32')];
  return logits(model, forward(model, ids, mask, lora));
}

/** A loss over the real tokens in which every number has its own weight, so that no gradient cancels. */
function loss(all: tf.Tensor3D, { start, count }: Span = { start: 0, count: all.shape[1] }): tf.Scalar {
  const random = stream('loss weights');
  const seen = MASK.flatMap((row) => row.slice(start, start + count));
  const weights = seen.flatMap((seen) => Array.from({ length: all.shape[2] }, () => seen * random.normal()));
  return tf.sum(tf.mul(tf.tanh(all), tf.tensor(weights, all.shape)));
}

function gradients(names: readonly string[], tensors: readonly tf.Tensor[], f: () => tf.Scalar) {
  const grads = tf.grads(() => f())([...tensors]);
  const host = new Map(names.map((name, i) => [name, grads[i]!.dataSync() as Float32Array]));
  tf.dispose(grads);
  return host;
}

function assertSameGradients(found: Map<string, Float32Array>, expected: Map<string, Float32Array>): void {
  for (const [name, want] of expected) {
    const size = Math.max(...want.map(Math.abs));
    assert.ok(size > 1e-3, `${name}: the expected gradient is nearly zero, the test could not fail`);
    assertClose(found.get(name), want, 2e-4 * size + 1e-6, `gradient of ${name}`);
  }
}

for (const [tied, family] of [true, false].flatMap((tied) => FAMILIES.map((f) => [tied, f] as const))) {
  test(`${family}: gradients of every base weight are the plain ones (${tied ? 'tied' : 'untied'} head)`, () => {
    const model = smallModel(1, tied, family);
    const tensors = tf.memory().numTensors;
    const [names, values] = [Object.keys(model.weights), Object.values(model.weights)];
    const found = gradients(names, values, () => loss(ourLogits(model)));
    assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
    const expected = gradients(names, values, () => loss(plainLogits(model)));
    assertSameGradients(found, expected);
    model.dispose();
  });
}

for (const family of FAMILIES)
  test(`${family}: gradients of an adapter are the plain ones, and the frozen base gets none`, () => {
    const model = smallModel(2, true, family);
    const adapter = initAdapter(model, loraConfig({ r: 3 }), stream('adapter'), 'B', { absolute: 0.2 });
    const lora = uploadAdapter(adapter);
    const before = Object.values(model.weights).map((w) => w.dataSync().slice());
    const tensors = tf.memory().numTensors;
    const [names, values] = [Object.keys(lora.weights), Object.values(lora.weights)];
    const found = gradients(names, values, () => loss(ourLogits(model, lora)));
    assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
    assertSameGradients(
      found,
      gradients(names, values, () => loss(plainLogits(model, lora))),
    );
    assert.deepEqual(
      Object.values(model.weights).map((w) => w.dataSync()),
      before,
    );
    tf.dispose(lora.weights as Record<string, tf.Tensor>);
    model.dispose();
  });

test('gradients agree with finite differences along a random direction', () => {
  const model = smallModel(3);
  const [names, values] = [Object.keys(model.weights), Object.values(model.weights)];
  const random = stream('direction');
  const direction = values.map((w) => Float32Array.from({ length: w.size }, () => random.normal()));
  const grads = gradients(names, values, () => loss(ourLogits(model)));
  let slope = 0;
  for (const [i, name] of names.entries())
    for (const [j, g] of grads.get(name)!.entries()) slope += g * direction[i]![j]!;
  const lossAt = (step: number) =>
    tf.tidy(() => {
      const moved = names.map((name, i) => {
        const w = values[i]!;
        return [name, tf.add(w, tf.mul(tf.tensor(direction[i]!, w.shape), step))] as const;
      });
      return loss(ourLogits({ ...model, weights: Object.fromEntries(moved) })).dataSync()[0]!;
    });
  const h = 3e-5;
  const measured = (lossAt(h) - lossAt(-h)) / (2 * h);
  assert.ok(Math.abs(measured - slope) < 0.02 * Math.abs(slope), `slope ${slope}, measured ${measured}`);
  model.dispose();
});

test('a span of positions has the hidden states and gradients of the whole, cut to it', () => {
  const model = smallModel(4);
  const lora = uploadAdapter(
    initAdapter(model, loraConfig({ r: 3 }), stream('span adapter'), 'B', { absolute: 0.2 }),
  );
  const [names, values] = [Object.keys(lora.weights), Object.values(lora.weights)];
  const [ids, mask] = [tf.tensor2d(IDS, undefined, 'int32'), tf.tensor2d(MASK, undefined, 'int32')];
  const span = { start: 2, count: 3 };
  const whole = () => tf.slice(forward(model, ids, mask, lora), [0, 2, 0], [-1, 3, -1]);
  const found = tf.tidy(() => forward(model, ids, mask, lora, { span }).arraySync());
  assertClose(
    found,
    tf.tidy(() => whole().arraySync()),
    1e-5,
    'hidden states',
  );
  const measured = (hidden: () => tf.Tensor3D) => gradients(names, values, () => loss(hidden(), span));
  const expected = measured(whole);
  for (const gradientCheckpointing of [false, true])
    assertSameGradients(
      measured(() => forward(model, ids, mask, lora, { span, gradientCheckpointing })),
      expected,
    );
  tf.dispose([ids, mask, lora.weights as Record<string, tf.Tensor>]);
  model.dispose();
});

test('gradient checkpointing gives the same gradients from far less memory', () => {
  const { config } = smallModel();
  const deep = initModel({ ...config, num_hidden_layers: 8 }, stream('deep'), 0.3);
  const adapter = initAdapter(deep, loraConfig({ r: 3 }), stream('deep adapter'), 'B', { absolute: 0.2 });
  const lora = uploadAdapter(adapter);
  const [names, values] = [Object.keys(lora.weights), Object.values(lora.weights)];
  const [R, T] = [4, 24];
  const input = tf.tidy(() => tf.cast(tf.mod(tf.range(0, R * T), 19), 'int32').reshape<tf.Tensor2D>([R, T]));
  const mask = tf.ones<tf.Rank.R2>([R, T]);
  const measure = (gradientCheckpointing: boolean) => {
    const tensors = tf.memory().numTensors;
    const counter = countBytes();
    const grads = gradients(names, values, () => {
      const all = logits(deep, forward(deep, input, mask, lora, { gradientCheckpointing }));
      return tf.mean(tf.square(all)) as tf.Scalar;
    });
    const peak = counter.peak();
    counter.stop();
    assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
    return { grads, peak };
  };
  const [kept, again] = [measure(false), measure(true)];
  for (const [name, want] of kept.grads) {
    const size = Math.max(...want.map(Math.abs));
    assert.ok(size > 1e-6, `${name}: the gradient is nearly zero, the test could not fail`);
    assertClose(again.grads.get(name), want, 1e-5 * size, `gradient of ${name}`);
  }
  assert.ok(again.peak < kept.peak / 3, `peak of ${again.peak} bytes, ${kept.peak} without`);
  tf.dispose([input, mask, lora.weights as Record<string, tf.Tensor>]);
  deep.dispose();
});
