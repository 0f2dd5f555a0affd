/**
 * Where the time goes, per kind of operation: every kernel of the running backend is wrapped in a timer for the
 * length of one call, and what no kernel accounts for is the language (tape, shapes, tidy, plain numbers).
 *
 * Times are self times: a kernel that calls others is not charged for them. Exact on CPU backends, whose kernels
 * run to their end; on a GPU the queue's time shows up at the read. One thread only: the calling one.
 */
import * as tf from '@tensorflow/tfjs';
import { wasmKernels } from '../tensors/wasm-kernels.js';

/** One kind of work. */
export interface Part {
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
  /** Floating-point operations; products only. */
  readonly flops?: number;
}

interface Tally {
  calls: number;
  milliseconds: number;
  flops: number;
}

/** What runs inside whom, for self times. */
interface Frame {
  inner: number;
}

const LINEAR = 'matMul (linear layers)';
/** Of lib/kernels, those that are called past TensorFlow.js (model/kernel-cache.ts). */
const DIRECT_CALLS = ['cachedAttention', 'gatherBlocks', 'product', 'rmsNormalise', 'swiglu'] as const;
/** Reads and writes of the backend, which are no kernels. */
const TRANSFERS = ['readSync', 'read', 'write'] as const;

/**
 * Runs `work` with timers around every kernel.
 * @returns the parts, longest first, and all the time that was spent (timers included)
 */
export async function profileKernels(work: () => Promise<void>): Promise<{ parts: Part[]; seconds: number }> {
  const tallies = new Map<string, Tally>();
  const stack: Frame[] = [];
  const time = <T>(name: string, flops: number, run: () => T): T => {
    const frame: Frame = { inner: 0 };
    stack.push(frame);
    const start = performance.now();
    try {
      return run();
    } finally {
      const elapsed = performance.now() - start;
      stack.pop();
      const outer = stack.at(-1);
      if (outer) outer.inner += elapsed;
      const tally = tallies.get(name) ?? { calls: 0, milliseconds: 0, flops: 0 };
      tally.calls += 1;
      tally.milliseconds += elapsed - frame.inner;
      tally.flops += flops;
      tallies.set(name, tally);
    }
  };
  const undo = [wrapKernels(time), wrapTransfers(time), wrapDirectCalls(time)];
  const start = performance.now();
  try {
    await work();
  } finally {
    for (const restore of undo) restore();
  }
  const total = performance.now() - start;
  const kernels = [...tallies].map(([name, { calls, milliseconds, flops }]) => ({
    name,
    calls,
    seconds: milliseconds / 1000,
    ...(flops > 0 ? { flops } : {}),
  }));
  const inside = kernels.reduce((sum, part) => sum + part.seconds, 0);
  const language = { name: 'JavaScript', calls: 1, seconds: Math.max(0, total / 1000 - inside) };
  const parts = [...kernels, language].sort((a, b) => b.seconds - a.seconds);
  return { parts, seconds: total / 1000 };
}

type Timer = <T>(name: string, flops: number, run: () => T) => T;

/** @returns what takes the timers off again */
function wrapKernels(time: Timer): () => void {
  const backendName = tf.getBackend();
  const original = tf.getKernelsForBackend(backendName);
  for (const kernel of original) {
    tf.unregisterKernel(kernel.kernelName, backendName);
    tf.registerKernel({
      ...kernel,
      kernelFunc: (args) => {
        const { name, flops } = describe(kernel.kernelName, args.inputs, args.attrs);
        return time(name, flops, () => kernel.kernelFunc(args));
      },
    });
  }
  return () => {
    for (const kernel of original) {
      tf.unregisterKernel(kernel.kernelName, backendName);
      tf.registerKernel(kernel);
    }
  };
}

function wrapTransfers(time: Timer): () => void {
  const backend = tf.backend() as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of TRANSFERS) {
    const method = backend[name];
    if (!method) continue;
    backend[name] = (...args) => time(`transfer: ${name}`, 0, () => method.apply(backend, args));
  }
  return () => {
    for (const name of TRANSFERS) delete backend[name]; // the class's own method shows again
  };
}

/** Our own wasm kernels, which decoding calls outright. */
function wrapDirectCalls(time: Timer): () => void {
  const kernels = wasmKernels() as unknown as Record<string, (...args: number[]) => void> | undefined;
  if (!kernels) return () => {};
  const original = DIRECT_CALLS.map((name) => [name, kernels[name]!] as const);
  for (const [name, kernel] of original)
    kernels[name] = (...args) => {
      const [M, N, K] = args.slice(3) as [number, number, number];
      if (name === 'product') time(LINEAR, 2 * M * N * K, () => kernel(...args));
      else time(name, 0, () => kernel(...args));
    };
  return () => Object.assign(kernels, Object.fromEntries(original));
}

/** A kernel's name in the table; products of matrices and of batches are told apart and counted. */
function describe(
  kernelName: string,
  inputs: tf.NamedTensorInfoMap,
  attributes: tf.NamedAttrMap | undefined,
): { name: string; flops: number } {
  if (kernelName !== 'BatchMatMul') return { name: kernelName, flops: 0 };
  const { a, b } = inputs as { a: tf.TensorInfo; b: tf.TensorInfo };
  const { transposeA, transposeB } = attributes as { transposeA?: boolean; transposeB?: boolean };
  const [rows, columns] = a.shape.slice(-2) as [number, number];
  const batch = a.shape.slice(0, -2).reduce((x, y) => x * y, 1);
  const [m, k] = transposeA ? [columns, rows] : [rows, columns];
  const n = b.shape.at(transposeB ? -2 : -1)!;
  const name = batch > 1 ? 'matMul of batches (attention)' : LINEAR;
  return { name, flops: 2 * batch * m * k * n };
}

const GROUPS: readonly { readonly name: string; readonly kernels: RegExp }[] = [
  { name: LINEAR, kernels: /^matMul \(linear/ },
  {
    name: 'attention (matMul of batches, kernels)',
    kernels: /^(matMul of batches.*|Attention|AttentionGrad|cachedAttention)$/,
  },
  { name: 'softmax, sums, means', kernels: /^(Softmax|Sum|Mean|Max|Min|Cumsum|LogSoftmax|ArgMax|Prod)$/ },
  {
    name: 'copies (transpose, concat, slice, gather)',
    kernels:
      /^(Transpose|Concat|ConcatV2|Slice|SplitV|Gather|GatherV2|GatherRows|gatherBlocks|PadV2|Tile|Cast|OneHot|Fill|Pack)$/,
  },
  { name: 'no work (reshape, identity)', kernels: /^(Reshape|Identity|ExpandDims|Squeeze)$/ },
  { name: 'one graph (products, norms, attention, drawing)', kernels: /^Graph$/ },
  { name: 'to and from the backend', kernels: /^transfer/ },
  { name: 'JavaScript (tape, shapes, plain numbers)', kernels: /^JavaScript$/ },
];
const REST = 'elementwise';

/** The parts by kind, longest first; what no kind names is elementwise. */
export function grouped(parts: readonly Part[]): Part[] {
  const sums = new Map<string, Part>();
  for (const part of parts) {
    const name = GROUPS.find((group) => group.kernels.test(part.name))?.name ?? REST;
    const before = sums.get(name) ?? { name, calls: 0, seconds: 0 };
    const flops = (before.flops ?? 0) + (part.flops ?? 0);
    sums.set(name, {
      name,
      calls: before.calls + part.calls,
      seconds: before.seconds + part.seconds,
      ...(flops > 0 ? { flops } : {}),
    });
  }
  return [...sums.values()].sort((a, b) => b.seconds - a.seconds);
}
