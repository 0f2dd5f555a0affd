/**
 * A function of tensors as one TensorFlow graph: recorded while it runs, then executed by a single call.
 *
 * tfjs-node calls TensorFlow operation by operation, and every call costs 7-15 microseconds in JavaScript and in the
 * eager runtime: more than the arithmetic of a small decoding step. Its binding can also run a SavedModel, so the
 * operations that a function asks for are recorded at the binding, written as a graph, and loaded. The function
 * stays the one description of the computation: it runs as it is on every other backend.
 *
 * Left out: gradients (record the whole computation instead), randomness inside, GPUs – there, inputs would be
 * copied to the host at every call, and nobody has measured it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { currentBackend } from './backend.js';
import { encodeSavedModel, type GraphAttribute, type GraphNode, SERVE } from './saved-model.js';

/**
 * Tensors to new tensors, without values read back or randomness, and without change to its inputs (inside it may write
 * in place). The caller disposes of what comes out.
 */
export type TensorFunction = (inputs: readonly tf.Tensor[]) => tf.Tensor[];

/** What is used of tfjs-node's binding (binding/tfjs_backend.h). */
interface Binding {
  executeOp(name: string, attrs: OpAttribute[], inputs: number[], outputs: number): Output[];
  createTensor(shape: number[], dtype: number, values: Float32Array | Int32Array | Uint8Array): number;
  loadSavedModel(folder: string, tags: string): number;
  runSavedModel(id: number, inputs: number[], inputNames: string, outputNames: string): Output[];
  readonly TF_FLOAT: number;
  readonly TF_INT32: number;
  readonly TF_ATTR_STRING: number;
  readonly TF_ATTR_INT: number;
  readonly TF_ATTR_FLOAT: number;
  readonly TF_ATTR_BOOL: number;
  readonly TF_ATTR_TYPE: number;
}
interface OpAttribute {
  readonly name: string;
  readonly type: number;
  readonly value: unknown;
}
interface Kind {
  readonly shape: readonly number[];
  /** TensorFlow's DataType. */
  readonly dtype: number;
}
interface Output extends Kind {
  readonly id: number;
}
interface NativeBackend {
  binding: Binding;
  getInputTensorIds(tensors: readonly tf.Tensor[]): number[];
  createOutputTensor(output: Output): tf.Tensor;
}

/** One recorded call of the function. */
interface Recording {
  readonly operations: readonly {
    readonly name: string;
    readonly attributes: readonly OpAttribute[];
    readonly inputs: readonly number[];
    readonly outputs: readonly number[];
  }[];
  /** Host values that became tensors inside, by tensor id. */
  readonly constants: ReadonlyMap<
    number,
    {
      readonly type: number;
      readonly shape: readonly number[];
      readonly values: Float32Array | Int32Array | Uint8Array;
    }
  >;
  /** Of every tensor that was seen, by id. */
  readonly kinds: ReadonlyMap<number, Kind>;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** What the function gave; the caller's to dispose. */
  readonly results: readonly tf.Tensor[];
}

/** Whether `asGraph` makes a graph here; elsewhere it returns the function. */
export function graphsPay(): boolean {
  return tf.getBackend() === 'tensorflow' && !currentBackend().gpu;
}

/**
 * The function as a graph on native TensorFlow on a CPU, and itself on every other backend.
 * @param examples inputs of two different sizes in every dimension that may vary; disposed of here. What the
 *   recordings do not share must be one size of a reshape or slice, which the graph then infers, or a shape that an
 *   earlier tensor has.
 * @throws when the function depends on sizes in another way, or on tensors that are no inputs, and when the graph does
 *   not agree with it on the examples
 */
export function asGraph(
  fn: TensorFunction,
  examples: () => readonly [readonly tf.Tensor[], readonly tf.Tensor[]],
): TensorFunction {
  if (!graphsPay()) return fn;
  const backend = tf.backend() as unknown as NativeBackend;
  const [first, second] = examples();
  const dtypes = first.map((input) => input.dtype);
  const [recording, other] = [record(backend, fn, first), record(backend, fn, second)];
  const { nodes, outputs } = graphOf(backend.binding, recording, other, dtypes);
  const id = load(backend.binding, encodeSavedModel(nodes));
  const attributes = {
    id,
    inputNames: dtypes.map((_, i) => inputName(i)).join(),
    outputNames: outputs.join(),
  };
  registerGraphKernel();
  const graph: TensorFunction = (inputs) =>
    tf.engine().runKernel(GRAPH, Object.fromEntries(inputs.entries()), attributes) as unknown as tf.Tensor[];
  checkAgreement(graph, first, recording.results);
  checkAgreement(graph, second, other.results);
  tf.dispose([...first, ...second]);
  return graph;
}

/** Graph and function add up in other orders. */
const AGREEMENT = 1e-3;

