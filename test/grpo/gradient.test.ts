/** A micro-batch through a model: which tokens count, and that the gradient is the loss's. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { type GradientShard, gradientShard, type LossRow, scoreLogProbs } from '../../lib/grpo/gradient.js';
import { k3 } from '../../lib/grpo/loss.js';
import {
  type Adapter,
  forward,
  type HostTensor,
  type LoraConfig,
  type LoraTensors,
  logits,
  uploadAdapter,
} from '../../lib/model/index.js';
import { type Policy, sharedModel } from '../../lib/rollouts/policy.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { assertClose } from '../model/support.js';
import { EOS, PAD, sample, tinyAdapter, tinyBase, VOCABULARY } from '../support/tiny.js';

let base: string;
let adapter: Adapter;
let policy: Policy;
before(async () => {
  await initBackend();
  base = tinyBase();
  adapter = tinyAdapter(base, 'x');
  policy = { base, adapter };
});

const OPTIONS: GradientShard['options'] = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0, temperature: 0.6 };

/** On-policy rows at temperature 0.6 with different advantages and weights. */
async function onPolicyRows(count = 4): Promise<LossRow[]> {
  const rollouts = await sample(policy, count, { temperature: 0.6 });
  return rollouts.map((r, i) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: [1.5, -0.7, 0.4, -1.1][i % 4]!,
    weight: 0.1 + 0.02 * i,
  }));
}

/** d(sum over rows and tokens of c_i logp_it) by the adapter: row by row without padding, from stock operations. */
function plainGradient(rows: readonly LossRow[], c: (row: LossRow) => number, temperature: number) {
  const model = sharedModel(base);
  const uploaded = uploadAdapter(adapter);
  const names = Object.keys(uploaded.weights);
  const grads = tf.grads((...weights: tf.Tensor[]) => {
    const given = Object.fromEntries(names.map((name, i) => [name, weights[i] as tf.Tensor2D]));
    const lora: LoraTensors = { ...uploaded, weights: given };
    const terms = rows.map((row) => {
      const ids = [...row.promptIds, ...row.completionIds];
      const z = logits(
        model,
        forward(model, tf.tensor2d([ids], undefined, 'int32'), tf.ones([1, ids.length]), lora),
      );
      const all = tf.logSoftmax(tf.div(tf.reshape(z, [ids.length, VOCABULARY]), temperature));
      // Row t of the selection picks token t + 1, where that one belongs to the completion.
      const picked = ids.map((_, t) =>
        Array.from({ length: VOCABULARY }, (_, v) =>
          Number(t + 1 >= row.promptIds.length && ids[t + 1] === v),
        ),
      );
      return tf.mul(tf.sum(tf.mul(all, tf.tensor2d(picked))), c(row));
    });
    return tf.addN(terms) as tf.Scalar;
  })(names.map((name) => uploaded.weights[name]!));
  const host = Object.fromEntries(names.map((name, i) => [name, grads[i]!.dataSync() as Float32Array]));
  tf.dispose([grads, uploaded.weights as Record<string, tf.Tensor>]);
  return host;
}

function assertSameGradient(
  found: Record<string, Float32Array>,
  expected: Record<string, Float32Array>,
): void {
  assert.deepEqual(Object.keys(found).sort(), Object.keys(expected).sort());
  for (const [name, grad] of Object.entries(expected)) {
    const size = Math.max(...grad.map(Math.abs));
    assert.ok(size > 1e-3, `${name}: the gradient is nearly zero, the test could not fail`);
    assertClose(found[name], grad, 1e-4 * size, `gradient of ${name}`);
  }
}

test('check 12: on policy the gradient is -A grad log p (weighted), the ratio 1, nothing clipped', async () => {
  const rows = await onPolicyRows();
  const sums = await gradientShard({ policy, rows, options: OPTIONS });
  assertSameGradient(
    sums.grads,
    plainGradient(rows, (row) => -row.advantage * row.weight, 0.6),
  );
  assert.deepEqual([sums.clippedLow, sums.clippedHigh, sums.kl], [0, 0, 0]);
  const expected = rows.reduce((sum, row) => sum - row.advantage * row.weight * row.completionIds.length, 0);
  assertClose(sums.loss, expected, 1e-5);
});

test('check 11: at T = 0.6 the ratio is 1.000 and the reference is scored at T too; at another T neither holds', async () => {
  const rows = await onPolicyRows();
  const unmoved = { base, adapter: tinyAdapter(base, 'x', 0) }; // an adapter that changes nothing
  const own = (await sample(unmoved, 4, { temperature: 0.6 })).map((r) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: 1,
    weight: 0.1,
  }));
  const options = { ...OPTIONS, beta: 1, epsilon: 1e-4, epsilonHigh: 1e-4 };
  const clipped = async (given: Policy, rows: LossRow[], temperature: number) => {
    const sums = await gradientShard({ policy: given, rows, options: { ...options, temperature } });
    return { share: (sums.clippedLow + sums.clippedHigh) / sums.tokens, kl: sums.kl / sums.tokens };
  };
  assert.equal((await clipped(policy, rows, 0.6)).share, 0);
  assert.ok((await clipped(policy, rows, 1)).share > 0.3);
  const same = await clipped(unmoved, own, 0.6);
  assert.equal(same.share, 0);
  assertClose(same.kl, 0, 1e-9);
  assert.ok((await clipped(policy, rows, 0.6)).kl > 1e-3);
});

