/** A tiny random policy in a folder of its own: what the tests of rollouts and GRPO run on where no skill is needed. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Adapter,
  initAdapter,
  initModel,
  loraConfig,
  type ModelType,
  makeConfig,
  saveModel,
} from '../../lib/model/index.js';
import { stream } from '../../lib/random.js';
import { type GenerationOptions, generate, type RolloutRequest } from '../../lib/rollouts/generate.js';
import { type Policy, sharedModel } from '../../lib/rollouts/policy.js';
import { createPool } from '../../lib/tensors/pool.js';

export const VOCABULARY = 13;
export const EOS = 2;
export const PAD = 0;
export const CONTEXT = 40;

export function scratch(): string {
  return mkdtempSync(join(tmpdir(), 'grpo-test-'));
}

/** Saves a random model of 13 tokens; EOS comes after about as many. Needs a running backend. */
export function tinyBase(model_type: ModelType = 'qwen3'): string {
  const config = makeConfig({
    model_type,
    hidden_size: 16,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 8,
    intermediate_size: 24,
    vocab_size: VOCABULARY,
    max_position_embeddings: CONTEXT,
    tie_word_embeddings: true,
    eos_token_id: EOS,
    pad_token_id: PAD,
  });
  const model = initModel(config, stream('tiny base'), 0.3);
  const folder = scratch();
  saveModel(folder, model);
  model.dispose();
  return folder;
}

/** An adapter that changes the policy visibly (std 0.1 in its up-matrices), or with 0 not at all. */
export function tinyAdapter(base: string, name: string | number, noise = 0.1): Adapter {
  const config = loraConfig({ r: 3, alpha: 6 });
  return initAdapter(sharedModel(base), config, stream('adapter', name), 'B', { absolute: noise });
}

/** Prompts of different lengths, with PAD and EOS among their tokens. */
export const PROMPTS = [[5, 6, 7], [8], [3, PAD, 4, 9, 10], [11, EOS, 12, 1]] as const;

/** `count` requests over the prompts in turn, each with a stream of its own. */
export function requests(count: number, seed = 0): RolloutRequest[] {
  return Array.from({ length: count }, (_, i) => ({
    promptIds: PROMPTS[i % PROMPTS.length]!,
    names: ['test', seed, i],
  }));
}

export const SAMPLING: GenerationOptions = {
  temperature: 1,
  topP: 1,
  maxCompletionLength: 12,
  eosId: EOS,
  padId: PAD,
};

/** Rollouts of a policy, in one batch in this thread. */
export function sample(policy: Policy, count: number, options: Partial<GenerationOptions> = {}, seed = 0) {
  return generate(createPool(0), policy, requests(count, seed), { ...SAMPLING, ...options }, count);
}
