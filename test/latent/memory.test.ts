/**
 * Reading a rival's keys and values: the arithmetic by hand, sampler against scorer, rows that move,
 * gradients.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { type GradientShard, gradientShard, type LossRow, scoreLogProbs } from '../../lib/grpo/gradient.js';
import {
  besideOf,
  gateValues,
  openGates,
  openMemories,
  uploadMemories,
  withGates,
} from '../../lib/latent/index.js';
import { type Adapter, forward, LATENT_GATE, uploadAdapter } from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import type { Memory, Rollout } from '../../lib/records.js';
import { generate } from '../../lib/rollouts/generate.js';
import { readMemories, readShard } from '../../lib/rollouts/memories.js';
import { sharedModel } from '../../lib/rollouts/policy.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool } from '../../lib/tensors/pool.js';
import { assertClose } from '../model/support.js';
import { SAMPLING, tinyAdapter, tinyBase } from '../support/tiny.js';
import { gatedAdapter, memoriesOf, readingRequests, withGamma } from './support.js';

let base: string;
let adapter: Adapter;
let memories: (Memory | undefined)[];
before(async () => {
  await initBackend();
  base = tinyBase();
  adapter = gatedAdapter(base, 'reader');
  memories = await memoriesOf(base, tinyAdapter(base, 'rival'));
});

const COUNT = 20;

/** Rollouts with their memories, in one batch in this thread. */
async function sampled(
  reader: Adapter,
  given = memories,
  order = range(COUNT),
  on = base,
): Promise<Rollout[]> {
  const requests = readingRequests(COUNT, given);
  const asked = order.map((i) => requests[i]!);
  const found = await generate(createPool(0), { base: on, adapter: reader }, asked, SAMPLING, COUNT);
  return found.map((rollout, i) => {
    const { memory } = asked[i]!;
    return { ...rollout, ...(memory ? { memory } : {}) };
  });
}

function range(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}

function numbers(rows: readonly ArrayLike<number>[]): number[][] {
  return rows.map((row) => Array.from(row));
}

test('what a head reads: tanh(10 gamma) times softmax attention over the memory, by hand', () => {
  const { config } = sharedModel(base);
  const { num_attention_heads: H, num_key_value_heads: Hkv, head_dim: hd } = config;
  const T = 3;
  const R = memories.length;
  const random = stream('queries');
  const q = Array.from({ length: R * H * T * hd }, () => random.normal());
  const gates = gateValues(adapter);
  tf.tidy(() => {
    const open = openGates(uploadAdapter(adapter).weights[LATENT_GATE]!);
    const beside = besideOf(uploadMemories(memories, config)!, open);
    for (const layer of [0, 1]) {
      const found = beside(layer, tf.tensor4d(q, [R, H, T, hd])).dataSync();
      const expected = memories.flatMap((memory, r) =>
        range(H * T).flatMap((ht) => {
          const h = Math.floor(ht / T);
          const query = q.slice((r * H * T + ht) * hd, (r * H * T + ht + 1) * hd);
          if (!memory) return query.map(() => 0);
          const { k, v } = memory.layers[layer]!;
          const head = Math.floor(h / (H / Hkv));
          const at = (x: Float32Array, s: number) =>
            x.slice((head * memory.places + s) * hd, (head * memory.places + s + 1) * hd);
          const p = range(memory.places).map((s) =>
            Math.exp(query.reduce((sum, x, i) => sum + x * at(k, s)[i]!, 0) / Math.sqrt(hd)),
          );
          const total = p.reduce((a, b) => a + b, 0);
          return range(hd).map(
            (i) => (gates[layer * H + h]! * p.reduce((sum, x, s) => sum + x * at(v, s)[i]!, 0)) / total,
          );
        }),
      );
      assertClose([...found], expected, 1e-5, `layer ${layer}`);
    }
  });
});

