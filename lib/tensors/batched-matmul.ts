/**
 * Batched matrix products for the wasm backend. TensorFlow.js multiplies a batch there with a scalar loop (about
 * 2 GFLOP/s), and attention is nothing but such batches. This file assembles a small WebAssembly module of its own
 * (SIMD, register tiles), which works in the backend's memory, and puts it before the stock kernel.
 *
 * Covered: equal batch sizes above one, A B, A^T B and A B^T in float32; the rest goes to the stock kernel, as does
 * everything on other backends. Left out: threads, blocking for matrices larger than the caches.
 *
 * Opcodes: WebAssembly core specification 2.0, section 5.4.
 */
import * as tf from '@tensorflow/tfjs';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';

/** (a, b, c: addresses; batch, M, N, K; bytes from row to row and from column to column of A) */
type Product = (
  a: number,
  b: number,
  c: number,
  batch: number,
  M: number,
  N: number,
  K: number,
  aRow: number,
  aColumn: number,
) => void;

/** What is used of the platform's WebAssembly, which the language's own library does not declare. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { readonly exports: Readonly<Record<string, Product>> };
}

let registered = false;

/** Puts the batched product before the wasm backend's own kernel; calling it again, or on another backend, changes nothing. */
export function registerBatchedMatMul(): void {
  if (registered || tf.getBackend() !== 'wasm') return;
  const stock = tf.getKernel('BatchMatMul', 'wasm');
  const backend = tf.backend() as BackendWasm;
  const memory = (backend.wasm as unknown as { asm?: { memory?: object } }).asm?.memory;
  registered = true;
  if (!memory || tf.env().get('WASM_HAS_SIMD_SUPPORT') !== true) return;
  const { Instance, Module } = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;
  const { product, productWithTransposedB } = new Instance(new Module(assembleModule()), { env: { memory } })
    .exports;
  tf.unregisterKernel('BatchMatMul', 'wasm');
  tf.registerKernel({
    kernelName: 'BatchMatMul',
    backendName: 'wasm',
    kernelFunc: (args) => {
      const { a, b } = args.inputs as { a: tf.TensorInfo; b: tf.TensorInfo };
      const { transposeA, transposeB } = args.attrs as unknown as {
        transposeA: boolean;
        transposeB: boolean;
      };
      const batchShape = a.shape.slice(0, -2);
      const batch = batchShape.reduce((x, y) => x * y, 1);
      const [rows, columns] = a.shape.slice(-2) as [number, number];
      const [M, K] = transposeA ? [columns, rows] : [rows, columns];
      const N = b.shape.at(transposeB ? -2 : -1)!;
      const covered =
        batch > 1 &&
        M * N * K > 0 &&
        batchShape.join() === b.shape.slice(0, -2).join() &&
        a.dtype === 'float32' &&
        b.dtype === 'float32' &&
        (!transposeB || (!transposeA && K % 4 === 0));
      if (!covered) return stock.kernelFunc(args);
      const out = backend.makeOutput([...batchShape, M, N], 'float32');
      const address = (x: tf.TensorInfo) => backend.getMemoryOffset(x.dataId);
      const run = transposeB ? productWithTransposedB! : product!;
      const strides = transposeA ? [4, columns * 4] : [columns * 4, 4];
      run(address(a), address(b), address(out), batch, M, N, K, strides[0]!, strides[1]!);
      return out;
    },
  });
}

// ---- A very small assembler: code is a list of bytes, built by functions. ----

type Code = readonly number[];

const unsigned = (n: number): Code => (n < 0x80 ? [n] : [(n & 0x7f) | 0x80, ...unsigned(n >>> 7)]);
const signed = (n: number): Code =>
  n >= -64 && n < 64 ? [n & 0x7f] : [(n & 0x7f) | 0x80, ...signed(n >> 7)];
const vector = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()];
const section = (id: number, content: Code): Code => [id, ...unsigned(content.length), ...content];
const text = (s: string): Code => vector([...Buffer.from(s)].map((byte) => [byte]));

