/** Evaluation: what is stored, what is read back, which direction is reported, and the numbers of the table. */
import assert from 'node:assert/strict';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Adapters, World } from '../../lib/agon/attempt.js';
import { methodByName } from '../../lib/agon/methods.js';
import { evalSchema } from '../../lib/experiments/config.js';
import {
  type EvalLine,
  evalLineSchema,
  evaluateMethod,
  methodResult,
} from '../../lib/experiments/evaluate.js';
import { initTrainees, trainingProblems } from '../../lib/experiments/run.js';
import { readJsonl } from '../../lib/files.js';
import type { ProblemQuery } from '../../lib/tasks/index.js';
import { AGON, coinWorld, NO_POOL, scratch, tinyConfig } from './support.js';

const RUN = tinyConfig();
const CONFIG = { ...RUN, maxCompletionLength: 12 };
const EVALUATION = evalSchema.parse({ problems: 4, validationProblems: 3 });
const agon = methodByName('agon');

let world: World;
let adapters: Adapters;
before(async () => {
  world = await coinWorld();
  const trainees = initTrainees(world.base, AGON, RUN);
  adapters = { A: trainees.A!.adapter, B: trainees.B!.adapter };
});

const evaluate = (folder: string, where: World = world, evaluation = EVALUATION, method = agon) =>
  evaluateMethod(where, folder, method, adapters, CONFIG, evaluation);