/** @param expected what the function gave on these inputs; disposed of here. @throws when the graph gives something else */
function checkAgreement(
  graph: TensorFunction,
  inputs: readonly tf.Tensor[],
  expected: readonly tf.Tensor[],
): void {
  const found = graph(inputs);
  expected.forEach((tensor, i) => {
    const values = found[i]!.dataSync();
    const off = tensor
      .dataSync()
      .some((x, k) => !(Math.abs(x - values[k]!) <= AGREEMENT * (1 + Math.abs(x))));
    if (off || found[i]!.shape.join() !== tensor.shape.join())
      throw new Error(`the graph does not compute what the function does: output ${i} differs`);
  });
  tf.dispose([...found, ...expected]);
}

/** A graph's call is a kernel like any other, so that profilers see it. */
const GRAPH = 'Graph';

function registerGraphKernel(): void {
  if (tf.getKernel(GRAPH, 'tensorflow')) return;
  tf.registerKernel({
    kernelName: GRAPH,
    backendName: 'tensorflow',
    kernelFunc: ({ inputs, attrs, backend }) => {
      const native = backend as unknown as NativeBackend;
      const { id, inputNames, outputNames } = attrs as {
        id: number;
        inputNames: string;
        outputNames: string;
      };
      const ids = native.getInputTensorIds(Object.values(inputs) as tf.Tensor[]);
      return native.binding
        .runSavedModel(id, ids, inputNames, outputNames)
        .map((output) => native.createOutputTensor(output));
    },
  });
}

const inputName = (i: number) => `input${i}`;

/** Runs the function once and writes down what it asks of the binding. */
function record(backend: NativeBackend, fn: TensorFunction, inputs: readonly tf.Tensor[]): Recording {
  const { binding } = backend;
  const operations: Recording['operations'][number][] = [];
  const constants = new Map<
    number,
    { type: number; shape: number[]; values: Float32Array | Int32Array | Uint8Array }
  >();
  const kinds = new Map<number, Kind>();
  const inputIds = backend.getInputTensorIds(inputs);
  for (const [i, id] of inputIds.entries())
    kinds.set(id, { shape: inputs[i]!.shape, dtype: dataType(binding, inputs[i]!.dtype) });
  backend.binding = Object.create(binding, {
    executeOp: {
      value: (name: string, attributes: OpAttribute[], ids: number[], count: number) => {
        const outputs = binding.executeOp(name, attributes, ids, count);
        operations.push({ name, attributes, inputs: [...ids], outputs: outputs.map(({ id }) => id) });
        for (const { id, shape, dtype } of outputs) kinds.set(id, { shape, dtype });
        return outputs;
      },
    },
    createTensor: {
      value: (shape: number[], type: number, values: Float32Array | Int32Array | Uint8Array) => {
        const id = binding.createTensor(shape, type, values);
        constants.set(id, { type, shape: [...shape], values: values.slice() });
        kinds.set(id, { shape: [...shape], dtype: type });
        return id;
      },
    },
  }) as Binding;
  try {
    const results = fn(inputs);
    const outputs = backend.getInputTensorIds(results);
    return { operations, constants, kinds, inputs: inputIds, outputs, results };
  } finally {
    backend.binding = binding;
  }
}

