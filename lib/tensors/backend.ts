/**
 * Which TensorFlow.js backend does the arithmetic, and why.
 *
 * Order of preference: tfjs-node-gpu > tfjs-node > wasm; `cpu` (plain JavaScript) only when asked for.
 * The native packages are optional: where they are not installed the embedded wasm backend is used.
 * Left out: browser backends (webgl, webgpu) – this library runs in Node.
 */
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import * as tf from '@tensorflow/tfjs';
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { registerKernelFixes } from './kernels.js';
import { NATIVE_DIR } from './native.js';

const require = createRequire(import.meta.url);
/** Where a native package may lie: installed by npm, or put into `.native` by `npm run setup:native`. */
const PLACES = [require, createRequire(`${NATIVE_DIR}/package.json`)];

export const BACKEND_NAMES = ['tfjs-node-gpu', 'tfjs-node', 'wasm', 'cpu'] as const;
export type BackendName = (typeof BACKEND_NAMES)[number];

export interface BackendInfo {
  readonly name: BackendName;
  /** What does the work, in words: "CPU, SIMD, one thread per worker" or "GPU". */
  readonly device: string;
  /** Why this one, in one sentence for the log. */
  readonly why: string;
  /** True where one device does the work for everybody; elsewhere there is one worker thread per core. */
  readonly gpu: boolean;
}

let active: BackendInfo | undefined;

/**
 * Picks and starts a backend; later calls return the first one's choice.
 * @param wanted a backend's name or `auto`; the environment variable `AGON_BACKEND` is the default.
 * @throws when `wanted` is unknown, not available here, or another backend is already running.
 */
export async function initBackend(wanted: string = process.env.AGON_BACKEND ?? 'auto'): Promise<BackendInfo> {
  if (active) {
    if (wanted !== 'auto' && wanted !== active.name)
      throw new Error(
        `backend '${wanted}' was asked for, but '${active.name}' is already running in this process`,
      );
    return active;
  }
  if (wanted !== 'auto' && !BACKEND_NAMES.includes(wanted as BackendName))
    throw new Error(`unknown backend '${wanted}': allowed are auto, ${BACKEND_NAMES.join(', ')}`);
  const native = wanted === 'wasm' || wanted === 'cpu' ? undefined : loadNative(wanted);
  if (native) {
    await tf.setBackend('tensorflow');
    active = native;
  } else if (wanted === 'auto' || wanted === 'wasm') {
    await startWasm();
    active = {
      name: 'wasm',
      device: 'CPU (WebAssembly SIMD, one thread per worker)',
      why: wanted === 'wasm' ? 'asked for' : 'the embedded default: no native TensorFlow is installed',
      gpu: false,
    };
  } else if (wanted === 'cpu') {
    await tf.setBackend('cpu');
    active = { name: 'cpu', device: 'CPU (plain JavaScript)', why: 'asked for', gpu: false };
  } else {
    throw new Error(
      `backend '${wanted}' is not available here; available: ${availableBackends().join(', ')}`,
    );
  }
  await tf.ready();
  registerKernelFixes();
  return active;
}

/** The backend in use. @throws before `initBackend` */
export function currentBackend(): BackendInfo {
  if (!active) throw new Error('no backend is running: call initBackend() first');
  return active;
}

/** The backends that can be started on this machine, best first. */
export function availableBackends(): BackendName[] {
  const found: BackendName[] = BACKEND_NAMES.filter(
    (name) => isNative(name) && whereInstalled(name) !== undefined,
  );
  return [...found, 'wasm', 'cpu'];
}

function isNative(name: BackendName): boolean {
  return name === 'tfjs-node' || name === 'tfjs-node-gpu';
}

/** Who can load the package; danfojs-node finds plain tfjs under tfjs-node's name, and that one is not native. */
function whereInstalled(name: BackendName): NodeJS.Require | undefined {
  return PLACES.find((place) => {
    try {
      const { name: real } = place(`@tensorflow/${name}/package.json`) as { name: string };
      return real === `@tensorflow/${name}`;
    } catch {
      return false;
    }
  });
}

/** Loads tfjs-node(-gpu) where installed. An installed package that fails to load is an error when asked for. */
function loadNative(wanted: string): BackendInfo | undefined {
  for (const name of ['tfjs-node-gpu', 'tfjs-node'] as const) {
    const place = wanted === 'auto' || wanted === name ? whereInstalled(name) : undefined;
    if (!place) continue;
    try {
      process.env.TF_CPP_MIN_LOG_LEVEL ??= '3'; // TensorFlow's start-up chatter
      process.env.TF_FORCE_GPU_ALLOW_GROWTH ??= 'true'; // not the GPU's whole memory at once
      process.env.NVIDIA_TF32_OVERRIDE ??= '0'; // float32 is float32: ratios of probabilities need it
      // One core per worker thread: two of them get more done than one operation on two cores, which waits for
      // the slower half. Graphs of several workers share the inter-op pool.
      process.env.TF_NUM_INTRAOP_THREADS ??= '1';
      process.env.TF_NUM_INTEROP_THREADS ??= String(availableParallelism());
      place(`@tensorflow/${name}`);
      const backend = tf.engine().findBackend('tensorflow') as unknown as NativeBackend | null;
      if (!backend) throw new Error('it registered no backend: it runs on another copy of tfjs-core');
      return {
        name,
        device: `${backend.isUsingGpuDevice ? 'GPU' : 'CPU, one thread per worker'} (TensorFlow ${backend.binding.TF_Version})`,
        why: wanted === 'auto' ? 'the fastest backend installed here' : 'asked for',
        gpu: backend.isUsingGpuDevice,
      };
    } catch (error) {
      const message = `backend '${name}' is installed but does not load: ${(error as Error).message}`;
      if (wanted === name) throw new Error(message);
      console.warn(`${message}; going on without it`);
    }
  }
  return undefined;
}

/** What tfjs-node's backend says of itself. */
interface NativeBackend {
  readonly isUsingGpuDevice: boolean;
  readonly binding: { readonly TF_Version: string };
}

/**
 * Starts the wasm backend without the process-wide listeners its loader installs: they rethrow every
 * unhandled rejection, which would end a notebook's kernel at the first stray promise.
 */
async function startWasm(): Promise<void> {
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const before = events.map((event) => new Set(process.rawListeners(event as 'uncaughtException')));
  const wasmDir = require
    .resolve('@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm.wasm')
    .replace(/[^/\\]*$/, '');
  setWasmPaths(wasmDir);
  if (!(await tf.setBackend('wasm'))) throw new Error('the wasm backend did not start');
  events.forEach((event, i) => {
    for (const listener of process.rawListeners(event as 'uncaughtException'))
      if (!before[i]!.has(listener)) process.removeListener(event, listener as (...args: unknown[]) => void);
  });
}
