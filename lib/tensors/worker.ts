/** The thread behind the pool: starts its backend, then calls the functions it is sent, one at a time. */
import { parentPort, workerData } from 'node:worker_threads';
import { initBackend } from './backend.js';
import { explained, type ToWorker } from './pool.js';

const port = parentPort;
if (!port) throw new Error('this file runs as a worker thread of the pool');

const ready = initBackend((workerData as { backend: string }).backend);

port.on('message', async (message: ToWorker) => {
  if (message === 'end') process.exit(0); // of this thread
  try {
    await ready;
    const loaded = (await import(message.module)) as Record<string, (input: unknown) => Promise<unknown>>;
    port.postMessage({ output: await loaded[message.name]!(message.input).catch(explained) });
  } catch (error) {
    port.postMessage({ error: error instanceof Error ? error : new Error(String(error)) });
  }
});
