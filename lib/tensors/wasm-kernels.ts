/**
 * Our own kernels for the wasm backend (lib/kernels, AssemblyScript, SIMD), working in the backend's memory: loaded
 * here, and called by address. kernels.ts puts some behind TensorFlow.js operations; model/kernel-cache.ts calls them
 * outright, because a call costs nanoseconds and an operation of TensorFlow.js microseconds.
 *
 * Left out: other backends, where there are none; checks of shapes, which are the callers'.
 */
import { readFileSync } from 'node:fs';
import * as tf from '@tensorflow/tfjs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';

type Kernel = (...args: (number | boolean)[]) => void;
const NAMES = [
  'attention',
  'attentionGrad',
  'cachedAttention',
  'gatherBlocks',
  'matMul',
  'pack',
  'product',
  'rmsNorm',
  'rmsNormalise',
  'rmsNormGrad',
  'rotate',
  'sampleTokens',
  'swiglu',
  'swigluGrad',
] as const;

/** Scratch of `matMul`: a packed block of 256 x 512 numbers (lib/kernels/product.ts). */
const SCRATCH_BYTES = 256 * 512 * 4;

/** The kernels by name (arguments: lib/kernels; addresses are in bytes), and the memory they work in. */
export interface WasmKernels extends Readonly<Record<(typeof NAMES)[number], Kernel>> {
  /** Address of a block that any kernel may overwrite. */
  readonly scratch: number;
  /** Where a tensor's numbers lie; holds as long as the tensor. */
  address(tensor: tf.TensorInfo): number;
  /** A new tensor, its numbers not set; the caller's to dispose (a tidy's, inside one). */
  allocate<R extends tf.Rank>(shape: tf.ShapeMap[R], dtype?: 'float32' | 'int32'): tf.Tensor<R>;
  /** Writes whole numbers from an address on. */
  writeIntegers(address: number, values: ArrayLike<number>): void;
}

/** What is used of the platform's WebAssembly, which the language's own library does not declare. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { readonly exports: Readonly<Record<string, Kernel>> };
}

/** What is used of the backend's own module. */
interface EmscriptenModule {
  readonly asm?: { readonly memory?: object };
  readonly HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
}

let loaded: WasmKernels | undefined;

/** The kernels, on the wasm backend with SIMD; undefined elsewhere. */
export function wasmKernels(): WasmKernels | undefined {
  if (tf.getBackend() !== 'wasm') return undefined;
  loaded ??= load(tf.backend() as BackendWasm);
  return loaded;
}

function load(backend: BackendWasm): WasmKernels | undefined {
  const wasm = backend.wasm as unknown as EmscriptenModule;
  const memory = wasm.asm?.memory;
  if (!memory || tf.env().get('WASM_HAS_SIMD_SUPPORT') !== true) return undefined;
  const { Instance, Module } = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;
  const bytes = readFileSync(new URL('../kernels.wasm', import.meta.url));
  const { exports } = new Instance(new Module(bytes), { env: { memory } });
  const kernels = Object.fromEntries(NAMES.map((name) => [name, exports[name]!])) as Record<
    (typeof NAMES)[number],
    Kernel
  >;
  return {
    ...kernels,
    scratch: wasm._malloc(SCRATCH_BYTES) >>> 0,
    address: (tensor) => backend.getMemoryOffset(tensor.dataId) >>> 0,
    allocate: <R extends tf.Rank>(shape: tf.ShapeMap[R], dtype: 'float32' | 'int32' = 'float32') => {
      const made = tf.engine().makeTensorFromTensorInfo(backend.makeOutput([...shape], dtype));
      return made as tf.Tensor as tf.Tensor<R>;
    },
    // The view is made anew: the memory may have grown since.
    writeIntegers: (address, values) =>
      new Int32Array(wasm.HEAPU8.buffer, address, values.length).set(values as ArrayLike<number>),
  };
}
