/**
 * Low-rank adapters (LoRA, arXiv 2106.09685): W x + (alpha / r) B A x on every linear layer of attention and MLP.
 *
 * An `Adapter` lies on the host as Float32Arrays under PEFT's names, so it crosses worker boundaries and goes
 * into files as it is. For a computation it is uploaded (`LoraTensors`, unmerged, what training differentiates)
 * or merged into a model that shares everything else with the base (what sampling uses).
 * Left out: dropout, biases, rank patterns, embeddings, quantised bases.
 */
import * as tf from '@tensorflow/tfjs';
import { z } from 'zod';
import type { Random } from '../random.js';
import { countParameters, linearModules, type ModelConfig } from './config.js';
import { mergedWeight } from './linear.js';
import type { HostTensor } from './safetensors.js';
import { type LoraTensors, loraName, type Model, type Weights } from './transformer.js';

/** The modules an adapter may stand on: PEFT's `target_modules`. */
export const LORA_TARGETS = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
] as const;
export type LoraTarget = (typeof LORA_TARGETS)[number];

export const loraConfigSchema = z
  .strictObject({
    /** Rank. */
    r: z.int().positive().default(16),
    /** The update is scaled by alpha / r; default 2r. */
    alpha: z.number().positive().optional(),
    targetModules: z
      .array(z.enum(LORA_TARGETS))
      .nonempty()
      .default([...LORA_TARGETS]),
  })
  .transform((config) => ({ ...config, alpha: config.alpha ?? 2 * config.r }));
export type LoraConfig = z.output<typeof loraConfigSchema>;

/** An adapter on the host. Keys are PEFT's names, lora_A [r, in] and lora_B [out, r]. */
export interface Adapter {
  readonly config: LoraConfig;
  readonly weights: Readonly<Record<string, HostTensor>>;
}

/** A matrix that may lie beside LoRA's in an adapter's weights: the gates of lib/latent, [layers, heads]. */
export const LATENT_GATE = 'latent.gate';

/** How far B's up-projections lie from zero: in units of the base weight's own std, or outright. */
export type InitNoise = { readonly relative: number } | { readonly absolute: number };

/** Completes a LoRA config with its defaults: rank 16, alpha 2r, every linear layer. */
export function loraConfig(input: z.input<typeof loraConfigSchema> = {}): LoraConfig {
  return loraConfigSchema.parse(input);
}

/** The names and shapes of an adapter's matrices on a model, in the order of the computation. */
export function adapterShapes(model: ModelConfig, lora: LoraConfig): Map<string, readonly [number, number]> {
  const shapes = new Map<string, readonly [number, number]>();
  for (const { module, inSize, outSize } of adaptedModules(model, lora)) {
    shapes.set(loraName(module, 'A'), [lora.r, inSize]);
    shapes.set(loraName(module, 'B'), [outSize, lora.r]);
  }
  return shapes;
}

/**
 * A new adapter on `base`. lora_A is kaiming-uniform with a = sqrt(5), as PEFT draws it: uniform in
 * +-1/sqrt(in). lora_B is zero for adapter `A`; for the others it is normal around zero, so that they differ
 * from the start (paper, section on the pair's initialisation; `noise` is our choice, see InitNoise).
 */
export function initAdapter(
  base: Model,
  config: LoraConfig,
  random: Random,
  kind: 'A' | 'B' | 'C',
  noise: InitNoise = { relative: 1e-3 },
): Adapter {
  const weights: Record<string, HostTensor> = {};
  for (const { module, inSize, outSize } of adaptedModules(base.config, config)) {
    const bound = 1 / Math.sqrt(inSize);
    const std =
      kind === 'A' ? 0 : 'absolute' in noise ? noise.absolute : noise.relative * stdOf(base.weights, module);
    const fill = (rows: number, columns: number, draw: () => number): HostTensor => ({
      shape: [rows, columns],
      data: Float32Array.from({ length: rows * columns }, draw),
    });
    weights[loraName(module, 'A')] = fill(config.r, inSize, () => bound * (2 * random.uniform() - 1));
    weights[loraName(module, 'B')] = fill(outSize, config.r, () => (std === 0 ? 0 : std * random.normal()));
  }
  return { config, weights };
}

