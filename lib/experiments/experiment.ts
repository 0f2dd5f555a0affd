/**
 * A whole experiment: every method at every seed, trained, evaluated, and gathered as the table's records.
 *
 * Methods that share a training row share the run. Finished parts are read, so calling it again is cheap and
 * calling it after a kill goes on. Left out: tables and figures (analysis/), display (cli/, notebooks).
 */
import type { Adapters, World } from '../agon/attempt.js';
import { type Method, methodByName, type TrainingRow } from '../agon/methods.js';
import { currentBackend } from '../tensors/backend.js';
import type { Experiment } from './config.js';
import { evaluateMethod, evaluationProblems, methodResult } from './evaluate.js';
import { checkPlan } from './plan/check.js';
import { planWorld } from './plan/plan.js';
import type { MethodResult } from './result.js';
import { trainRun } from './run.js';
import { hashBase, type Metrics, openRun, type RunFolder } from './store.js';

/** What happens, for a display to show. */
export type ExperimentEvent =
  | { readonly kind: 'step'; readonly run: RunFolder; readonly step: number; readonly metrics: Metrics }
  | { readonly kind: 'eval'; readonly what: string; readonly done: number; readonly total: number }
  | { readonly kind: 'result'; readonly result: MethodResult };

export interface ExperimentOptions {
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: ExperimentEvent) => void;
  /** Where runs lie, in its folder `runs`; default the repository's `results`. */
  readonly resultsFolder?: string;
  /** Trains and evaluates everything anew. */
  readonly fresh?: boolean;
}

export interface ExperimentResults {
  /** Direction chosen on the validation split: what the table shows. */
  readonly results: readonly MethodResult[];
  /** Direction chosen on the held-out set itself, as the paper did. */
  readonly bestOnHeldout: readonly MethodResult[];
  /** Training metrics by run, untrained methods left out. */
  readonly metrics: Readonly<Record<string, readonly Metrics[]>>;
}

/**
 * @throws Interrupted when the signal was aborted; what was finished is saved
 * @throws before anything is written, when the experiment cannot fit on this machine (see checkPlan)
 */
export async function runExperiment(
  world: World,
  experiment: Experiment,
  options: ExperimentOptions = {},
): Promise<ExperimentResults> {
  // A range with too few problems must not show after the training.
  for (const split of ['validation', 'heldout'] as const)
    evaluationProblems(world, experiment.run, experiment.eval, split);
  const { resultsFolder } = options;
  const plan = planWorld(world, experiment, resultsFolder === undefined ? {} : { resultsFolder });
  checkPlan(plan, plan.machine);
  const results: MethodResult[] = [];
  const bestOnHeldout: MethodResult[] = [];
  const metrics: Record<string, readonly Metrics[]> = {};
  for (const seed of experiment.seeds) {
    const runs = new Map<
      TrainingRow | undefined,
      { run: RunFolder; adapters: Adapters; metrics: readonly Metrics[] }
    >();
    for (const name of experiment.methods) {
      const method = methodByName(name);
      let trained = runs.get(method.training);
      if (!trained) {
        trained = await trainFor(world, experiment, method, seed, options);
        runs.set(method.training, trained);
        if (method.training) metrics[trained.run.id] = trained.metrics;
      }
      const { run, adapters } = trained;
      const { config } = run.identity;
      const subject = { world, folder: run.path, method, adapters, config, evaluation: experiment.eval };
      const outcomes = await evaluateMethod(subject, {
        ...(options.signal ? { signal: options.signal } : {}),
        onProgress: (done, total, what) => options.onEvent?.({ kind: 'eval', what, done, total }),
      });
      const { backend } = run.identity;
      const facts = { seed, backend, runId: run.id, metrics: trained.metrics };
      const result = methodResult(method, outcomes.chosen, facts);
      results.push(result);
      bestOnHeldout.push(methodResult(method, outcomes.bestOnHeldout, facts));
      options.onEvent?.({ kind: 'result', result });
    }
  }
  return { results, bestOnHeldout, metrics };
}

async function trainFor(
  world: World,
  experiment: Experiment,
  method: Method,
  seed: number,
  { signal, onEvent, resultsFolder, fresh }: ExperimentOptions,
) {
  const identity = {
    training: method.training ?? null,
    config: { ...experiment.run, seed },
    baseHash: hashBase(world.base),
    backend: currentBackend().name,
  };
  const run = openRun(identity, resultsFolder, fresh);
  if (!method.training) return { run, adapters: {}, metrics: [] };
  const trained = await trainRun(world, run, {
    ...(signal ? { signal } : {}),
    ...(experiment.saveSteps ? { saveSteps: experiment.saveSteps } : {}),
    onStep: (step, metrics) => onEvent?.({ kind: 'step', run, step, metrics }),
  });
  return { run, ...trained };
}
