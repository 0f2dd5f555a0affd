/**
 * Runs as folders: `results/runs/<id>/` with config.json, metrics.jsonl (a line per step), eval.jsonl (a line
 * per problem and stage), A/ and B/ (PEFT folders) and state/ (what resuming needs).
 *
 * A checkpoint is one file replaced atomically, so a run killed at any moment goes on from its last whole
 * step: metrics lines after it are dropped and made again, alike. Left out: what a step does (run.ts).
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Adapters } from '../agon/attempt.js';
import type { TrainingRow } from '../agon/methods.js';
import { appendJsonl, ROOT, readJson, readJsonl, writeFileAtomic, writeJson } from '../files.js';
import type { Trainee } from '../grpo/update.js';
import {
  type HostTensor,
  type ModelConfig,
  readAdapter,
  readSafetensors,
  writeAdapter,
  writeSafetensors,
} from '../model/index.js';
import type { AdapterName } from '../records.js';
import type { RunConfig } from './config.js';

/** Where results lie: the repository's `results`, or what `AGON_RESULTS` names. */
export const RESULTS_FOLDER = process.env.AGON_RESULTS ?? join(ROOT, 'results');

/** One line of metrics.jsonl: TRL's names, streams and adapters as prefixes. */
export type Metrics = Record<string, number>;
export const metricsSchema = z.record(z.string(), z.number());

/** What stands in config.json: everything the run's result follows from. */
export interface RunIdentity {
  /** The training row; null for the untrained base, which is only evaluated. */
  readonly training: TrainingRow | null;
  readonly config: RunConfig;
  /** SHA-256 over the base's folder (`hashBase`). */
  readonly baseHash: string;
  /** Numbers agree between backends to rounding only, so a run belongs to one. */
  readonly backend: string;
  /** Source texts of rewards of the user's own; what they close over is not seen (own.ts looks at what they pay). */
  readonly challengeReward?: string;
  readonly draftReward?: string;
  /** What else of the user's own the result follows from (own.ts), as JSON has it. */
  readonly own?: Readonly<Record<string, unknown>>;
}

/** Raised when prompts, parser, verifier or training change what a run of the same config results in. */
export const RESULTS_VERSION = 2;

export interface RunFolder {
  readonly id: string;
  readonly path: string;
  readonly identity: RunIdentity;
}

/** SHA-256 over what a base's folder gives to a run: weights (every shard), config, tokenizer, chat template. */
export function hashBase(folder: string): string {
  const hash = createHash('sha256');
  const files = readdirSync(folder).filter((name) =>
    /\.(safetensors|jinja)$|^(config|tokenizer.*)\.json$/.test(name),
  );
  for (const name of files.sort()) hash.update(name).update(readFileSync(join(folder, name)));
  return hash.digest('hex');
}

/** What config.json says, and what the id is the hash of. What leaves a run's result as it is stays out of it. */
function identityText(identity: RunIdentity): string {
  const { gradientCheckpointing, ...grpo } = identity.config.grpo;
  return JSON.stringify({
    version: RESULTS_VERSION,
    ...identity,
    config: { ...identity.config, grpo },
  });
}

/** The name of a run's folder: row, seed, and a hash of all that determines the result. */
export function runId(identity: RunIdentity): string {
  const hash = createHash('sha256').update(identityText(identity)).digest('hex').slice(0, 10);
  return `${identity.training?.name ?? 'base'}-s${identity.config.seed}-${hash}`;
}

/**
 * The folder of a run, made with its config.json when it is not there yet.
 * @param resultsFolder runs lie in its `runs`
 * @param fresh deletes what this run has made so far
 * @throws when the folder exists but holds another run's config or none at all
 */
export function openRun(
  identity: RunIdentity,
  resultsFolder: string = RESULTS_FOLDER,
  fresh = false,
): RunFolder {
  const text = identityText(identity);
  const id = runId(identity);
  const path = join(resultsFolder, 'runs', id);
  if (fresh) {
    lockRun({ id, path, identity })();
    rmSync(path, { recursive: true, force: true });
  }
  const configPath = join(path, 'config.json');
  if (existsSync(configPath)) {
    const found = readJson(configPath, z.unknown());
    if (JSON.stringify(found) !== text)
      throw new Error(
        `${configPath} is not the config of run ${id}: it was changed; restore it or delete the folder`,
      );
  } else {
    // What a kill inside the write of config.json leaves is its temporary neighbour, and no file of a run.
    const files = existsSync(path)
      ? readdirSync(path).filter((name) => !name.startsWith('config.json.'))
      : [];
    if (files.length > 0)
      throw new Error(
        `${path} holds files but no config.json: a half-copied run; delete the folder or copy it whole`,
      );
    mkdirSync(path, { recursive: true });
    writeJson(configPath, JSON.parse(text));
  }
  return { id, path, identity };
}

/**
 * Keeps others from training the same run, in this process too: two writers would mix their lines.
 * @returns the release; a lock whose process is gone (killed) counts for nothing
 * @throws naming the process that holds it
 */