const I32 = 0x7f;
const V128 = 0x7b;
const get = (local: number): Code => [0x20, ...unsigned(local)];
const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];
const i32 = (n: number): Code => [0x41, ...signed(n)];
const add = (x: Code, y: Code): Code => [...x, ...y, 0x6a];
const times = (x: Code, y: Code): Code => [...x, ...y, 0x6c];
const increase = (local: number, by: Code): Code => set(local, add(get(local), by));
/** While `counter + step <= limit`: body, then counter += step. */
const whileFits = (counter: number, step: number, limit: number, body: Code): Code => [
  ...[0x02, 0x40, 0x03, 0x40],
  ...[...add(get(counter), i32(step)), ...get(limit), 0x4a, 0x0d, 0x01],
  ...[...body, ...increase(counter, i32(step)), 0x0c, 0x00],
  ...[0x0b, 0x0b],
];
const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
const at = (offset: number): Code => [0x02, ...unsigned(offset)];
const load4 = (address: Code, offset = 0): Code => [...address, ...simd(0x00), ...at(offset)];
const loadSplat = (address: Code): Code => [...address, ...simd(0x09), ...at(0)];
const store4 = (address: Code, value: Code, offset: number): Code => [
  ...address,
  ...value,
  ...simd(0x0b),
  ...at(offset),
];
/** Stores lane 0. */
const store1 = (address: Code, value: Code): Code => [...address, ...value, ...simd(0x5a), ...at(0), 0];
const loadZero = (address: Code): Code => [...address, ...simd(0x5c), ...at(0)];
const zero4: Code = [...simd(0x0c), ...Array<number>(16).fill(0)];
const add4 = (x: Code, y: Code): Code => [...x, ...y, ...simd(0xe4)];
const multiply4 = (x: Code, y: Code): Code => [...x, ...y, ...simd(0xe6)];
/** Four lanes out of the eight of x and y. */
const shuffle = (x: Code, y: Code, lanes: readonly number[]): Code => [
  ...x,
  ...y,
  ...simd(0x0d),
  ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => lane * 4 + byte)),
];

/** Parameters and locals of both functions. */
const [A, B, C, BATCH, M, N, K, A_ROW, A_COLUMN] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
const PARAMETERS = 9;
const [I, J, DEPTH, ITEM, ROW_OF_A, OUT, PB, C_ROW] = [9, 10, 11, 12, 13, 14, 15, 16] as const;
/** Addresses of the tile's rows of A (at most 4), then of its rows of B^T (at most 4). */
const PA = 17;
const PBT = 21;
const I32_LOCALS = 25 - PARAMETERS;
/** Accumulators (at most 8), then operands. */
const ACC = 25;
const OPERAND = 33;
const V128_LOCALS = 16;

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const zeroAccumulators = (n: number): Code => range(n).flatMap((n) => set(ACC + n, zero4));
const accumulate = (acc: number, x: Code, y: Code): Code =>
  set(ACC + acc, add4(get(ACC + acc), multiply4(x, y)));

/** Row tiles of the given heights over all of C, column tiles inside; then on to the next matrices of the batch. */
function overTiles(heights: readonly number[], columnTiles: (height: number) => Code): Code {
  const perHeight = heights.map((height) =>
    whileFits(I, height, M, [
      ...set(ROW_OF_A, add(get(A), times(get(I), get(A_ROW)))),
      ...set(OUT, add(get(C), times(get(I), get(C_ROW)))),
      ...set(J, i32(0)),
      ...columnTiles(height),
    ]),
  );
  const next = (local: number, rows: number, columns: number) =>
    increase(local, times(times(get(rows), get(columns)), i32(4)));
  return [
    ...set(C_ROW, times(get(N), i32(4))),
    ...set(ITEM, i32(0)),
    ...whileFits(ITEM, 1, BATCH, [
      ...set(I, i32(0)),
      ...perHeight.flat(),
      ...next(A, M, K),
      ...next(B, K, N),
      ...next(C, M, N),
    ]),
  ];
}

/** Sets the addresses of `height` rows of A, and walks OUT down the rows when storing. */
const rowAddresses = (height: number): Code =>
  range(height).flatMap((r) => set(PA + r, r === 0 ? get(ROW_OF_A) : add(get(PA + r - 1), get(A_ROW))));
const storeRows = (height: number, storeRow: (r: number, address: Code) => Code): Code => [
  ...set(PB, add(get(OUT), times(get(J), i32(4)))),
  ...range(height).flatMap((r) => [...storeRow(r, get(PB)), ...increase(PB, get(C_ROW))]),
];

