/** safetensors and model folders: round trips, number formats, and files that are broken in every way we thought of. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import {
  countParameters,
  downloadModel,
  type HostTensor,
  hasQkNorm,
  initAdapter,
  loadModel,
  loraConfig,
  makeConfig,
  parameterNames,
  parameterShapes,
  parseConfig,
  readSafetensors,
  saveModel,
  uploadAdapter,
  writeAdapter,
  writeSafetensors,
} from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { FAMILIES, GOLDEN, realLogits, scratch, smallModel } from './support.js';

before(async () => {
  await initBackend();
});

const tensor = (shape: number[], data: number[]): HostTensor => ({ shape, data: Float32Array.from(data) });

/** A safetensors file from a header and a number of data bytes, well-formed or not. */
function rawFile(header: unknown, dataBytes: number): string {
  const path = join(scratch(), 'raw.safetensors');
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  writeFileSync(path, Buffer.concat([length, json, Buffer.alloc(dataBytes)]));
  return path;
}

test('safetensors: what is written is read, metadata included, and nothing temporary stays', () => {
  const folder = scratch();
  const tensors = {
    b: tensor([2, 3], [1, -2, 3.5, 0, 1e-30, 4]),
    a: tensor([], [7]),
    empty: tensor([0, 4], []),
  };
  writeSafetensors(join(folder, 'x.safetensors'), tensors, { metadata: { format: 'pt', step: '3' } });
  const read = readSafetensors(join(folder, 'x.safetensors'));
  assert.deepEqual(read.tensors, tensors);
  assert.deepEqual(read.metadata, { format: 'pt', step: '3' });
  assert.deepEqual(readdirSync(folder), ['x.safetensors']);
  assert.throws(
    () => writeSafetensors(join(folder, 'y.safetensors'), { a: tensor([2], [1]) }),
    /y\.safetensors: tensor 'a' has 1 numbers, its shape \[2\] wants 2/,
  );
  assert.deepEqual(readdirSync(folder), ['x.safetensors']);
});

test('safetensors: F16 and BF16 round to nearest even', () => {
  const path = join(scratch(), 'half.safetensors');
  // 1 + 2^-11 lies halfway between 1 and 1 + 2^-10 (even: 1); 65520 is the first that overflows; 2^-24 is the least.
  const numbers = [
    1 + 2 ** -11,
    1 + 3 * 2 ** -11,
    65519,
    65520,
    2 ** -24,
    2 ** -25,
    6.1e-5,
    -0.1,
    2 ** -14,
    -0,
  ];
  writeSafetensors(path, { x: tensor([numbers.length], numbers) }, { dtype: 'F16' });
  assert.deepEqual(
    [...readSafetensors(path).tensors.x!.data],
    [1, 1 + 2 ** -9, 65504, Infinity, 2 ** -24, 0, 1023 * 2 ** -24, -0.0999755859375, 2 ** -14, -0],
  );
  const brain = [1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.38e38, 3.4e38, -0.1];
  writeSafetensors(path, { x: tensor([5], brain) }, { dtype: 'BF16' });
  assert.deepEqual(
    [...readSafetensors(path).tensors.x!.data],
    [1, 1 + 2 ** -6, 254 * 2 ** 120, Infinity, -0.10009765625],
  );
});

test('safetensors: a broken file is an error that names the file and the tensor', () => {
  const f32 = (begin: number, end: number, shape = [2]) => ({
    dtype: 'F32',
    shape,
    data_offsets: [begin, end],
  });
  const cases: [string, number, unknown, RegExp][] = [
    ['truncated', 4, { a: f32(0, 8) }, /raw\.safetensors: tensor 'a' ends at byte 8 of only 4/],
    ['trailing bytes', 12, { a: f32(0, 8) }, /4 bytes after the last tensor/],
    ['hole', 20, { a: f32(0, 8), b: f32(12, 20) }, /tensor 'b' starts at byte 12, after a hole; expected 8/],
    [
      'overlap',
      12,
      { a: f32(0, 8), b: f32(4, 12) },
      /tensor 'b' starts at byte 4, inside the tensor before it/,
    ],
    ['size', 8, { a: f32(0, 8, [3]) }, /tensor 'a' has 8 bytes, F32 \[3\] wants 12/],
    ['dtype', 8, { a: { ...f32(0, 8), dtype: 'I64' } }, /tensor 'a'[\s\S]*dtype/],
    ['offsets', 8, { a: { ...f32(0, 8), data_offsets: [0] } }, /tensor 'a'[\s\S]*data_offsets/],
    ['negative', 8, { a: f32(0, 8, [-2]) }, /tensor 'a'[\s\S]*shape/],
    ['not JSON', 8, '{"a": ', /the header is not JSON/],
    ['not an object', 0, '[]', /header/],
    ['metadata', 0, { __metadata__: { step: 3 } }, /__metadata__[\s\S]*step/],
  ];
  for (const [what, bytes, header, message] of cases)
    assert.throws(() => readSafetensors(rawFile(header, bytes)), message, what);
  const path = join(scratch(), 'short.safetensors');
  writeFileSync(path, Buffer.alloc(5));
  assert.throws(() => readSafetensors(path), /short\.safetensors: 5 bytes are too few/);
  writeFileSync(path, Buffer.concat([Buffer.from([255, 255, 255, 255, 255, 0, 0, 0]), Buffer.alloc(100)]));
  assert.throws(() => readSafetensors(path), /header length 1099511627775 is more than the file/);
});

