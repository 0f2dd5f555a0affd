/** Prints what the start of the wasm backend leaves behind, and what later and wrong requests answer. */
import * as tf from '@tensorflow/tfjs';
import { availableBackends, currentBackend, initBackend } from '../../lib/tensors/backend.js';

const EVENTS = ['unhandledRejection', 'uncaughtException'] as const;
const listeners = () => EVENTS.map((event) => process.listenerCount(event));
const failure = async (act: () => unknown): Promise<string> => {
  try {
    await act();
    return 'no error';
  } catch (error) {
    return (error as Error).message;
  }
};

const missing = (['tfjs-node', 'tfjs-node-gpu'] as const).find((name) => !availableBackends().includes(name));
const early = await failure(() => currentBackend());
const unknown = await failure(() => initBackend('webgpu'));
const unavailable = missing && (await failure(() => initBackend(missing)));
const before = listeners();
const info = await initBackend('wasm');
const product = tf.tidy(() => tf.matMul(tf.ones([2, 3]), tf.ones([3, 2])).arraySync());
console.log(
  JSON.stringify({
    early,
    unknown,
    missing: missing ?? null,
    unavailable: unavailable ?? null,
    before,
    after: listeners(),
    name: info.name,
    product,
    again: (await initBackend('wasm')) === info && (await initBackend('auto')) === info,
    other: await failure(() => initBackend('cpu')),
  }),
);