/** C = A B with any strides of A: one number of A, spread over four lanes, times four columns of B. */
function productCode(): Code {
  const tile = (height: number, columns: number): Code => {
    const vectors = Math.ceil(columns / 4);
    const b = (v: number) => get(OPERAND + v);
    const spread = OPERAND + 4;
    const loadB = (v: number) => (columns === 1 ? loadZero(get(PB)) : load4(get(PB), v * 16));
    return whileFits(J, columns, N, [
      ...rowAddresses(height),
      ...set(PB, add(get(B), times(get(J), i32(4)))),
      ...zeroAccumulators(height * vectors),
      ...set(DEPTH, i32(0)),
      ...whileFits(DEPTH, 1, K, [
        ...range(vectors).flatMap((v) => set(OPERAND + v, loadB(v))),
        ...range(height).flatMap((r) => [
          ...set(spread, loadSplat(get(PA + r))),
          ...range(vectors).flatMap((v) => accumulate(r * vectors + v, get(spread), b(v))),
          ...increase(PA + r, get(A_COLUMN)),
        ]),
        ...increase(PB, get(C_ROW)),
      ]),
      ...storeRows(height, (r, address) =>
        columns === 1
          ? store1(address, get(ACC + r))
          : range(vectors).flatMap((v) => store4(address, get(ACC + r * vectors + v), v * 16)),
      ),
    ]);
  };
  return overTiles([4, 2, 1], (height) => [
    ...tile(height, height === 4 ? 8 : 16),
    ...tile(height, 4),
    ...tile(height, 1),
  ]);
}

/** C = A B^T: dot products of rows, four lanes along the depth (a multiple of 4), then summed across the lanes. */
function transposedProductCode(): Code {
  const tile = (height: number, columns: number): Code => {
    const acc = (r: number, c: number) => get(ACC + r * columns + c);
    const pairs = (x: Code, y: Code) => add4(shuffle(x, y, [0, 4, 1, 5]), shuffle(x, y, [2, 6, 3, 7]));
    const halves = (x: Code, y: Code) => add4(shuffle(x, y, [0, 1, 4, 5]), shuffle(x, y, [2, 3, 6, 7]));
    const sums = (r: number): Code => {
      const last = columns - 1;
      const first = pairs(acc(r, 0), acc(r, Math.min(1, last)));
      const second = pairs(acc(r, Math.min(2, last)), acc(r, last));
      return halves(first, second);
    };
    return whileFits(J, columns, N, [
      ...rowAddresses(height),
      ...range(columns).flatMap((c) =>
        set(PBT + c, add(get(B), times(times(add(get(J), i32(c)), get(K)), i32(4)))),
      ),
      ...zeroAccumulators(height * columns),
      ...set(DEPTH, i32(0)),
      ...whileFits(DEPTH, 4, K, [
        ...range(height).flatMap((r) => set(OPERAND + r, load4(get(PA + r)))),
        ...range(columns).flatMap((c) => [
          ...set(OPERAND + 4, load4(get(PBT + c))),
          ...range(height).flatMap((r) => accumulate(r * columns + c, get(OPERAND + r), get(OPERAND + 4))),
          ...increase(PBT + c, i32(16)),
        ]),
        ...range(height).flatMap((r) => increase(PA + r, i32(16))),
      ]),
      ...storeRows(height, (r, address) =>
        columns === 1 ? store1(address, sums(r)) : store4(address, sums(r), 0),
      ),
    ]);
  };
  return overTiles([2, 1], (height) => [...tile(height, 4), ...tile(height, 1)]);
}

function assembleModule(): Uint8Array {
  const body = (code: Code): Code => {
    const locals = vector([
      [...unsigned(I32_LOCALS), I32],
      [...unsigned(V128_LOCALS), V128],
    ]);
    const content = [...locals, ...code, 0x0b];
    return [...unsigned(content.length), ...content];
  };
  const signature = [0x60, ...vector(range(PARAMETERS).map(() => [I32])), ...vector([])];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, vector([signature])),
    ...section(2, vector([[...text('env'), ...text('memory'), 0x02, 0x00, ...unsigned(0)]])),
    ...section(3, vector([[0], [0]])),
    ...section(
      7,
      vector([
        [...text('product'), 0x00, 0],
        [...text('productWithTransposedB'), 0x00, 1],
      ]),
    ),
    ...section(10, vector([body(productCode()), body(transposedProductCode())])),
  ]);
}
