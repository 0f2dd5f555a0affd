/**
 * What a run will hold at once, part by part and phase by phase, from configs alone: no weights are needed.
 *
 * Every thread that computes has a backend's memory of its own with the base in it, and so has the main thread beside
 * its workers; what a thread needs on top stands in sampling.ts and training.ts. Left out: what a machine has
 * (machine.ts), whether it suffices (check.ts), tokens short of the longest: every figure is the peak with the longest
 * prompt and completion, reached or not.
 *
 * Planned against measured peak resident memory of a process (test/support/resident-script.ts, Linux, 2 cores; arena:
 * 24 rows of 40 + 200 tokens, wide: a random model of 29 million parameters, 8 rows of 64 + 192), in percent:
 *
 * |                      | wasm | wasm, 2 workers | native | native, 2 workers |
 * | -------------------- | ---: | --------------: | -----: | ----------------: |
 * | arena: loading       |  0   |   -7            |  -1    |  -5               |
 * | arena: sampling      |  4   |    2            |  -3    |  -5               |
 * | arena: training      | -1   |   -3            |   1    |  18               |
 * | with checkpointing   |  4   |    1            | -10    |  -2               |
 * | wide: loading        |  3   |  -17            |  -5    | -15               |
 * | wide: sampling       |  1   |   -4            | -10    | -13               |
 * | wide: training       |  1   |   -1            |   4    |   4               |
 * | with checkpointing   |  0   |   -1            |  -1    |  -1               |
 */
import { adapterShapes, countParameters, type ModelConfig, parameterShapes } from '../../model/index.js';
import type { BackendName } from '../../tensors/backend.js';
import type { EvalConfig, RunConfig } from '../config.js';
import { samplingParts } from './sampling.js';
import { trainingParts } from './training.js';
import type { ThreadPart } from './widths.js';

/** Where a run happens and what its config does not say. */
export interface PlanSetup {
  readonly backend: BackendName;
  /** Worker threads of the pool; 0: the main thread does the work. */
  readonly workers: number;
  /** Adapters trained side by side; 0: none is. */
  readonly adapters: number;
  /** Tokens of the longest prompt, what is shown of a rival included. */
  readonly promptTokens: number;
}

/** Something that takes room. */
export interface Part {
  readonly name: string;
  /** Of one copy. */
  readonly bytes: number;
  /** Held at the same time in the whole process. */
  readonly copies: number;
  /** In the backend (a wasm heap, a GPU's memory) or beside it, in the language's own memory. */
  readonly space: 'backend' | 'host';
  /** How it comes about, in words and numbers. */
  readonly formula: string;
}

export const PHASES = ['loading', 'sampling', 'training', 'evaluation'] as const;
export type PhaseName = (typeof PHASES)[number];

export interface Phase {
  readonly name: PhaseName;
  readonly parts: readonly Part[];
  /** Bytes of the whole process. */
  readonly process: number;
  /** Bytes in the backend of one thread: the share that must fit in a wasm heap or a GPU. */
  readonly backend: number;
  /** Bytes beside the backend: what a process whose backend is a GPU holds itself. */
  readonly host: number;
}

export interface MemoryPlan {
  /** What was planned, to plan it again with another setting. */
  readonly inputs: {
    readonly model: ModelConfig;
    readonly run: PlannedRun;
    readonly setup: PlanSetup;
    readonly evaluation: Pick<EvalConfig, 'problems' | 'topP'> | undefined;
  };
  readonly phases: readonly Phase[];
  /** The phase in which the process is largest. */
  readonly peak: Phase;
}

/** What is planned: a run without its seed. */
export type PlannedRun = Omit<RunConfig, 'seed'>;

/**
 * Memory of Node, the library and the backend before any model: measured on Linux, x86_64, as the peak resident
 * size of a process (and of each worker thread in it) that has loaded everything and computed nothing.
 */
const RUNTIME: Record<'wasm' | 'native', { readonly process: number; readonly worker: number }> = {
  wasm: { process: 230e6, worker: 50e6 },
  native: { process: 520e6, worker: 55e6 },
};

