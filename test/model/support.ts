/** What the tests of model/ share: paths of the goldens, small models, and comparing numbers. */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { z } from 'zod';
import { ROOT, readJson } from '../../lib/files.js';
import {
  forward,
  initModel,
  type LoraTensors,
  logits,
  type Model,
  type ModelType,
  makeConfig,
} from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';

export const GOLDEN = join(ROOT, 'test', 'golden');

const logitRows = z.array(z.array(z.array(z.number())));
const goldenSchema = z.object({
  batches: z.array(
    z.object({
      side: z.enum(['left', 'right']),
      ids: z.array(z.array(z.int())),
      mask: z.array(z.array(z.int())),
      logits: logitRows,
    }),
  ),
  parameters: z.int(),
  greedy: z.array(z.array(z.int())).optional(),
  adapterLogits: logitRows.optional(),
});
export type Golden = z.infer<typeof goldenSchema>;
export type GoldenBatch = Golden['batches'][number];

export function readGolden(path: string): Golden {
  return readJson(path, goldenSchema);
}

/** A new empty folder. */
export function scratch(): string {
  return mkdtempSync(join(tmpdir(), 'model-test-'));
}

/** Queries and keys with norms, and without. */
export const FAMILIES = ['qwen3', 'llama'] as const;

/** A small random model, weights large enough for every part to matter. */
export function smallModel(seed = 0, tied = true, model_type: ModelType = 'qwen3'): Model {
  const config = makeConfig({
    model_type,
    hidden_size: 24,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 8,
    intermediate_size: 40,
    vocab_size: 19,
    tie_word_embeddings: tied,
  });
  return initModel(config, stream('small model', seed), 0.3);
}

/** Logits at the real tokens of each row, as the goldens hold them. */
export function realLogits(
  model: Model,
  ids: number[][],
  mask: number[][],
  lora?: LoraTensors,
): number[][][] {
  const all = tf.tidy(
    () =>
      logits(
        model,
        forward(model, tf.tensor2d(ids, undefined, 'int32'), tf.tensor2d(mask, undefined, 'int32'), lora),
      ).arraySync() as number[][][],
  );
  return all.map((row, r) => row.filter((_, t) => mask[r]![t] === 1));
}

/** @throws when the shapes differ or two numbers are further apart than `tolerance` */
export function assertClose(found: unknown, expected: unknown, tolerance: number, what = 'numbers'): void {
  const [a, b] = [flat(found), flat(expected)];
  assert.equal(a.length, b.length, `${what}: counts differ`);
  let worst = 0;
  for (let i = 0; i < a.length; i++)
    worst = Math.max(worst, Math.abs(a[i]! - b[i]!), Number.isNaN(a[i]!) ? Infinity : 0);
  assert.ok(worst <= tolerance, `${what}: differ by ${worst}, allowed ${tolerance}`);
}

function flat(x: unknown): number[] {
  if (typeof x === 'number') return [x];
  if (x instanceof Float32Array) return [...x];
  if (Array.isArray(x)) return x.flatMap(flat);
  throw new TypeError('not numbers');
}