const file = (folder: string) => join(folder, 'eval.jsonl');
const readLines = (folder: string) => readJsonl(file(folder), evalLineSchema);
const writeLines = (folder: string, lines: readonly EvalLine[]) =>
  writeFileSync(file(folder), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
const sorted = (lines: readonly EvalLine[]) => lines.map((line) => JSON.stringify(line)).sort();

/** A world that counts the rollouts it samples. */
function counting(): { where: World; sampled: () => number } {
  let sampled = 0;
  const where: World = {
    ...world,
    pool: {
      ...world.pool,
      map: async (job, inputs, onDone) => {
        const shards = await world.pool.map(job, inputs, onDone);
        sampled += shards.flat().length;
        return shards;
      },
    },
  };
  return { where, sampled: () => sampled };
}

test('a line per problem and stage; a second call reads them and samples nothing', async () => {
  const folder = scratch();
  const { where, sampled } = counting();
  const outcomes = await evaluate(folder, where);
  const lines = readLines(folder);
  assert.equal(lines.length, 2 * 2 * (4 + 3), 'two directions, two stages, both splits');
  assert.equal(sampled(), lines.length);
  for (const deployment of ['A>B', 'B>A'])
    for (const [split, count] of [
      ['heldout', 4],
      ['validation', 3],
    ] as const) {
      const own = lines.filter((l) => l.deployment === deployment && l.split === split);
      assert.equal(new Set(own.map((l) => l.problem)).size, count);
      own.forEach((l, i) => {
        assert.equal(l.stage, i % 2);
        assert.equal(l.adapter, deployment.split('>')[l.stage]);
        assert.ok(l.completionTokens >= 1 && l.completionTokens <= 12 && l.promptTokens > 7);
      });
    }
  assert.deepEqual(await evaluate(folder, { ...world, pool: NO_POOL }), outcomes);
});

test('another evaluation of the same run stands beside the first', async () => {
  const folder = scratch();
  await evaluate(folder);
  const other = evalSchema.parse({ problems: 2, validationProblems: 3, temperature: 0 });
  await assert.rejects(evaluate(folder, { ...world, pool: NO_POOL }, other), /nothing was to be computed/);
  await evaluate(folder, world, other);
  assert.equal(readLines(folder).length, 2 * 2 * (4 + 3) + 2 * 2 * (2 + 3));
  await evaluate(folder, { ...world, pool: NO_POOL });
  await evaluate(folder, { ...world, pool: NO_POOL }, other);
});

test('an evaluation that is there in part is made anew, alike, and only it', async () => {
  const folder = scratch();
  const outcomes = await evaluate(folder);
  const lines = readLines(folder);
  const lost = lines.filter((l) => l.deployment === 'B>A' && l.split === 'validation');
  writeLines(
    folder,
    lines.filter((l) => !lost.slice(2, 4).includes(l)),
  );
  appendFileSync(file(folder), '{"eval":"{}","deploy');
  const { where, sampled } = counting();
  assert.deepEqual(await evaluate(folder, where), outcomes);
  assert.equal(sampled(), lost.length);
  assert.deepEqual(sorted(readLines(folder)), sorted(lines), 'no line twice, none missing');
  await evaluate(folder, { ...world, pool: NO_POOL });
});

test('a line that does not fit is refused with file, line and field', async () => {
  const folder = scratch();
  await evaluate(folder);
  const [first, ...rest] = readLines(folder);
  const text = [...rest, { ...first, stage: 2 }].map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(file(folder), text);
  await assert.rejects(evaluate(folder), /eval\.jsonl line 28 .*\n.*stage: .*<=1.*found 2/);
});

test('the direction is chosen on the validation split and reported on the held-out one', async () => {
  const folder = scratch();
  await evaluate(folder);
  // A>B is better on validation (2 of 3 against 1), worse on the held-out problems (1 of 4 against 3).
  const right = { 'A>B validation': 2, 'B>A validation': 1, 'A>B heldout': 1, 'B>A heldout': 3 };
  const seen: Record<string, number> = {};
  const lines = readLines(folder).map((l) => {
    const key = `${l.deployment} ${l.split}`;
    if (l.stage === 0) return { ...l, correct: false };
    seen[key] = (seen[key] ?? 0) + 1;
    return { ...l, correct: seen[key] <= right[key as keyof typeof right] };
  });
  writeLines(folder, lines);
  const { chosen, bestOnHeldout } = await evaluate(folder, { ...world, pool: NO_POOL });
  const facts = { seed: 0, steps: 3, runId: 'r' };
  const reported = methodResult(agon, chosen, facts);
  assert.equal(reported.direction, 'A>B');
  assert.deepEqual([reported.correct, reported.total], [1, 4], 'held-out problems, not validation');
  const postHoc = methodResult(agon, bestOnHeldout, facts);
  assert.equal(postHoc.direction, 'B>A');
  assert.equal(postHoc.correct, 3);
});

test('the splits are disjoint; one way to run needs no validation', async () => {
  const queries: ProblemQuery[] = [];
  const spied: World = {
    ...world,
    task: {
      ...world.task,
      problems: (query) => {
        queries.push(query);
        return world.task.problems(query);
      },
    },
  };
  const folder = scratch();
  await evaluate(folder, spied);
  assert.deepEqual(
    queries.map((q) => [q.split, q.count]),
    [
      ['heldout', 4],
      ['validation', 3],
    ],
  );
  assert.ok(queries.every((q) => q.minDifficulty === 4 && q.maxDifficulty === 16));
  queries.length = 0;
  await evaluate(folder, spied, EVALUATION, methodByName('grpo'));
  assert.deepEqual(
    queries.map((q) => q.split),
    ['heldout'],
  );

  const { minDifficulty, maxDifficulty } = RUN;
  const ids = (split: 'train' | 'validation' | 'heldout') =>
    world.task.problems({ split, count: 1000, seed: 0, minDifficulty, maxDifficulty }).map((p) => p.id);
  const all = [...ids('train'), ...ids('validation'), ...ids('heldout')];
  assert.equal(new Set(all).size, 3000);
  const trained = new Set(trainingProblems(world, tinyConfig({ maxSteps: 500 })).map((p) => p.id));
  assert.ok(readLines(folder).every((l) => !trained.has(l.problem)));
});

test('kept, converted and paid for, on an outcome made by hand', () => {
  const line = (stage: number, correct: boolean, completionTokens: number): EvalLine => ({
    eval: '',
    deployment: 'B>A',
    split: 'heldout',
    problem: 'p',
    stage,
    adapter: stage === 0 ? 'B' : 'A',
    correct,
    formatted: true,
    promptTokens: 9,
    completionTokens,
    finishReason: 'stop',
    answer: null,
  });
  const verdicts = [
    [true, true],
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ] as const;
  const lines = verdicts.map(([draft, final], i) => [line(0, draft, 10 + i), line(1, final, 20)]);
  const facts = { seed: 3, steps: 7, secondsPerStep: 1.5, runId: 'agon-s3-x' };
  assert.deepEqual(methodResult(agon, { deployment: 'B>A', lines }, facts), {
    method: 'agon',
    ...facts,
    correct: 3,
    total: 5,
    draftTokens: 12,
    finalTokens: 20,
    totalTokens: 32,
    direction: 'B>A',
    draftCorrect: 3,
    keep: 2 / 3,
    convert: 1 / 2,
  });
  const solo = { deployment: 'A', lines: [[line(0, true, 30)], [line(0, false, 10)]] };
  const single = methodResult(methodByName('grpo'), solo, { seed: 0, steps: 1, runId: 'r' });
  assert.deepEqual(
    [single.correct, single.draftTokens, single.totalTokens, single.direction],
    [1, 0, 20, '-'],
  );
  for (const name of ['keep', 'convert', 'draftCorrect', 'secondsPerStep'])
    assert.ok(!(name in single), name);
  // No draft was wrong: what would have been converted is not known.
  const sure = methodResult(agon, { deployment: 'A>B', lines: lines.slice(0, 3) }, facts);
  assert.ok(!('convert' in sure));
});