/** What a config will need. @throws when the prompt leaves no room in the model's context */
export function planMemory(
  model: ModelConfig,
  run: PlannedRun,
  setup: PlanSetup,
  evaluation?: Pick<EvalConfig, 'problems' | 'topP'>,
): MemoryPlan {
  const context = model.max_position_embeddings;
  if (setup.promptTokens >= context)
    throw new Error(`a prompt of ${setup.promptTokens} tokens leaves no room in a context of ${context}`);
  const completion = Math.min(run.grpo.maxCompletionLength, context - setup.promptTokens);
  const threads = Math.max(1, setup.workers);
  const rollouts = 2 * run.grpo.numGenerations * run.problemsPerStep;
  const always = [...runtimeParts(setup), baseWeights(model, setup), ...trainees(model, run, setup)];
  const inThreads = (parts: readonly ThreadPart[], batches: number): Part[] =>
    parts.map((part) => ({ ...part, copies: Math.min(threads, batches) }));
  const sampling = (name: 'sampling' | 'evaluation', requests: number, topP: number): Phase => {
    const rows = Math.min(run.generationBatchSize, requests);
    const shape = { rows, prompt: setup.promptTokens, completion };
    const lora = setup.adapters > 0 ? run.lora : undefined;
    const parts = samplingParts(model, lora, shape, topP, setup.backend);
    return phase(name, [...always, ...inThreads(parts, Math.ceil(requests / rows))]);
  };
  // The main thread reads the base first; each worker does at its first job.
  const alone = { ...setup, workers: 0 };
  const phases = [
    phase('loading', [
      ...runtimeParts(alone),
      baseWeights(model, alone),
      ...inThreads([largestTensor(model)], 1),
    ]),
  ];
  if (setup.adapters > 0) {
    phases.push(sampling('sampling', setup.adapters > 1 ? rollouts / 2 : rollouts, 1));
    const rows = Math.min(run.grpo.perDeviceTrainBatchSize, rollouts);
    const batches = Math.ceil(rollouts / rows);
    const shape = { rows, prompt: setup.promptTokens, completion };
    const { gradientCheckpointing } = run.grpo;
    const own = trainingParts(model, run.lora, shape, gradientCheckpointing, setup.backend);
    phases.push(phase('training', [...always, ...inThreads(own, batches), gradients(model, run, batches)]));
  }
  if (evaluation) phases.push(sampling('evaluation', evaluation.problems, evaluation.topP));
  const peak = phases.reduce((a, b) => (b.process > a.process ? b : a));
  return { inputs: { model, run, setup, evaluation }, phases, peak };
}

function phase(name: PhaseName, parts: readonly Part[]): Phase {
  const sum = (space: Part['space'], copies: (part: Part) => number) =>
    parts.filter((part) => part.space === space).reduce((n, part) => n + part.bytes * copies(part), 0);
  const all = (part: Part) => part.copies;
  const host = sum('host', all);
  return { name, parts, process: host + sum('backend', all), backend: sum('backend', () => 1), host };
}

function runtimeParts({ backend, workers }: PlanSetup): Part[] {
  const { process, worker } = RUNTIME[backend === 'wasm' || backend === 'cpu' ? 'wasm' : 'native'];
  const formula = 'Node, the library and the backend, measured';
  return [
    { name: 'runtime', bytes: process, copies: 1, space: 'host', formula },
    ...(workers > 0
      ? [{ name: 'worker threads', bytes: worker, copies: workers, space: 'host', formula } as const]
      : []),
  ];
}

function baseWeights(model: ModelConfig, { workers }: PlanSetup): Part {
  const parameters = countParameters(model);
  const copies = workers + 1;
  const whose = copies === 1 ? 'once in the process' : `in each of ${workers} workers and the main thread`;
  return {
    name: 'base weights',
    bytes: 4 * parameters,
    copies,
    space: 'backend',
    formula: `${parameters} parameters x 4, ${whose}`,
  };
}

/** A model is read one tensor at a time, as the file's bytes and then as numbers. */
function largestTensor(model: ModelConfig): ThreadPart {
  const largest = Math.max(...[...parameterShapes(model).values()].map((s) => s.reduce((a, b) => a * b, 1)));
  const formula = `${largest} numbers x 4`;
  return { name: 'largest tensor, read', bytes: 4 * largest, space: 'host', formula };
}

/** Bytes of one adapter's matrices. */
export function adapterBytes(model: ModelConfig, run: Pick<PlannedRun, 'lora'>): number {
  const shapes = [...adapterShapes(model, run.lora).values()];
  return 4 * shapes.reduce((sum, [rows, columns]) => sum + rows * columns, 0);
}

function trainees(model: ModelConfig, run: PlannedRun, { adapters }: PlanSetup): Part[] {
  if (adapters === 0) return [];
  const bytes = adapterBytes(model, run);
  return [
    {
      name: 'adapters and moments',
      bytes: 3 * bytes,
      copies: adapters,
      space: 'host',
      formula: `${bytes / 4} parameters (rank ${run.lora.r}), their two AdamW moments, x 4, per adapter`,
    },
  ];
}

/** Micro-batches hand their gradients over when all are done, and the sum is one more. */
function gradients(model: ModelConfig, run: PlannedRun, batches: number): Part {
  return {
    name: 'gradients',
    bytes: adapterBytes(model, run),
    copies: batches + 1,
    space: 'host',
    formula: `an adapter's size for each of ${batches} micro-batches, and their sum`,
  };
}
