/**
 * What the plans of sampling and of training count with. Every tensor of the model has one of a few widths, so the
 * numbers alive at some moment are a sum of products: how many tensors of each width there are per token, times the
 * width, times the tokens. How many there are stands in sampling.ts and training.ts.
 */
import { hasQkNorm, type LoraConfig, linearModules, type ModelConfig } from '../../model/index.js';
import type { BackendName } from '../../tensors/backend.js';
import type { Part } from './memory.js';

/** A number for each width of the model: the width itself, or how many tensors have it. */
export interface Widths {
  /** The hidden size d. */
  readonly hidden: number;
  /** All query heads, H x head_dim. */
  readonly queries: number;
  /** All key heads, Hkv x head_dim. */
  readonly keys: number;
  /** The MLP's inner size. */
  readonly inner: number;
  /** The adapter's ranks, over the adapted modules of a layer. */
  readonly ranks: number;
  /** Attention's scores: H x the keys in sight. */
  readonly scores: number;
}

/** The model's own widths, with so many keys in sight. */
export function widthsOf(model: ModelConfig, lora: LoraConfig | undefined, keysInSight: number): Widths {
  return {
    hidden: model.hidden_size,
    queries: model.num_attention_heads * model.head_dim,
    keys: model.num_key_value_heads * model.head_dim,
    inner: model.intermediate_size,
    ranks: lora ? lora.r * adapted(model, lora).length : 0,
    scores: model.num_attention_heads * keysInSight,
  };
}

/** The numbers in so many tensors of each width; what is not mentioned is not there. */
export function numbersIn(tensors: Partial<Widths>, widths: Widths): number {
  return (Object.keys(tensors) as (keyof Widths)[]).reduce(
    (sum, name) => sum + tensors[name]! * widths[name],
    0,
  );
}

/** A layer's tensors: where queries and keys have no norms, without the tensors that each of the two norms makes. */
export function ofModel(model: ModelConfig, tensors: Partial<Widths>, ofNorm: number): Partial<Widths> {
  if (hasQkNorm(model)) return tensors;
  const { queries = 0, keys = 0 } = tensors;
  return { ...tensors, queries: queries - ofNorm, keys: keys - ofNorm };
}

/** The numbers in one layer's weights that an adapter stands on; without an adapter, in all linear ones. */
export function layerNumbers(model: ModelConfig, lora?: LoraConfig): number {
  const modules = lora ? adapted(model, lora) : linearModules(model);
  return modules.reduce((sum, linear) => sum + linear.in * linear.out, 0);
}

function adapted(model: ModelConfig, lora: LoraConfig) {
  return linearModules(model).filter(({ path }) => lora.targetModules.some((name) => path.endsWith(name)));
}

/** A part of what one thread holds; how many threads there are is said later. */
export type ThreadPart = Omit<Part, 'copies'>;

/** A part in the backend, of 4-byte numbers. */
export function inBackend(name: string, numbers: number, formula: string): ThreadPart {
  return { name, bytes: 4 * numbers, space: 'backend', formula: `${formula}, x 4` };
}

/** Of several moments, the one that holds most. */
export function worst(moments: readonly (readonly ThreadPart[])[]): readonly ThreadPart[] {
  const total = (parts: readonly ThreadPart[]) => parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return moments.reduce((a, b) => (total(b) > total(a) ? b : a));
}

/** The two kinds of backend that keep different tensors: with our own wasm kernels, and without. */
export function kindOf(backend: BackendName): 'wasm' | 'native' {
  return backend === 'wasm' ? 'wasm' : 'native';
}
