/**
 * The architecture as a Hugging Face config.json states it, and what follows from it: the names and shapes of the
 * parameters. Names are kept as the file spells them. Two families: Qwen3, and Llama, which has no norms on queries
 * and keys (`hasQkNorm`) and is otherwise the same.
 *
 * Left out: mixture of experts, sliding windows, biases, and every RoPE variant but the default (Llama 3.1's
 * among them). A config that asks for one of them is refused by name rather than computed wrongly.
 */
import { z } from 'zod';
import { check, readJson } from '../files.js';

/** What tells the families apart; defaults are transformers'. */
const FAMILIES = {
  qwen3: { architecture: 'Qwen3ForCausalLM', qkNorm: true, context: 32768, headDim: () => 128 },
  llama: {
    architecture: 'LlamaForCausalLM',
    qkNorm: false,
    context: 2048,
    headDim: (hiddenSize: number, heads: number) => hiddenSize / heads,
  },
} as const;
export type ModelType = keyof typeof FAMILIES;

const count = z.int().positive();
const tokenId = z.union([z.int().nonnegative(), z.array(z.int().nonnegative())]).nullish();
const ropeParameters = z.looseObject({
  rope_type: z.literal('default', 'only the default RoPE is computed here').optional(),
  type: z.literal('default', 'only the default RoPE is computed here').optional(),
  rope_theta: z.number().positive().optional(),
});

const fields = {
  architectures: z.tuple([z.enum(Object.values(FAMILIES).map(({ architecture }) => architecture))]),
  model_type: z.enum(Object.keys(FAMILIES) as [ModelType, ...ModelType[]]),
  hidden_size: count,
  num_hidden_layers: count,
  num_attention_heads: count,
  num_key_value_heads: count,
  /** Size of one head; free of hidden_size / num_attention_heads, as in Qwen3-0.6B. */
  head_dim: count.nullish(),
  intermediate_size: count,
  vocab_size: count,
  max_position_embeddings: count.optional(),
  rms_norm_eps: z.number().positive().default(1e-6),
  rope_theta: z.number().positive().optional(),
  rope_parameters: ropeParameters.nullish(),
  rope_scaling: ropeParameters.nullish(),
  tie_word_embeddings: z.boolean().default(false),
  hidden_act: z.literal('silu').default('silu'),
  attention_bias: z.literal(false, 'attention biases are not part of this architecture here').default(false),
  mlp_bias: z.literal(false, 'biases of the MLP are not part of this architecture here').optional(),
  use_sliding_window: z.literal(false, 'sliding windows are not computed here').default(false),
  layer_types: z.array(z.literal('full_attention', 'only full attention is computed here')).nullish(),
  bos_token_id: tokenId,
  eos_token_id: tokenId,
  pad_token_id: z.int().nonnegative().nullish(),
};

const known = z.object(fields);

/** What the file may leave open, as its family has it. */
function complete(config: z.output<typeof known>) {
  const { context, headDim } = FAMILIES[config.model_type];
  return {
    ...config,
    head_dim: config.head_dim ?? headDim(config.hidden_size, config.num_attention_heads),
    max_position_embeddings: config.max_position_embeddings ?? context,
  };
}

const schema = z.looseObject(fields).superRefine((given, context) => {
  const fail = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  const { architecture } = FAMILIES[given.model_type];
  if (given.architectures[0] !== architecture)
    fail('architectures', `must be ['${architecture}'] where model_type is '${given.model_type}'`);
  // transformers refuses to load such a folder, whatever head_dim says.
  if (given.model_type === 'llama' && given.hidden_size % given.num_attention_heads !== 0)
    return fail('hidden_size', `must be a multiple of num_attention_heads (${given.num_attention_heads})`);
  const config = complete(given);
  if (config.num_attention_heads % config.num_key_value_heads !== 0)
    fail('num_key_value_heads', `must divide num_attention_heads (${config.num_attention_heads})`);
  if (config.head_dim % 2 !== 0) fail('head_dim', 'must be even: RoPE rotates pairs');
  if (config.layer_types && config.layer_types.length !== config.num_hidden_layers)
    fail('layer_types', `must list num_hidden_layers (${config.num_hidden_layers}) layers`);
});

/** A checked config.json. `rope_theta` stands at the top, wherever the file kept it; unknown keys are carried along. */
export type ModelConfig = Omit<ReturnType<typeof complete>, 'rope_theta'> & {
  readonly rope_theta: number;
};

