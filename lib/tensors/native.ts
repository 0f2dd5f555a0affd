/**
 * What may lie in `.native`: TensorFlow's own library behind tfjs-node, put there by `npm run setup:native`.
 *
 * Pure decisions and small file operations: which way to go, what a machine lacks, what is installed, putting a
 * finished folder in place, taking it away. Left out: fetching and compiling (native-build.ts), loading
 * (backend.ts), and the check against wasm (experiments/parity.ts).
 */
import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { ROOT, readJson, writeJson } from '../files.js';

/** Where the native package lies; `AGON_NATIVE_DIR` names another folder for one process. */
export const NATIVE_DIR = resolve(process.env.AGON_NATIVE_DIR ?? join(ROOT, '.native'));

export const TFJS_VERSION = '4.22.0';
export const TENSORFLOW_VERSION = '2.21.0';

export type Flavour = 'cpu' | 'cuda';
export type NativePackage = 'tfjs-node' | 'tfjs-node-gpu';

interface FlavourFacts {
  /** The npm package whose binding is compiled. */
  readonly npm: NativePackage;
  /** The package on PyPI and the hash of its wheel for CPython 3.11, x86_64; no Python runs it. */
  readonly pypi: string;
  readonly sha256: string;
  readonly downloadGB: number;
  /** Disk space at the worst moment, and what stays. */
  readonly peakGB: number;
  readonly finalGB: number;
}

export const FLAVOURS: Readonly<Record<Flavour, FlavourFacts>> = {
  cpu: {
    npm: 'tfjs-node',
    pypi: 'tensorflow-cpu',
    sha256: '2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c',
    downloadGB: 0.3,
    peakGB: 2,
    finalGB: 0.7,
  },
  cuda: {
    npm: 'tfjs-node-gpu',
    pypi: 'tensorflow',
    sha256: '9056fbc9ba04235810b71ae6cbd958a196e8804fb53bbcffbf3e23b56155f124',
    downloadGB: 3,
    peakGB: 9,
    finalGB: 5,
  },
};

/** What `setup:native` leaves beside the package, so that `--status` can say where it came from. */
const recordSchema = z.strictObject({
  way: z.enum(['official', 'built']),
  flavour: z.enum(['cpu', 'cuda']),
  package: z.enum(['tfjs-node', 'tfjs-node-gpu']),
  tensorflow: z.string(),
  /** SHA-256 of the TensorFlow wheel; null where the official library was downloaded. */
  wheelSha256: z.string().nullable(),
  /** ISO 8601. */
  date: z.string(),
});
export type NativeRecord = z.infer<typeof recordSchema>;

/** What matters about a machine. */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  /** The C library's version; undefined where it is not glibc. */
  readonly glibc: string | undefined;
}

export function thisMachine(): Machine {
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  return { platform: process.platform, arch: process.arch, glibc: header.glibcVersionRuntime };
}

/** Why a native TensorFlow cannot be set up on a machine, in a sentence; undefined where it can. */
export function whyUnsupported({ platform, arch, glibc }: Machine): string | undefined {
  const stays = 'The wasm backend, which needs no setup, is used here.';
  if (platform !== 'linux' || arch !== 'x64')
    return `setup:native supports Linux on x86_64 only; this is ${platform} on ${arch}. ${stays}`;
  const [major = 0, minor = 0] = (glibc ?? '').split('.').map(Number);
  if (major < 2 || (major === 2 && minor < 27))
    return `TensorFlow's library needs glibc 2.27 or newer; this machine has ${glibc ?? 'another C library'}. ${stays}`;
  return undefined;
}

/** What the build calls, and the Debian package that has it. `pip` is asked for as `python3 -m pip`. */
const TOOLS = {
  'g++': 'g++',
  strip: 'binutils',
  tar: 'tar',
  python3: 'python3',
  pip: 'python3-pip',
} as const;
export type Tool = keyof typeof TOOLS;