/** Both families, their head tied and of its own. */
const KINDS = FAMILIES.flatMap((family) => [true, false].map((tied) => ({ family, tied })));

test('a model folder comes back bit for bit, of both families, tied and untied', () => {
  for (const { family, tied } of KINDS) {
    const model = smallModel(0, tied, family);
    const folder = scratch();
    saveModel(folder, model);
    const again = loadModel(folder);
    assert.equal(again.config.model_type, family);
    assert.deepEqual(downloadModel(again), downloadModel(model));
    assert.equal(again.config.rope_theta, model.config.rope_theta);
    again.dispose();
    model.dispose();
  }
  assert.equal(tf.memory().numTensors, 0);
});

test('a model folder whose tensors are not those of its config is refused', () => {
  const model = smallModel();
  const folder = scratch();
  saveModel(folder, model);
  const configPath = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as Record<string, unknown>;
  const withConfig = (changes: Record<string, unknown>) => {
    writeFileSync(configPath, JSON.stringify({ ...config, ...changes }));
    return () => loadModel(folder);
  };
  assert.throws(
    withConfig({ vocab_size: 20 }),
    /model\.safetensors: tensor 'model\.embed_tokens\.weight' has shape \[19,24\], config\.json wants \[20,24\]/,
  );
  assert.throws(withConfig({ num_hidden_layers: 3 }), /tensor 'model\.layers\.2.*' \[32,24\] is missing/);
  assert.throws(
    withConfig({ num_hidden_layers: 1 }),
    /tensor 'model\.layers\.1.*' \[.*\] is not part of the model/,
  );
  assert.throws(withConfig({ tie_word_embeddings: false }), /'lm_head\.weight' \[19,24\] is missing/);
  assert.throws(withConfig({ model_type: 'mistral' }), /config\.json[\s\S]*model_type[\s\S]*mistral/);
  assert.throws(
    withConfig({ model_type: 'llama' }),
    /config\.json[\s\S]*architectures: must be \['LlamaForCausalLM'\] where model_type is 'llama'/,
  );
  assert.throws(
    withConfig({ model_type: 'llama', architectures: ['LlamaForCausalLM'] }),
    /tensor 'model\.layers\.0\.self_attn\.q_norm\.weight' \[8\] is not part of the model/,
  );
  model.dispose();
  assert.equal(tf.memory().numTensors, 0);
});

test('a missing or misnamed shard is an error that names it', () => {
  const folder = scratch();
  const source = join(GOLDEN, 'qwen3-untied-bf16');
  for (const file of readdirSync(source).filter((name) => /^(config|model)/.test(name)))
    writeFileSync(join(folder, file), readFileSync(join(source, file)));
  const indexPath = join(folder, 'model.safetensors.index.json');
  const index = JSON.parse(readFileSync(indexPath, 'utf8')) as { weight_map: Record<string, string> };
  const name = 'model.norm.weight';
  const rewrite = (file: string) => {
    writeFileSync(indexPath, JSON.stringify({ ...index, weight_map: { ...index.weight_map, [name]: file } }));
    return () => loadModel(folder);
  };
  assert.throws(
    rewrite('model-00001-of-00003.safetensors'),
    /'model\.norm\.weight' should be in model-00001/,
  );
  assert.throws(rewrite('gone.safetensors'), /gone\.safetensors/);
  assert.throws(rewrite('../model.safetensors'), /must be a file in the same folder/);
});

