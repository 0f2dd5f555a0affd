/** The batched product's own kernel against plain loops, over shapes that end in every kind of tile. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { registerBatchedMatMul } from '../../lib/tensors/batched-matmul.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend('wasm'); // the kernel exists there only
  registerBatchedMatMul();
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
