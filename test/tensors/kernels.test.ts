/**
 * Our own kernels on wasm: products against plain loops over shapes that end in every kind of tile, the transformer's
 * operations and their gradients against stock operations.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { attention, attentionBias, rmsNorm, rotary, rotate, swiglu } from '../../lib/model/operations.js';
import { stream } from '../../lib/random.js';
import { choiceScalars, sampleTokens } from '../../lib/rollouts/sampler.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { hasKernel } from '../../lib/tensors/kernels.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend('wasm'); // the kernels exist there only
});

/** [batch, M, N, K] */
const SHAPES = [
  [2, 1, 1, 1],
  [3, 2, 16, 4],
  [2, 3, 5, 8],
  [2, 7, 17, 12],
  [2, 2, 33, 16],
  [3, 9, 31, 100],
  [2, 8, 8, 8],
  [1, 5, 6, 4],
  [2, 6, 11, 6],
  [1, 133, 9, 260],
  [1, 3, 520, 5],
] as const;

test('A B, A^T B, A B^T and A^T B^T of every batch, inputs untouched', () => {
  const random = stream('batched');
  const numbers = (n: number) => Float32Array.from({ length: n }, () => random.normal());
  for (const [batch, M, N, K] of SHAPES)
    for (const transposeA of [false, true])
      for (const transposeB of [false, true]) {
        const [a, b] = [numbers(batch * M * K), numbers(batch * K * N)];
        const [A, B] = [
          tf.tensor(a, transposeA ? [batch, K, M] : [batch, M, K]),
          tf.tensor(b, transposeB ? [batch, N, K] : [batch, K, N]),
        ];
        const expected = new Float32Array(batch * M * N);
        for (let item = 0; item < batch; item++)
          for (let m = 0; m < M; m++)
            for (let n = 0; n < N; n++) {
              let sum = 0;
              for (let k = 0; k < K; k++)
                sum +=
                  a[item * M * K + (transposeA ? k * M + m : m * K + k)]! *
                  b[item * K * N + (transposeB ? n * K + k : k * N + n)]!;
              expected[(item * M + m) * N + n] = sum;
            }
        const C = tf.matMul(A, B, transposeA, transposeB);
        assert.deepEqual(C.shape, [batch, M, N]);
        assertClose(C.dataSync(), expected, 5e-5, `[${batch}, ${M}, ${N}, ${K}] ${transposeA} ${transposeB}`);
        assert.deepEqual([A.dataSync(), B.dataSync()], [a, b]);
        if (batch === 1) {
          const [A2, B2] = [A, B].map((x) => tf.reshape(x, x.shape.slice(1) as [number, number]));
          const C2 = tf.matMul(A2 as tf.Tensor2D, B2 as tf.Tensor2D, transposeA, transposeB);
          assert.deepEqual(C2.dataSync(), C.dataSync(), 'matrices of rank 2');
          tf.dispose([A2!, B2!, C2]);
        }
        tf.dispose([A, B, C]);
      }
});

test('rank 4, broadcast batches, int32 and empty products still work', () => {
  const q = tf.randomNormal([2, 3, 4, 8]);
  const k = tf.randomNormal([2, 3, 5, 8]);
  const folded = tf.matMul(tf.reshape(q, [6, 4, 8]), tf.reshape(k, [6, 5, 8]), false, true);
  assertClose(tf.matMul(q, k, false, true).dataSync(), folded.dataSync(), 1e-6);
  const one = tf.randomNormal([1, 8, 5]);
  const wide = tf.matMul(tf.reshape(q, [6, 4, 8]), one);
  const flat = tf.matMul(tf.reshape(q, [24, 8]), tf.reshape(one, [8, 5]));
  assertClose(wide.dataSync(), flat.dataSync(), 1e-5);
  assert.deepEqual(tf.matMul(tf.zeros([2, 0, 3]), tf.zeros([2, 3, 4])).shape, [2, 0, 4]);
});

test('a row of a product is the same bits whatever rows are around it', () => {
  const [x, w] = [tf.randomNormal<tf.Rank.R2>([37, 300]), tf.randomNormal<tf.Rank.R2>([300, 21])];
  const all = tf.matMul(x, w).arraySync() as number[][];
  for (const [start, size] of [
    [0, 1],
    [5, 4],
    [30, 7],
  ] as const)
    assert.deepEqual(
      tf.matMul(tf.slice(x, [start, 0], [size, -1]), w).arraySync(),
      all.slice(start, start + size),
    );
});

