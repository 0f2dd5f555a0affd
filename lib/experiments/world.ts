/**
 * Opens the world a run lives in: the task, the frozen base with its tokenizer, and the pool of workers. Checks
 * that they fit together before anything long starts. Left out: adapters, which belong to runs.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from '../agon/attempt.js';
import { sharedModel } from '../rollouts/policy.js';
import { TASKS, type TaskName } from '../tasks/index.js';
import { initBackend } from '../tensors/backend.js';
import type { Pool } from '../tensors/pool.js';
import { createPool } from '../tensors/pool.js';
import { loadTokenizer } from '../text/index.js';
import { baseFolder } from './bases.js';
import type { Experiment } from './config.js';

/** The base that is shipped: trained by `npm run pretrain` of this repository. */
export const ARENA_BASE = baseFolder('arena-base');

export interface WorldOptions {
  /** Folder of the base model; default the arena's. */
  readonly base?: string;
  /** Default countdown. */
  readonly task?: TaskName;
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
  await initBackend(options.backend);
  return enter(createPool(options.workers), options.base ?? ARENA_BASE, options.task ?? 'countdown');
}

/** @throws naming the command that makes it when a base of these experiments is not in data/ */
export function checkBases(experiments: readonly Pick<Experiment, 'base'>[]): void {
  for (const base of new Set(experiments.map((e) => e.base)))
    if (!existsSync(join(baseFolder(base), 'model.safetensors')))
      throw new Error(`the base ${base} is not in data/: make it with npm run pretrain -- --base ${base}`);
}

/** The world of an experiment's base and task, with the pool of another: many experiments share one set of threads. */
export function worldOf({ base, run }: Pick<Experiment, 'base' | 'run'>, pool: Pool): World {
  return enter(pool, baseFolder(base), run.task);
}

function enter(pool: Pool, base: string, task: TaskName): World {
  const tokenizer = loadTokenizer(base);
  tokenizer.checkFits(sharedModel(base).config.vocab_size);
  return { task: TASKS[task], tokenizer, base, pool };
}
