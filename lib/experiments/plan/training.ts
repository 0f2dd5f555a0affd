/**
 * What one thread holds in the backend, beside the base, for the gradient of one micro-batch: at the worst of two
 * moments – when the log-probs are made, on top of what the forward pass has saved, and at the end of the backward
 * pass, because TensorFlow.js frees what was saved, and the gradients on the way, only then.
 *
 * With gradient checkpointing a layer saves its input, and everything else is there for one layer at a time. The
 * numbers of tensors below were read off the bytes that TensorFlow.js held as the widths changed one by one;
 * test/experiments/plan.test.ts holds the sums against them: change an operation, and it says which has moved. Left
 * out: what a kernel allocates inside one call.
 */
import { adapterShapes, type LoraConfig, type ModelConfig } from '../../model/index.js';
import type { Rectangle } from '../../model/matmuls.js';
import type { BackendName } from '../../tensors/backend.js';
import { MAX_LOGITS } from '../../tensors/logprobs.js';
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

/** Tensors per token, of a model with norms on queries and keys. */
interface TrainingCost {
  /** Per layer, saved by the forward pass: what the gradients of a layer's operations ask for. */
  readonly saved: Partial<Widths>;
  /** Per layer at the end: the above, each operation's gradient, and what was made on the way to it. */
  readonly backward: Partial<Widths>;
  /** With checkpointing, in the one layer that is computed again. */
  readonly again: Partial<Widths>;
  /** Of these, what a norm on queries, and one on keys, makes: saved, and at the end. */
  readonly norm: { readonly saved: number; readonly backward: number };
}
const COSTS: Record<'wasm' | 'native', TrainingCost> = {
  wasm: {
    saved: { hidden: 6, queries: 4, keys: 4, inner: 3, scores: 1 },
    backward: { hidden: 15, queries: 10, keys: 10, inner: 6, ranks: 2, scores: 1 },
    again: { hidden: 19, queries: 10, keys: 11, inner: 6, ranks: 2, scores: 1 },
    norm: { saved: 0, backward: 1 },
  },
  native: {
    saved: { hidden: 8, queries: 6, keys: 5, inner: 4, scores: 1 },
    backward: { hidden: 27, queries: 27, keys: 24, inner: 11, ranks: 2, scores: 4 },
    again: { hidden: 39, queries: 27, keys: 25, inner: 11, ranks: 2, scores: 4 },
    norm: { saved: 1, backward: 6 },
  },
};
/** With checkpointing a layer saves its input; at the end the gradient of that is there too. */
const INPUT: Partial<Widths> = { hidden: 1 };
const INPUT_AND_GRADIENT: Partial<Widths> = { hidden: 2 };
/** Tensors [positions, vocabulary] while log-probs are made. */
const LOGITS = 4;

/** The parts of the gradient of one micro-batch. */
export function trainingParts(
  model: ModelConfig,
  lora: LoraConfig,
  { rows, prompt, completion }: Rectangle,
  gradientCheckpointing: boolean,
  backend: BackendName,
): readonly ThreadPart[] {
  const { num_hidden_layers: layers, vocab_size: V, hidden_size: d, head_dim: hd } = model;
  const length = prompt + completion;
  const tokens = rows * length;
  const scored = rows * completion;
  // The last layer computes the scored positions only.
  const inAllLayers = tokens * (layers - 1) + scored;
  const kind = kindOf(backend);
  const wide = widthsOf(model, lora, length);
  const { norm, ...costs } = COSTS[kind];
  const cost = {
    saved: ofModel(model, costs.saved, norm.saved),
    backward: ofModel(model, costs.backward, norm.backward),
    again: ofModel(model, costs.again, norm.backward),
  };

  const adapter = [...adapterShapes(model, lora).values()].reduce((sum, [a, b]) => sum + a * b, 0);
  const copies = gradientCheckpointing ? 2 : 3;
  const mergedLayers = gradientCheckpointing ? 1 : layers;
  const always = [
    inBackend(
      'merged weights',
      mergedLayers * layerNumbers(model, lora),
      gradientCheckpointing ? 'the adapted weights of one layer' : `those of ${layers} layers`,
    ),
    inBackend('adapter', copies * adapter, `${copies} x ${adapter}: its matrices and their gradients`),
    inBackend(
      'positions and masks',
      tokens * (3 * hd + 3 * length),
      `${tokens} tokens x 3 x (${hd} + ${length})`,
    ),
  ];
  const inLayers = (tensors: Partial<Widths>, name: string, positions: number) => {
    const { scores = 0, ...others } = tensors;
    const [perToken, perScore] = [numbersIn(others, wide), scores * wide.scores];
    const part = (name: string, each: number) => inBackend(name, positions * each, `${positions} x ${each}`);
    return [part(name, perToken), ...(scores > 0 ? [part('attention scores', perScore)] : [])];
  };
  const block = Math.min(scored, Math.max(1, Math.floor(MAX_LOGITS / V)));
  const logProbs = inBackend(
    'log-probs',
    LOGITS * block * V + scored * d,
    `${LOGITS} x ${block} positions x ${V}`,
  );
  if (!gradientCheckpointing)
    return worst([
      [...always, ...inLayers(cost.saved, 'activations', inAllLayers), logProbs],
      [...always, ...inLayers(cost.backward, 'activations', inAllLayers)],
    ]);
  return worst([
    [...always, ...inLayers(INPUT, "layers' inputs", tokens * layers), logProbs],
    [
      ...always,
      ...inLayers(INPUT_AND_GRADIENT, "layers' inputs", tokens * layers),
      ...inLayers(cost.again, 'activations', tokens),
    ],
  ]);
}
