/** The machine that a bench ran on, and who can take part there: our backends and, where installed, the peers. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../files.js';
import { availableBackends } from '../tensors/backend.js';
import type { ParticipantSpec } from './participant.js';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGB: number;
  readonly system: string;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGB: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
  };
}

/** The Python peers by name: what each one stands for. */
export const PEERS = {
  transformers: 'transformers: generate, and a loop over peft for training',
  trl: 'TRL: GRPOTrainer with peft',
  pytorch: 'a plain PyTorch loop with a KV cache',
} as const;

const OURS_SCRIPT = fileURLToPath(new URL('./ours.js', import.meta.url));
const PEERS_FOLDER = join(ROOT, 'bench', 'peers');
const VENV = join(ROOT, '.bench-venv');

/** Our backends here, each as a process with as many workers as the workload has threads. */
export function ourSpecs(): ParticipantSpec[] {
  return availableBackends()
    .filter((name) => name !== 'cpu') // plain JavaScript, for tests: fifty times slower
    .map((name) => ({
      name,
      side: 'ours',
      program: process.execPath,
      args: [OURS_SCRIPT],
      env: { AGON_BACKEND: name },
    }));
}

/** The peers under a Python that has them. */
export function peerSpecs(python: string, threads: number): ParticipantSpec[] {
  return Object.keys(PEERS).map((name) => ({
    name,
    side: 'peer',
    program: python,
    args: [join(PEERS_FOLDER, 'serve.py'), name],
    env: { ...threadLimits(threads), HF_HUB_OFFLINE: '1', TOKENIZERS_PARALLELISM: 'false' },
  }));
}

function threadLimits(threads: number): Record<string, string> {
  const n = String(threads);
  return { OMP_NUM_THREADS: n, MKL_NUM_THREADS: n };
}

/** The peers' Python: `AGON_BENCH_PYTHON`, or the one in a complete `.bench-venv`; undefined where there is none. */
export function peersPython(): string | undefined {
  const named = process.env.AGON_BENCH_PYTHON;
  if (named !== undefined && !existsSync(named))
    throw new Error(`AGON_BENCH_PYTHON is ${named}, and there is no such file`);
  return named ?? (existsSync(join(VENV, 'ready')) ? join(VENV, 'bin', 'python') : undefined);
}

/** Makes `.bench-venv` with the pinned peers, printing what happens. @throws when the script fails */
export function setUpPeers(): void {
  const { status, error } = spawnSync('bash', [join(PEERS_FOLDER, 'setup.sh'), VENV], { stdio: 'inherit' });
  if (error) throw new Error(`bench/peers/setup.sh did not start: ${error.message}`);
  if (status !== 0) throw new Error(`bench/peers/setup.sh ended with code ${status}`);
}
