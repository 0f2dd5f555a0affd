/**
 * One phase of a run in a process of its own, and beside its peak resident memory (Linux's VmHWM) what the plan says.
 * `node resident-script.js BACKEND WORKERS PHASE BASE ROWS PROMPT COMPLETION [checkpointing]` prints a line of JSON;
 * every row has the lengths that are given. `node resident-script.js make BASE` writes a random base of 29 million
 * parameters (in a process of its own, because that takes memory too).
 */
import { readFileSync } from 'node:fs';
import { accumulate } from '../../lib/grpo/update.js';
import {
  type BackendName,
  createPool,
  generate,
  initAdapter,
  initBackend,
  loraConfig,
  planMemory,
  preset,
  saveModel,
  sharedModel,
  stream,
} from '../../lib/index.js';
import { initModel, makeConfig } from '../../lib/model/index.js';

const [backend, ...rest] = process.argv.slice(2) as [string, ...string[]];
if (backend === 'make') {
  await initBackend('wasm');
  makeBase(rest[0]!);
  process.exit();
}
const [workers, phase, base, rows, prompt, completion, checkpointing] = rest as [string, ...string[]];
const [W, R, P, C] = [workers, rows, prompt, completion].map(Number) as [number, number, number, number];
await initBackend(backend);
const pool = createPool(W);
const { config } = sharedModel(base!);
const lora = loraConfig({ r: 16 });
const adapter = initAdapter(sharedModel(base!), lora, stream('adapter'), 'B', { absolute: 0.01 });
const policy = { base: base!, adapter };
const shards = Math.max(1, W);
const { run } = preset('quick');
const grpo = {
  ...run.grpo,
  numGenerations: 1,
  perDeviceTrainBatchSize: R,
  maxCompletionLength: C,
  gradientCheckpointing: checkpointing !== undefined,
};
const prompts = Array.from({ length: shards * R }, (_, i) =>
  Array.from({ length: P }, (_, t) => 3 + ((i + t) % 90)),
);
if (phase === 'sampling') {
  const requests = prompts.map((promptIds, i) => ({ promptIds, names: [i] }));
  const options = { temperature: 1, topP: 1, maxCompletionLength: C, eosId: -1, padId: 0 };
  await generate(pool, policy, requests, options, R);
} else if (phase === 'training') {
  const completionIds = Array.from({ length: C }, (_, t) => 3 + (t % 90));
  const oldLogProbs = completionIds.map(() => -1);
  const lossRows = prompts.map((promptIds) => ({
    promptIds,
    completionIds,
    oldLogProbs,
    advantage: 1,
    weight: 0.01,
  }));
  await accumulate(pool, policy, lossRows, grpo);
}
const peak = 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]);
const planned = planMemory(
  config,
  {
    ...run,
    generationBatchSize: R,
    problemsPerStep: Math.ceil((shards * R) / 2),
    grpo,
    lora: { ...run.lora, ...lora },
  },
  { backend: backend as BackendName, workers: W, adapters: 1, promptTokens: P },
).phases.find((planned) => planned.name === phase)!;
const error = `${(100 * (planned.process / peak - 1)).toFixed(1)}%`;
console.log(JSON.stringify({ peak, planned: planned.process, error }));
await pool.close();

function makeBase(folder: string): void {
  const config = makeConfig({
    hidden_size: 512,
    num_hidden_layers: 8,
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 64,
    intermediate_size: 1536,
    vocab_size: 8192,
    max_position_embeddings: 2048,
    tie_word_embeddings: true,
  });
  saveModel(folder, initModel(config, stream('wide')));
}
