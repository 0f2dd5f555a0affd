/**
 * Operations that TensorFlow.js lacks, registered with it once after the backend has started: on wasm those of our
 * own kernels (wasm-kernels.ts), on native TensorFlow one that tfjs-node has no name for.
 *
 * Of wasm's, two replace stock kernels: the stock matrix product takes batches and transposed operands through a scalar loop of
 * 1-2 GFLOP/s, so it would make attention and every gradient slow; and a stock clone copies. The others carry names of
 * their own and are asked for by model/operations.ts and rollouts/sampler.ts, which know what to compute where they
 * are missing.
 */
import * as tf from '@tensorflow/tfjs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { type WasmKernels, wasmKernels } from './wasm-kernels.js';

type Inputs = Readonly<Record<string, tf.TensorInfo>>;
type Numbers = Readonly<Record<string, number>>;

let done = false;

/** Registers the kernels that the backend lacks; calling it again changes nothing. */
export function registerKernelFixes(): void {
  if (done) return;
  done = true;
  if (tf.getBackend() === 'tensorflow') registerWriteRows();
  const kernels = wasmKernels();
  if (!kernels) return;
  registerMatMul(kernels);
  registerIdentity();
  registerOwn(kernels);
}

/** Whether the running backend has this kernel of ours. */
export function hasKernel(name: string): boolean {
  return tf.getKernel(name, tf.getBackend()) !== undefined;
}

/** What is used of tfjs-node's backend. */
interface NativeBackend {
  readonly binding: { readonly TF_ATTR_TYPE: number; readonly TF_FLOAT: number };
  executeSingleOutput(name: string, attributes: object[], inputs: tf.TensorInfo[]): tf.TensorInfo;
}

/** TensorFlow's InplaceUpdate: the output is the input's memory, with some rows written. */
function registerWriteRows(): void {
  tf.registerKernel({
    kernelName: 'WriteRows',
    backendName: 'tensorflow',
    kernelFunc: ({ inputs, backend }) => {
      const { x, rows, values } = inputs as { x: tf.TensorInfo; rows: tf.TensorInfo; values: tf.TensorInfo };
      const native = backend as unknown as NativeBackend;
      const { TF_ATTR_TYPE: type, TF_FLOAT: value } = native.binding;
      return native.executeSingleOutput('InplaceUpdate', [{ name: 'T', type, value }], [x, rows, values]);
    },
  });
}

/** Covers equal batches in float32; the rest (broadcast batches, empty matrices) goes to the stock kernel. */
function registerMatMul(kernels: WasmKernels): void {
  const stock = tf.getKernel('BatchMatMul', 'wasm');
  tf.unregisterKernel('BatchMatMul', 'wasm');
  register('BatchMatMul', (inputs, attrs) => {
    const { a, b } = inputs as { a: tf.TensorInfo; b: tf.TensorInfo };
    const batchShape = a.shape.slice(0, -2);
    const batch = batchShape.reduce((x, y) => x * y, 1);
    const [rows, columns] = a.shape.slice(-2) as [number, number];
    const [bRows, bColumns] = b.shape.slice(-2) as [number, number];
    const [M, K] = attrs.transposeA ? [columns, rows] : [rows, columns];
    const N = attrs.transposeB ? bRows : bColumns;
    const covered =
      batch * M * N * K > 0 &&
      batchShape.join() === b.shape.slice(0, -2).join() &&
      a.dtype === 'float32' &&
      b.dtype === 'float32';
    if (!covered)
      return stock.kernelFunc({ inputs: { a, b }, attrs, backend: tf.backend() }) as tf.TensorInfo;
    const out = kernels.allocate([...batchShape, M, N]);
    const { address, scratch } = kernels;
    const aStrides = attrs.transposeA ? [4, columns * 4] : [columns * 4, 4];
    const bStrides = attrs.transposeB ? [4, bColumns * 4] : [bColumns * 4, 4];
    kernels.matMul(
      ...[address(a), address(b), address(out), batch, M, N, K],
      ...[...aStrides, ...bStrides, scratch],
    );
    return out;
  });
}

/** A clone shares its numbers, as a reshape does: the tape clones all it saves, and the stock kernel copies them. */
function registerIdentity(): void {
  const backend = tf.backend() as BackendWasm;
  tf.unregisterKernel('Identity', 'wasm');
  register('Identity', ({ x }) => {
    backend.incRef(x!.dataId);
    return { dataId: x!.dataId, shape: x!.shape, dtype: x!.dtype };
  });
}

