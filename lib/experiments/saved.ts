/**
 * The results of the last finished experiment as one file, `results/tables/main.json` (`smoke.json` for that preset):
 * what the notebook and the figures read without training anything. The run folders remain the source; metrics are
 * read from them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson, readJsonl, writeJson } from '../files.js';
import { type Experiment, experimentSchema } from './config.js';
import type { ExperimentResults } from './experiment.js';
import { type MethodResult, methodResultSchema } from './result.js';
import { type Metrics, metricsSchema, RESULTS_FOLDER } from './store.js';

const savedSchema = z.strictObject({
  experiment: experimentSchema,
  results: z.array(methodResultSchema),
  bestOnHeldout: z.array(methodResultSchema),
  /** Ids of the training runs. */
  runs: z.array(z.string().regex(/^[\w.-]+$/)),
});

export interface SavedResults extends ExperimentResults {
  readonly experiment: Experiment;
  readonly results: readonly MethodResult[];
}

/** The table's file name: `main`, but the smoke preset must not replace a real table. */
export function tableName(experiment: Experiment): 'main' | 'smoke' {
  return experiment.name === 'smoke' ? 'smoke' : 'main';
}

/** Writes an experiment's results for later reading. */
export function saveResults(
  experiment: Experiment,
  found: ExperimentResults,
  folder: string = RESULTS_FOLDER,
): void {
  const { results, bestOnHeldout, metrics } = found;
  writeJson(join(folder, 'tables', `${tableName(experiment)}.json`), {
    experiment,
    results,
    bestOnHeldout,
    runs: Object.keys(metrics),
  });
}

/**
 * The last experiment's results, or undefined when none has finished.
 * @throws naming the file and field when it is damaged
 */
export function readResults(
  folder: string = RESULTS_FOLDER,
  name: ReturnType<typeof tableName> = 'main',
): SavedResults | undefined {
  const path = join(folder, 'tables', `${name}.json`);
  if (!existsSync(path)) return undefined;
  const { experiment, results, bestOnHeldout, runs } = readJson(path, savedSchema);
  const metrics: Record<string, readonly Metrics[]> = {};
  for (const id of runs) {
    const log = join(folder, 'runs', id, 'metrics.jsonl');
    if (!existsSync(log)) throw new Error(`${path} names the run ${id}, but ${log} is not there`);
    metrics[id] = readJsonl(log, metricsSchema);
  }
  return { experiment, results, bestOnHeldout, metrics };
}
