/**
 * A pool of worker threads, each with a backend of its own, that runs plain functions on plain data.
 *
 * A job is a reference to an exported function (module address and name) and one serialisable argument. The
 * caller cuts its work into jobs by its config alone, never by the number of workers, and `map` returns the
 * results in the order of the jobs: so a result does not depend on how many workers there are. With 0 workers
 * the jobs run in this thread (a GPU is one device for everybody; tests look inside).
 *
 * Left out: moving work between machines.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import * as tf from '@tensorflow/tfjs';
import { currentBackend } from './backend.js';

/** An exported function of a module: `{ module: import.meta.url, name: 'generateShard' }`. */
export interface JobFunction<In, Out> {
  readonly module: string;
  readonly name: string;
  /** The function itself: what an inline pool calls. */
  readonly call: (input: In) => Promise<Out>;
}

export interface Pool {
  /** Worker threads; 0 means the jobs run in the calling thread. */
  readonly workers: number;
  /** Runs every input and resolves to the outputs in the inputs' order. The first error rejects; what waits is dropped. */
  map<In, Out>(
    job: JobFunction<In, Out>,
    inputs: readonly In[],
    onDone?: (done: number) => void,
  ): Promise<Out[]>;
  /** Ends the workers; work in progress rejects. */
  close(): Promise<void>;
}

/** What a worker is sent: a job, or the word to end. */
export type ToWorker = 'end' | { readonly module: string; readonly name: string; readonly input: unknown };

interface Task {
  readonly module: string;
  readonly name: string;
  readonly input: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Rows in shards of `size`, in order; the last one may be smaller. Cut by size and not by workers, so that results do
 * not depend on how many there are. */
export function shardsOf<T>(rows: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, i) =>
    rows.slice(i * size, (i + 1) * size),
  );
}

/**
 * Starts a pool on the current backend.
 * @param workers default: 0 on a GPU, else one per core (at most 16).
 * @throws when `workers` is not a whole number from 0 to 64
 */
export function createPool(workers: number = defaultWorkers()): Pool {
  if (!Number.isInteger(workers) || workers < 0 || workers > 64)
    throw new Error(`workers: ${workers} is not a whole number from 0 to 64`);
  return workers === 0 ? inlinePool() : threadPool(workers);
}

function defaultWorkers(): number {
  return currentBackend().gpu ? 0 : Math.min(16, availableParallelism());
}

/** The limit of a wasm heap. */
const WASM_HEAP_GIB = 4;

/** @throws the error of a job; what a full wasm heap ends in is put in words */
export function explained(error: unknown): never {
  const { name, message } = error as Error;
  if (tf.getBackend() !== 'wasm' || name !== 'RuntimeError') throw error;
  throw new Error(
    `the wasm backend failed (${message.split('.')[0]}): most likely its memory of at most ${WASM_HEAP_GIB} GiB is ` +
      'full. Lower perDeviceTrainBatchSize or generationBatchSize, set gradientCheckpointing, or take native ' +
      'TensorFlow (npm run setup:native); this process has to be started anew',
  );
}

function inlinePool(): Pool {
  return {
    workers: 0,
    async map(job, inputs, onDone) {
      const outputs = [];
      for (const input of inputs) {
        outputs.push(await job.call(input).catch(explained));
        onDone?.(outputs.length);
        await new Promise(setImmediate); // lets timers, signals and a notebook's display run between jobs
      }
      return outputs;
    },
    async close() {},
  };
}

/** A worker that does not end by itself in this time is ended. */
const END_LIMIT_MS = 10_000;

/**
 * Asks a worker to end after the work in hand: native TensorFlow now and then brings the process down when its thread
 * is cut off in the middle of an operation.
 */
async function end(worker: Worker): Promise<void> {
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  if (worker.threadId === -1) return; // it has ended already
  worker.ref();
  worker.postMessage('end' satisfies ToWorker);
  const timer = setTimeout(() => void worker.terminate(), END_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}

function threadPool(count: number): Pool {
  const queue: Task[] = [];
  const running = new Map<Worker, Task>();
  const idle: Worker[] = [];
  let broken: Error | undefined;

  const fail = (error: Error): void => {
    broken ??= error;
    for (const task of [...running.values(), ...queue.splice(0)]) task.reject(error);
    running.clear();
  };
  const pump = (): void => {
    while (idle.length > 0 && queue.length > 0) {
      const worker = idle.at(-1)!;
      const task = queue.shift()!;
      try {
        worker.postMessage({ module: task.module, name: task.name, input: task.input } satisfies ToWorker);
      } catch (error) {
        task.reject(error as Error); // the input cannot be copied; the worker is still idle
        continue;
      }
      idle.pop();
      running.set(worker, task);
      worker.ref();
    }
  };
  const threads = Array.from({ length: count }, () => {
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: { backend: currentBackend().name },
    });
    worker.on('message', (message: { output?: unknown; error?: Error }) => {
      const task = running.get(worker);
      running.delete(worker);
      idle.push(worker);
      worker.unref(); // an idle pool does not keep the process alive
      if (message.error) task?.reject(message.error);
      else task?.resolve(message.output);
      pump();
    });
    worker.on('error', fail);
    worker.on('exit', (code) => fail(new Error(`a worker thread ended with code ${code}`)));
    worker.unref();
    idle.push(worker);
    return worker;
  });
  return {
    workers: count,
    async map<In, Out>(job: JobFunction<In, Out>, inputs: readonly In[], onDone?: (done: number) => void) {
      if (broken) throw broken;
      let done = 0;
      const own = new Set<Task>();
      const results = inputs.map(
        (input) =>
          new Promise<Out>((resolve, reject) => {
            const finish = (value: unknown) => {
              onDone?.(++done);
              resolve(value as Out);
            };
            const task: Task = { module: job.module, name: job.name, input, resolve: finish, reject };
            own.add(task);
            queue.push(task);
          }),
      );
      pump();
      try {
        return await Promise.all(results);
      } catch (error) {
        queue.splice(0, queue.length, ...queue.filter((task) => !own.has(task)));
        throw error;
      }
    },
    async close() {
      fail(new Error('the pool is closed'));
      await Promise.all(threads.map(end));
    },
  };
}