/** One sentence that names the tools a machine lacks and how to get them; undefined where none is missing. */
export function whyToolsMissing(has: (tool: Tool) => boolean): string | undefined {
  const missing = (Object.keys(TOOLS) as Tool[]).filter((tool) => !has(tool));
  if (missing.length === 0) return undefined;
  const packages = [...new Set(missing.map((tool) => TOOLS[tool]))].join(' ');
  return `missing: ${missing.join(', ')}. On Debian or Ubuntu: apt install ${packages}. Nothing was changed.`;
}

/** One sentence when a disk has too little room; undefined where it suffices. @param freeBytes of the file system */
export function whyNoRoom(flavour: Flavour, freeBytes: number): string | undefined {
  const { peakGB } = FLAVOURS[flavour];
  return freeBytes >= peakGB * 1e9
    ? undefined
    : `the build needs ${peakGB} GB of disk for a while, and ${(freeBytes / 1e9).toFixed(1)} GB are free. Nothing was changed.`;
}

export type Plan = 'use npm' | 'keep' | 'install';

/**
 * What a call of `setup:native` has to do.
 * @param fromNpm device of a native package in node_modules that loads: "CPU ..." or "GPU ..."; undefined: none
 * @param record of what lies in `.native`, if it came from here
 */
export function choosePlan(
  flavour: Flavour,
  fromNpm: string | undefined,
  record: NativeRecord | undefined,
): Plan {
  if (fromNpm !== undefined && (flavour === 'cpu' || fromNpm.startsWith('GPU'))) return 'use npm';
  return record?.flavour === flavour ? 'keep' : 'install';
}

const recordPath = (folder: string) => join(folder, 'setup-native.json');

/** @returns undefined where `folder` holds nothing that `setup:native` made */
export function readRecord(folder: string): NativeRecord | undefined {
  return existsSync(recordPath(folder)) ? readJson(recordPath(folder), recordSchema) : undefined;
}

export function writeRecord(folder: string, record: NativeRecord): void {
  writeJson(recordPath(folder), record);
}

/** A neighbour of `folder` to work in: the same file system, below the same node_modules, ignored by git. */
export function workFolder(folder: string, pid: number = process.pid): string {
  return `${folder}-${pid}.tmp`;
}

/** Puts a finished work folder in place of `folder`. The old one goes only when the new one is there. */
export function putInPlace(work: string, folder: string): void {
  const old = `${work}-old.tmp`;
  if (existsSync(folder)) renameSync(folder, old);
  try {
    renameSync(work, folder);
  } catch (error) {
    if (existsSync(old)) renameSync(old, folder);
    throw error;
  }
  rmSync(old, { recursive: true, force: true });
}

/** Removes work folders whose process is gone (it was killed). @returns their names */
export function removeLeftovers(folder: string): string[] {
  const name = basename(folder);
  return readdirSync(dirname(folder)).filter((entry) => {
    const pid =
      entry.startsWith(`${name}-`) && /^(\d+)\.tmp(-old\.tmp)?$/.exec(entry.slice(name.length + 1))?.[1];
    if (!pid || isRunning(Number(pid))) return false;
    rmSync(join(dirname(folder), entry), { recursive: true, force: true });
    return true;
  });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Takes the native package away, with what killed builds left. @returns what was done, in words */
export function undo(folder: string): string {
  removeLeftovers(folder);
  const here = existsSync(folder);
  const size = here ? (bytesIn(folder) / 1e6).toFixed(0) : '';
  rmSync(folder, { recursive: true, force: true });
  return here ? `removed ${folder} (${size} MB)` : `nothing to remove: there is no ${folder}`;
}

/** Bytes of all files below a folder; links are not followed. */
export function bytesIn(path: string): number {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return stats.size;
  return readdirSync(path).reduce((sum, entry) => sum + bytesIn(join(path, entry)), 0);
}
