/**
 * `npm run reproduce`: trains and evaluates a preset's methods, writes tables and figures, and runs the notebooks.
 * Finished runs are read, so a second call takes seconds; a killed one goes on where it was.
 *
 *   npm run reproduce -- [--preset smoke|quick|full] [--seeds 0,1] [--methods grpo,agon] [--fresh]
 *                        [--steps N] [--backend wasm] [--workers N] [--out DIR] [--no-notebooks] [--plan]
 *                        [--study main,control]
 *
 * `smoke` and `quick` are one table each; `full` is every study (experiments/studies.ts), or those that `--study`
 * names. `--plan` says part by part what the preset's main table will need and how long it will take, and ends.
 */
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { World } from '../agon/attempt.js';
import { methodByName } from '../agon/methods.js';
import {
  exportFigure,
  presetFigures,
  presetTables,
  studyReport,
  writeStudyReport,
} from '../analysis/index.js';
import { type Experiment, PRESET_NAMES, parseExperiment, preset } from '../experiments/config.js';
import {
  type ExperimentEvent,
  type ExperimentOptions,
  type ExperimentResults,
  runExperiment,
} from '../experiments/experiment.js';
import { planExperiment } from '../experiments/plan/plan.js';
import { saveResults, tableName } from '../experiments/saved.js';
import { RESULTS_FOLDER } from '../experiments/store.js';
import { STUDIES, studyByName } from '../experiments/studies.js';
import { armsAsked, collectStudy, runStudy, type Study } from '../experiments/study.js';
import { checkBases, openWorld } from '../experiments/world.js';
import { writeFileAtomic } from '../files.js';
import { parameterShare } from '../model/index.js';
import { planMarkdown, planSummary } from '../notebook/plan.js';
import { type Progress, progressBar } from '../notebook/progress.js';
import { sharedModel } from '../rollouts/policy.js';
import { currentBackend } from '../tensors/backend.js';
import { runCommand } from './command.js';
import { executeNotebooks } from './notebooks.js';

