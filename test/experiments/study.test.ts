/** Studies: run once, gathered from files alone, resumed arm by arm; pairs measured over training. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { methodByName } from '../../lib/agon/methods.js';
import { parseExperiment, preset } from '../../lib/experiments/config.js';
import { divergences } from '../../lib/experiments/distance.js';
import { evaluationProblems } from '../../lib/experiments/evaluate.js';
import { readDistances } from '../../lib/experiments/pair.js';
import { initTrainees, trainingProblems } from '../../lib/experiments/run.js';
import { STUDIES, studyByName } from '../../lib/experiments/studies.js';
import { collectStudy, runStudy, type Study } from '../../lib/experiments/study.js';
import { worldOf } from '../../lib/experiments/world.js';
import { TASKS } from '../../lib/tasks/index.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { createPool, type Pool } from '../../lib/tensors/pool.js';
import { NO_POOL, scratch } from './support.js';

const { run, eval: evaluation, ...full } = preset('full');
const EXPERIMENT = parseExperiment(
  {
    ...full,
    methods: ['zero-shot', 'grpo', 'grpo-self-cascade', 'agon'],
    seeds: [3],
    run: {
      ...run,
      maxSteps: 2,
      problemsPerStep: 1,
      grpo: { ...run.grpo, numGenerations: 2, maxCompletionLength: 16 },
    },
    eval: { ...evaluation, problems: 4, validationProblems: 3, samples: 2 },
    saveSteps: 1,
  },
  'the test',
);
const STUDY: Study = { name: 'tiny', title: 'T', question: 'Q?', experiments: [EXPERIMENT] };

let pool: Pool;
before(async () => {
  await initBackend();
  pool = createPool(0);
});

test('a study is gathered from its files, and run again computes nothing', async () => {
  const folder = scratch();
  await runStudy(pool, STUDY, { resultsFolder: folder });
  const arms = collectStudy(STUDY, folder);
  assert.deepEqual(
    arms.map((arm) => [arm.method.name, arm.seed, arm.result.total, arm.metrics.length]),
    [
      ['zero-shot', 3, 4, 0],
      ['grpo', 3, 4, 2],
      ['grpo-self-cascade', 3, 4, 2],
      ['agon', 3, 4, 2],
    ],
  );
  const [, grpo, cascade, agon] = arms;
  assert.equal(grpo!.folder, cascade!.folder, 'methods that share a training row share its run');
  assert.equal(grpo!.evaluations.filter((e) => e.sample === 1).length, 1, 'a second sample of one pass');
  assert.ok(agon!.evaluations.every((e) => e.sample === 0));
  const perStep = agon!.evaluations.filter((e) => e.step !== undefined);
  assert.deepEqual(
    perStep.map((e) => [e.step, e.deployment, e.split, e.problems.length]),
    [1, 2].flatMap((step) => ['A>B', 'B>A'].map((d) => [step, d, 'validation', 3])),
  );
  const distances = readDistances({ path: agon!.folder });
  assert.deepEqual(
    distances.map((d) => `${d.step} ${d.from} ${d.to}`),
    [1, 2].flatMap((step) => ['A B', 'A base', 'B A', 'B base'].map((pair) => `${step} ${pair}`)),
  );

  // As runs are shipped: without checkpoints, and without the adapters.
  for (const part of ['state', 'checkpoints', 'A', 'B'])
    rmSync(join(agon!.folder, part), { recursive: true, force: true });
  await runStudy(NO_POOL, STUDY, { resultsFolder: folder });
  assert.deepEqual(collectStudy(STUDY, folder), arms);
});

test('an arm that is not whole is left out or named, and made again alike', async () => {
  const folder = scratch();
  const only = { ...STUDY, experiments: [{ ...EXPERIMENT, methods: ['agon'] }] };
  await runStudy(pool, only, { resultsFolder: folder });
  const [arm] = collectStudy(only, folder);
  const file = join(arm!.folder, 'eval.jsonl');
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  writeFileSync(
    file,
    `${lines.filter((line) => !(line.includes('"B>A"') && line.includes('validation') && !line.includes('"step"'))).join('\n')}\n`,
  );
  assert.deepEqual(collectStudy(only, folder, { partial: true }), []);
  assert.throws(() => collectStudy(only, folder), /tiny, .*: agon at seed 3 is not in .*agon-s3-/);
  await runStudy(pool, only, { resultsFolder: folder });
  const { secondsPerProblem: _, ...again } = collectStudy(only, folder)[0]!.result;
  const { secondsPerProblem: __, ...before } = arm!.result;
  assert.deepEqual(again, before);
});

test('divergence: none from a policy to itself, none of a fresh A to the base, some to a noisy B', async () => {
  const world = worldOf(EXPERIMENT, pool);
  const config = {
    ...EXPERIMENT.run,
    seed: 1,
    lora: { ...EXPERIMENT.run.lora, initNoise: { absolute: 0.05 } },
  };
  const trainees = initTrainees(world.base, methodByName('agon').training!, config);
  const adapters = { A: trainees.A!.adapter, B: trainees.B!.adapter };
  const problems = evaluationProblems(world, config, { ...evaluation, validationProblems: 6 }, 'validation');
  const options = { maxCompletionLength: 24, generationBatchSize: 6 };
  const [self, base, other] = await divergences(
    world,
    adapters,
    'A',
    ['A', 'base', 'B'],
    problems,
    options,
    [0],
  );
  assert.ok(Math.abs(self!.nats) < 1e-5 && Math.abs(base!.nats) < 1e-5, `${self!.nats} ${base!.nats}`);
  assert.ok(other!.nats > 1e-3, String(other!.nats));
  assert.equal(self!.tokens, other!.tokens);
});

test('every experiment of a study has as many problems as it asks for, to train on and to be judged by', () => {
  for (const { base, run, eval: evaluation, name, label } of STUDIES.flatMap((s) => s.experiments)) {
    const world = { task: TASKS[run.task] };
    const where = `${name} ${label} on ${base}`;
    const train = trainingProblems(world, { ...run, seed: 0 });
    assert.equal(train.length, run.maxSteps * run.problemsPerStep, where);
    assert.equal(evaluationProblems(world, run, evaluation, 'heldout').length, evaluation.problems, where);
    const validation = evaluationProblems(world, run, evaluation, 'validation');
    assert.equal(validation.length, evaluation.validationProblems, where);
  }
});

test('every study is a valid experiment, its names are known, and what it shares with the main table is equal', () => {
  assert.equal(new Set(STUDIES.map((s) => s.name)).size, STUDIES.length);
  for (const { name, experiments } of STUDIES)
    for (const e of experiments) assert.deepEqual(parseExperiment(e, name), e);
  const [main] = studyByName('main').experiments;
  for (const name of ['control', 'signals', 'transfer'])
    assert.deepEqual(studyByName(name).experiments[0]!.run, main!.run, name);
  assert.throws(() => studyByName('mian'), /unknown study 'mian': allowed are .*main/);
});
