/** Jobs for the pool's tests: exported functions, as a worker loads them by module and name. */
import { threadId } from 'node:worker_threads';
import * as tf from '@tensorflow/tfjs';
import type { JobFunction } from '../../lib/tensors/pool.js';

function job<In, Out>(call: (input: In) => Promise<Out>): JobFunction<In, Out> {
  return { module: import.meta.url, name: call.name, call };
}

/** Squares after a pause that lets later jobs overtake, on the worker's own backend. */
export async function square(x: number): Promise<{ squared: number; thread: number; backend: string }> {
  await new Promise((resolve) => setTimeout(resolve, x % 2 === 0 ? 15 : 1));
  const squared = tf.tidy(() => tf.square(tf.scalar(x)).dataSync()[0]!);
  return { squared, thread: threadId, backend: tf.getBackend() };
}
export const SQUARE = job(square);

export async function failOn3(x: number): Promise<number> {
  if (x === 3) throw new RangeError('three is not allowed');
  return x;
}
export const FAIL_ON_3 = job(failOn3);

/** Ends its own thread, as a crash would. */
export async function exit(code: number): Promise<never> {
  process.exit(code);
}
export const EXIT = job(exit);

/** An error outside the job's promise. */
export async function throwLater(message: string): Promise<never> {
  setTimeout(() => {
    throw new Error(message);
  });
  return new Promise(() => {});
}
export const THROW_LATER = job(throwLater);

export async function echo<T>(value: T): Promise<T> {
  return value;
}
export const ECHO = job(echo<unknown>);

/** Never ends by itself. */
export async function hang(_: number): Promise<never> {
  return new Promise(() => setInterval(() => {}, 1000));
}
export const HANG = job(hang);

/** Keeps its thread busy without a pause. */
export async function compute(milliseconds: number): Promise<number> {
  const start = performance.now();
  while (performance.now() - start < milliseconds);
  return milliseconds;
}
export const COMPUTE = job(compute);