export function lockRun(run: RunFolder): () => void {
  const path = join(run.path, 'lock');
  const holder = existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
  if (holder > 0 && holder !== process.pid && isAlive(holder))
    throw new Error(
      `run ${run.id} is being trained by process ${holder}: wait for it, stop it, or delete the lock if that is no run: ${path}`,
    );
  // A notebook's kernel may give a cell back to the user while the work that the cell has started goes on.
  if (held.has(path))
    throw new Error(`run ${run.id} is still being trained in this process: wait a moment and try again`);
  writeFileAtomic(path, String(process.pid));
  held.add(path);
  return () => {
    held.delete(path);
    rmSync(path, { force: true });
  };
}

/** Locks of this process. */
const held = new Set<string>();

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0); // signal 0 only asks
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The metrics so far, one record per finished step. */
export function readMetrics(run: Pick<RunFolder, 'path'>): Metrics[] {
  return readJsonl(join(run.path, 'metrics.jsonl'), metricsSchema);
}

export function appendMetrics(run: RunFolder, metrics: Metrics): void {
  appendJsonl(join(run.path, 'metrics.jsonl'), metrics);
}

/** Drops the metrics of steps after the last checkpoint, which a killed process left. */
export function truncateMetrics(run: RunFolder, steps: number): Metrics[] {
  const all = readMetrics(run);
  const kept = all.filter((line) => line.step! < steps);
  if (kept.length !== steps)
    throw new Error(
      `${join(run.path, 'metrics.jsonl')}: ${kept.length} lines for ${steps} finished steps; delete the folder ${run.path}`,
    );
  if (kept.length < all.length)
    writeFileAtomic(
      join(run.path, 'metrics.jsonl'),
      kept.map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  return kept;
}

const checkpointPath = (run: RunFolder) => join(run.path, 'state', 'checkpoint.safetensors');

/** Writes everything that resuming needs, replacing the last checkpoint whole. `step`: finished steps. */
export function saveCheckpoint(run: RunFolder, step: number, trainees: Record<string, Trainee>): void {
  const tensors: Record<string, HostTensor> = {};
  const metadata: Record<string, string> = { step: String(step) };
  for (const [name, { adapter, optimizer }] of Object.entries(trainees)) {
    metadata[`${name}/optimizer_step`] = String(optimizer.step);
    for (const [key, tensor] of Object.entries(adapter.weights)) {
      tensors[`${name}/param/${key}`] = tensor;
      tensors[`${name}/m/${key}`] = { shape: tensor.shape, data: optimizer.m[key]! };
      tensors[`${name}/v/${key}`] = { shape: tensor.shape, data: optimizer.v[key]! };
    }
  }
  mkdirSync(join(run.path, 'state'), { recursive: true });
  writeSafetensors(checkpointPath(run), tensors, { metadata });
}

/**
 * Restores trainees in place from the last checkpoint.
 * @returns finished steps; 0 when there is no checkpoint yet
 * @throws naming the file and tensor when the checkpoint is damaged or of other shapes
 */
export function loadCheckpoint(run: RunFolder, trainees: Record<string, Trainee>): number {
  const path = checkpointPath(run);
  if (!existsSync(path)) return 0;
  const { tensors, metadata } = readSafetensors(path);
  const number = (key: string): number => {
    const value = Number(metadata[key]);
    if (!Number.isInteger(value) || value < 0)
      throw new Error(
        `${path}: metadata '${key}' is ${JSON.stringify(metadata[key])}: a whole number is needed`,
      );
    return value;
  };
  for (const [name, { adapter, optimizer }] of Object.entries(trainees)) {
    optimizer.step = number(`${name}/optimizer_step`);
    for (const [key, tensor] of Object.entries(adapter.weights)) {
      const targets = { param: tensor.data, m: optimizer.m[key]!, v: optimizer.v[key]! };
      for (const [kind, target] of Object.entries(targets)) {
        const found = tensors[`${name}/${kind}/${key}`];
        if (found?.shape.join() !== tensor.shape.join())
          throw new Error(
            `${path}: tensor '${name}/${kind}/${key}' ${found ? `has shape [${found.shape}]` : 'is missing'}, ` +
              `the run wants [${tensor.shape}]`,
          );
        target.set(found.data);
      }
    }
  }
  return number('step');
}

/**
 * Writes each adapter as a PEFT folder beside the run's log.
 * @param step into checkpoints/<step>, as the adapters stand after so many steps; default the run's end
 */
export function saveAdapters(
  run: RunFolder,
  trainees: Record<string, Trainee>,
  base: string,
  step?: number,
): void {
  for (const [name, { adapter }] of Object.entries(trainees))
    writeAdapter(join(adapterFolder(run, step), name), adapter, base);
}

/** Reads a run's adapters back, those at its end or after `step` steps. @throws when one is missing or does not fit */
export function loadAdapters(
  run: RunFolder,
  names: readonly Exclude<AdapterName, 'base'>[],
  model: ModelConfig,
  step?: number,
): Adapters {
  const folder = adapterFolder(run, step);
  return Object.fromEntries(names.map((name) => [name, readAdapter(join(folder, name), model)]));
}

/** Where a run's PEFT folders lie. */
function adapterFolder(run: RunFolder, step?: number): string {
  return step === undefined ? run.path : join(run.path, 'checkpoints', String(step));
}

/** Whether the run's adapters are all written; a folder's config is its last file. */
export function hasAdapters(run: RunFolder, trainees: Record<string, Trainee>): boolean {
  return Object.keys(trainees).every((name) => existsSync(join(run.path, name, 'adapter_config.json')));
}
