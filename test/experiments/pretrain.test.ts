/** Pretraining the arena's base: it learns, and stopped and resumed it ends where it would have ended. */
import assert from 'node:assert/strict';
import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { z } from 'zod';
import { BASES } from '../../lib/experiments/bases.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { pretrain, pretrainConfigSchema } from '../../lib/experiments/pretrain.js';
import { readJsonl } from '../../lib/files.js';
import { readSafetensors, writeSafetensors } from '../../lib/model/index.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool } from '../../lib/tensors/pool.js';
import { loadTokenizer } from '../../lib/text/index.js';
import { scratch } from './support.js';

before(async () => {
  await initBackend();
});

const arena = BASES['arena-base'].source;
const configOf = (maxSteps: number) =>
  pretrainConfigSchema.parse({ maxSteps, batchSize: 4, warmupSteps: 2, learningRate: 3e-3 });

/** Pretrains into a new folder, stopping after each of the given steps. */
async function train(maxSteps: number, stops: readonly number[] = [], source = arena) {
  const [folder, state] = [scratch(), scratch()];
  source.corpus.writeTokenizer(folder);
  const tokenizer = loadTokenizer(folder);
  const losses: number[] = [];
  const checkpoint = join(state, 'checkpoint.safetensors');
  const go = async (end?: number) => {
    const stop = new AbortController();
    await pretrain(createPool(0), folder, tokenizer, source, configOf(maxSteps), state, {
      signal: stop.signal,
      onStep: (step, loss) => {
        losses.push(loss);
        if (step === end) stop.abort();
      },
    });
  };
  for (const end of stops)
    await assert.rejects(go(end), (error) => error instanceof Interrupted && error.steps === end);
  await go();
  return { folder, checkpoint, losses, go };
}

const logSchema = z.looseObject({ step: z.int().optional(), loss: z.number().optional() });

test('stopped after steps 1 and 3 of 4: the same checkpoint, model, losses and log', async () => {
  const [whole, stopped] = [await train(4), await train(4, [1, 3])];
  assert.deepEqual(stopped.losses, whole.losses);
  assert.ok(readFileSync(stopped.checkpoint).equals(readFileSync(whole.checkpoint)));
  const model = (folder: string) => readFileSync(join(folder, 'model.safetensors'));
  assert.ok(model(stopped.folder).equals(model(whole.folder)));

  const log = readJsonl(join(stopped.folder, 'pretrain.jsonl'), logSchema);
  assert.equal(log.at(-1)!.step, 4);
  // A line is a mean over the steps since the last one or since the start of the process: here step 4 alone.
  assert.ok(Math.abs(log.at(-1)!.loss! - whole.losses[3]!) < 1e-5);
  const first = readJsonl(join(whole.folder, 'pretrain.jsonl'), logSchema);
  const mean = whole.losses.reduce((a, b) => a + b, 0) / 4;
  assert.ok(Math.abs(first.at(-1)!.loss! - mean) < 1e-5);
});

test('a checkpoint that is cut off or of another model is refused by name', async () => {
  const { checkpoint, go } = await train(1);
  const { tensors, metadata } = readSafetensors(checkpoint);
  const name = 'm/model.embed_tokens.weight';
  const { shape, data } = tensors[name]!;
  writeSafetensors(checkpoint, { ...tensors, [name]: { shape: [...shape].reverse(), data } }, { metadata });
  await assert.rejects(go(), /checkpoint\.safetensors: tensor 'm\/model\.embed_tokens\.weight' .* shape/);
  writeSafetensors(checkpoint, tensors, { metadata: { step: 'two' } });
  await assert.rejects(go(), /checkpoint\.safetensors: metadata 'step'/);
  truncateSync(checkpoint, 1000);
  await assert.rejects(go(), /checkpoint\.safetensors: /);
});

test('the loss falls from that of guessing', async () => {
  const { losses } = await train(20);
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const [start, end] = [mean(losses.slice(0, 3)), mean(losses.slice(-3))];
  assert.ok(
    Math.abs(losses[0]! - Math.log(96)) < 0.3,
    `96 words, all alike, cost 4.56 nats; found ${losses[0]}`,
  );
  assert.ok(end < start - 1, `from ${start} to ${end}`);
});

test('a base goes on from another: a Llama from a Qwen3 leaves its norms out, what lacks a weight is refused', async () => {
  const { folder, losses } = await train(1, [], BASES['arena-llama'].source);
  assert.ok(losses[0]! < 4, `guessing costs 4.56 nats; found ${losses[0]}`);
  const { tensors } = readSafetensors(join(folder, 'model.safetensors'));
  assert.deepEqual(
    Object.keys(tensors).filter((name) => /[qk]_norm/.test(name)),
    [],
  );
  await assert.rejects(train(1, [], { ...arena, from: folder }), /cannot be gone on from: '.*q_norm/);
});