/** Values and the gradients of a weighted sum of both, of the same inputs. */
function assertSame(
  ours: (...xs: tf.Tensor[]) => tf.Tensor,
  plain: (...xs: tf.Tensor[]) => tf.Tensor,
  inputs: tf.Tensor[],
  tolerance: number,
  what: string,
): void {
  tf.tidy(() => {
    const weights = tf.randomNormal(plain(...inputs).shape, 0, 1, 'float32', 3);
    const loss = (f: typeof ours) => tf.grads((...xs) => tf.sum(tf.mul(f(...xs), weights)))(inputs);
    assertClose(ours(...inputs).dataSync(), plain(...inputs).dataSync(), tolerance, what);
    const [found, expected] = [loss(ours), loss(plain)];
    for (const [i, grad] of expected.entries()) {
      assert.deepEqual(found[i]!.shape, grad.shape);
      assertClose(found[i]!.dataSync(), grad.dataSync(), 10 * tolerance, `${what}: gradient ${i}`);
    }
  });
}

const normal = (shape: number[], std = 1) => tf.randomNormal(shape, 0, std, 'float32', shape.length + 7);

test('RMS norm, rotary positions and SwiGLU are those of stock operations, forward and backward', () => {
  assert.ok(hasKernel('RmsNorm') && hasKernel('Rotate') && hasKernel('SwiGLU'));
  for (const shape of [
    [1, 1],
    [1, 4],
    [3, 7],
    [5, 32],
    [2, 3, 2, 10],
  ]) {
    const plainNorm = (x: tf.Tensor, w: tf.Tensor) =>
      tf.mul(tf.div(x, tf.sqrt(tf.add(tf.mean(tf.square(x), -1, true), 1e-5))), w);
    const norm = (x: tf.Tensor, w: tf.Tensor) => rmsNorm(x, w as tf.Tensor1D, 1e-5);
    const weight = normal([shape.at(-1)!]);
    assertSame(
      norm as () => tf.Tensor,
      plainNorm as () => tf.Tensor,
      [normal(shape), weight],
      2e-6,
      `norm ${shape}`,
    );
    const plainGlu = (g: tf.Tensor, u: tf.Tensor) => tf.mul(tf.mul(g, tf.sigmoid(g)), u);
    const glu = (g: tf.Tensor, u: tf.Tensor) => swiglu(g as tf.Tensor2D, u as tf.Tensor2D);
    const wide = [normal(shape, 20), normal(shape)];
    assertSame(glu as () => tf.Tensor, plainGlu as () => tf.Tensor, wide, 4e-5, `swiglu ${shape}`);
  }
  for (const [R, H, T, hd] of [
    [1, 1, 1, 2],
    [2, 3, 5, 6],
    [1, 2, 4, 16],
  ] as const) {
    const positions = tf.tensor2d(
      Array.from({ length: R * T }, (_, i) => (i * 5) % 11),
      [R, T],
    );
    const table = rotary(positions, hd, 1e4);
    const plain = (x: tf.Tensor) => {
      const [a, b] = tf.split(x, 2, -1) as [tf.Tensor, tf.Tensor];
      return tf.add(tf.mul(x, table.cos), tf.mul(tf.concat([tf.neg(b), a], -1), table.sin));
    };
    const turn = (x: tf.Tensor) => rotate(x as tf.Tensor4D, table);
    assertSame(
      turn as () => tf.Tensor,
      plain as () => tf.Tensor,
      [normal([R, H, T, hd])],
      1e-6,
      `rotate ${hd}`,
    );
  }
});

/** Attention from stock operations: keys repeated for the query heads that share them. */
function plainAttention(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor, bias: tf.Tensor): tf.Tensor {
  const group = q.shape[1]! / k.shape[1]!;
  const repeat = (x: tf.Tensor) => {
    const [R, heads, S, hd] = x.shape as [number, number, number, number];
    return tf.reshape(tf.tile(tf.reshape(x, [R, heads, 1, S * hd]), [1, 1, group, 1]), [
      R,
      heads * group,
      S,
      hd,
    ]);
  };
  const scores = tf.mul(tf.matMul(q, tf.transpose(repeat(k), [0, 1, 3, 2])), 1 / Math.sqrt(q.shape[3]!));
  return tf.matMul(tf.softmax(tf.add(scores, bias)), repeat(v));
}