function graphOf(
  binding: Binding,
  recording: Recording,
  other: Recording,
  dtypes: readonly tf.DataType[],
): { nodes: GraphNode[]; outputs: string[] } {
  const asked = (r: Recording) => r.operations.map(({ name }) => name).join();
  if (asked(recording) !== asked(other))
    throw new Error('the operations of the function depend on its sizes');
  const nodes: GraphNode[] = dtypes.map((dtype, i) => ({
    name: inputName(i),
    op: 'Placeholder',
    inputs: [],
    attributes: {
      dtype: { type: dataType(binding, dtype) },
      shape: { shape: 'unknown' },
    },
  }));
  const names = new Map(recording.inputs.map((id, i) => [id, inputName(i)]));
  /** The same tensor in the other recording. */
  const twin = new Map(recording.inputs.map((id, i) => [id, other.inputs[i]!]));
  const known = new Map<string, string>();
  /** The shape of an earlier tensor as a node, where it is the shape that is asked for in both recordings. */
  const borrowed = (shape: ArrayLike<number>, otherShape: ArrayLike<number>): string | undefined => {
    const is = (kind: Kind | undefined, asked: ArrayLike<number>) =>
      kind?.shape.length === asked.length && kind.shape.every((n, i) => asked[i] === n || asked[i] === -1);
    for (const [id, of] of names) {
      if (!is(recording.kinds.get(id), shape) || !is(other.kinds.get(twin.get(id)!), otherShape)) continue;
      const name = `shape_${of.replace(':', '_')}`;
      if (known.has(name)) return name;
      known.set(name, name);
      const attributes = {
        T: { type: recording.kinds.get(id)!.dtype },
        out_type: { type: binding.TF_INT32 },
      };
      nodes.push({ name, op: 'Shape', inputs: [of], attributes });
      return name;
    }
    return undefined;
  };
  /** Whether a slice takes all that is left of a dimension, in both recordings: then -1 says so for every size. */
  const reachesTheEnd = (operation: number, dimension: number): boolean =>
    [recording, other].every(({ operations, constants, kinds }) => {
      const [x, begin, size] = operations[operation]!.inputs as [number, number, number];
      const end = constants.get(begin)!.values[dimension]! + constants.get(size)!.values[dimension]!;
      return end === kinds.get(x)!.shape[dimension];
    });
  /** The node of a host value that is an operation's input; equal ones share it. */
  const constant = (operation: number, at: number): string => {
    const { name: op, inputs } = recording.operations[operation]!;
    const id = inputs[at]!;
    const otherId = other.operations[operation]!.inputs[at]!;
    const found = recording.constants.get(id);
    const again = other.constants.get(otherId);
    if (!found || !again) throw new Error(`${op} reads a tensor that is no input of the function`);
    const inferable = (i: number) =>
      op === 'Reshape' || (op === 'Slice' && at === 2 && reachesTheEnd(operation, i));
    const values = sizeFree(found.values, again.values, inferable);
    if (!values) {
      const shape = op === 'Reshape' ? borrowed(found.values, again.values) : undefined;
      if (shape) return shape;
      throw new Error(
        `${op} depends on sizes that cannot be inferred: [${found.values}] and [${again.values}]`,
      );
    }
    const key = `${found.type} ${found.shape} ${values}`;
    const before = known.get(key);
    if (before) return before;
    const name = `constant${known.size}`;
    const tensor = { type: found.type, shape: found.shape, values };
    nodes.push({
      name,
      op: 'Const',
      inputs: [],
      attributes: { dtype: { type: found.type }, value: { tensor } },
    });
    known.set(key, name);
    return name;
  };
  recording.operations.forEach(({ name: op, attributes, inputs, outputs }, i) => {
    const read = inputs.map((id, k) => names.get(id) ?? constant(i, k));
    const name = `operation${i}`;
    const given = Object.fromEntries(attributes.map((a) => [a.name, attributeOf(binding, op, a)]));
    // tfjs-node multiplies matrices as batches of one; the graph has an operation for two matrices, and it is faster.
    const plain = op === 'BatchMatMulV2' && inputs.every((id) => recording.kinds.get(id)?.shape.length === 2);
    nodes.push(
      plain
        ? {
            name,
            op: 'MatMul',
            inputs: read,
            attributes: { T: given.T!, transpose_a: given.adj_x!, transpose_b: given.adj_y! },
          }
        : { name, op, inputs: read, attributes: given },
    );
    for (const [k, id] of outputs.entries()) {
      names.set(id, k === 0 ? name : `${name}:${k}`);
      twin.set(id, other.operations[i]!.outputs[k]!);
    }
  });
  const outputs = recording.outputs.map((id) => {
    const name = names.get(id);
    if (!name?.startsWith('operation')) throw new Error('an output of the function is not computed by it');
    return name.includes(':') ? name : `${name}:0`;
  });
  return { nodes, outputs };
}

/** Host values that hold for every size: the one that differs between the recordings is left to be inferred, as -1. */
function sizeFree<T extends Float32Array | Int32Array | Uint8Array>(
  values: T,
  other: T,
  inferable: (i: number) => boolean,
): T | undefined {
  const differing = [...values.keys()].filter((i) => values[i] !== other[i]);
  if (values.length !== other.length) return undefined;
  if (differing.length === 0) return values;
  if (differing.length > 1 || values.includes(-1 as never) || !inferable(differing[0]!)) return undefined;
  const free = values.slice() as T;
  free[differing[0]!] = -1;
  return free;
}

function dataType(binding: Binding, dtype: tf.DataType): number {
  if (dtype === 'float32') return binding.TF_FLOAT;
  if (dtype === 'int32') return binding.TF_INT32;
  throw new Error(`an input of type ${dtype}: graphs were made of float32 and int32 only`);
}

function attributeOf(binding: Binding, op: string, { name, type, value }: OpAttribute): GraphAttribute {
  switch (type) {
    case binding.TF_ATTR_TYPE:
      return { type: value as number };
    case binding.TF_ATTR_BOOL:
      return { b: Boolean(value) };
    case binding.TF_ATTR_INT:
      return { i: Number(value) };
    case binding.TF_ATTR_FLOAT:
      return { f: value as number };
    case binding.TF_ATTR_STRING:
      return { s: value as string };
    default:
      throw new Error(`${op}: attribute '${name}' is of a type that no graph was made with yet`);
  }
}

function load(binding: Binding, savedModel: Uint8Array): number {
  const folder = mkdtempSync(join(tmpdir(), 'agon-graph-'));
  try {
    writeFileSync(join(folder, 'saved_model.pb'), savedModel);
    return binding.loadSavedModel(folder, SERVE);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
