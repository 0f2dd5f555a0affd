/**
 * The gates through which a policy reads a rival's memory: one number per layer and head, trained beside the
 * LoRA matrices. A head's values become attention(own past) + tanh(10 gamma) attention(memory), each with a
 * softmax of its own, as in Flamingo (arXiv 2204.14198, section 3.1.2): a gate of 0 leaves the policy exactly
 * as it is without a memory.
 *
 * The factor 10 stands for what alpha / r is to LoRA: an AdamW step moves a parameter by about the learning
 * rate, and a hundred steps of 1e-3 should be able to open or close a gate. Gates start at 0.1, slightly open:
 * at 0 nothing of the memory would reach the rollouts, and no rollout would say whether opening it pays. Wider
 * is worse: the arena's base, which was trained to read rivals' words and never their keys, is right in 38% of
 * 150 problems without a memory, in 37% with gates of 0.1, 29% of 0.3 and 9% of 0.5, untrained. Left out: gates
 * that look at the token; one softmax over memory and past (with equal weights the same base is right in 16%).
 */
import * as tf from '@tensorflow/tfjs';
import { type Adapter, LATENT_GATE, type ModelConfig } from '../model/index.js';

/** What gamma is multiplied with. */
const FACTOR = 10;
/** The gates' value at the start. */
const START = 0.1;

/** An adapter with new gates beside its matrices (shared with the given one). */
export function withGates(adapter: Adapter, model: ModelConfig): Adapter {
  const shape = [model.num_hidden_layers, model.num_attention_heads];
  const data = new Float32Array(shape[0]! * shape[1]!).fill(Math.atanh(START) / FACTOR);
  return { ...adapter, weights: { ...adapter.weights, [LATENT_GATE]: { shape, data } } };
}

/** Whether an adapter reads its rival's memory and not its words. */
export function hasGates(adapter: Adapter | undefined): boolean {
  return adapter?.weights[LATENT_GATE] !== undefined;
}

/** The gates' values, layer after layer; none where the adapter has no gates. */
export function gateValues(adapter: Adapter): number[] {
  return Array.from(adapter.weights[LATENT_GATE]?.data ?? [], (gamma) => Math.tanh(FACTOR * gamma));
}

/**
 * The gates as attention takes them, one tensor per layer.
 * @param gamma [layers, heads]
 * @returns each [1, heads, 1, 1], differentiable in gamma
 */
export function openGates(gamma: tf.Tensor2D): tf.Tensor4D[] {
  return tf.tidy(() => {
    const open = tf.tanh(tf.mul(gamma, FACTOR));
    return Array.from({ length: gamma.shape[0] }, (_, layer) => {
      const own = tf.slice(open, [layer, 0], [1, -1]);
      return tf.reshape(own, [1, -1, 1, 1]) as tf.Tensor4D;
    });
  });
}
