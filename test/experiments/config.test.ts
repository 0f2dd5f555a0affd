/** Presets and the checking of what a user writes: the field, what was found, what is allowed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHOD_NAMES } from '../../lib/agon/methods.js';
import { BASE_NAMES, BASES } from '../../lib/experiments/bases.js';
import {
  type Experiment,
  PRESET_NAMES,
  parseExperiment,
  preset,
  runConfigSchema,
} from '../../lib/experiments/config.js';
import { countdown, TASK_NAMES } from '../../lib/tasks/index.js';

test('every preset is a whole experiment, and the arena has the problems it asks for', () => {
  assert.deepEqual([...PRESET_NAMES], ['smoke', 'quick', 'full']);
  for (const name of PRESET_NAMES) {
    const { run, eval: evaluation, methods, seeds } = preset(name);
    assert.ok(methods.includes('grpo') && methods.includes('agon'));
    assert.equal(run.grpo.numGenerations, 8, 'the paper’s N');
    const { minDifficulty, maxDifficulty } = run;
    const count = { train: run.maxSteps * run.problemsPerStep, heldout: evaluation.problems };
    const all = { ...count, validation: evaluation.validationProblems };
    for (const seed of seeds)
      for (const split of ['train', 'validation', 'heldout'] as const) {
        const found = countdown.problems({ split, count: all[split], seed, minDifficulty, maxDifficulty });
        assert.equal(found.length, all[split], `${name} ${split}`);
      }
  }
  assert.deepEqual(preset('full').methods, METHOD_NAMES.slice(0, 8));
  assert.ok(preset('full').seeds.length >= 3);
  assert.throws(() => preset('fast'), {
    message: "unknown preset 'fast': allowed are smoke, quick, full",
  });
});

/** The smoke preset with one field, given by its path, set to a value. */
function withField(path: string, value: unknown): unknown {
  const experiment = structuredClone(preset('smoke')) as unknown as Record<string, unknown>;
  const keys = path.split('.');
  const last = keys.pop()!;
  let at = experiment;
  for (const key of keys) at = at[key] as Record<string, unknown>;
  at[last] = value;
  return experiment;
}

test('a field that does not fit is named, with what was found and what is allowed', () => {
  const cases: [path: string, value: unknown, message: RegExp][] = [
    ['run.grpo.numGenerations', 0, /run\.grpo\.numGenerations: .*>=1 .*found 0/],
    ['run.grpo.epsilon', 1.5, /run\.grpo\.epsilon: .*<=1 .*found 1\.5/],
    ['run.grpo.temperature', 0, /run\.grpo\.temperature: .*>0 .*found 0/],
    ['run.grpo.lossType', 'ppo', /run\.grpo\.lossType: .*"grpo"\|"bnpo"\|"dr_grpo"\|"dapo".*found "ppo"/],
    ['run.grpo.learningRate', '1e-3', /run\.grpo\.learningRate: .*number.*found "1e-3"/],
    ['run.maxSteps', 2.5, /run\.maxSteps: .*int.*found 2\.5/],
    ['run.task', 'chess', /run\.task: .*"countdown".*found "chess"/],
    ['run.lora.targetModules', ['q_proj', 'head'], /run\.lora\.targetModules\.1: .*"q_proj".*found "head"/],
    ['run.lora.initNoise', { relative: 1, absolute: 1 }, /run\.lora\.initNoise/],
    ['eval.topP', 0, /eval\.topP: .*>0 .*found 0/],
    ['eval.samples', 0, /eval\.samples: .*>=1.*found 0/],
    ['saveSteps', 0, /saveSteps: .*>=1.*found 0/],
    ['methods', ['grpo', 'argon'], /methods\.1: .*"zero-shot"\|"grpo".*found "argon"/],
    ['methods', [], /methods: .*>=1/],
    ['seeds', [-1], /seeds\.0: .*>=0 .*found -1/],
    ['run.minDifficulty', 30, /run\.minDifficulty: must not exceed run\.maxDifficulty/],
  ];
  for (const [path, value, message] of cases)
    assert.throws(
      () => parseExperiment(withField(path, value), 'my.json'),
      (error: Error) => {
        assert.match(error.message, /^my\.json does not fit:\n/, path);
        assert.match(error.message, message, path);
        return true;
      },
    );
});

test('a base that was trained on another task is refused, and both are named', () => {
  for (const name of BASE_NAMES) {
    const experiment = withField('base', name) as { run: object };
    for (const task of TASK_NAMES) {
      const parse = () => parseExperiment({ ...experiment, run: { ...experiment.run, task } }, 'my.json');
      const { task: own } = BASES[name];
      if (task === own) assert.equal(parse().base, name);
      else
        assert.throws(
          parse,
          new RegExp(
            `^Error: my\\.json does not fit:\n {2}base: ${name} was trained on ${own}, run\\.task is ${task}`,
          ),
        );
    }
  }
  assert.throws(
    () => parseExperiment(withField('base', 'qwen'), 'my.json'),
    /base: .*"arena-base".*found "qwen"/,
  );
  assert.equal(preset('smoke').base, 'arena-base');
  assert.equal(preset('smoke').run.task, 'countdown');
});

test('unknown fields are refused at every depth', () => {
  for (const path of [
    'extra',
    'run.extra',
    'run.seed',
    'run.grpo.num_generations',
    'run.lora.dropout',
    'eval.k',
  ]) {
    const name = path.split('.').at(-1)!;
    assert.throws(
      () => parseExperiment(withField(path, 1), 'my.json'),
      new RegExp(`Unrecognized key: "${name}"`),
      path,
    );
  }
});

test('several faults are all named; a missing field too', () => {
  const broken = withField('run.maxSteps', undefined) as Experiment;
  assert.throws(
    () => parseExperiment({ ...broken, seeds: [] }, 'my.json'),
    /seeds: .*\n.*run\.maxSteps: |run\.maxSteps: .*\n.*seeds: /,
  );
});

test('defaults are those of TRL and of the method where nothing is said', () => {
  const { grpo, lora, generationBatchSize } = runConfigSchema.parse({
    seed: 0,
    maxSteps: 1,
    problemsPerStep: 1,
    minDifficulty: 1,
    maxDifficulty: 9,
    grpo: {},
    lora: {},
  });
  assert.equal(grpo.epsilon, 0.2);
  assert.equal(grpo.beta, 0);
  assert.equal(grpo.numIterations, 1);
  assert.equal(grpo.scaleRewards, 'group');
  assert.equal(grpo.lossType, 'dapo');
  assert.equal(lora.r, 16);
  assert.equal(lora.alpha, 32);
  assert.deepEqual(lora.initNoise, { relative: 1e-3 });
  assert.equal(generationBatchSize, 48);
});
