/** Functions of tensors as TensorFlow graphs: where native TensorFlow is, against the function itself. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { before, test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { PbfReader } from 'pbf';
import { initBackend } from '../../lib/tensors/backend.js';
import { asGraph, graphsPay, type TensorFunction } from '../../lib/tensors/graph.js';
import { encodeSavedModel } from '../../lib/tensors/saved-model.js';
import { assertClose } from '../model/support.js';

before(async () => {
  await initBackend();
});

const rows = (n: number) =>
  tf.tensor2d(
    Array.from({ length: 4 * n }, (_, i) => Math.sin(i)),
    [n, 4],
  );

/** Reshapes, slices, products, a reduction, a cast, integers and a host constant; sizes vary in the first axis. */
const mixed: TensorFunction = ([x, ids]) =>
  tf.tidy(() => {
    const n = x!.shape[0]!;
    const pairs = tf.reshape(x!, [n, 2, 2]) as tf.Tensor3D;
    const left = tf.slice(pairs, [0, 0, 0], [-1, 1, 2]);
    const product = tf.matMul(tf.reshape(left, [n, 2]) as tf.Tensor2D, tf.tensor2d([1, 2, 3, 4], [2, 2]));
    const picked = tf.gather(product, ids as tf.Tensor1D);
    const mass = tf.softmax(tf.add(picked, 0.5));
    const above = tf.sum(tf.cast(tf.lessEqual(tf.cumsum(mass, 1), 0.7), 'int32'), 1);
    return [mass, above];
  });
const examples = () =>
  [
    [rows(2), tf.tensor1d([1, 0], 'int32')],
    [rows(3), tf.tensor1d([1, 0, 2], 'int32')],
  ] as const;

test('a graph computes what the function does, at sizes it was not recorded with, and leaves no tensor', () => {
  const graph = asGraph(mixed, examples);
  if (!graphsPay()) assert.equal(graph, mixed, 'elsewhere the function is its own graph');
  for (const n of [1, 2, 7]) {
    const inputs = [
      rows(n),
      tf.tensor1d(
        Array.from({ length: n }, (_, i) => n - 1 - i),
        'int32',
      ),
    ];
    const before = tf.memory().numTensors;
    const [expected, found] = [mixed(inputs), graph(inputs)];
    assertClose(found[0]!.arraySync(), expected[0]!.arraySync(), 1e-6);
    assert.deepEqual(found[1]!.arraySync(), expected[1]!.arraySync());
    assert.equal(found[1]!.dtype, 'int32');
    tf.dispose([...expected, ...found]);
    assert.equal(tf.memory().numTensors, before);
    tf.dispose(inputs);
  }
  assert.equal(readdirSync(tmpdir()).filter((name) => name.startsWith('agon-graph-')).length, 0);
});

test('what cannot be a graph is refused, with the operation named', (t) => {
  if (!graphsPay()) return t.skip('graphs are made on native TensorFlow');
  const two = () => [[rows(2)], [rows(3)]] as const;
  const outside = tf.tidy(() => tf.keep(tf.square(tf.scalar(2))));
  assert.throws(
    () => asGraph(([x]) => tf.tidy(() => [tf.mul(x!, outside)]), two),
    /Mul reads a tensor that is no input of the function/,
  );
  assert.throws(
    () => asGraph(([x]) => tf.tidy(() => [tf.mul(x!, x!.shape[0]!)]), two),
    /Mul depends on sizes that cannot be inferred: \[2\] and \[3\]/,
  );
  assert.throws(
    () => asGraph(([x]) => tf.tidy(() => [x!.shape[0] === 2 ? tf.square(x!) : tf.sqrt(x!)]), two),
    /the operations of the function depend on its sizes/,
  );
  assert.throws(
    () => asGraph(([x]) => tf.tidy(() => [tf.slice(x!, [0, 0], [x!.shape[0]! - 1, 4])]), two),
    /Slice depends on sizes that cannot be inferred: \[1,4\] and \[2,4\]/, // it stops short of the end
  );
  assert.throws(
    () => asGraph(([x]) => tf.tidy(() => [tf.slice(x!, [x!.shape[0]! - 1, 0], [1, 4])]), two),
    /Slice depends on sizes that cannot be inferred: \[1,0\] and \[2,0\]/,
  );
  assert.throws(() => asGraph(([x]) => [x!.clone()], two), /an output of the function is not computed by it/);
  outside.dispose();
});

test('a saved model has the fields of the protocol buffers that TensorFlow declares', () => {
  const bytes = encodeSavedModel([
    {
      name: 'c',
      op: 'Const',
      inputs: [],
      attributes: {
        dtype: { type: 1 },
        value: { tensor: { type: 1, shape: [2], values: Float32Array.of(1, -2) } },
      },
    },
    { name: 'sum', op: 'AddV2', inputs: ['c', 'c:0'], attributes: { T: { type: 1 }, keep: { b: true } } },
  ]);
  const fields = (buffer: Uint8Array) => {
    const found: [number, Uint8Array | number][] = [];
    new PbfReader(buffer).readFields((tag, _, pbf) => {
      found.push([tag, pbf.type === 2 ? pbf.readBytes() : pbf.readVarint()]);
    }, null);
    return found;
  };
  const inside = (buffer: Uint8Array, ...path: number[]): Uint8Array =>
    path.reduce((at, tag) => fields(at).find(([t]) => t === tag)![1] as Uint8Array, buffer);
  const string = (x: Uint8Array | number) => Buffer.from(x as Uint8Array).toString();
  assert.equal(string(inside(bytes, 2, 1, 4)), 'serve');
  const nodes = fields(inside(bytes, 2, 2)).filter(([tag]) => tag === 1);
  assert.deepEqual(
    nodes.map(([, node]) => fields(node as Uint8Array).flatMap(([tag, x]) => (tag <= 3 ? [string(x)] : []))),
    [
      ['c', 'Const'],
      ['sum', 'AddV2', 'c', 'c:0'],
    ],
  );
  const value = fields(nodes[0]![1] as Uint8Array).filter(([tag]) => tag === 5)[1]![1] as Uint8Array;
  assert.equal(string(inside(value, 1)), 'value');
  const tensor = inside(value, 2, 8);
  assert.equal(fields(tensor).find(([tag]) => tag === 1)![1], 1); // DT_FLOAT
  assert.deepEqual(fields(inside(tensor, 2, 2)), [[1, 2]]); // one dimension of size 2
  assert.deepEqual([...inside(tensor, 4)], [...new Uint8Array(Float32Array.of(1, -2).buffer)]);
});
