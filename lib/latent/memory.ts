/**
 * Memories as attention reads them: the keys and values of a batch's rivals, padded to one length, and what
 * each layer gets from them.
 *
 * A memory lies at the places right before the reader's prompt: its keys carry the rotation of the places -S
 * to -1 (rollouts/memories.ts turns them there), so that the queries need no second rotation and decoding can
 * leave the memory as it is. Rows without one, and padding, read values of zero: nothing is added. No
 * gradient is wanted for keys and values. Left out: where memories come from.
 */
import * as tf from '@tensorflow/tfjs';
import { type Beside, checkRows, type HostTensor, type ModelConfig, type Reading } from '../model/index.js';
import { attention, hidingBias } from '../model/operations.js';
import type { Memory } from '../records.js';
import { openGates } from './gate.js';

/** The memories of R rows in the backend. */
export interface MemoryTensors {
  /** Per layer, [R, Hkv, S, hd]. */
  readonly layers: readonly { readonly k: tf.Tensor4D; readonly v: tf.Tensor4D }[];
  /** [R, 1, 1, S]: hides padding. */
  readonly bias: tf.Tensor4D;
}

/**
 * @param memories one per row; undefined where a row reads nothing
 * @returns undefined when no row reads anything; else the caller's to dispose
 * @throws naming the row whose memory is of another model's shape
 */
export function uploadMemories(
  memories: readonly (Memory | undefined)[],
  model: ModelConfig,
): MemoryTensors | undefined {
  const { num_hidden_layers: layers, num_key_value_heads: heads, head_dim: hd } = model;
  memories.forEach((memory, row) => {
    if (memory) checkMemory(memory, model, row);
  });
  const S = Math.max(...memories.map((memory) => memory?.places ?? 0));
  if (S === 0) return undefined;
  const shape: [number, number, number, number] = [memories.length, heads, S, hd];
  const upload = (layer: number, part: 'k' | 'v') => {
    const all = new Float32Array(memories.length * heads * S * hd);
    memories.forEach((memory, row) => {
      for (let head = 0; memory && head < heads; head++) {
        const own = memory.layers[layer]![part];
        const size = memory.places * hd;
        all.set(own.subarray(head * size, (head + 1) * size), (row * heads + head) * S * hd);
      }
    });
    return tf.tensor4d(all, shape);
  };
  const seen = memories.flatMap((memory) =>
    Array.from({ length: S }, (_, place) => Number(place < (memory?.places ?? 0))),
  );
  return {
    layers: Array.from({ length: layers }, (_, layer) => ({ k: upload(layer, 'k'), v: upload(layer, 'v') })),
    bias: tf.tidy(() => hidingBias(tf.tensor4d(seen, [memories.length, 1, 1, S]))),
  };
}

function checkMemory({ places, layers }: Memory, model: ModelConfig, row: number): void {
  const { num_hidden_layers, num_key_value_heads, head_dim } = model;
  const size = num_key_value_heads * places * head_dim;
  const fits = layers.every(({ k, v }) => k.length === size && v.length === size);
  if (!(Number.isInteger(places) && places > 0) || layers.length !== num_hidden_layers || !fits)
    throw new Error(
      `row ${row}: a memory of ${layers.length} layers and ${places} places with ` +
        `${layers.map(({ k }) => k.length).join(', ')} numbers; the model wants ${num_hidden_layers} layers ` +
        `of ${num_key_value_heads} x places x ${head_dim}, and at least one place`,
    );
}

/**
 * What each layer adds to its mixed values, differentiable in the queries and gates.
 * @param gates as `openGates` gives them
 */
export function besideOf({ layers, bias }: MemoryTensors, gates: readonly tf.Tensor4D[]): Beside {
  return (layer, q) => {
    const { k, v } = layers[layer]!;
    // Every query of a row sees the same places.
    const perQuery = q.shape[2] === 1 ? bias : tf.tile(bias, [1, 1, q.shape[2], 1]);
    return tf.mul(attention(q, k, v, perQuery), gates[layer]!);
  };
}

/**
 * The memories of a batch that is being decoded.
 * @param gate [layers, heads] of the reader's adapter
 * @returns undefined when no row reads anything
 * @throws when there are memories and no gates to read them through
 */
export function openMemories(
  memories: readonly (Memory | undefined)[],
  gate: HostTensor | undefined,
  model: ModelConfig,
): Reading | undefined {
  if (!memories.some((memory) => memory)) return undefined;
  if (!gate) throw new Error('a memory is read through gates, and the adapter has none');
  let tensors = uploadMemories(memories, model)!;
  const gates = tf.tidy(() => openGates(tf.tensor2d(gate.data, gate.shape as [number, number])));
  const dispose = ({ layers, bias }: MemoryTensors) =>
    tf.dispose([bias, ...layers.flatMap(({ k, v }) => [k, v])]);
  let rows = memories.length;
  return {
    beside: (layer, q) => besideOf(tensors, gates)(layer, q),
    keep(kept) {
      checkRows(kept, rows);
      const before = tensors;
      tensors = tf.tidy(() => {
        const indices = tf.tensor1d([...kept], 'int32');
        const pick = (x: tf.Tensor4D) => {
          const flat = tf.gather(tf.reshape(x, [rows, -1]), indices);
          return tf.keep(tf.reshape(flat, [kept.length, x.shape[1], x.shape[2], x.shape[3]]) as tf.Tensor4D);
        };
        return {
          layers: before.layers.map(({ k, v }) => ({ k: pick(k), v: pick(v) })),
          bias: pick(before.bias),
        };
      });
      dispose(before);
      rows = kept.length;
    },
    dispose() {
      dispose(tensors);
      tf.dispose(gates);
    },
  };
}
