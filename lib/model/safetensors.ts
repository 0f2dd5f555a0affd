/**
 * The safetensors format: eight bytes of header length, a JSON header, then the tensors' bytes without holes.
 * Reads F32, F16 and BF16 (all become Float32Array), whole or one tensor at a time, one file or a folder of
 * shards; writes one file of any of the three types, atomically.
 *
 * A file is strange until checked: header, types, sizes and offsets are validated before any data is read.
 * Left out: integer and 8-bit types, writing shards.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { check, readJson } from '../files.js';

/** A tensor outside the backend: crosses worker boundaries and goes into files. Row-major. */
export interface HostTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export const SAFETENSORS_TYPES = ['F32', 'F16', 'BF16'] as const;
export type SafetensorsType = (typeof SAFETENSORS_TYPES)[number];

const BYTES: Record<SafetensorsType, number> = { F32: 4, F16: 2, BF16: 2 };
/** The format's own limit on the header. */
const MAX_HEADER = 100_000_000;
/** One read or write call moves at most this much (Node's limit is 2 GiB). */
const CHUNK = 2 ** 28;

const entrySchema = z.strictObject({
  dtype: z.enum(SAFETENSORS_TYPES),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
const metadataSchema = z.record(z.string(), z.string());

/** An open file, or several read as one. Close it. */
export interface TensorSource {
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly metadata: Readonly<Record<string, string>>;
  /** The file that holds a tensor, for messages. */
  fileOf(name: string): string;
  /** @throws when there is no such tensor */
  read(name: string): HostTensor;
  close(): void;
}

/** Opens one file and validates its header. @throws naming the file, the tensor, what was found and what is allowed */
export function openSafetensors(path: string): TensorSource {
  const fd = openSync(path, 'r');
  try {
    const size = fstatSync(fd).size;
    const { entries, metadata, dataStart } = readHeader(fd, size, path);
    return {
      shapes: new Map([...entries].map(([name, entry]) => [name, entry.shape])),
      metadata,
      fileOf: () => path,
      read: (name) => {
        const entry = entries.get(name);
        if (!entry) throw new Error(`${path}: no tensor '${name}'`);
        const [begin, end] = entry.data_offsets;
        const bytes = readBytes(fd, dataStart + begin, end - begin, path);
        return { shape: entry.shape, data: decode(bytes, entry.dtype) };
      },
      close: () => closeSync(fd),
    };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Opens a folder's `model.safetensors`, or the shards that `model.safetensors.index.json` names, as one. */
export function openSafetensorsFolder(folder: string): TensorSource {
  const single = join(folder, 'model.safetensors');
  if (existsSync(single)) return openSafetensors(single);
  const indexPath = join(folder, 'model.safetensors.index.json');
  if (!existsSync(indexPath))
    throw new Error(`${folder}: neither model.safetensors nor model.safetensors.index.json is there`);
  const index = readJson(
    indexPath,
    z.looseObject({
      weight_map: z.record(
        z.string(),
        z.string().regex(/^[^/\\]+\.safetensors$/, 'must be a file in the same folder'),
      ),
    }),
  );
  const shards = new Map<string, TensorSource>();
  const close = () => {
    for (const shard of shards.values()) shard.close();
  };
  try {
    const shapes = new Map<string, readonly number[]>();
    for (const [name, file] of Object.entries(index.weight_map)) {
      const shard = shards.get(file) ?? openSafetensors(join(folder, file));
      shards.set(file, shard);
      const shape = shard.shapes.get(name);
      if (!shape) throw new Error(`${indexPath}: '${name}' should be in ${file}, which does not hold it`);
      shapes.set(name, shape);
    }
    const shardOf = (name: string): TensorSource => {
      const file = index.weight_map[name];
      if (file === undefined) throw new Error(`${indexPath}: no tensor '${name}'`);
      return shards.get(file)!;
    };
    return {
      shapes,
      metadata: {},
      fileOf: (name) => shardOf(name).fileOf(name),
      read: (name) => shardOf(name).read(name),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Reads every tensor of one file. @throws as openSafetensors */
export function readSafetensors(path: string): {
  tensors: Record<string, HostTensor>;
  metadata: Readonly<Record<string, string>>;
} {
  const source = openSafetensors(path);
  try {
    const tensors = Object.fromEntries([...source.shapes.keys()].map((name) => [name, source.read(name)]));
    return { tensors, metadata: source.metadata };
  } finally {
    source.close();
  }
}

export interface WriteOptions {
  /** Stored type; F16 and BF16 round to nearest even. Default F32. */
  readonly dtype?: SafetensorsType;
  /** The `__metadata__` map; transformers wants `format: 'pt'`, which is the default. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Writes one file, whole or not at all. @throws when a tensor's data does not fill its shape */
export function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, HostTensor>>,
  options: WriteOptions = {},
): void {
  const { dtype = 'F32', metadata = { format: 'pt' } } = options;
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    if (data.length !== product(shape))
      throw new Error(
        `${path}: tensor '${name}' has ${data.length} numbers, its shape [${shape}] wants ${product(shape)}`,
      );
    const end = offset + data.length * BYTES[dtype];
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  const json = Buffer.from(JSON.stringify(header));
  // The data starts on a multiple of eight; the format pads the header with spaces.
  const padded = Buffer.alloc(Math.ceil(json.length / 8) * 8, ' ');
  json.copy(padded);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  const fd = openSync(temporary, 'w');
  try {
    for (const part of [length, padded]) writeBytes(fd, part);
    for (const { data } of Object.values(tensors)) writeBytes(fd, encode(data, dtype));
    fsyncSync(fd);
  } catch (error) {
    closeSync(fd);
    rmSync(temporary, { force: true });
    throw error;
  }
  closeSync(fd);
  renameSync(temporary, path);
}

type Entry = z.infer<typeof entrySchema>;

function readHeader(fd: number, size: number, path: string) {
  if (size < 8) throw new Error(`${path}: ${size} bytes are too few for a safetensors file`);
  const length = Number(Buffer.from(readBytes(fd, 0, 8, path)).readBigUInt64LE());
  if (length > Math.min(MAX_HEADER, size - 8))
    throw new Error(`${path}: header length ${length} is more than the file (${size} bytes) can hold`);
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(readBytes(fd, 8, length, path)));
  } catch (error) {
    throw new Error(`${path}: the header is not JSON: ${(error as Error).message}`);
  }
  const { __metadata__, ...rest } = check(z.record(z.string(), z.unknown()), header, `${path} (header)`);
  const metadata =
    __metadata__ === undefined ? {} : check(metadataSchema, __metadata__, `${path} (__metadata__)`);
  const entries = new Map<string, Entry>();
  for (const [name, value] of Object.entries(rest))
    entries.set(name, check(entrySchema, value, `${path}: tensor '${name}'`));
  checkLayout(entries, size - 8 - length, path);
  return { entries, metadata, dataStart: 8 + length };
}

/** Every byte of the data belongs to exactly one tensor, and every tensor has the bytes its shape wants. */
function checkLayout(entries: ReadonlyMap<string, Entry>, dataSize: number, path: string): void {
  const byOffset = [...entries].sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
  );
  let expected = 0;
  for (const [name, { dtype, shape, data_offsets }] of byOffset) {
    const [begin, end] = data_offsets;
    const bytes = product(shape) * BYTES[dtype];
    if (end - begin !== bytes)
      throw new Error(
        `${path}: tensor '${name}' has ${end - begin} bytes, ${dtype} [${shape}] wants ${bytes}`,
      );
    if (begin !== expected)
      throw new Error(
        `${path}: tensor '${name}' starts at byte ${begin}, ${begin < expected ? 'inside the tensor before it' : 'after a hole'}; expected ${expected}`,
      );
    if (end > dataSize)
      throw new Error(
        `${path}: tensor '${name}' ends at byte ${end} of only ${dataSize}: the file is cut off`,
      );
    expected = end;
  }
  if (expected !== dataSize)
    throw new Error(`${path}: ${dataSize - expected} bytes after the last tensor belong to none`);
}

function readBytes(fd: number, position: number, length: number, path: string): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length; ) {
    const n = readSync(fd, bytes, done, Math.min(CHUNK, length - done), position + done);
    if (n === 0)
      throw new Error(`${path}: the file ends at byte ${position + done}, ${length - done} bytes early`);
    done += n;
  }
  return bytes;
}

function writeBytes(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, Math.min(CHUNK, bytes.length - done));
}

/** Numbers from little-endian bytes (as is every machine that Node runs on today). */
function decode(bytes: Uint8Array, dtype: SafetensorsType): Float32Array {
  if (dtype === 'F32') return new Float32Array(bytes.buffer);
  const halves = new Uint16Array(bytes.buffer);
  const out = new Float32Array(halves.length);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(out.buffer);
    for (let i = 0; i < halves.length; i++) bits[i] = halves[i]! << 16;
  } else {
    for (let i = 0; i < halves.length; i++) out[i] = fromHalf(halves[i]!);
  }
  return out;
}

