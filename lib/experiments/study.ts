/**
 * A study: experiments that answer one question together, run one after the other and gathered from their run folders.
 *
 * Running and gathering are two things on purpose: tables are made from files alone, so whoever has the folders can
 * make every table again without training. Left out: which studies there are (studies.ts), tables (analysis/).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Deployment, deploymentName, type Method, methodByName } from '../agon/methods.js';
import { BACKEND_NAMES, currentBackend } from '../tensors/backend.js';
import type { Pool } from '../tensors/pool.js';
import { baseFolder } from './bases.js';
import type { Experiment } from './config.js';
import { chooseEvaluations, evalKey, methodResult } from './evaluate.js';
import { type Evaluation, EvaluationStore } from './evaluation.js';
import { type ExperimentOptions, runExperiment } from './experiment.js';
import { isMeasured, measurePair } from './pair.js';
import type { MethodResult } from './result.js';
import {
  hashBase,
  type Metrics,
  openRun,
  RESULTS_FOLDER,
  type RunIdentity,
  readMetrics,
  runId,
} from './store.js';
import { worldOf } from './world.js';

export interface Study {
  /** The name of its tables and figures. */
  readonly name: string;
  readonly title: string;
  /** What is asked, in a sentence. */
  readonly question: string;
  readonly experiments: readonly Experiment[];
}

/** How many arms a study asks for: methods times seeds, over its experiments. */
export function armsAsked({ experiments }: Pick<Study, 'experiments'>): number {
  return experiments.reduce((sum, e) => sum + e.methods.length * e.seeds.length, 0);
}

/** One trained and evaluated method of a study at one seed. */
export interface ArmResult {
  readonly label: string;
  readonly experiment: Experiment;
  readonly method: Method;
  readonly seed: number;
  /** Folder of the run. */
  readonly folder: string;
  readonly metrics: readonly Metrics[];
  /** All evaluations of the run, of other methods and splits too. */
  readonly evaluations: readonly Evaluation[];
  /** The evaluation that the table reports. */
  readonly chosen: Evaluation;
  /** The method's first deployment on the validation split, the direction chosen there. */
  readonly validation: Evaluation;
  readonly result: MethodResult;
  /** As the paper chose: the better direction on the held-out problems themselves. */
  readonly bestOnHeldout: MethodResult;
}

/**
 * Runs what of a study is not there yet, all experiments at the first seed, then at the second, so that a study that is
 * stopped has whole comparisons.
 * @throws Interrupted when the signal was aborted; what was finished is saved
 */
export async function runStudy(pool: Pool, study: Study, options: ExperimentOptions = {}): Promise<void> {
  const { resultsFolder = RESULTS_FOLDER, fresh = false, signal, onEvent } = options;
  const backend = currentBackend().name;
  const seeds = [...new Set(study.experiments.flatMap((e) => e.seeds))].sort((a, b) => a - b);
  for (const seed of seeds)
    for (const experiment of study.experiments.filter((e) => e.seeds.includes(seed))) {
      // What is there whole is not opened: its adapters and its checkpoint need not be there.
      const missing = experiment.methods.filter(
        (name) => fresh || !collectArm(experiment, methodByName(name), seed, resultsFolder, backend),
      );
      if (missing.length > 0) {
        const world = worldOf(experiment, pool);
        await runExperiment(world, { ...experiment, methods: missing, seeds: [seed] }, options);
      }
      for (const method of pairsToMeasure(experiment)) {
        const run = openRun(identityOf(experiment, method, seed, backend), resultsFolder);
        if (!fresh && isMeasured(run, experiment)) continue;
        await measurePair(worldOf(experiment, pool), run, method, experiment, {
          ...(signal ? { signal } : {}),
          onProgress: (done, total, what) => onEvent?.({ kind: 'eval', what, done, total }),
        });
      }
    }
}

/** The methods of an experiment whose adapters are kept over training to be compared with each other. */
function pairsToMeasure({ methods, saveSteps }: Experiment): Method[] {
  return saveSteps === undefined
    ? []
    : methods.map(methodByName).filter(({ training }) => training && training.adapters.length > 1);
}