const OPTIONS = {
  preset: { type: 'string', default: 'quick' },
  seeds: { type: 'string' },
  methods: { type: 'string' },
  study: { type: 'string' },
  steps: { type: 'string' },
  backend: { type: 'string' },
  workers: { type: 'string' },
  out: { type: 'string', default: RESULTS_FOLDER },
  fresh: { type: 'boolean', default: false },
  'no-notebooks': { type: 'boolean', default: false },
  plan: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

function readOptions() {
  try {
    return parseArgs({ options: OPTIONS }).values;
  } catch (error) {
    const [what] = (error as Error).message.split('. ');
    const allowed = Object.keys(OPTIONS).map((name) => `--${name}`);
    throw new Error(`${what}: allowed are ${allowed.join(', ')}`);
  }
}
type Options = ReturnType<typeof readOptions>;

function chosenExperiment(values: Options): Experiment {
  const base = preset(values.preset);
  return parseExperiment(
    {
      ...base,
      ...(values.seeds ? { seeds: values.seeds.split(',').map(Number) } : {}),
      ...(values.methods ? { methods: values.methods.split(',') } : {}),
      ...(values.steps ? { run: { ...base.run, maxSteps: Number(values.steps) } } : {}),
    },
    'the options of reproduce',
  );
}

/** The studies that are asked for, cut to the seeds and methods that are asked for. */
function chosenStudies(values: Options): Study[] {
  const studies = values.study ? values.study.split(',').map(studyByName) : STUDIES;
  const seeds = values.seeds?.split(',').map(Number);
  const methods = values.methods?.split(',');
  for (const name of methods ?? []) methodByName(name);
  const cut = studies.map((study) => ({
    ...study,
    experiments: study.experiments
      .map((e) => ({
        ...e,
        seeds: e.seeds.filter((seed) => seeds?.includes(seed) ?? true),
        methods: e.methods.filter((name) => methods?.includes(name) ?? true),
      }))
      .filter((e) => e.seeds.length > 0 && e.methods.length > 0),
  }));
  return cut.filter((study) => study.experiments.length > 0);
}

/** Runs what is missing of the studies; each study's tables are written as soon as it is there. */
async function reproduceStudies(
  studies: readonly Study[],
  world: World,
  options: ExperimentOptions & { readonly resultsFolder: string },
): Promise<void> {
  // What is missing must not show after hours.
  checkBases(studies.flatMap((study) => study.experiments));
  for (const [i, chosen] of studies.entries()) {
    const { name, title, question } = studyByName(chosen.name);
    const runs = armsAsked(chosen);
    console.log(
      `\nstudy ${i + 1} of ${studies.length}, ${name} (${runs} methods and seeds): ${title}. ${question}`,
    );
    await runStudy(world.pool, chosen, options);
    const { resultsFolder } = options;
    const backend = currentBackend().name;
    // Of the whole study, whatever was asked for now: a table shows all that is there.
    const arms = collectStudy(studyByName(name), resultsFolder, { backend, partial: true });
    const report = studyReport(studyByName(name), arms);
    for (const file of await writeStudyReport(report, resultsFolder))
      console.log(relative(process.cwd(), file));
    for (const note of report.notes) console.log(`- ${note}`);
  }
}

/** One bar at a time: the run that trains, or the evaluation that runs. */
function display(): { onEvent: (event: ExperimentEvent) => void; stop: () => void } {
  let label = '';
  let bar: Progress | undefined;
  const show = (name: string, total: number, done: number, note?: string) => {
    if (name !== label) {
      bar?.stop();
      bar = progressBar(total, name);
      label = name;
    }
    bar?.update(done, note);
  };
  const stop = () => {
    bar?.stop();
    bar = undefined;
    label = '';
  };
  return {
    stop,
    onEvent(event) {
      if (event.kind === 'step') {
        const { metrics } = event;
        const reward = metrics['solo/accuracy'] ?? metrics['challenge/accuracy'] ?? 0;
        const note = `accuracy ${(100 * reward).toFixed(0)}%, ${metrics.step_time} s a step`;
        show(event.run.id, event.run.identity.config.maxSteps, event.step, note);
      } else if (event.kind === 'eval') show(event.what, event.total, event.done);
      else if (event.kind === 'result') {
        stop();
        const { method, seed, correct, total, totalTokens } = event.result;
        const share = ((100 * correct) / total).toFixed(1);
        console.log(`${method}, seed ${seed}: ${share}% of ${total}, ${totalTokens.toFixed(0)} tokens`);
      }
    },
  };
}

async function main(values: Options): Promise<void> {
  if (values.help) {
    console.log(
      `npm run reproduce -- [--preset ${PRESET_NAMES.join('|')}] [--study a,b] [--seeds 0,1] [--methods a,b] [--steps N]`,
    );
    console.log(
      '  [--backend auto|tfjs-node-gpu|tfjs-node|wasm|cpu] [--workers N] [--out DIR] [--fresh] [--no-notebooks] [--plan]',
    );
    return;
  }
  for (const [name, value] of Object.entries(values))
    if (value === '') throw new Error(`--${name} is empty: give it a value or leave it out`);
  if (values.study && values.preset !== 'full') throw new Error('--study belongs to --preset full');
  const studies = values.preset === 'full' ? chosenStudies(values) : undefined;
  if (studies && values.steps)
    throw new Error('--steps belongs to the presets smoke and quick: studies have their own');
  const experiment = studies ? preset('full') : chosenExperiment(values);
  const world = await openWorld({
    ...(values.backend ? { backend: values.backend } : {}),
    ...(values.workers ? { workers: Number(values.workers) } : {}),
  });
  const backend = currentBackend();
  console.log(
    `backend: ${backend.name} on ${backend.device} – ${backend.why}; worker threads: ${world.pool.workers}`,
  );
  const share = parameterShare(sharedModel(world.base).config, experiment.run.lora);
  console.log(
    `adapters: rank ${experiment.run.lora.r}, each ${(100 * share).toFixed(1)}% of the base's parameters`,
  );
  console.log(
    `preset ${experiment.name}: ${experiment.methods.join(', ')}; seeds ${experiment.seeds.join(', ')}`,
  );
  const resultsFolder = resolve(values.out);
  const plan = await planExperiment(world, experiment, { resultsFolder });
  console.log(values.plan ? planMarkdown(plan) : planSummary(plan));
  if (values.plan) {
    await world.pool.close();
    process.exitCode = plan.misfits.length > 0 ? 1 : 0;
    return;
  }
  const stop = new AbortController();
  process.once('SIGINT', () => {
    console.log(
      '\nstopping after this step; press Ctrl-C again to stop at once (nothing that is saved is lost)',
    );
    stop.abort();
  });
  const { onEvent, stop: stopDisplay } = display();
  try {
    const options = { signal: stop.signal, onEvent, resultsFolder, fresh: values.fresh };
    if (studies) await reproduceStudies(studies, world, options);
    else {
      const found = await runExperiment(world, experiment, options);
      saveResults(experiment, found, resultsFolder);
      await report(experiment, found, resultsFolder);
    }
  } finally {
    stopDisplay();
    await world.pool.close();
  }
  if (values['no-notebooks'] || stop.signal.aborted) return;
  // What the notebooks' kernels inherit: the same backend and the same results.
  process.env.AGON_BACKEND = backend.name;
  process.env.AGON_RESULTS = resultsFolder;
  const resultFolder = join(resultsFolder, 'notebooks');
  const failed = (await executeNotebooks([], { signal: stop.signal, resultFolder })).filter(
    (notebook) => notebook.error,
  );
  if (failed.length > 0)
    throw new Error(`notebooks that failed: ${failed.map(({ name }) => name).join(', ')}`);
}

/** Writes tables and figures, prints the table and what it does not show. */
async function report(experiment: Experiment, found: ExperimentResults, folder: string): Promise<void> {
  const name = tableName(experiment);
  const tables = presetTables(name, found);
  for (const [path, text] of Object.entries(tables)) writeFileAtomic(join(folder, path), text);
  const files = [join(folder, 'tables', `${name}.csv`)];
  for (const [figure, spec] of Object.entries(presetFigures(name, found)))
    files.push(...(await exportFigure(spec, join(folder, 'figures', figure))));
  console.log(`\n${tables[`tables/${name}.md`]}`);
  console.log(files.map((file) => relative(process.cwd(), file)).join('\n'));
}

await runCommand(() => main(readOptions()));
