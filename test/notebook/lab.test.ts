/** The lab: own rows, rewards, prompts and tasks are runs of their own; what is there is read, not trained again. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';
import { methodByName } from '../../lib/agon/methods.js';
import { toCsv } from '../../lib/analysis/formats.js';
import { entrant } from '../../lib/experiments/own.js';
import { runId } from '../../lib/experiments/store.js';
import { identityOf } from '../../lib/experiments/study.js';
import { openWorld } from '../../lib/experiments/world.js';
import { type LabOptions, type LabResults, lab, readLab, savedLabs } from '../../lib/notebook/lab.js';
import { labTable } from '../../lib/notebook/lab-table.js';
import type { Reward } from '../../lib/records.js';
import { ARENA_STYLE } from '../../lib/text/index.js';
import { fingerprint, NO_POOL, scratch, tinyConfig } from '../experiments/support.js';

let world: World;
before(async () => {
  world = await openWorld({ backend: 'wasm', workers: 0 });
});

const { seed: _, task: __, maxSteps: ___, ...run } = tinyConfig();
const TINY = { steps: 2, run, eval: { problems: 4, validationProblems: 2 } } as const;
const letters: Reward = (own) => own.completion.think.length;

/** A lab in an empty or given folder, with the table it shows kept off the test's output. */
async function quiet(where: World, options: Omit<LabOptions, keyof typeof TINY>): Promise<LabResults> {
  const { log } = console;
  console.log = () => {};
  try {
    return await lab(where, { ...TINY, ...options });
  } finally {
    console.log = log;
  }
}
const idOf = ({ arms }: LabResults, method: string) =>
  arms.find((arm) => arm.method.name === method)!.result.runId;

test('saved, read again without work, and compared by name; a changed reward is another run', async () => {
  const resultsFolder = scratch();
  const mine = (challengeReward: Reward) => ({ name: 'mine', basedOn: 'agon', challengeReward });
  const first = await quiet(world, { name: 'one', methods: ['grpo', mine(letters)], resultsFolder });
  for (const arm of first.arms) {
    for (const file of ['config.json', 'metrics.jsonl', 'eval.jsonl', 'A/adapter_config.json'])
      assert.ok(existsSync(join(arm.folder, file)), file);
    assert.equal(arm.metrics.length, 2);
  }
  assert.match(idOf(first, 'mine'), /^mine-s0-/);
  assert.ok(first.arms[1]!.metrics[0]!['challenge/reward']! > 3.5, 'letters, not the rewards of the table');
  // A run of the table's row is the one that any experiment of these settings has.
  const { experiment, result } = first.arms[0]!;
  assert.equal(result.runId, runId(identityOf(experiment, methodByName('grpo'), 0, 'wasm')));

  const nobody = { ...world, pool: NO_POOL };
  const again = await quiet(nobody, { name: 'one', methods: ['grpo', mine(letters)], resultsFolder });
  assert.deepEqual(again, first);
  assert.deepEqual(readLab('one', resultsFolder), first);

  const weight = { value: 1 };
  const weighted: Reward = (own) => weight.value * own.completion.think.length;
  const second = await quiet(world, { name: 'two', methods: ['grpo', mine(weighted)], resultsFolder });
  weight.value = 2; // the same text, another reward
  const third = await quiet(world, { name: 'three', methods: [mine(weighted)], resultsFolder });
  assert.equal(new Set([first, second, third].map((found) => idOf(found, 'mine'))).size, 3);
  assert.equal(idOf(second, 'grpo'), idOf(first, 'grpo'));
  assert.deepEqual(savedLabs(resultsFolder), ['one', 'three', 'two']);

  const table = labTable([first, second, third]);
  assert.deepEqual(
    toCsv(table)
      .split('\n')
      .slice(1, -1)
      .map((line) => line.split(',')[0]),
    ['grpo', 'mine (one)', 'mine (two)', 'mine (three)'],
  );
  assert.throws(() => labTable(first, 'agon'), /no method 'agon'.*grpo and mine/);
  assert.throws(() => readLab('four', resultsFolder), /no lab 'four'.*one, three, two/);
});