test('with gradient checkpointing everything is the same, the KL to the base included', async () => {
  const rows = await onPolicyRows();
  const options = { ...OPTIONS, beta: 0.3 };
  const kept = await gradientShard({ policy, rows, options });
  const tensors = tf.memory().numTensors;
  const again = await gradientShard({ policy, rows, options: { ...options, gradientCheckpointing: true } });
  assert.equal(tf.memory().numTensors, tensors, 'tensors left over');
  assertSameGradient(again.grads, kept.grads);
  const { grads: _again, ...numbers } = again;
  const { grads: _kept, ...expected } = kept;
  assert.deepEqual(Object.keys(numbers), Object.keys(expected));
  assertClose(Object.values(numbers), Object.values(expected), 1e-5);
});

test('check 8: EOS is in the loss and nothing after it; PAD and EOS inside prompt and completion count as they stand', async () => {
  const row: LossRow = {
    promptIds: [5, PAD, 6],
    completionIds: [7, PAD, 8, EOS],
    oldLogProbs: [-2, -2, -2, -2],
    advantage: 1,
    weight: 0.25,
  };
  const longer: LossRow = {
    ...row,
    promptIds: [4, 3],
    completionIds: [9, 9, 9, 9, 9, 9, 9, 9],
    oldLogProbs: new Array<number>(8).fill(-2),
    advantage: 0,
  };
  const alone = await gradientShard({ policy, rows: [row], options: OPTIONS });
  assert.equal(alone.tokens, 4);
  // Padded to twice its length beside a row that teaches nothing: the same loss and gradient.
  const padded = await gradientShard({ policy, rows: [longer, row], options: OPTIONS });
  assertClose(padded.loss, alone.loss, 1e-5);
  assertSameGradient(padded.grads, alone.grads);
  // Without EOS it is another gradient, and EOS's own log-prob is the missing part of the loss.
  const cut = {
    ...row,
    completionIds: row.completionIds.slice(0, 3),
    oldLogProbs: row.oldLogProbs.slice(0, 3),
  };
  const without = await gradientShard({ policy, rows: [cut], options: OPTIONS });
  const [logProbs] = await scoreLogProbs(policy, [row], OPTIONS.temperature);
  const ratio = Math.min(Math.exp(logProbs![3]! + 2), 1.2);
  assertClose(without.loss - alone.loss, 0.25 * ratio, 1e-5);
  assert.throws(() => assertSameGradient(without.grads, alone.grads));
});

test('check 14: a row padded on the right or on the left has the log-probs of the row alone', async () => {
  const rows = (await sample(policy, 8)).map(({ promptIds, completionIds }) => ({
    promptIds,
    completionIds,
  }));
  assert.ok(new Set(rows.map((r) => r.promptIds.length + r.completionIds.length)).size > 3);
  const together = await scoreLogProbs(policy, rows, 1);
  for (const [i, row] of rows.entries()) {
    const [alone] = await scoreLogProbs(policy, [row], 1);
    assertClose(together[i], alone, 1e-5, `row ${i}, padded right`);
  }
  const model = sharedModel(base);
  const width = Math.max(...rows.map((r) => r.promptIds.length + r.completionIds.length)) + 3;
  tf.tidy(() => {
    const lora = uploadAdapter(adapter);
    const padding = rows.map((r) => width - r.promptIds.length - r.completionIds.length);
    const ids = rows.map((r, i) => [
      ...new Array<number>(padding[i]!).fill(PAD),
      ...r.promptIds,
      ...r.completionIds,
    ]);
    const mask = ids.map((row, i) => row.map((_, t) => Number(t >= padding[i]!)));
    const z = logits(model, forward(model, tf.tensor2d(ids, undefined, 'int32'), tf.tensor2d(mask), lora));
    const all = tf.logSoftmax(z).arraySync() as number[][][];
    rows.forEach((row, i) => {
      const found = row.completionIds.map(
        (id, t) => all[i]![padding[i]! + row.promptIds.length + t - 1]![id]!,
      );
      assertClose(found, [...together[i]!], 1e-5, `row ${i}, padded left`);
    });
  });
});

