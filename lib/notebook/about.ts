/**
 * What a chapter prints first: which library, which Node, which backend on which device, and why that one. The same
 * machine prints the same lines every day: no date, no path, no name of a host.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, readJson } from '../files.js';
import { initBackend } from '../tensors/backend.js';

/**
 * Prints three lines: versions, backend, device. Starts the backend if none is running.
 * @throws when `AGON_BACKEND` names one that is not there
 */
export async function about(): Promise<void> {
  const { name, version } = readJson(
    join(ROOT, 'package.json'),
    z.looseObject({ name: z.string(), version: z.string() }),
  );
  const backend = await initBackend();
  console.log(`${name} ${version}, Node ${process.versions.node}`);
  console.log(`backend: ${backend.name} (${backend.why})`);
  console.log(`device: ${backend.device}`);
}