test('a memory is what the rival computes at the last tokens, its keys turned to the places -S to -1', async () => {
  const rival = tinyAdapter(base, 'rival');
  const model = sharedModel(base);
  const { num_key_value_heads: Hkv, head_dim: hd, rope_theta } = model.config;
  const ids = [4, 7, 1, 9, 12, 3];
  const [memory] = await readShard({ policy: { base, adapter: rival }, requests: [{ ids, places: 4 }] });
  assert.equal(memory!.places, 4);
  /** Keys and values of a layer as the rival's forward pass has them, [Hkv, T, hd]. */
  const own = (sequence: readonly number[], layer: number) => {
    const found: { k: number[][]; v: number[][] }[] = [];
    tf.tidy(() => {
      forward(
        model,
        tf.tensor2d([[...sequence]], undefined, 'int32'),
        tf.ones([1, sequence.length]),
        uploadAdapter(rival),
        {
          onKeys: (k, v) => found.push({ k: k.arraySync()[0]!.flat(), v: v.arraySync()[0]!.flat() }),
        },
      );
    });
    return found[layer]!;
  };
  const rotated = (x: readonly number[], position: number) =>
    x.map((_, i) => {
      const j = i % (hd / 2);
      const angle = position * rope_theta ** (-j / (hd / 2));
      const [a, b] = [x[j]!, x[j + hd / 2]!];
      return i < hd / 2
        ? a * Math.cos(angle) - b * Math.sin(angle)
        : a * Math.sin(angle) + b * Math.cos(angle);
    });
  for (let head = 0; head < Hkv; head++)
    for (let s = 0; s < 4; s++) {
      const token = ids.length - 4 + s;
      const at = (x: Float32Array) => [...x.slice((head * 4 + s) * hd, (head * 4 + s + 1) * hd)];
      // In the first layer a key is its token's alone: read as a sequence of one, it stands at place 0, not turned.
      const alone = own([ids[token]!], 0).k[head]!;
      assertClose(at(memory!.layers[0]!.k), rotated(alone, s - 4), 1e-5, `key ${head}, ${s}`);
      assertClose(
        at(memory!.layers[1]!.v),
        own(ids, 1).v[head * ids.length + token]!,
        1e-5,
        `value ${head}, ${s}`,
      );
      const inDraft = own(ids, 1).k[head * ids.length + token]!;
      assertClose(at(memory!.layers[1]!.k), rotated(inDraft, -ids.length), 1e-5, `deep key ${head}, ${s}`);
    }
});

test('memories do not depend on the batch they are read in', async () => {
  const policy = { base, adapter: tinyAdapter(base, 'rival') };
  const drafts = [
    { ids: [4, 7, 1], places: 2 },
    { ids: [10, 1, 11, 6, 9, 2, 7], places: 5 },
    { ids: [3], places: 1 },
  ];
  const together = await readMemories(createPool(0), policy, drafts, 3);
  const apart = await readMemories(createPool(0), policy, drafts, 1);
  const flat = (list: readonly Memory[]) =>
    list.flatMap(({ layers }) => layers.map(({ k, v }) => [...k, ...v]));
  assertClose(flat(together), flat(apart), 1e-5);
  await assert.rejects(
    readMemories(createPool(0), policy, [{ ids: [1, 2], places: 3 }], 1),
    /places 3: allowed are 1 to the draft's 2 tokens/,
  );
});

test('gates of 0 leave the policy as it is without a memory, to the bit', async () => {
  const closed = withGamma(
    adapter,
    gateValues(adapter).map(() => 0),
  );
  const plain = await sampled(closed, [undefined]);
  const rows = plain.map((row, i) => ({ ...row, memory: memories[i % 3]! }));
  const policy = { base, adapter: closed };
  assert.deepEqual(await scoreLogProbs(policy, rows, 1), await scoreLogProbs(policy, plain, 1));
  // The sampler decodes rows with a memory otherwise than rows without: to rounding.
  const reading = await sampled(closed);
  assert.deepEqual(
    reading.map((r) => r.completionIds),
    plain.map((r) => r.completionIds),
  );
  assertClose(
    reading.map((r) => [...r.logProbs]),
    plain.map((r) => [...r.logProbs]),
    1e-5,
  );
});

for (const family of ['qwen3', 'llama'] as const)
  test(`${family}: the log-probs of the sampler are those of the scorer, the ratio on-policy is 1`, async () => {
    const base = tinyBase(family);
    const adapter = gatedAdapter(base, 'reader');
    const memories = await memoriesOf(base, tinyAdapter(base, 'rival'));
    const rollouts = await sampled(adapter, memories, range(COUNT), base);
    const scores = numbers(await scoreLogProbs({ base, adapter }, rollouts, 1));
    assertClose(
      rollouts.map((r) => [...r.logProbs]),
      scores,
      1e-5,
    );
    const without = rollouts.map(({ memory, ...rest }) => rest);
    const changed = numbers(await scoreLogProbs({ base, adapter }, without, 1));
    rollouts.forEach((r, i) => {
      const most = Math.max(...scores[i]!.map((x, t) => Math.abs(x - changed[i]![t]!)));
      assert.ok(r.memory ? most > 1e-2 : most < 1e-5, `row ${i}: the memory changes it by ${most}`);
    });
  });

