import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { methodByName } from '../../lib/agon/methods.js';
import { studyReport, writeStudyReport } from '../../lib/analysis/index.js';
import { presetFiles } from '../../lib/analysis/preset.js';
import { compareCsv, verifyTables } from '../../lib/analysis/studies/verify.js';
import { baseFolder } from '../../lib/experiments/bases.js';
import { saveResults } from '../../lib/experiments/saved.js';
import { openRun, runId } from '../../lib/experiments/store.js';
import { collectStudy, identityOf } from '../../lib/experiments/study.js';
import { CUT_OFF, runFolders, verifyRuns } from '../../lib/experiments/verify.js';
import { appendJsonl, ROOT, writeFileAtomic } from '../../lib/files.js';
import { adapterShapes, loraConfig, readConfig, writeAdapter } from '../../lib/model/index.js';
import { TASKS } from '../../lib/tasks/index.js';
import {
  fixtureEvaluations,
  fixtureExperiment,
  fixtureRunMetrics,
  fixtureStudy,
  PROBLEMS,
  VALIDATION,
} from '../analysis/arms.js';

const experiment = fixtureExperiment({
  methods: ['zero-shot', 'grpo', 'cooperative', 'agon'],
  seeds: [0, 1],
  saveSteps: 2,
});
const study = fixtureStudy('signals', [experiment]);
const { minDifficulty, maxDifficulty } = experiment.run;
const ids = (split: 'validation' | 'heldout') =>
  TASKS.countdown
    .problems({
      split,
      count: split === 'heldout' ? PROBLEMS : VALIDATION,
      seed: 0,
      minDifficulty,
      maxDifficulty,
    })
    .map((problem) => problem.id);
const idOf = (method: string, seed: number) =>
  runId(identityOf(experiment, methodByName(method), seed, 'wasm'));

/** Adapters of nothing but zeros, of the shape a run's config gives them. */
function writeZeros(folder: string, r: number): void {
  const base = baseFolder('arena-base');
  const lora = loraConfig({ r });
  const shapes = adapterShapes(readConfig(join(base, 'config.json')), lora);
  const weights = Object.fromEntries(
    [...shapes].map(([name, shape]) => [
      name,
      { shape: [...shape], data: new Float32Array(shape[0] * shape[1]) },
    ]),
  );
  writeAdapter(folder, { config: lora, weights }, 'data/arena-base');
}

/** Runs as training leaves them, without training. */
function makeRuns(folder: string): void {
  const problems = { heldout: ids('heldout'), validation: ids('validation') };
  for (const seed of experiment.seeds)
    for (const name of experiment.methods) {
      const method = methodByName(name);
      const run = openRun(identityOf(experiment, method, seed, 'wasm'), folder);
      const skill = name === 'zero-shot' ? 0.3 : 0.5;
      for (const line of fixtureEvaluations(method, experiment, seed, skill, (split) => problems[split]))
        appendJsonl(join(run.path, 'eval.jsonl'), line);
      if (!method.training) continue;
      for (const line of fixtureRunMetrics(method, experiment.run.maxSteps))
        appendJsonl(join(run.path, 'metrics.jsonl'), line);
      for (const adapter of method.training.adapters) writeZeros(join(run.path, adapter), 16);
      for (const step of method.training.adapters.length > 1 ? [2, 4] : [])
        appendJsonl(join(run.path, 'distance.jsonl'), { step, from: 'A', to: 'B', nats: 0.1, tokens: 9 });
    }
}

const original = mkdtempSync(join(tmpdir(), 'verify-'));
makeRuns(original);
await writeStudyReport(studyReport(study, collectStudy(study, original)), original);

/** A copy with one file changed. */
function changed(file: string, change: (text: string) => string): string {
  const folder = mkdtempSync(join(tmpdir(), 'verify-changed-'));
  cpSync(original, folder, { recursive: true });
  const path = join(folder, file);
  const before = readFileSync(path, 'utf8');
  const after = change(before);
  assert.notEqual(after, before, 'the change changes something');
  writeFileSync(path, after);
  return folder;
}

const runFindings = (folder: string) => verifyRuns(folder).map(({ where, what }) => `${where}: ${what}`);
const tableFindings = (folder: string) =>
  verifyTables(folder, [study]).findings.map(({ where, what }) => `${where}: ${what}`);

test('what was made from its runs verifies whole, and nothing is changed by looking', () => {
  assert.deepEqual(runFindings(original), []);
  const { checks, findings, used } = verifyTables(original, [study]);
  assert.deepEqual(findings, []);
  assert.deepEqual([...used].sort(), runFolders(original).sort());
  assert.equal(checks.length, 1);
  assert.equal(checks[0]!.arms, 8);
  assert.equal(checks[0]!.expected, 8);
  assert.ok(checks[0]!.cells > 100);
});

