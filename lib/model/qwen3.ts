/**
 * The configs of the Qwen3 models that the paper trains, as their config.json on the Hugging Face hub states them:
 * enough to plan a run whose weights are not here. Left out: everything a plan does not ask for.
 */
import { type ModelConfig, makeConfig } from './config.js';

const common = {
  num_key_value_heads: 8,
  head_dim: 128,
  vocab_size: 151_936,
  max_position_embeddings: 40_960,
  rms_norm_eps: 1e-6,
  rope_theta: 1_000_000,
  tie_word_embeddings: true,
} as const;

export const QWEN3 = {
  /** https://huggingface.co/Qwen/Qwen3-0.6B/blob/main/config.json */
  '0.6b': makeConfig({
    ...common,
    hidden_size: 1024,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    intermediate_size: 3072,
  }),
  /** https://huggingface.co/Qwen/Qwen3-1.7B/blob/main/config.json */
  '1.7b': makeConfig({
    ...common,
    hidden_size: 2048,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    intermediate_size: 6144,
  }),
  /** https://huggingface.co/Qwen/Qwen3-4B/blob/main/config.json */
  '4b': makeConfig({
    ...common,
    hidden_size: 2560,
    num_hidden_layers: 36,
    num_attention_heads: 32,
    intermediate_size: 9728,
  }),
} as const satisfies Record<string, ModelConfig>;
