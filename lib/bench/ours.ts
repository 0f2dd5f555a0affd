/**
 * Our side of the bench, in a process of its own: answers requests on the backend that `AGON_BACKEND` names. What
 * is timed is what training runs – `generate`, `updateAdapter`, `trainStep` – and nothing written for the bench.
 *
 * Left out: loading the base (before the clock starts), files, evaluation.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import * as tf from '@tensorflow/tfjs';
import type { World } from '../agon/attempt.js';
import { methodByName } from '../agon/methods.js';
import { initTrainees, trainStep } from '../experiments/run.js';
import { openWorld } from '../experiments/world.js';
import { type Trainee, updateAdapter } from '../grpo/update.js';
import { type GenerationOptions, generate } from '../rollouts/generate.js';
import { currentBackend, initBackend } from '../tensors/backend.js';
import { graphsPay } from '../tensors/graph.js';
import { createPool, type Pool } from '../tensors/pool.js';
import { profileKernels } from './profile.js';
import { MEASURES, type Opened, type Profile, type Request, type Timing, type Workload } from './protocol.js';
import { measureProducts } from './rates.js';
import { SAMPLING_ROWS } from './workload.js';

/** Where replies go; see protocol.ts. */
const REPLIES = 3;

/** A loaded workload and what its measurements share. */
interface Bench {
  readonly world: World;
  readonly workload: Workload;
  /** Fixed lengths train one adapter; whole steps theirs. */
  readonly trainees: Readonly<Record<'fixed' | 'grpo' | 'agon', Record<string, Trainee>>>;
}

async function open(workload: Workload): Promise<Bench> {
  const { base, run, threads } = workload;
  const { gpu } = await initBackend();
  const world = await openWorld({ base, workers: gpu ? 0 : threads });
  let verdicts = 0;
  const task = workload.alternateRewards ? { ...world.task, verify: () => verdicts++ % 2 === 0 } : world.task;
  const trainees = (method: string) => initTrainees(base, methodByName(method).training!, run);
  return {
    workload,
    world: { ...world, task },
    trainees: { fixed: trainees('grpo'), grpo: trainees('grpo'), agon: trainees('agon') },
  };
}

/** The same prompts and number of tokens for everybody: no id ends a sequence. */
async function sample(bench: Bench, pool: Pool, rows: number, completion: number): Promise<Timing> {
  const { base, run, prompts } = bench.workload;
  const requests = prompts.slice(0, rows).map((promptIds, row) => ({ promptIds, names: ['bench', row] }));
  const options: GenerationOptions = {
    temperature: run.grpo.temperature,
    topP: 1,
    maxCompletionLength: completion,
    eosId: -1,
    padId: bench.world.tokenizer.padId,
  };
  const policy = { base, adapter: undefined };
  const start = performance.now();
  const best = graphsPay() ? SAMPLING_ROWS.graphs : SAMPLING_ROWS.kernels;
  const batchRows = Math.min(best, Math.ceil(rows / Math.max(1, pool.workers)));
  const rollouts = await generate(pool, policy, requests, options, batchRows);
  const seconds = (performance.now() - start) / 1000;
  return { seconds, tokens: rollouts.reduce((sum, rollout) => sum + rollout.completionIds.length, 0) };
}

/** Forward, backward and AdamW over rows that all have a gradient. */
async function train(bench: Bench, pool: Pool, rows: number, completion: number): Promise<Timing> {
  const { base, run, prompts, completions } = bench.workload;
  const rollouts = prompts.slice(0, rows).map((promptIds, row) => ({
    promptIds,
    completionIds: completions[row]!.slice(0, completion),
    logProbs: new Array<number>(completion).fill(Math.log(1 / 96)),
    finishReason: 'length' as const,
  }));
  const advantages = rollouts.map((_, row) => (row % 2 === 0 ? 1 : -1));
  const [trainee] = Object.values(bench.trainees.fixed);
  const start = performance.now();
  await updateAdapter(pool, base, trainee!, [{ rollouts, advantages }], run.grpo, 0, run.maxSteps);
  const seconds = (performance.now() - start) / 1000;
  return { seconds, tokens: rollouts.reduce((sum, r) => sum + r.promptIds.length + completion, 0) };
}

async function wholeStep(bench: Bench, method: 'grpo' | 'agon', step: number): Promise<Timing> {
  const { run, problems } = bench.workload;
  const at = step * run.problemsPerStep;
  const batch = problems.slice(at, at + run.problemsPerStep).map(({ problem }) => problem);
  const row = methodByName(method).training!;
  const start = performance.now();
  const metrics = await trainStep(bench.world, row, run, bench.trainees[method], batch, step);
  const seconds = (performance.now() - start) / 1000;
  const lengths = ['solo', 'draft', 'challenge'].map((role) => metrics[`${role}/completions/mean_length`]);
  const perStream = (method === 'grpo' ? 2 : 1) * run.grpo.numGenerations * batch.length;
  const tokens = lengths.reduce<number>((sum, mean) => sum + (mean ?? 0) * perStream, 0);
  return { seconds, tokens: Math.round(tokens), samplingSeconds: metrics.sample_time! };
}

/** In this thread, so that the timers see it; once without them, for the true length. */
async function profile(bench: Bench, request: Request & { ask: 'profile' }): Promise<Profile> {
  const pool = createPool(0);
  const work = () =>
    (request.what === 'sample' ? sample : train)(bench, pool, request.rows, request.completion);
  await work();
  const { seconds } = await work();
  const { parts } = await profileKernels(async () => {
    await work();
  });
  return { seconds, parts };
}

function opened(): Opened {
  const { device } = currentBackend();
  const versions = { node: process.versions.node, '@tensorflow/tfjs': tf.version_core };
  return { versions, device, measures: [...MEASURES] };
}

async function main(): Promise<void> {
  let bench: Bench | undefined;
  const opening = () => {
    if (!bench) throw new Error('the first request must be "open"');
    return bench;
  };
  const answer = async (request: Request): Promise<unknown> => {
    switch (request.ask) {
      case 'open':
        bench = await open(request.workload);
        return opened();
      case 'rates':
        return { seconds: await measureProducts(opening().world.pool, request.products) };
      case 'sample':
        return sample(opening(), opening().world.pool, request.rows, request.completion);
      case 'train':
        return train(opening(), opening().world.pool, request.rows, request.completion);
      case 'grpo':
      case 'agon':
        return wholeStep(opening(), request.ask, request.step);
      case 'profile':
        return profile(opening(), request);
    }
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await answer(JSON.parse(line) as Request).catch((error: Error) => ({
      error: error.stack ?? error.message,
    }));
    writeSync(REPLIES, `${JSON.stringify(reply)}\n`);
  }
  process.exit(0); // idle workers do not keep the process, a native backend's threads might
}

await main();
