/**
 * What one thread holds in the backend, beside the base, while it samples a batch: at the worst of three moments –
 * when the prompts are read, when the first token is drawn, and when the cache is copied at its longest.
 *
 * The adapter is merged into copies of the weights it stands on, and for decoding the weights are packed (wasm) or
 * joined (native) once more. Every prompt is taken to be different from the others. Left out: what a kernel, or a
 * TensorFlow graph, allocates inside one call.
 */
import type { LoraConfig, ModelConfig } from '../../model/index.js';
import { ROOM } from '../../model/kernel-cache.js';
import type { Rectangle } from '../../model/matmuls.js';
import type { BackendName } from '../../tensors/backend.js';
import {
  inBackend,
  kindOf,
  layerNumbers,
  numbersIn,
  ofModel,
  type ThreadPart,
  type Widths,
  widthsOf,
  worst,
} from './widths.js';

/** Tensors per token of the prompts in one layer; what it hands on and its keys and values stay until the last is done. */
const READING: Record<
  'wasm' | 'native',
  {
    readonly layer: Partial<Widths>;
    readonly scores: number;
    /** Of those, what a norm on queries, and one on keys, makes. */
    readonly norm: number;
  }
> = {
  // On wasm a norm, a rotation and attention are one kernel each; natively they are composed, and scores are there.
  wasm: { layer: { hidden: 6, queries: 6, keys: 6, inner: 3 }, scores: 0, norm: 1 },
  native: { layer: { hidden: 8, queries: 9, keys: 11, inner: 3 }, scores: 5, norm: 2 },
};
/** Of those, what the last layer has not made yet when its scores are there. */
const AFTER_SCORES: Partial<Widths> = { hidden: 4, inner: 3 };

/** Tensors [rows, vocabulary] while a token is drawn: with top-p 1, and with a smaller one, which sorts. */
const DRAWING = { wasm: { full: 2, nucleus: 18 }, native: { full: 10, nucleus: 18 } } as const;

/** The graph that decodes on native TensorFlow, per thread and beside its tensors: measured. */
const GRAPH: ThreadPart = { name: 'decoding graph', bytes: 60e6, space: 'host', formula: 'measured' };

/**
 * The parts of sampling one batch.
 * @param lora undefined: the base itself is sampled
 * @param topP below 1 the vocabulary is sorted
 */
export function samplingParts(
  model: ModelConfig,
  lora: LoraConfig | undefined,
  { rows, prompt, completion }: Rectangle,
  topP: number,
  backend: BackendName,
): readonly ThreadPart[] {
  const { num_hidden_layers: layers, num_key_value_heads: kv, head_dim: hd, vocab_size: V } = model;
  const kind = kindOf(backend);
  const merged = lora
    ? [
        inBackend(
          'merged weights',
          layers * layerNumbers(model, lora),
          'the adapted weights with the adapter',
        ),
      ]
    : [];
  const cache = (name: string, tokens: number) =>
    inBackend(
      name,
      2 * rows * layers * kv * hd * tokens,
      `${rows} rows x 2 x ${layers} layers x ${kv} heads x ${hd} x ${tokens} tokens`,
    );
  const draws = DRAWING[kind][topP < 1 ? 'nucleus' : 'full'];
  const logits = inBackend('logits', draws * rows * V, `${draws} x ${rows} rows x ${V}`);

  const tokens = rows * prompt;
  const wide = widthsOf(model, undefined, prompt);
  const { layer, scores, norm } = READING[kind];
  const perLayer = numbersIn(ofModel(model, layer, norm), wide);
  const attending =
    prompt + model.hidden_size + Math.max(0, scores * wide.scores - numbersIn(AFTER_SCORES, wide));
  const staying = wide.hidden + 2 * wide.keys;
  const activations = inBackend(
    'activations',
    tokens * ((layers - 2) * staying + perLayer + attending),
    `${tokens} tokens x (${layers - 2} layers x ${staying} + ${perLayer} in one + ${attending} beside them)`,
  );
  const longest = prompt + completion;
  if (kind === 'wasm') {
    const packed = decodingWeights(model, layers * layerNumbers(model), 'packed weights');
    let capacity = prompt + ROOM;
    while (capacity < longest) capacity *= 2;
    return worst([
      [...merged, activations],
      [...merged, packed, cache('KV cache', prompt + ROOM), cache('KV cache, copied', prompt + ROOM), logits],
      // Rows leave when an eighth has ended, and the others are copied.
      [...merged, packed, cache('KV cache', capacity), cache('KV cache, copied', 0.875 * capacity), logits],
    ]);
  }
  const { queries, keys, inner, hidden } = wide;
  const joined = decodingWeights(model, layers * hidden * (queries + 2 * keys + 2 * inner), 'joined weights');
  const before = inBackend('output head, transposed', hidden * V, `${hidden} x ${V}`);
  return worst([
    [...merged, joined, before],
    [...merged, joined, activations, GRAPH],
    [...merged, joined, cache('KV cache', prompt), cache('KV cache, copied', prompt), logits, GRAPH],
    // Every call gives back a cache that is longer by its tokens.
    [...merged, joined, cache('KV cache', longest), cache('KV cache, copied', longest), logits, GRAPH],
  ]);
}

function decodingWeights(model: ModelConfig, numbers: number, name: string): ThreadPart {
  const head = model.hidden_size * model.vocab_size;
  return inBackend(name, numbers + head, `${numbers} in the layers, ${head} in the output head`);
}