/**
 * Gathers a study from its run folders.
 * @param resultsFolder runs lie in its `runs`
 * @param backend where runs of several backends lie there, whose to take
 * @param partial leaves out what is not there instead of failing
 * @throws naming the run or evaluation that is missing
 */
export function collectStudy(
  study: Study,
  resultsFolder: string,
  { backend, partial = false }: { readonly backend?: string; readonly partial?: boolean } = {},
): ArmResult[] {
  return study.experiments.flatMap((experiment) =>
    experiment.seeds.flatMap((seed) =>
      experiment.methods.flatMap((name) => {
        const method = methodByName(name);
        for (const where of backend ? [backend] : BACKEND_NAMES) {
          const found = collectArm(experiment, method, seed, resultsFolder, where);
          if (found) return [found];
        }
        if (partial) return [];
        const id = runId(identityOf(experiment, method, seed, backend ?? 'wasm'));
        throw new Error(
          `${study.name}, ${experiment.label || experiment.name}: ${name} at seed ${seed} is not in ` +
            `${join(resultsFolder, 'runs')} whole (the folder ${id}, or that of another backend)`,
        );
      }),
    ),
  );
}

/** One method of an experiment at one seed, where its run and its evaluations are there whole. */
function collectArm(
  experiment: Experiment,
  method: Method,
  seed: number,
  resultsFolder: string,
  backend: string,
): ArmResult | undefined {
  const id = runId(identityOf(experiment, method, seed, backend));
  return readArm(experiment, method, { seed, backend, runId: id }, join(resultsFolder, 'runs', id));
}

/** A method at one seed as the files of its run say, where they are there whole. @param path of the run's folder */
export function readArm(
  experiment: Experiment,
  method: Method,
  run: Pick<ArmResult['result'], 'seed' | 'backend' | 'runId'>,
  path: string,
): ArmResult | undefined {
  const { seed } = run;
  if (!existsSync(path)) return undefined;
  const { all } = new EvaluationStore(join(path, 'eval.jsonl'));
  const key = evalKey({ ...experiment.run, seed }, experiment.eval);
  const on = (split: 'validation' | 'heldout') => {
    const count = split === 'heldout' ? experiment.eval.problems : experiment.eval.validationProblems;
    return method.deployments.map((deployment: Deployment) =>
      all.find(
        (e) =>
          e.deployment === deploymentName(deployment) &&
          e.split === split &&
          e.step === undefined &&
          e.sample === 0 &&
          e.problems.length === count &&
          JSON.stringify(e.eval) === JSON.stringify(key),
      ),
    );
  };
  const [heldout, validation] = [on('heldout'), on('validation')];
  const whole = (list: readonly (Evaluation | undefined)[]): list is Evaluation[] =>
    list.every((e) => e !== undefined);
  if (!whole(heldout) || !whole(validation)) return undefined;
  const metrics = method.training ? readMetrics({ path }) : [];
  if (method.training && metrics.length !== experiment.run.maxSteps) return undefined;
  const choice = chooseEvaluations(heldout, validation);
  const facts = { ...run, metrics };
  return {
    label: experiment.label,
    experiment,
    method,
    seed,
    folder: path,
    metrics,
    evaluations: all,
    chosen: choice.chosen,
    validation: choice.validation,
    result: methodResult(method, choice.chosen, facts),
    bestOnHeldout: methodResult(method, choice.bestOnHeldout, facts),
  };
}

/** What the run of a method of an experiment is. */
export function identityOf(
  { base, run }: Pick<Experiment, 'base' | 'run'>,
  method: Method,
  seed: number,
  backend: string,
): RunIdentity {
  const config = { ...run, seed };
  return { training: method.training ?? null, config, baseHash: baseHash(baseFolder(base)), backend };
}

const hashes = new Map<string, string>();
function baseHash(folder: string): string {
  if (!hashes.has(folder)) hashes.set(folder, hashBase(folder));
  return hashes.get(folder)!;
}