test('check 13: the KL is summed over completion tokens only, each row with its own weight', async () => {
  const rows = (await onPolicyRows()).map((row) => ({ ...row, advantage: 0 }));
  const options = { ...OPTIONS, beta: 0.5 };
  const [own, ref] = [
    await scoreLogProbs(policy, rows, 0.6),
    await scoreLogProbs({ base, adapter: undefined }, rows, 0.6),
  ];
  const kls = own.map((row, i) => [...row].map((x, t) => k3(ref[i]![t]! - x)).reduce((a, b) => a + b, 0));
  const sums = await gradientShard({ policy, rows, options });
  assert.ok(kls.every((kl) => kl > 0));
  assertClose(
    sums.kl,
    kls.reduce((a, b) => a + b, 0),
    1e-5,
  );
  assertClose(
    sums.loss,
    kls.reduce((sum, kl, i) => sum + 0.5 * rows[i]!.weight * kl, 0),
    1e-5,
  );
});

test('the entropy is that of the distribution at T, summed over completion tokens', async () => {
  const rows = await onPolicyRows(2);
  const sums = await gradientShard({ policy, rows, options: OPTIONS });
  const model = sharedModel(base);
  const expected = tf.tidy(() => {
    const lora = uploadAdapter(adapter);
    return rows.reduce((sum, row) => {
      const ids = [...row.promptIds, ...row.completionIds];
      const z = logits(
        model,
        forward(model, tf.tensor2d([ids], undefined, 'int32'), tf.ones([1, ids.length]), lora),
      );
      const p = (tf.softmax(tf.div(z, 0.6)).arraySync() as number[][][])[0]!.slice(
        row.promptIds.length - 1,
        -1,
      );
      return sum - p.flat().reduce((h, x) => h + x * Math.log(x), 0);
    }, 0);
  });
  assertClose(sums.entropy, expected, 1e-4);
});

test('check 7: a micro-batch that teaches nothing has loss 0 and a finite gradient of 0', async () => {
  const rows = (await onPolicyRows()).map((row) => ({ ...row, advantage: 0, weight: 0 }));
  const sums = await gradientShard({ policy, rows, options: OPTIONS });
  assertClose(sums.loss, 0, 0);
  for (const grad of Object.values(sums.grads)) assert.ok(grad.every((g) => Math.abs(g) === 0));
});

test('check 19: switching adapters leaks nothing: B, then A again, then the base give their own numbers to the bit', async () => {
  const rows = await onPolicyRows();
  const other: Policy = { base, adapter: tinyAdapter(base, 'other') };
  const bare: Policy = { base, adapter: undefined };
  const [a, b, none] = [
    await scoreLogProbs(policy, rows, 1),
    await scoreLogProbs(other, rows, 1),
    await scoreLogProbs(bare, rows, 1),
  ];
  assert.throws(() =>
    assertClose(
      a.map((x) => [...x]),
      b.map((x) => [...x]),
      1e-3,
    ),
  );
  await sample(other, 4); // merges it into a copy of the base
  assert.deepEqual(await scoreLogProbs(policy, rows, 1), a);
  await gradientShard({ policy: other, rows, options: OPTIONS });
  assert.deepEqual([await scoreLogProbs(bare, rows, 1), await scoreLogProbs(other, rows, 1)], [none, b]);
});

test('check 19: the scale is alpha / r: twice alpha is twice the update, twice alpha and twice r is the same', async () => {
  const rows = await onPolicyRows();
  const { r, alpha } = adapter.config;
  const change = (map: (name: string, w: HostTensor) => HostTensor, config: Partial<LoraConfig>): Policy => ({
    base,
    adapter: {
      config: { ...adapter.config, ...config },
      weights: Object.fromEntries(Object.entries(adapter.weights).map(([name, w]) => [name, map(name, w)])),
    },
  });
  const score = (changed: Policy) => scoreLogProbs(changed, rows, 1);
  const twiceB = change(
    (name, w) => (name.includes('lora_B') ? { ...w, data: w.data.map((x) => 2 * x) } : w),
    {},
  );
  assertClose(await score(change((_, w) => w, { alpha: 2 * alpha })), await score(twiceB), 1e-5);
  /** A matrix with zeros in the second half of the rank: rows of lora_A [r, in], columns of lora_B [out, r]. */
  const widened = (name: string, { shape, data }: HostTensor): HostTensor => {
    const [rows, columns] = shape as [number, number];
    if (name.includes('lora_A'))
      return { shape: [2 * r, columns], data: Float32Array.of(...data, ...data.map(() => 0)) };
    const wide = Float32Array.from({ length: rows * 2 * r }, (_, i) =>
      i % (2 * r) < r ? data[Math.floor(i / (2 * r)) * r + (i % (2 * r))]! : 0,
    );
    return { shape: [rows, 2 * r], data: wide };
  };
  assertClose(await score(change(widened, { r: 2 * r, alpha: 2 * alpha })), await score(policy), 1e-5);
});

test('a gradient without an adapter is refused: the base is frozen', async () => {
  const rows = await onPolicyRows(1);
  await assert.rejects(
    gradientShard({ policy: { base, adapter: undefined }, rows, options: OPTIONS }),
    /needs an adapter/,
  );
});
