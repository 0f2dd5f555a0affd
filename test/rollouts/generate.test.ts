/** Prompts to rollouts, on a tiny random model and on the shipped base. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { ARENA_BASE } from '../../lib/experiments/world.js';
import { gradientShard, scoreLogProbs } from '../../lib/grpo/gradient.js';
import type { Rollout } from '../../lib/records.js';
import { generate } from '../../lib/rollouts/generate.js';
import { type Policy, sharedModel } from '../../lib/rollouts/policy.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool } from '../../lib/tensors/pool.js';
import { loadTokenizer } from '../../lib/text/index.js';
import { assertClose, FAMILIES, realLogits } from '../model/support.js';
import { CONTEXT, EOS, PAD, requests, SAMPLING, sample, tinyAdapter, tinyBase } from '../support/tiny.js';

let base: string;
let policy: Policy;
before(async () => {
  await initBackend();
  base = tinyBase();
  policy = { base, adapter: tinyAdapter(base, 'x') };
});

const ids = (rollouts: readonly Rollout[]) => rollouts.map((r) => r.completionIds);
const logProbs = (rollouts: readonly Rollout[]) => rollouts.map((r) => r.logProbs);

test('check 20: the same seed gives the same completions, another seed others', async () => {
  const first = await sample(policy, 16);
  assert.deepEqual(await sample(policy, 16), first);
  assert.notDeepEqual(ids(await sample(policy, 16, {}, 1)), ids(first));
});

test('check 20: rows of a batch with the same prompt differ', async () => {
  const same = Array.from({ length: 8 }, (_, i) => ({ promptIds: [5, 6, 7], names: ['same', i] }));
  const rollouts = await generate(createPool(0), policy, same, SAMPLING, 8);
  assert.ok(new Set(rollouts.map((r) => r.completionIds.join())).size >= 6);
});

test('every completion ends with EOS, once and included, or at the cap; the cap itself may hold EOS', async () => {
  const rollouts = await sample(policy, 64, { maxCompletionLength: 6 });
  for (const { completionIds, logProbs, finishReason, promptIds } of rollouts) {
    assert.equal(logProbs.length, completionIds.length);
    assert.ok(logProbs.every((x) => x <= 0 && Number.isFinite(x)));
    assert.equal(completionIds.indexOf(EOS), finishReason === 'stop' ? completionIds.length - 1 : -1);
    if (finishReason === 'length') assert.equal(completionIds.length, 6);
    assert.ok(promptIds.length > 0);
  }
  const stopped = rollouts.filter((r) => r.finishReason === 'stop');
  assert.ok(
    stopped.some((r) => r.completionIds.length === 6),
    'no row ends exactly at the cap',
  );
  assert.ok(stopped.some((r) => r.completionIds.length < 6) && stopped.length < rollouts.length);
  assert.deepEqual((await sample(policy, 1, { maxCompletionLength: 1 }))[0]!.completionIds.length, 1);
});

test('check 8: PAD = EOS changes nothing, although both stand in the prompts', async () => {
  assert.deepEqual(await sample(policy, 16, { padId: EOS }), await sample(policy, 16, { padId: PAD }));
});

test('batches of 1, 3 and 16 rows give the same tokens, so neither padding nor leaving rows change a row', async () => {
  // Log-probs differ by rounding, about 1e-6. A token could flip where its uniform number falls into that gap;
  // with these seeds none does, and within one batch size nothing ever changes.
  const whole = await sample(policy, 16);
  assert.ok(new Set(whole.map((r) => r.completionIds.length)).size >= 4, 'rows leave at different times');
  for (const size of [1, 3]) {
    const cut = await generate(createPool(0), policy, requests(16), SAMPLING, size);
    assert.deepEqual(ids(cut), ids(whole));
    assertClose(logProbs(cut), logProbs(whole), 1e-5);
  }
});

test('a row stops where its own prompt fills the context, not where the longest one in its batch does', async () => {
  const long = { promptIds: Array.from({ length: CONTEXT - 3 }, (_, i) => 3 + (i % 9)), names: ['long'] };
  const short = { promptIds: [5], names: ['short'] };
  const options = { ...SAMPLING, eosId: -1, maxCompletionLength: 100 }; // never ends by itself
  const lengths = (await generate(createPool(0), policy, [long, short], options, 2)).map(
    (r) => r.completionIds.length,
  );
  assert.deepEqual(lengths, [3, CONTEXT - 1]);
});

test('a prompt that leaves no room, and an empty one, are errors', async () => {
  const run = (promptIds: number[]) =>
    generate(createPool(0), policy, [{ promptIds, names: [0] }], SAMPLING, 1);
  await assert.rejects(run(new Array<number>(CONTEXT).fill(5)), {
    message: `a prompt of ${CONTEXT} tokens leaves no room in a context of ${CONTEXT}`,
  });
  await assert.rejects(run([]), { message: 'a prompt is empty' });
  assert.deepEqual(await generate(createPool(0), policy, [], SAMPLING, 4), []);
});

test('ids beyond the vocabulary, impossible options and batch sizes are errors that name them', async () => {
  const run = (promptIds: number[], options = {}, batch = 1) =>
    generate(createPool(0), policy, [{ promptIds, names: [0] }], { ...SAMPLING, ...options }, batch);
  await assert.rejects(run([5, 13]), /token id 13 is not in the vocabulary: allowed are 0 to 12/);
  await assert.rejects(run([-1]), /token id -1 /);
  await assert.rejects(
    run([5], { temperature: -1 }),
    /temperature -1: allowed are 0 and numbers from 0.000001/,
  );
  await assert.rejects(run([5], { topP: 0 }), /topP 0: allowed are numbers above 0, up to 1/);
  for (const batch of [0, -1, 1.5, Number.NaN])
    await assert.rejects(run([5], {}, batch), /generationBatchSize .*: allowed are whole numbers from 1/);
  const rows = [{ promptIds: [5], completionIds: [13] }];
  await assert.rejects(scoreLogProbs(policy, rows, 1), /token id 13/);
  await assert.rejects(
    scoreLogProbs(policy, [{ promptIds: [], completionIds: [1] }], 1),
    /a prompt is empty/,
  );
  const { 'base_model.model.model.layers.0.mlp.up_proj.lora_B.weight': _, ...weights } =
    policy.adapter!.weights;
  const partial = { ...policy, adapter: { ...policy.adapter!, weights } };
  await assert.rejects(
    scoreLogProbs(partial, [{ promptIds: [5], completionIds: [1] }], 1),
    /lora_B.* is missing/,
  );
});

test('check 10: the log-prob of token t comes from the logits at t - 1, the first from the last prompt position', async () => {
  const [rollout] = await sample({ base, adapter: undefined }, 1);
  const { promptIds, completionIds, logProbs } = rollout!;
  const all = [...promptIds, ...completionIds];
  const [rows] = realLogits(sharedModel(base), [all], [all.map(() => 1)]);
  completionIds.forEach((id, t) => {
    const z = rows![promptIds.length + t - 1]!;
    const logProb = z[id]! - Math.log(z.reduce((sum, x) => sum + Math.exp(x), 0));
    assertClose(logProbs[t], logProb, 1e-5, `token ${t}`);
  });
});

test("check 10, 11, 19: recomputed log-probs (unmerged adapter) are the sampler's (merged, cached) to 1e-5, at T 1 and 0.6, in both families", async () => {
  for (const [family, temperature] of FAMILIES.flatMap((f) => [1, 0.6].map((t) => [f, t] as const))) {
    const base = tinyBase(family);
    const policy = { base, adapter: tinyAdapter(base, 'x') };
    const rollouts = await sample(policy, 12, { temperature });
    const again = await scoreLogProbs(policy, rollouts, temperature);
    assertClose(again, logProbs(rollouts), 1e-5, `${family} at ${temperature}`);
    const ratios = again.flatMap((row, i) => [...row].map((x, t) => Math.exp(x - rollouts[i]!.logProbs[t]!)));
    assert.ok(ratios.every((r) => r.toFixed(3) === '1.000'));
    const wrong = await scoreLogProbs(policy, rollouts, temperature === 1 ? 0.6 : 1);
    assert.throws(() => assertClose(wrong, logProbs(rollouts), 0.05));
  }
});

test('check 11: with top-p 0.8 the ratio is 1.000 all the same: the log-probs are not renormalised', async () => {
  const rollouts = await sample(policy, 8, { topP: 0.8, temperature: 0.6 });
  const again = await scoreLogProbs(policy, rollouts, 0.6);
  assertClose(again, logProbs(rollouts), 1e-5);
});

test('check 10 on the shipped base, with its tokenizer and the cap of its context', async () => {
  const tokenizer = loadTokenizer(ARENA_BASE);
  const model = sharedModel(ARENA_BASE);
  const arena = { base: ARENA_BASE, adapter: tinyAdapter(ARENA_BASE, 'arena', 0.02) };
  const random = Array.from({ length: 6 }, (_, i) => ({
    promptIds: Array.from({ length: 5 + 2 * i }, (_, t) => (7 * t + 3 * i) % model.config.vocab_size),
    names: ['arena', i],
  }));
  const options = {
    temperature: 0.8,
    topP: 1,
    maxCompletionLength: 40,
    eosId: tokenizer.eosId,
    padId: tokenizer.padId,
  };
  const rollouts = await generate(createPool(0), arena, random, options, 6);
  const again = await scoreLogProbs(arena, rollouts, 0.8);
  assertClose(again, logProbs(rollouts), 5e-5);
});

test('temperature 0 repeats itself under every seed', async () => {
  const greedy = await sample(policy, 4, { temperature: 0 });
  assert.deepEqual(ids(await sample(policy, 4, { temperature: 0 }, 9)), ids(greedy));
});

test('progress counts rollouts up to their number', async () => {
  const seen: number[] = [];
  await generate(createPool(0), policy, requests(10), SAMPLING, 4, (done) => seen.push(done));
  assert.deepEqual(seen, [4, 8, 10]);
});

test('50 rounds of sampling and gradient leave no tensor behind', async () => {
  const round = async (i: number) => {
    const rollouts = await sample(policy, 4, { maxCompletionLength: 4 }, i);
    const rows = rollouts.map((r) => ({ ...r, oldLogProbs: r.logProbs, advantage: 1, weight: 0.1 }));
    const options = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0.1, temperature: 1 };
    await gradientShard({ policy, rows, options });
    await scoreLogProbs(policy, rows, 1);
  };
  await round(0);
  const { numTensors, numBytes } = tf.memory();
  for (let i = 1; i <= 50; i++) await round(i);
  assert.equal(tf.memory().numTensors, numTensors);
  assert.equal(tf.memory().numBytes, numBytes);
});
