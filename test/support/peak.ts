/**
 * The bytes that tensors hold in the backend, and the most they held at once. `tf.memory().numBytes` counts a
 * reshape or a clone again although it shares its data; here every data buffer counts once, while it lives.
 * Left out: what a kernel allocates and frees inside one call.
 */
import * as tf from '@tensorflow/tfjs';

/** What is used of the engine beside its public face. */
interface Engine {
  trackTensor(tensor: tf.Tensor, backend: unknown): void;
  removeDataId(dataId: object, backend: unknown): void;
}

export interface ByteCounter {
  /** The most bytes held since the last call, or since the start. Buffers from before the start do not count. */
  peak(): number;
  stop(): void;
}

/** Counts from now on: start it before the model is loaded. */
export function countBytes(): ByteCounter {
  const engine = tf.engine() as unknown as Engine;
  const own = { trackTensor: engine.trackTensor, removeDataId: engine.removeDataId };
  const sizes = new Map<object, number>();
  let bytes = 0;
  let peak = 0;
  engine.trackTensor = (tensor, backend) => {
    if (!sizes.has(tensor.dataId)) {
      const size = tensor.size * tf.util.bytesPerElement(tensor.dtype);
      sizes.set(tensor.dataId, size);
      bytes += size;
      peak = Math.max(peak, bytes);
    }
    own.trackTensor.call(engine, tensor, backend);
  };
  engine.removeDataId = (dataId, backend) => {
    bytes -= sizes.get(dataId) ?? 0;
    sizes.delete(dataId);
    own.removeDataId.call(engine, dataId, backend);
  };
  return {
    peak() {
      const found = peak;
      peak = bytes;
      return found;
    },
    stop: () => Object.assign(engine, own),
  };
}
