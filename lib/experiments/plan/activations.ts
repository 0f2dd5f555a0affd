/**
 * What one thread holds in the backend, beside the base, while it samples a batch or trains on a micro-batch.
 *
 * Every tensor of the model has one of a few widths, so the bytes alive at the worst moment are a sum: how many
 * numbers per token and layer (or per token, in the one block at work) scale with each width. The coefficients
 * below count what the operations keep and make (model/, grpo/gradient.ts). They were fitted to the bytes that
 * TensorFlow.js really held on random shapes, and test/experiments/plan.test.ts holds them there: change an
 * operation, and that test says which sum has moved.
 *
 * Left out: what a kernel allocates inside one call, and fragments of the heap.
 */
import { adapterShapes, type LoraConfig, linearModules, type ModelConfig } from '../../model/index.js';
import type { Rectangle } from '../../model/matmuls.js';
import type { BackendName } from '../../tensors/backend.js';
import type { Part } from './memory.js';

type ThreadPart = Omit<Part, 'copies'>;

/** Numbers per token that scale with each width of the model. */
interface Widths {
  /** The hidden size d. */
  readonly hidden: number;
  /** All query heads, H x head_dim. */
  readonly queries: number;
  /** All key heads, Hkv x head_dim. */
  readonly keys: number;
  /** The MLP's inner size. */
  readonly inner: number;
  /** The adapter's rank, over the adapted modules. */
  readonly rank: number;
  /** Attention's scores: H x the keys in sight. */
  readonly scores: number;
}

interface TrainingCost {
  /** Copies of the adapted weights that are alive together. */
  readonly merged: number;
  /** Per token and layer. */
  readonly layer: Widths;
  /** Per token, in the block whose gradient is being made. */
  readonly block: Widths;
  /** Per scored position and entry of the vocabulary. */
  readonly logits: number;
}

const NONE: Widths = { hidden: 0, queries: 0, keys: 0, inner: 0, rank: 0, scores: 0 };

const TRAINING: Record<'wasm' | 'native', TrainingCost> = {
  wasm: {
    merged: 2,
    layer: { hidden: 30, queries: 22, keys: 20, inner: 11, rank: 4, scores: 4 },
    block: NONE,
    logits: 16,
  },
  native: {
    merged: 1,
    layer: { hidden: 27, queries: 27, keys: 24, inner: 11, rank: 2, scores: 4 },
    block: NONE,
    logits: 14,
  },
};

/** Per token of the prompts and layer, while the prompts are read. */
const PREFILL: Record<'wasm' | 'native', Widths> = {
  wasm: { hidden: 8, queries: 7, keys: 9, inner: 3, rank: 0, scores: 0 },
  native: { hidden: 8, queries: 9, keys: 9, inner: 3, rank: 0, scores: 0 },
};

/** The parts of sampling one batch: while the prompts are read, or at the last token, whichever is more. */
export function samplingParts(
  model: ModelConfig,
  lora: LoraConfig | undefined,
  { rows, prompt, completion }: Rectangle,
  backend: BackendName,
): ThreadPart[] {
  const { num_hidden_layers: layers, num_key_value_heads: kv, head_dim: hd, vocab_size: V } = model;
  const cache = (length: number) =>
    part(
      'KV cache',
      2 * rows * layers * kv * hd * length,
      `${rows} rows x 2 x ${layers} layers x ${kv} heads x ${hd} x ${length} tokens`,
    );
  const logits = [
    part('logits', rows * V, `${rows} rows x ${V} tokens`),
    {
      ...part('logits on the host', 3 * V + rows * V, `${rows} rows x ${V} tokens, one row in doubles`),
      space: 'host' as const,
    },
  ];
  const merged = lora
    ? [part('merged weights', adaptedNumbers(model, lora), 'the adapted layers, adapter added')]
    : [];
  const head = model.tie_word_embeddings
    ? [part('output head', V * model.hidden_size, 'the embedding, transposed')]
    : [];
  const layer = weigh(PREFILL[kind(backend)], widths(model, undefined, prompt));
  const reading = [
    ...merged,
    cache(prompt),
    part(
      'activations',
      rows * prompt * layers * layer,
      `${rows * prompt} tokens x ${layers} layers x ${layer}`,
    ),
    ...head,
    ...logits,
  ];
  const longest = cache(prompt + completion);
  const writing = [
    ...merged,
    longest,
    part('cache being joined', longest.bytes / 4 / layers, 'one layer of the cache, copied to a longer one'),
    ...head,
    ...logits,
  ];
  return total(reading) > total(writing) ? reading : writing;
}

/** The parts of the gradient of one micro-batch. */
export function trainingParts(
  model: ModelConfig,
  lora: LoraConfig,
  { rows, prompt, completion }: Rectangle,
  _options: { readonly gradientCheckpointing?: boolean },
  backend: BackendName,
): ThreadPart[] {
  const { num_hidden_layers: layers, vocab_size: V } = model;
  const length = prompt + completion;
  const tokens = rows * length;
  const cost = TRAINING[kind(backend)];
  const wide = widths(model, lora, length);
  const layer = weigh({ ...cost.layer, scores: 0 }, wide);
  const scores = cost.layer.scores * wide.scores;
  const adapter = [...adapterShapes(model, lora).values()].reduce((sum, [a, b]) => sum + a * b, 0);
  return [
    part('merged weights', cost.merged * adaptedNumbers(model, lora), `${cost.merged} x the adapted layers`),
    part('adapter', 5 * adapter, 'its matrices, transposed and scaled, and their gradients'),
    part('activations', tokens * layers * layer, `${tokens} tokens x ${layers} layers x ${layer}`),
    part('attention scores', tokens * layers * scores, `${tokens} tokens x ${layers} layers x ${scores}`),
    part(
      'log-probs',
      rows * completion * V * cost.logits,
      `${rows * completion} positions x ${V} tokens x ${cost.logits}`,
    ),
  ];
}

function part(name: string, numbers: number, formula: string): ThreadPart {
  return { name, bytes: 4 * numbers, space: 'backend', formula: `${formula} x 4` };
}

function total(parts: readonly ThreadPart[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The numbers in the weights that an adapter stands on. */
function adaptedNumbers(model: ModelConfig, lora: LoraConfig): number {
  return (
    model.num_hidden_layers * adapted(model, lora).reduce((sum, linear) => sum + linear.in * linear.out, 0)
  );
}

function adapted(model: ModelConfig, lora: LoraConfig) {
  return linearModules(model).filter(({ path }) => lora.targetModules.some((name) => path.endsWith(name)));
}

function widths(model: ModelConfig, lora: LoraConfig | undefined, keysInSight: number): Widths {
  return {
    hidden: model.hidden_size,
    queries: model.num_attention_heads * model.head_dim,
    keys: model.num_key_value_heads * model.head_dim,
    inner: model.intermediate_size,
    rank: lora ? lora.r * adapted(model, lora).length : 0,
    scores: model.num_attention_heads * keysInSight,
  };
}

function weigh(coefficients: Widths, widths: Widths): number {
  const names = Object.keys(widths) as (keyof Widths)[];
  return names.reduce((sum, name) => sum + coefficients[name] * widths[name], 0);
}

function kind(backend: BackendName): 'wasm' | 'native' {
  return backend === 'wasm' || backend === 'cpu' ? 'wasm' : 'native';
}