test('rows in another order, and alone with their own padding, are the same rows', async () => {
  const rollouts = await sampled(adapter);
  const order = range(COUNT).map((i) => (7 * i + 3) % COUNT);
  const moved = await sampled(adapter, memories, order);
  order.forEach((from, to) => {
    assert.deepEqual(moved[to]!.completionIds, rollouts[from]!.completionIds);
    assertClose([...moved[to]!.logProbs], [...rollouts[from]!.logProbs], 1e-5);
  });
  const together = await scoreLogProbs({ base, adapter }, rollouts, 1);
  for (const [i, row] of rollouts.slice(0, 5).entries()) {
    const [alone] = await scoreLogProbs({ base, adapter }, [row], 1);
    assertClose([...alone!], [...together[i]!], 1e-5, `row ${i}`);
  }
});

test('the gradient of every gate is that of the loss, by finite differences', async () => {
  const rollouts = (await sampled(adapter)).slice(0, 6);
  const rows: LossRow[] = rollouts.map((r, i) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: i % 2 === 0 ? 1 : -0.6,
    weight: 0.2,
  }));
  const options: GradientShard['options'] = { epsilon: 1, epsilonHigh: 10, beta: 0, temperature: 1 };
  const at = async (gamma: readonly number[]) =>
    gradientShard({ policy: { base, adapter: withGamma(adapter, gamma) }, rows, options });
  const gamma = [...adapter.weights[LATENT_GATE]!.data];
  const { grads } = await at(gamma);
  const found = grads[LATENT_GATE]!;
  const step = 1e-3;
  const scale = Math.max(...found.map(Math.abs));
  assert.ok(scale > 0.05, `gradients of at most ${scale} would show nothing`);
  for (const i of range(gamma.length)) {
    const moved = (sign: number) => gamma.map((g, j) => (j === i ? g + sign * step : g));
    const slope = ((await at(moved(1))).loss - (await at(moved(-1))).loss) / (2 * step);
    assertClose(found[i]! / scale, slope / scale, 0.01, `gate ${i}`);
  }
});

test('rows without a memory have no gradient at the gates, and the same elsewhere as without gates', async () => {
  const { [LATENT_GATE]: gate, ...lora } = adapter.weights;
  const rows = (await sampled(adapter, [undefined])).slice(0, 4).map((r, i) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: i - 1.5,
    weight: 0.2,
  }));
  const options = { epsilon: 0.2, epsilonHigh: 0.2, beta: 0, temperature: 1 };
  const { grads } = await gradientShard({ policy: { base, adapter }, rows, options });
  const bare = await gradientShard({
    policy: { base, adapter: { ...adapter, weights: lora } },
    rows,
    options,
  });
  const { [LATENT_GATE]: own, ...others } = grads;
  assert.deepEqual(own, new Float32Array(gate!.data.length));
  assert.deepEqual(others, bare.grads);
});

test('nothing is left in the backend', async () => {
  await sampled(adapter);
  const rows = (await sampled(adapter)).map((r) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: 1,
    weight: 1,
  }));
  const tensors = tf.memory().numTensors;
  await sampled(adapter);
  await memoriesOf(base, adapter);
  await gradientShard({
    policy: { base, adapter },
    rows,
    options: { epsilon: 0.2, epsilonHigh: 0.2, beta: 0, temperature: 1 },
  });
  assert.equal(tf.memory().numTensors, tensors);
});

test('what cannot be is refused: a memory without gates, of another shape, with gradient checkpointing', async () => {
  await assert.rejects(
    sampled(tinyAdapter(base, 'no gates')),
    /read through gates, and the adapter has none/,
  );
  const { config } = sharedModel(base);
  const { places, layers } = memories[0]!;
  assert.throws(
    () => uploadMemories([undefined, { places, layers: layers.slice(1) }], config),
    /row 1: a memory of 1 layers and 3 places with 48 numbers; the model wants 2 layers of 2 x places x 8/,
  );
  assert.equal(openMemories([undefined], undefined, config), undefined);
  const rows = (await sampled(adapter)).map((r) => ({
    ...r,
    oldLogProbs: r.logProbs,
    advantage: 1,
    weight: 1,
  }));
  await assert.rejects(
    gradientShard({
      policy: { base, adapter },
      rows,
      options: { epsilon: 0.2, epsilonHigh: 0.2, beta: 0, temperature: 1, gradientCheckpointing: true },
    }),
    /gradientCheckpointing true: with a memory beside the prompt only false is allowed/,
  );
});

test('new gates stand at 0.1', () => {
  const fresh = withGates(tinyAdapter(base, 'x'), sharedModel(base).config);
  assert.deepEqual(fresh.weights[LATENT_GATE]!.shape, [2, 4]);
  assertClose(gateValues(fresh), new Array<number>(8).fill(0.1), 1e-6);
});
