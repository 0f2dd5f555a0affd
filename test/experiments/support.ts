/**
 * What the tests of experiments/ share: a tiny run on the arena's base, a task whose verdicts are a coin flip per
 * completion (so that every group has something to learn, however good the base is), scratch folders, and what
 * two runs are compared by.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { World } from '../../lib/agon/attempt.js';
import { methodByName, type TrainingRow } from '../../lib/agon/methods.js';
import { type RunConfig, runConfigSchema } from '../../lib/experiments/config.js';
import { WALL_CLOCK_METRICS } from '../../lib/experiments/run.js';
import { hashBase, type Metrics, openRun, type RunFolder, readMetrics } from '../../lib/experiments/store.js';
import { openWorld } from '../../lib/experiments/world.js';
import { hash32 } from '../../lib/random.js';
import { countdown } from '../../lib/tasks/index.js';
import type { Pool } from '../../lib/tensors/pool.js';

export const AGON: TrainingRow = methodByName('agon').training!;

/** A run of which every step takes a fraction of a second and changes both adapters. */
export function tinyConfig(changes: Partial<RunConfig> = {}): RunConfig {
  const tiny = {
    seed: 0,
    maxSteps: 3,
    problemsPerStep: 1,
    minDifficulty: 4,
    maxDifficulty: 16,
    generationBatchSize: 8,
    grpo: {
      numGenerations: 4,
      temperature: 1,
      maxCompletionLength: 12,
      perDeviceTrainBatchSize: 3,
      learningRate: 1e-2,
    },
    lora: { r: 2, alpha: 4, targetModules: ['q_proj', 'down_proj'], initNoise: { absolute: 0.01 } },
  };
  return runConfigSchema.parse({ ...tiny, ...changes });
}

/** The arena with coin flips for verdicts, on the wasm backend in this thread (or in `workers` threads). */
export async function coinWorld(workers = 0): Promise<World> {
  const world = await openWorld({ backend: 'wasm', workers });
  const coin = (text: string) => hash32(text) % 2 === 0;
  return { ...world, task: { ...countdown, verify: (_p, { think }) => coin(think) } };
}

export function openTiny(
  world: World,
  resultsFolder: string,
  config = tinyConfig(),
  training: TrainingRow | null = AGON,
  challengeReward?: string,
): RunFolder {
  const own = challengeReward === undefined ? {} : { challengeReward };
  return openRun(
    { training, config, baseHash: hashBase(world.base), backend: 'wasm', ...own },
    resultsFolder,
  );
}

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new empty folder, gone when this process ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'experiments-test-'));
  folders.push(folder);
  return folder;
}

/** A pool that refuses to work. */
export const NO_POOL: Pool = {
  workers: 0,
  map: async () => {
    throw new Error('nothing was to be computed');
  },
  close: async () => {},
};

/** Everything that must be alike in two runs of one identity: metrics without the clock, and the adapters' bytes. */
export function fingerprint(run: RunFolder) {
  const files: Record<string, string> = {};
  for (const name of ['A', 'B'])
    for (const file of readdirSync(join(run.path, name)).sort())
      files[`${name}/${file}`] = readFileSync(join(run.path, name, file)).toString('base64');
  return { metrics: readMetrics(run).map(withoutClock), files };
}

export function withoutClock(metrics: Metrics): Metrics {
  const clock: readonly string[] = WALL_CLOCK_METRICS;
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => !clock.includes(name)));
}
