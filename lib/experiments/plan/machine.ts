/**
 * What a machine has to give to a run: memory of the process, of one wasm heap and of a GPU, and disk. Read from
 * the machine itself where it is this one, or written down by hand for another.
 *
 * Left out: swap (a run that swaps is a run that does not fit) and what other processes will take later.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, statfsSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { dirname } from 'node:path';
import type { BackendName } from '../../tensors/backend.js';

/** Bytes; what is undefined has no limit. */
export interface Machine {
  /** What the whole process may hold: free memory with what it has already, or its cgroup's limit. */
  readonly memory: number;
  /** One heap of the wasm backend: its module declares 65,536 pages of 64 KiB. */
  readonly heap?: number;
  /** Memory of the GPU, where the backend computes there. */
  readonly gpu?: number;
  readonly disk: number;
}

/** 32-bit addresses: no WebAssembly memory of this backend is larger, whatever the machine has. */
const WASM_HEAP = 2 ** 32;

/**
 * This machine, now.
 * @param folder where the run will be written; it need not be there yet
 */
export function thisMachine(backend: BackendName, folder: string): Machine {
  let place = folder;
  while (!existsSync(place)) place = dirname(place);
  const { bavail, bsize } = statfsSync(place);
  // Without a cgroup's limit Node says 0 or more than there is.
  const limit = process.constrainedMemory() || totalmem();
  const gpu = backend === 'tfjs-node-gpu' ? gpuMemory() : undefined;
  return {
    memory: Math.min(totalmem(), limit, freemem() + process.memoryUsage.rss()),
    ...(backend === 'wasm' ? { heap: WASM_HEAP } : {}),
    ...(gpu === undefined ? {} : { gpu }),
    disk: bavail * bsize,
  };
}

/** The first GPU's memory; undefined where its driver does not say. */
function gpuMemory(): number | undefined {
  const { stdout } = spawnSync('nvidia-smi', ['--query-gpu=memory.total', '--format=csv,noheader,nounits'], {
    encoding: 'utf8',
  });
  const mebibytes = Number.parseInt(stdout ?? '', 10);
  return Number.isNaN(mebibytes) ? undefined : mebibytes * 2 ** 20;
}