test('a config that asks for what is not computed here is refused by name', () => {
  const model = smallModel();
  const plain: Record<string, unknown> = { ...model.config };
  model.dispose();
  const refuse = (changes: Record<string, unknown>, message: RegExp) =>
    assert.throws(() => parseConfig({ ...plain, ...changes }, 'c.json'), message);
  refuse(
    { rope_parameters: { rope_type: 'yarn', factor: 4 } },
    /c\.json[\s\S]*rope_type: only the default RoPE[\s\S]*yarn/,
  );
  refuse({ rope_scaling: { type: 'linear', factor: 2 } }, /rope_scaling\.type[\s\S]*linear/);
  refuse({ attention_bias: true }, /attention_bias/);
  refuse({ use_sliding_window: true }, /use_sliding_window/);
  refuse({ hidden_act: 'gelu' }, /hidden_act[\s\S]*gelu/);
  refuse({ num_key_value_heads: 3 }, /num_key_value_heads: must divide num_attention_heads \(4\)/);
  refuse({ hidden_size: 0 }, /hidden_size/);
  const old = parseConfig({ ...plain, rope_parameters: undefined, rope_theta: 5e5 }, 'c.json');
  assert.equal(old.rope_theta, 5e5);
  assert.throws(() => makeConfig({ ...old, head_dim: 7 }), /head_dim: must be even/);
});

test('Llama: no norms on queries and keys; a head size from the config, or the hidden size shared out', () => {
  const sizes = {
    model_type: 'llama',
    hidden_size: 24,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 40,
    vocab_size: 19,
  } as const;
  const config = makeConfig(sizes);
  assert.deepEqual([config.architectures, config.head_dim], [['LlamaForCausalLM'], 6]);
  assert.equal(config.max_position_embeddings, 2048);
  assert.deepEqual(
    [hasQkNorm(config), hasQkNorm(makeConfig({ ...sizes, model_type: 'qwen3' }))],
    [false, true],
  );
  // Per layer q and o 24 x 24, k and v 24 x 12, mlp 3 x 24 x 40, two norms of 24; embedding and head 19 x 24, a norm.
  assert.equal(
    countParameters(config),
    2 * (2 * 24 * 24 + 2 * 24 * 12 + 3 * 24 * 40 + 2 * 24) + 2 * 19 * 24 + 24,
  );
  const own = makeConfig({ ...sizes, head_dim: 8 });
  assert.deepEqual(parameterShapes(own).get('model.layers.1.self_attn.q_proj.weight'), [32, 24]);
  assert.ok(parameterNames(own).every((name) => !/[qk]_norm/.test(name)));
  const plain: Record<string, unknown> = { ...config, head_dim: null };
  assert.equal(parseConfig(plain, 'c.json').head_dim, 6);
  const refuse = (changes: Record<string, unknown>, message: RegExp) =>
    assert.throws(() => parseConfig({ ...plain, ...changes }, 'c.json'), message);
  const llama3 = { rope_type: 'llama3', factor: 8, original_max_position_embeddings: 8192 };
  refuse({ rope_scaling: llama3 }, /c\.json[\s\S]*rope_scaling\.rope_type: only the default RoPE.*llama3/);
  refuse({ rope_parameters: llama3 }, /rope_parameters\.rope_type: only the default RoPE.*llama3/);
  refuse({ attention_bias: true }, /attention_bias/);
  refuse({ mlp_bias: true }, /mlp_bias: biases of the MLP/);
  refuse({ num_attention_heads: 10 }, /hidden_size: must be a multiple of num_attention_heads \(10\)/);
  refuse({ architectures: ['Qwen3ForCausalLM'] }, /architectures: must be \['LlamaForCausalLM'\]/);
});

const python = process.env.GOLDEN_PYTHON;
test('what is written here loads in transformers and peft (test/golden/check_export.py)', {
  skip: !python,
}, () => {
  const folder = scratch();
  const ids = [[3, 1, 4, 1, 5, 9, 2, 6]];
  const mask = [ids[0]!.map(() => 1)];
  for (const { family, tied } of KINDS) {
    const model = smallModel(5, tied, family);
    const target = join(folder, `${family}-${tied ? 'tied' : 'untied'}`);
    saveModel(target, model);
    const adapter = initAdapter(model, loraConfig({ r: 4 }), stream('export'), 'B', { absolute: 0.1 });
    writeAdapter(join(target, 'adapter'), adapter, target);
    const lora = uploadAdapter(adapter);
    const expected = {
      ids,
      logits: realLogits(model, ids, mask),
      adapterLogits: realLogits(model, ids, mask, lora),
    };
    writeFileSync(join(target, 'expected.json'), JSON.stringify(expected));
    tf.dispose(lora.weights as Record<string, tf.Tensor>);
    model.dispose();
  }
  const random = stream('halves');
  const numbers = Float32Array.from(
    { length: 5000 },
    () => random.normal() * 10 ** (12 * random.uniform() - 9),
  );
  mkdirSync(join(folder, 'numbers'));
  for (const dtype of ['F32', 'F16', 'BF16'] as const)
    writeSafetensors(
      join(folder, 'numbers', `${dtype}.safetensors`),
      { x: { shape: [50, 100], data: numbers } },
      { dtype },
    );
  const checked = spawnSync(python!, [join(GOLDEN, 'check_export.py'), folder], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
});
