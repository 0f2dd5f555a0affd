/**
 * Adapters as PEFT folders: adapter_config.json beside adapter_model.safetensors. What is written here loads in
 * PEFT, TRL and vLLM; the gates of lib/latent, which PEFT does not know, lie beside them in latent.safetensors.
 * Left out: every variant of LoRA but the plain one; a folder that needs one is refused.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson, writeJson } from '../files.js';
import type { ModelConfig } from './config.js';
import { type Adapter, checkAdapter, LATENT_GATE, LORA_TARGETS, loraConfig } from './lora.js';
import { readSafetensors, writeSafetensors } from './safetensors.js';

const off = z.literal(false, 'this variant of LoRA is not computed here').nullish();
const empty = z
  .union(
    [z.null(), z.array(z.unknown()).length(0), z.record(z.string(), z.never())],
    'this variant of LoRA is not computed here',
  )
  .optional();
const adapterConfigSchema = z.looseObject({
  peft_type: z.literal('LORA'),
  r: z.int().positive(),
  lora_alpha: z.number().positive(),
  target_modules: z.array(z.enum(LORA_TARGETS)).nonempty(),
  bias: z.literal('none').default('none'),
  use_dora: off,
  use_rslora: off,
  fan_in_fan_out: off,
  lora_bias: off,
  use_qalora: off,
  use_bdlora: off,
  modules_to_save: empty,
  rank_pattern: empty,
  alpha_pattern: empty,
  layers_to_transform: empty,
  trainable_token_indices: empty,
  target_parameters: empty,
});

const gatePath = (folder: string) => join(folder, 'latent.safetensors');

/** Reads a PEFT adapter folder for this model. @throws naming the file and the field or tensor that does not fit */
export function readAdapter(folder: string, model: ModelConfig): Adapter {
  const config = readJson(join(folder, 'adapter_config.json'), adapterConfigSchema);
  const path = join(folder, 'adapter_model.safetensors');
  const adapter: Adapter = {
    config: loraConfig({
      r: config.r,
      alpha: config.lora_alpha,
      // PEFT writes a set in no order; ours is the order of the computation.
      targetModules: LORA_TARGETS.filter((name) => config.target_modules.includes(name)) as [
        (typeof LORA_TARGETS)[number],
      ],
    }),
    weights: {
      ...readSafetensors(path).tensors,
      ...(existsSync(gatePath(folder)) ? readSafetensors(gatePath(folder)).tensors : {}),
    },
  };
  checkAdapter(model, adapter, path);
  return adapter;
}

/**
 * Writes a PEFT adapter folder.
 * @param baseModel what PEFT calls `base_model_name_or_path`: the folder or hub name the adapter belongs to
 */
export function writeAdapter(folder: string, adapter: Adapter, baseModel: string): void {
  const { r, alpha, targetModules } = adapter.config;
  const { [LATENT_GATE]: gate, ...lora } = adapter.weights;
  writeSafetensors(join(folder, 'adapter_model.safetensors'), lora);
  if (gate) writeSafetensors(gatePath(folder), { [LATENT_GATE]: gate });
  else rmSync(gatePath(folder), { force: true });
  writeJson(join(folder, 'adapter_config.json'), {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    inference_mode: true,
    r,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    init_lora_weights: true,
    target_modules: targetModules,
  });
}