/** What a config must at least say; the rest has transformers' defaults. Without `model_type` it is Qwen3. */
export type ModelConfigInput = Omit<z.input<typeof known>, 'architectures' | 'model_type'> & {
  readonly model_type?: ModelType;
};

/** Checks a config.json's value. @throws naming `where` and each field that does not fit */
export function parseConfig(value: unknown, where: string): ModelConfig {
  return settle(check(schema, value, where));
}

/** Reads a config.json. @throws naming the file and each field that does not fit */
export function readConfig(path: string): ModelConfig {
  return settle(readJson(path, schema));
}

/** A config for a new model of any size. @throws naming each field that does not fit */
export function makeConfig(input: ModelConfigInput): ModelConfig {
  const { model_type = 'qwen3' } = input;
  const architectures = [FAMILIES[model_type]?.architecture];
  return parseConfig({ ...input, architectures, model_type }, 'the model config');
}

function settle(config: z.output<typeof known>): ModelConfig {
  const { rope_theta, rope_parameters, rope_scaling, ...rest } = complete(config);
  const theta = rope_theta ?? rope_parameters?.rope_theta ?? rope_scaling?.rope_theta ?? 10000;
  // Both spellings, so that transformers before and after version 5 read the saved file alike.
  return { ...rest, rope_theta: theta, rope_parameters: { rope_type: 'default', rope_theta: theta } };
}

/** Whether each head's queries and keys are normalised before they are rotated. */
export function hasQkNorm({ model_type }: Pick<ModelConfig, 'model_type'>): boolean {
  return FAMILIES[model_type].qkNorm;
}

/** The linear modules of one layer with their [in, out] sizes, in the order of the computation. */
export function linearModules(
  config: ModelConfig,
): readonly { readonly path: string; readonly in: number; readonly out: number }[] {
  const { hidden_size: d, intermediate_size: ff, head_dim: hd } = config;
  const q = config.num_attention_heads * hd;
  const kv = config.num_key_value_heads * hd;
  return [
    { path: 'self_attn.q_proj', in: d, out: q },
    { path: 'self_attn.k_proj', in: d, out: kv },
    { path: 'self_attn.v_proj', in: d, out: kv },
    { path: 'self_attn.o_proj', in: q, out: d },
    { path: 'mlp.gate_proj', in: d, out: ff },
    { path: 'mlp.up_proj', in: d, out: ff },
    { path: 'mlp.down_proj', in: ff, out: d },
  ];
}

/** Every parameter's name and shape as the file holds them: linear weights are [out, in]. */
export function parameterShapes(config: ModelConfig): Map<string, readonly number[]> {
  const { hidden_size: d, head_dim: hd } = config;
  const shapes = new Map<string, readonly number[]>([['model.embed_tokens.weight', [config.vocab_size, d]]]);
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const prefix = `model.layers.${layer}`;
    for (const linear of linearModules(config))
      shapes.set(`${prefix}.${linear.path}.weight`, [linear.out, linear.in]);
    if (hasQkNorm(config))
      for (const name of ['q_norm', 'k_norm']) shapes.set(`${prefix}.self_attn.${name}.weight`, [hd]);
    shapes.set(`${prefix}.input_layernorm.weight`, [d]);
    shapes.set(`${prefix}.post_attention_layernorm.weight`, [d]);
  }
  shapes.set('model.norm.weight', [d]);
  if (!config.tie_word_embeddings) shapes.set('lm_head.weight', [config.vocab_size, d]);
  return shapes;
}

/** Every parameter's name, in the order of the file. */
export function parameterNames(config: ModelConfig): string[] {
  return [...parameterShapes(config).keys()];
}

/** The number of parameters; a tied head counts once. */
export function countParameters(config: ModelConfig): number {
  return [...parameterShapes(config).values()].reduce(
    (sum, shape) => sum + shape.reduce((a, b) => a * b, 1),
    0,
  );
}

/** True for a linear layer's weight: the file holds [out, in], memory holds [in, out] (see transformer.ts). */
export function isLinear(name: string): boolean {
  return name.endsWith('_proj.weight') || name === 'lm_head.weight';
}

/** @throws RangeError naming the first id that is not in the vocabulary: some backends would read whatever lies there */
export function checkTokenIds({ vocab_size }: ModelConfig, ids: readonly number[]): void {
  const wrong = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocab_size));
  if (wrong !== undefined)
    throw new RangeError(`token id ${wrong} is not in the vocabulary: allowed are 0 to ${vocab_size - 1}`);
}
