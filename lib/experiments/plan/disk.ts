/**
 * What an experiment leaves on disk: adapters, the checkpoint with its moments, metrics and judged answers. Left
 * out: tables, figures and executed notebooks (some megabytes), and the base itself.
 */
import type { ModelConfig } from '../../model/index.js';
import type { Experiment } from '../config.js';
import { adapterBytes } from './memory.js';
import { judgedAnswers, trainedRows } from './work.js';

/** Something that is written. */
export interface DiskPart {
  readonly name: string;
  readonly bytes: number;
  readonly formula: string;
}

/** Bytes, measured on the arena's runs: a line of metrics.jsonl, and one judged answer in eval.jsonl. */
const METRICS_LINE = 1600;
const EVAL_ANSWER = 60;

/** Everything a whole experiment writes, the checkpoint's second copy while it is replaced included. */
export function planDisk(model: ModelConfig, experiment: Experiment): DiskPart[] {
  const { run, seeds } = experiment;
  const adapter = adapterBytes(model, run);
  const rows = trainedRows(experiment);
  const trained = rows.reduce((sum, row) => sum + row.adapters.length, 0) * seeds.length;
  const answers = judgedAnswers(experiment).reduce((sum, count) => sum + count, 0);
  const most = Math.max(0, ...rows.map((row) => row.adapters.length));
  const part = (name: string, count: number, bytes: number, what: string): DiskPart => ({
    name,
    bytes: count * bytes,
    formula: `${count} ${what}`,
  });
  return [
    part('adapters', trained, adapter, 'adapters'),
    part('checkpoints', trained, 3 * adapter, 'adapters with two moments each'),
    part('a checkpoint being replaced', most, 3 * adapter, 'adapters with two moments each, once more'),
    part('metrics', rows.length * seeds.length * run.maxSteps, METRICS_LINE, 'lines of about 1.6 kB'),
    part('evaluation', answers * seeds.length, EVAL_ANSWER, 'answers of about 60 bytes'),
  ];
}