function registerOwn({ allocate, address, ...kernels }: WasmKernels): void {
  const like = (x: tf.TensorInfo) => allocate(x.shape as [number]);
  const size = (x: tf.TensorInfo) => x.shape.reduce((a, b) => a * b, 1);

  register('RmsNorm', ({ x, weight }, { eps }) => {
    const y = like(x!);
    const n = x!.shape.at(-1)!;
    kernels.rmsNorm(address(x!), address(weight!), address(y), size(x!) / n, n, eps!);
    return y;
  });
  register('RmsNormGrad', ({ x, weight, dy }, { eps }) => {
    const [dx, dWeight] = [like(x!), like(weight!)];
    const n = x!.shape.at(-1)!;
    kernels.rmsNormGrad(...[x!, weight!, dy!, dx, dWeight].map(address), ...[size(x!) / n, n, eps!]);
    return [dx, dWeight];
  });
  register('GatherRows', ({ table, ids }) => {
    const [count, bytes] = [ids!.shape[0]!, table!.shape[1]! * 4];
    const y = allocate([count, table!.shape[1]!]);
    kernels.gatherBlocks(...[table!, ids!, y].map(address), count, bytes, bytes, bytes);
    return y;
  });
  register('Rotate', ({ x, cos, sin }, { sign }) => {
    const y = like(x!);
    kernels.rotate(...[x!, cos!, sin!, y].map(address), ...x!.shape, sign!);
    return y;
  });
  register('Attention', ({ q, k, v, bias }, { scale }) => {
    const [R, H, T, hd] = q!.shape as [number, number, number, number];
    const [Hkv, S] = [k!.shape[1]!, k!.shape[2]!];
    const [out, p] = [like(q!), allocate([R, H, T, S])];
    const scratch = allocate([S + 4 + T + 2 * (S + 8) * (hd + 8)]);
    const tensors = [q!, k!, v!, bias!, p, out, scratch];
    kernels.attention(...tensors.map(address), R, H, Hkv, T, S, hd, scale!);
    scratch.dispose();
    return [out, p];
  });
  register('AttentionGrad', ({ q, k, v, bias, p, out, dOut }, { scale }) => {
    const [R, H, T, hd] = q!.shape as [number, number, number, number];
    const [Hkv, S] = [k!.shape[1]!, k!.shape[2]!];
    const grads = [like(q!), like(k!), like(v!)];
    const scratch = allocate([T + T * S + 2 * (S + T + 8) * (hd + 8)]);
    const tensors = [q!, k!, v!, bias!, p!, out!, dOut!, ...grads, scratch];
    kernels.attentionGrad(...tensors.map(address), R, H, Hkv, T, S, hd, scale!);
    scratch.dispose();
    return grads;
  });
  register('SampleTokens', ({ logits, uniforms, inverseTemperature }, { greedy }) => {
    const [R, V] = logits!.shape as [number, number];
    const [ids, logProbs] = [allocate([R], 'int32'), allocate([R])];
    const tensors = [logits!, uniforms!, inverseTemperature!, ids, logProbs];
    const masses = allocate([V + 3]);
    kernels.sampleTokens(...tensors.map(address), address(masses), R, V, greedy!);
    masses.dispose();
    return [ids, logProbs];
  });
  register('SwiGLU', ({ gate, up }) => {
    const y = like(gate!);
    kernels.swiglu(...[gate!, up!, y].map(address), 1, size(y), 0);
    return y;
  });
  register('SwiGLUGrad', ({ gate, up, dy }) => {
    const [dGate, dUp] = [like(gate!), like(up!)];
    kernels.swigluGrad(...[gate!, up!, dy!, dGate, dUp].map(address), size(dGate));
    return [dGate, dUp];
  });
}

function register(
  kernelName: string,
  run: (inputs: Inputs, attrs: Numbers) => tf.TensorInfo | tf.TensorInfo[],
): void {
  tf.registerKernel({
    kernelName,
    backendName: 'wasm',
    kernelFunc: ({ inputs, attrs }) => run(inputs as Inputs, attrs as unknown as Numbers),
  });
}
