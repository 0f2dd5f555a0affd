/**
 * How a pair develops: at every kept checkpoint of its run (`saveSteps`) both directions of the cascade on validation
 * problems, into eval.jsonl with its step, and how far the policies lie apart, into distance.jsonl.
 *
 * From the cascades' columns follow the overlap of the two error sets, who converts whose failures, and what is copied
 * (analysis/complementarity.ts). Left out: the trained pair on the held-out problems, which evaluate.ts does.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { World } from '../agon/attempt.js';
import type { Method } from '../agon/methods.js';
import { readJsonl, writeFileAtomic } from '../files.js';
import { sharedModel } from '../rollouts/policy.js';
import type { Experiment } from './config.js';
import { divergences } from './distance.js';
import { evaluateDeployment, evaluationProblems } from './evaluate.js';
import { loadAdapters, type RunFolder } from './store.js';

/** One line of distance.jsonl: how far apart two policies of a run are after `step` steps. */
export const distanceSchema = z.strictObject({
  step: z.int().min(0),
  from: z.string(),
  to: z.string(),
  /** KL(from || to) per token, nats. */
  nats: z.number(),
  tokens: z.int().min(1),
});
export type DistanceLine = z.infer<typeof distanceSchema>;

/** Validation problems a checkpoint is looked at with. */
const PROBLEMS = 200;

/** The steps whose adapters are kept, the last one among them. */
export function keptSteps({ saveSteps, run }: Pick<Experiment, 'saveSteps' | 'run'>): number[] {
  return saveSteps === undefined
    ? []
    : Array.from({ length: Math.floor(run.maxSteps / saveSteps) }, (_, i) => (i + 1) * saveSteps);
}

/** Whether a run's distances are there for every kept step; its evaluations are made before them. */
export function isMeasured(run: RunFolder, experiment: Experiment): boolean {
  const lines = readDistances(run);
  return keptSteps(experiment).every((step) => lines.some((line) => line.step === step));
}

/** The distances measured so far. */
export function readDistances(run: Pick<RunFolder, 'path'>): DistanceLine[] {
  const path = join(run.path, 'distance.jsonl');
  return existsSync(path) ? readJsonl(path, distanceSchema) : [];
}

/**
 * Measures a trained run at its kept checkpoints; what is measured is read, not made.
 * @throws Interrupted when the signal was aborted
 */
export async function measurePair(
  world: World,
  run: RunFolder,
  method: Method,
  experiment: Experiment,
  options: {
    readonly signal?: AbortSignal;
    readonly onProgress?: (done: number, total: number, what: string) => void;
  } = {},
): Promise<void> {
  const { config } = run.identity;
  const evaluation = {
    ...experiment.eval,
    validationProblems: Math.min(PROBLEMS, experiment.eval.validationProblems),
  };
  const lines = readDistances(run);
  const steps = keptSteps(experiment);
  const names = method.training!.adapters;
  for (const step of steps) {
    const adapters = loadAdapters(run, names, sharedModel(world.base).config, step);
    const subject = { world, folder: run.path, method, adapters, config, evaluation };
    for (const deployment of method.deployments)
      await evaluateDeployment(subject, deployment, 'validation', { ...options, step });
    if (lines.some((line) => line.step === step)) continue;
    const problems = evaluationProblems(world, config, evaluation, 'validation');
    const sampling = {
      maxCompletionLength: config.grpo.maxCompletionLength,
      generationBatchSize: config.generationBatchSize,
    };
    for (const from of names) {
      const to = [...names.filter((name) => name !== from), 'base' as const];
      const found = await divergences(world, adapters, from, to, problems, sampling, [config.seed, step]);
      lines.push(...found.map((d) => ({ step, ...d, nats: Number(d.nats.toFixed(6)) })));
    }
    writeFileAtomic(
      join(run.path, 'distance.jsonl'),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  }
}
