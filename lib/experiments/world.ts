/**
 * Opens the world a run lives in: the task, the frozen base with its tokenizer, and the pool of workers. Checks
 * that they fit together before anything long starts. Left out: adapters, which belong to runs.
 */
import { join } from 'node:path';
import type { World } from '../agon/attempt.js';
import { ROOT } from '../files.js';
import { sharedModel } from '../rollouts/policy.js';
import { countdown } from '../tasks/index.js';
import { initBackend } from '../tensors/backend.js';
import { createPool } from '../tensors/pool.js';
import { loadTokenizer } from '../text/index.js';

/** The base that is shipped: trained by `npm run pretrain` of this repository. */
export const ARENA_BASE = join(ROOT, 'data', 'arena-base');

export interface WorldOptions {
  /** Folder of the base model; default the arena's. */
  readonly base?: string;
  /** `auto` or a backend's name; default `AGON_BACKEND` or auto. */
  readonly backend?: string;
  /** Worker threads; default one per core on wasm, none on native. */
  readonly workers?: number;
}

/**
 * The arena, ready to sample and train in. Close its pool at the end: `await world.pool.close()`.
 * @throws when the backend is not there, the base is damaged, or the tokenizer does not fit it
 */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const { base = ARENA_BASE } = options;
  await initBackend(options.backend);
  const tokenizer = loadTokenizer(base);
  tokenizer.checkFits(sharedModel(base).config.vocab_size);
  return { task: countdown, tokenizer, base, pool: createPool(options.workers) };
}