function encode(data: Float32Array, dtype: SafetensorsType): Uint8Array {
  if (dtype === 'F32') return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const out = new Uint16Array(data.length);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(data.buffer, data.byteOffset, data.length);
    for (let i = 0; i < bits.length; i++) {
      const b = bits[i]!;
      out[i] = Number.isNaN(data[i]) ? 0x7fc0 : (b + 0x7fff + ((b >>> 16) & 1)) >>> 16;
    }
  } else {
    for (let i = 0; i < data.length; i++) out[i] = toHalf(data[i]!);
  }
  return new Uint8Array(out.buffer);
}

function fromHalf(h: number): number {
  const sign = h & 0x8000 ? -1 : 1;
  const exponent = (h >> 10) & 0x1f;
  const mantissa = h & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

function toHalf(x: number): number {
  if (Number.isNaN(x)) return 0x7e00;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const size = Math.abs(x);
  if (size >= 65520) return sign | 0x7c00;
  // One unit in the last place, at least the subnormal's 2^-24; the quotient is exact in a double.
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const units = roundHalfEven(size / 2 ** (exponent - 10));
  // A carry out of the mantissa runs into the exponent's bits, as it should.
  return size < 2 ** -14
    ? sign | roundHalfEven(size * 2 ** 24)
    : sign | (((exponent + 15) << 10) + (units - 1024));
}

function roundHalfEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}