test('a row, a prompt and a task are runs of their own; the same wording under another name of the row too', async () => {
  const resultsFolder = scratch();
  const promptStyle = { ...ARENA_STYLE, challenge: '{question} check rival {summary}' };
  const rows = await quiet(world, {
    name: 'rows',
    methods: [
      'agon',
      { name: 'path-only', basedOn: 'agon', shows: 'path' },
      { name: 'alone', basedOn: 'agon', adapters: ['A'], roles: 'fixed', deployments: [['A', 'A']] },
      { name: 'asked', basedOn: 'agon', promptStyle },
    ],
    resultsFolder,
  });
  assert.deepEqual(
    rows.arms.map(({ method }) => method.training?.shows),
    [undefined, 'path', undefined, undefined],
  );
  assert.deepEqual(
    Object.keys(rows.arms[2]!.metrics[0]!).filter((key) => key.startsWith('B/')),
    [],
  );
  const { training, config } = rows.arms[3]!.method.training
    ? { training: rows.arms[3]!.method.training, config: rows.arms[3]!.experiment.run }
    : assert.fail();
  assert.equal(training.name, 'asked');
  assert.equal(config.maxSteps, 2);
  const everythingRight = { ...world.task, verify: () => true };
  const task = await quiet(
    { ...world, task: everythingRight },
    { name: 'task', methods: ['agon'], resultsFolder },
  );
  assert.notEqual(idOf(task, 'agon'), idOf(rows, 'agon'));
  assert.equal(task.arms[0]!.result.correct, 4);
  assert.equal(task.arms[0]!.metrics[0]!['draft/accuracy'], 1);
});

test('trained in turn is trained alone', async () => {
  const mine = { name: 'mine', basedOn: 'agon', challengeReward: letters, draftReward: letters };
  const other = { ...mine, name: 'other', roles: 'fixed' } as const;
  const [both, alone] = [scratch(), scratch()];
  const together = await quiet(world, { name: 'x', methods: [other, mine], resultsFolder: both });
  const single = await quiet(world, { name: 'x', methods: [mine], resultsFolder: alone });
  const prints = [together.arms[1]!, single.arms[0]!].map(({ folder: path, result }) =>
    fingerprint({ path, id: result.runId } as Parameters<typeof fingerprint>[0]),
  );
  assert.deepEqual(prints[0], prints[1]);
});

test('what does not fit is refused before anything is written, naming row and field', async () => {
  const refused = (row: Parameters<typeof entrant>[1]) => () => entrant(world, row);
  assert.throws(refused('agno'), /unknown method 'agno'/);
  assert.throws(refused({ name: 'agon', basedOn: 'agon' }), /row 'agon'.*has a row of this name/);
  assert.throws(refused({ name: 'a/b', basedOn: 'agon' }), /letters, digits/);
  assert.throws(
    refused({ name: 'x', basedOn: 'grpo', challengeReward: letters }),
    /no challenges.*draftReward/,
  );
  assert.throws(refused({ name: 'x', basedOn: 'zero-shot', shows: 'path' }), /not trained/);
  assert.throws(refused({ name: 'x', basedOn: 'agon', adapters: ['A'] }), /deployment A>B needs/);
  const reward = 'bonus' as 'outcome';
  assert.throws(
    refused({ name: 'x', basedOn: 'agon', challengeReward: reward }),
    /'bonus': allowed.*adversarial/,
  );
  const promptStyle = { ...ARENA_STYLE, challenge: '{question} beware of {summary}' };
  assert.throws(refused({ name: 'x', basedOn: 'agon', promptStyle }), /does not know: beware, of/);
  const resultsFolder = scratch();
  const bad: Reward = () => Number.NaN;
  const nan = quiet(world, {
    name: 'nan',
    methods: [{ name: 'nan', basedOn: 'agon', challengeReward: bad }],
    resultsFolder,
  });
  await assert.rejects(nan, /written attempt 1 .* is NaN/);
  await assert.rejects(quiet(world, { name: '../x', methods: ['agon'], resultsFolder }), /a lab's name/);
  const row = { name: 'x', basedOn: 'agon' };
  await assert.rejects(
    quiet(world, { name: 'x', methods: [row, row], resultsFolder }),
    /two methods are named 'x'/,
  );
  assert.equal(existsSync(join(resultsFolder, 'runs')), false);
});