test('attention is that of stock operations, forward and backward: causal, padded, unmasked, odd sizes', () => {
  for (const [R, H, Hkv, T, hd] of [
    [1, 1, 1, 1, 2],
    [2, 2, 1, 5, 8],
    [2, 6, 2, 9, 10],
    [1, 3, 3, 8, 7],
    [3, 4, 2, 23, 16],
  ] as const) {
    const mask = tf.tensor2d(
      // Whole, padded on the right, padded on the left.
      Array.from({ length: R }, (_, r) =>
        Array.from({ length: T }, (_, t) => Number(r === 1 ? t < T - 2 : r === 2 ? t > 2 : true)),
      ),
    );
    // A padded query's own output means nothing, so it is weighed with zero.
    const real = tf.reshape(mask, [R, 1, T, 1]);
    const inputs = [normal([R, H, T, hd]), normal([R, Hkv, T, hd]), tf.mul(normal([R, Hkv, T, hd]), 2)];
    const some = tf.mul(tf.randomUniform([R, 1, T, T], 0, 1, 'float32', 5), 3);
    for (const [name, bias] of Object.entries({ causal: attentionBias(mask), bias: some as tf.Tensor4D })) {
      const ours = (...[q, k, v]: tf.Tensor[]) =>
        tf.mul(attention(q as tf.Tensor4D, k as tf.Tensor4D, v as tf.Tensor4D, bias), real);
      const plain = (...[q, k, v]: tf.Tensor[]) => tf.mul(plainAttention(q!, k!, v!, bias), real);
      assertSame(ours, plain, inputs, 3e-6, `${name} ${[R, H, Hkv, T, hd]}`);
    }
  }
  assert.ok(hasKernel('Attention'));
});

test('SwiGLU is exact to rounding over the whole range of its exponential, and finite beyond it', () => {
  const x = [-200, -88, -87, -40, -10.3, -1, -1e-4, 0, 1e-4, 0.7, 5, 30, 87, 200];
  const found = swiglu(tf.tensor2d([x]), tf.ones([1, x.length])).dataSync();
  x.forEach((v, i) => {
    const expected = v / (1 + Math.exp(-v));
    assert.ok(
      Math.abs(found[i]! - expected) <= 3e-7 * Math.abs(expected) + 1e-35,
      `${v}: ${found[i]} ${expected}`,
    );
  });
});

test('drawing a token: the running sum passes the uniform share, masses of nothing are skipped, odd widths', () => {
  for (const V of [1, 2, 3, 5, 8, 97]) {
    const random = stream('draw', V);
    const logits = Float32Array.from({ length: V }, (_, i) => (i === 1 ? -Infinity : 3 * random.normal()));
    const masses = Array.from(logits, (z) => Math.exp(z / 0.7 - 9));
    const total = masses.reduce((a, b) => a + b);
    // In the middle of every share that float32 resolves, and at 0.
    const ends = masses.map((_, i) => masses.slice(0, i + 1).reduce((a, b) => a + b) / total);
    const cases = masses.flatMap((mass, i) =>
      mass < 1e-5 * total ? [] : [[ends[i]! - mass / total / 2, i] as const],
    );
    cases.push([0, 0]);
    const scalars = choiceScalars({ temperature: 0.7, topP: 1 });
    const rows = tf.tile(tf.tensor2d(logits, [1, V]), [cases.length, 1]) as tf.Tensor2D;
    const uniforms = tf.tensor2d(cases.map(([u]) => [u]));
    const { ids, logProbs } = sampleTokens(rows, uniforms, 'full', scalars);
    assert.deepEqual(
      [...ids.dataSync()],
      cases.map(([, i]) => i),
    );
    assertClose(
      logProbs.dataSync(),
      cases.map(([, i]) => Math.log(masses[i]! / total)),
      2e-6,
      `width ${V}`,
    );
    const largest = logits.indexOf(Math.max(...logits));
    const greedy = sampleTokens(rows, uniforms, 'greedy', scalars).ids;
    assert.ok(greedy.dataSync().every((id) => id === largest));
  }
});

test('a clone shares its numbers and outlives what it was cloned from', () => {
  const before = tf.memory();
  const x = tf.tensor1d([1, 2, 3]);
  const clone = tf.clone(x);
  assert.equal(tf.memory().numDataBuffers - before.numDataBuffers, 1);
  x.dispose();
  const other = tf.tensor1d([7, 8, 9]); // would lie where x lay
  assert.deepEqual(clone.arraySync(), [1, 2, 3]);
  tf.dispose([clone, other]);
  assert.equal(tf.memory().numDataBuffers, before.numDataBuffers);
});

test("the module brings no memory, data or globals of its own: the memory it works in is the backend's", () => {
  const bytes = readFileSync(new URL('../../lib/kernels.wasm', import.meta.url));
  const sections = new Set<number>();
  for (let at = 8; at < bytes.length; ) {
    sections.add(bytes[at++]!);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      size |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    at += size;
  }
  // Section numbers: WebAssembly core specification, 5.5.2.
  const [imports, memory, globals, start, data] = [2, 5, 6, 8, 11];
  assert.ok(sections.has(imports));
  for (const id of [memory, globals, start, data]) assert.ok(!sections.has(id), `section ${id}`);
});