/** The adapter's parameters as a share of the base's. */
export function parameterShare(model: ModelConfig, lora: LoraConfig): number {
  const own = [...adapterShapes(model, lora).values()].reduce(
    (sum, [rows, columns]) => sum + rows * columns,
    0,
  );
  return own / countParameters(model);
}

/** @throws naming the tensor when the adapter's matrices are not those its config wants on this model */
export function checkAdapter(model: ModelConfig, adapter: Adapter, where: string): void {
  const expected = adapterShapes(model, adapter.config);
  if (adapter.weights[LATENT_GATE])
    expected.set(LATENT_GATE, [model.num_hidden_layers, model.num_attention_heads]);
  for (const [name, shape] of expected) {
    const found = adapter.weights[name];
    if (!found) throw new Error(`${where}: tensor '${name}' [${shape}] is missing`);
    if (found.shape.join() !== shape.join())
      throw new Error(`${where}: tensor '${name}' has shape [${found.shape}], the model wants [${shape}]`);
  }
  for (const name of Object.keys(adapter.weights))
    if (!expected.has(name))
      throw new Error(`${where}: tensor '${name}' belongs to no targeted layer of the model`);
}

/** Puts an adapter into the backend, unmerged. `tf.dispose(lora.weights)` frees it. */
export function uploadAdapter(adapter: Adapter): LoraTensors {
  const weights: Record<string, tf.Tensor2D> = {};
  for (const [name, { shape, data }] of Object.entries(adapter.weights))
    weights[name] = tf.tensor2d(data, shape as [number, number], 'float32');
  return { scale: adapter.config.alpha / adapter.config.r, weights };
}

/** Takes the matrices back to the host. */
export function downloadAdapter(config: LoraConfig, lora: LoraTensors): Adapter {
  const weights: Record<string, HostTensor> = {};
  for (const [name, tensor] of Object.entries(lora.weights))
    weights[name] = { shape: tensor.shape, data: Float32Array.from(tensor.dataSync()) };
  return { config, weights };
}

/**
 * The base with the adapter added into its weights. Only adapted matrices are new; the rest, and the base itself,
 * stay the base's: dispose the merged model first, then the base.
 * @throws naming the tensor when the adapter does not fit the base
 */
export function mergeAdapter(base: Model, adapter: Adapter): Model {
  checkAdapter(base.config, adapter, 'the adapter');
  const own: Record<string, tf.Tensor> = {};
  const lora = uploadAdapter(adapter);
  for (const { module } of adaptedModules(base.config, adapter.config)) {
    own[`${module}.weight`] = mergedWeight({
      W: base.weights[`${module}.weight`] as tf.Tensor2D,
      A: lora.weights[loraName(module, 'A')]!,
      B: lora.weights[loraName(module, 'B')]!,
      scale: lora.scale,
    });
  }
  tf.dispose(lora.weights as Record<string, tf.Tensor>);
  return { config: base.config, weights: { ...base.weights, ...own }, dispose: () => tf.dispose(own) };
}

function adaptedModules(model: ModelConfig, lora: LoraConfig) {
  const targeted = linearModules(model).filter(({ path }) =>
    lora.targetModules.some((name) => path.endsWith(`.${name}`)),
  );
  return Array.from({ length: model.num_hidden_layers }, (_, layer) =>
    targeted.map((linear) => ({
      module: `model.layers.${layer}.${linear.path}`,
      inSize: linear.in,
      outSize: linear.out,
    })),
  ).flat();
}

function stdOf(weights: Weights, module: string): number {
  return tf.tidy(() => tf.sqrt(tf.moments(weights[`${module}.weight`]!).variance).dataSync()[0]!);
}