test('one number changed in a table is found with its row, its column and both values', () => {
  const folder = changed('tables/signals-runs.csv', (text) => text.replace(/^agon,1,(\d+)/m, 'agon,1,99'));
  const [finding, ...more] = tableFindings(folder);
  assert.match(
    finding!,
    /^tables\/signals-runs\.csv: row 8 \(agon, 1, \d+\), column 'correct': shipped 99, recomputed \d+$/,
  );
  assert.deepEqual(more, []);
});

test('one number changed in the words or in a figure is found with its line', () => {
  const words = changed('tables/signals.md', (text) => text.replace(/4\.4|5\.5|\d\.\d/, '7.77'));
  assert.match(tableFindings(words).join(), /^tables\/signals\.md: line \d+: shipped .*7\.77/);
  const figure = changed('figures/signals.json', (text) => text.replace(/"x": \[\s+-?\d/, (x) => `${x}0`));
  assert.match(tableFindings(figure).join(), /^figures\/signals\.json: line \d+/);
});

test('one bit in eval.jsonl is found in the run and in every table made of it', () => {
  const run = idOf('agon', 0);
  const flip = (text: string) =>
    text.replace(/"correct":"(.)/, (_, bit) => `"correct":"${bit === '1' ? '0' : '1'}`);
  const folder = changed(`runs/${run}/eval.jsonl`, flip);
  assert.match(
    runFindings(folder).join(),
    new RegExp(`runs/${run}/eval.jsonl: line 1, stage 1, countdown-.*the proposal is called`),
  );
  assert.match(tableFindings(folder).join(), /signals/);
});

test('one value in a config is found: the folder is named by another', () => {
  const run = idOf('grpo', 1);
  const folder = changed(`runs/${run}/config.json`, (text) => text.replace('"maxSteps": 4', '"maxSteps": 5'));
  const found = runFindings(folder).join('\n');
  assert.match(found, new RegExp(`runs/${run}/config.json: is the config of run grpo-s1-`));
  assert.match(found, /metrics\.jsonl: holds 4 steps, the config says 5/);
  const bad = changed(`runs/${run}/config.json`, (text) =>
    text.replace('"maxSteps": 4', '"maxSteps": "four"'),
  );
  assert.match(runFindings(bad).join(), /maxSteps.*found "four"/s);
  const version = changed(`runs/${run}/config.json`, (text) =>
    text.replace(/"version": \d+/, '"version": 1'),
  );
  assert.match(runFindings(version).join(), /version is 1/);
});

test('a log that misses a step, answers to other problems, columns of other lengths are found', () => {
  const run = idOf('cooperative', 0);
  const log = changed(`runs/${run}/metrics.jsonl`, (text) => text.replace(/\{"step":2.*\n/, ''));
  assert.match(
    runFindings(log).join(),
    /metrics\.jsonl: holds 3 steps, the config says 4.*line 3: step is 3, 2 comes here/s,
  );
  const [first] = ids('heldout');
  const trained = TASKS.countdown.problems({
    split: 'train',
    count: 8,
    seed: 0,
    minDifficulty,
    maxDifficulty,
  })[3]!.id;
  const problem = changed(`runs/${run}/eval.jsonl`, (text) => text.replace(first!, trained));
  const found = runFindings(problem).join('\n');
  assert.match(
    found,
    new RegExp(`eval.jsonl: line 1: problem 1 is ${trained}, the heldout split .* has ${first}`),
  );
  assert.match(found, new RegExp(`problem ${trained} was trained on`));
  const column = changed(`runs/${run}/eval.jsonl`, (text) => text.replace(/"steps":\[\d+,/, '"steps":['));
  assert.match(runFindings(column).join(), /holds 59 values for 60 problems/);
});

test('columns that contradict each other are found', () => {
  const run = idOf('zero-shot', 0);
  const cases: [RegExp, string, RegExp][] = [
    [/"truncated":"0/, '"truncated":"1', /is cut at the cap of \d+ and has \d+ tokens/],
    [/"completionTokens":\[\d+/, '"completionTokens":[9999', /completionTokens is 9999, the cap is/],
    [/"useful":\[\d+/, '"useful":[40', /40 useful and \d wrong steps of/],
    [/"seed":0/, '"seed":7', /seed is 7, the run's is 0/],
    [/"deployment":"base"/, '"deployment":"A"', /its stages are by base.*no method of 'the base'/s],
  ];
  for (const [from, to, wanted] of cases)
    assert.match(
      runFindings(changed(`runs/${run}/eval.jsonl`, (text) => text.replace(from, to))).join('\n'),
      wanted,
    );
});

test('adapters of another shape and distances of another pair are found', () => {
  const run = idOf('agon', 1);
  const folder = changed(`runs/${run}/distance.jsonl`, (text) => text.replace('"to":"B"', '"to":"C"'));
  rmSync(join(folder, 'runs', run, 'A'), { recursive: true });
  writeZeros(join(folder, 'runs', run, 'A'), 8);
  writeFileAtomic(join(folder, 'runs', run, 'B', 'adapter_model.safetensors'), 'no tensors');
  const found = runFindings(folder).join('\n');
  assert.match(found, /distance\.jsonl: line 1: from A to C: the run has A, B, base/);
  assert.match(found, new RegExp(`runs/${run}/A: has rank, alpha and modules \\[8,16`));
  assert.match(found, new RegExp(`runs/${run}/B: `));
});

test('tables that nobody knows, that are missing, and runs in no table are named', () => {
  const folder = changed('tables/signals.csv', (text) => `${text}agon,,,,\n`);
  renameSync(join(folder, 'tables/signals-differences.csv'), join(folder, 'tables/others.csv'));
  renameSync(join(folder, 'tables/signals-runs.tex'), join(folder, 'tables/signals-walks.tex'));
  const found = tableFindings(folder);
  for (const wanted of [
    'tables/others.csv: belongs to no study: nothing says where it is from',
    'tables/signals-differences.csv: is not there, and signals has it',
    'tables/signals-walks.tex: is no table or figure of signals',
    'tables/signals.csv: has 5 rows, recomputed are 4',
  ])
    assert.ok(found.includes(wanted), `${wanted} in\n${found.join('\n')}`);
  mkdirSync(join(folder, 'runs', 'grpo-s9-0123456789'));
  assert.ok(!verifyTables(folder, [study]).used.has('grpo-s9-0123456789'));
  assert.match(runFindings(folder).join(), /runs\/grpo-s9-0123456789\/config\.json: /);
});

test('a file that ends in half a line is named and left as it is', () => {
  const file = `runs/${idOf('agon', 0)}/eval.jsonl`;
  const folder = changed(file, (text) => text.slice(0, -5));
  const before = readFileSync(join(folder, file), 'utf8');
  assert.match(runFindings(folder).join(), new RegExp(`${file}: ${CUT_OFF}`));
  assert.equal(readFileSync(join(folder, file), 'utf8'), before);
});

test('the single experiment of a preset: its records, tables and figures', () => {
  const folder = mkdtempSync(join(tmpdir(), 'verify-preset-'));
  cpSync(join(original, 'runs'), join(folder, 'runs'), { recursive: true });
  const arms = collectStudy(study, folder);
  const found = {
    results: arms.map((arm) => arm.result),
    bestOnHeldout: arms.map((arm) => arm.bestOnHeldout),
    metrics: Object.fromEntries(
      arms.filter((arm) => arm.method.training).map((arm) => [arm.result.runId, arm.metrics]),
    ),
  };
  saveResults(experiment, found, folder);
  for (const [file, text] of Object.entries(presetFiles('main', found)))
    writeFileAtomic(join(folder, file), text);
  const { checks, findings } = verifyTables(folder, [study]);
  assert.deepEqual(findings, []);
  assert.equal(checks[0]!.tables, 2);
  const record = join(folder, 'tables/main.json');
  writeFileSync(record, readFileSync(record, 'utf8').replace(/"correct": \d+/, '"correct": 59'));
  assert.match(
    tableFindings(folder).join(),
    /main\.json: results, zero-shot, seed 0: correct is 59, recomputed \d+/,
  );
});

test('CSV is compared cell by cell, quoted ones too', () => {
  assert.deepEqual(compareCsv('a,b\n"x, y",1\n', 'a,b\n"x, y",2\n'), [
    "row 1 (x, y, 2), column 'b': shipped 1, recomputed 2",
  ]);
  assert.deepEqual(compareCsv('a\n1\n', 'b\n1\n'), ['has the columns a, recomputed are b']);
  assert.deepEqual(compareCsv('a,b\n,1\n', 'a,b\n5,1\n'), [
    "row 1 (5, 1), column 'a': shipped nothing, recomputed 5",
  ]);
});

test('the command ends with 1 and a list, or with 0', () => {
  const command = (folder: string) =>
    spawnSync(process.execPath, [join(ROOT, 'dist/lib/cli/verify-results.js'), '--results', folder], {
      encoding: 'utf8',
    });
  // The command knows the repository's studies only, so these tables are of unknown origin there.
  const bare = mkdtempSync(join(tmpdir(), 'verify-bare-'));
  cpSync(join(original, 'runs'), join(bare, 'runs'), { recursive: true });
  const good = command(bare);
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stdout, /8 runs checked[\s\S]*in no table: 8 runs[\s\S]*every number traces to its run/);
  const run = idOf('grpo', 0);
  const bad = command(changed(`runs/${run}/config.json`, (text) => text.replace('"seed": 0', '"seed": 3')));
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, new RegExp(`findings?:[\\s\\S]*runs/${run}/config.json: is the config of run`));
  const missing = command(join(bare, 'nowhere'));
  assert.equal(missing.status, 1);
  assert.match(missing.stderr, /--results .*nowhere: there is no such folder/);
});
