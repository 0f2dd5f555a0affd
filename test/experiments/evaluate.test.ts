/** Evaluation: what is stored, what is read back, which direction is reported, and the numbers of the table. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Adapters, World } from '../../lib/agon/attempt.js';
import { methodByName } from '../../lib/agon/methods.js';
import { evalSchema } from '../../lib/experiments/config.js';
import {
  chooseEvaluations,
  evalKey,
  evaluateDeployment,
  evaluateMethod,
  methodResult,
  per100,
} from '../../lib/experiments/evaluate.js';
import {
  countCorrect,
  type Evaluation,
  evaluationSchema,
  flagsOf,
  type Stage,
} from '../../lib/experiments/evaluation.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { methodResultSchema } from '../../lib/experiments/result.js';
import { initTrainees, trainingProblems } from '../../lib/experiments/run.js';
import { readJsonl } from '../../lib/files.js';
import { countdown, type ProblemQuery } from '../../lib/tasks/index.js';
import { loadTokenizer } from '../../lib/text/index.js';
import { namedAdapters, type Script, scriptedWorld } from '../agon/support.js';
import { AGON, coinWorld, NO_POOL, scratch, tinyConfig } from './support.js';

const RUN = tinyConfig();
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
  evaluateMethod({ world: where, folder, method, adapters, config: RUN, evaluation });
const file = (folder: string) => join(folder, 'eval.jsonl');
const read = (folder: string) => readJsonl(file(folder), evaluationSchema);
const write = (folder: string, all: readonly unknown[]) =>
  writeFileSync(file(folder), all.map((line) => `${JSON.stringify(line)}\n`).join(''));
const timeless = (all: readonly Evaluation[]) =>
  all.map(({ seconds: _, ...rest }) => JSON.stringify(rest)).sort();

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

test('a line per evaluation, a column per number; a second call reads them and samples nothing', async () => {
  const folder = scratch();
  const { where, sampled } = counting();
  const outcomes = await evaluate(folder, where);
  const all = read(folder);
  assert.deepEqual(
    all.map((e) => [e.deployment, e.split, e.problems.length, e.sample, e.step]),
    [
      ['A>B', 'heldout', 4, 0, undefined],
      ['B>A', 'heldout', 4, 0, undefined],
      ['A>B', 'validation', 3, 0, undefined],
      ['B>A', 'validation', 3, 0, undefined],
    ],
  );
  assert.equal(sampled(), 2 * 2 * (4 + 3), 'two directions, two stages, both splits');
  for (const made of all) {
    assert.equal(new Set(made.problems).size, made.problems.length);
    assert.deepEqual(
      made.stages.map((s) => s.adapter),
      made.deployment.split('>'),
    );
    assert.deepEqual(made.eval, {
      temperature: 0.6,
      topP: 0.95,
      cap: 12,
      seed: 0,
      minDifficulty: 4,
      maxDifficulty: 16,
    });
    const [draft, final] = made.stages as [Stage, Stage];
    for (const s of [draft, final]) {
      assert.ok(s.completionTokens.every((n) => n >= 1 && n <= 12));
      assert.ok(s.logProb.every((l) => l <= 0 && l > -10));
      flagsOf(s.truncated).forEach((cut, i) => {
        assert.equal(cut, s.completionTokens[i] === 12, 'nothing ends by itself in twelve tokens here');
      });
    }
    assert.ok(draft.promptTokens.every((n, i) => n > 7 && n < final.promptTokens[i]!));
    assert.ok(made.seconds > 0);
  }
  const [ab, ba] = all as [Evaluation, Evaluation];
  assert.deepEqual(ab.problems, ba.problems, 'both directions answer the same problems');
  assert.deepEqual(await evaluate(folder, { ...world, pool: NO_POOL }), outcomes);
});

test('another evaluation of the same run stands beside the first', async () => {
  const folder = scratch();
  await evaluate(folder);
  const other = evalSchema.parse({ problems: 2, validationProblems: 3, temperature: 0 });
  await assert.rejects(evaluate(folder, { ...world, pool: NO_POOL }, other), /nothing was to be computed/);
  await evaluate(folder, world, other);
  assert.deepEqual(
    read(folder).map((e) => [e.eval.temperature, e.problems.length]),
    [
      [0.6, 4],
      [0.6, 4],
      [0.6, 3],
      [0.6, 3],
      [0, 2],
      [0, 2],
      [0, 3],
      [0, 3],
    ],
  );
  await evaluate(folder, { ...world, pool: NO_POOL });
  await evaluate(folder, { ...world, pool: NO_POOL }, other);
});

test('problems of another difficulty than training’s: transfer, beside the rest', async () => {
  const folder = scratch();
  const grpo = methodByName('grpo');
  const easier = evalSchema.parse({
    problems: 4,
    validationProblems: 3,
    minDifficulty: 20,
    maxDifficulty: 30,
  });
  await evaluate(folder, world, EVALUATION, grpo);
  await evaluate(folder, world, easier, grpo);
  const [near, , far] = read(folder);
  assert.deepEqual([near!.eval.minDifficulty, near!.eval.maxDifficulty], [4, 16]);
  assert.deepEqual([far!.eval.minDifficulty, far!.eval.maxDifficulty], [20, 30]);
  const asked = world.task.problems({
    split: 'heldout',
    count: 4,
    seed: 0,
    minDifficulty: 20,
    maxDifficulty: 30,
  });
  assert.deepEqual(
    far!.problems,
    asked.map((p) => p.id),
  );
});

test('an evaluation that was lost or half written is made anew, alike, and only it', async () => {
  const folder = scratch();
  const outcomes = await evaluate(folder);
  const all = read(folder);
  const lost = all.findIndex((e) => e.deployment === 'B>A' && e.split === 'validation');
  const text = all.map((e) => JSON.stringify(e));
  const half = text[lost]!.slice(0, 200);
  writeFileSync(file(folder), `${text.filter((_, i) => i !== lost).join('\n')}\n${half}`);
  const { where, sampled } = counting();
  const again = await evaluate(folder, where);
  assert.equal(sampled(), 2 * 3);
  assert.deepEqual(timeless(Object.values(again)), timeless(Object.values(outcomes)));
  assert.deepEqual(timeless(read(folder)), timeless(all), 'no line twice, none missing');
  await evaluate(folder, { ...world, pool: NO_POOL });
});

test('a line that does not fit is refused with file, line and field', async () => {
  const folder = scratch();
  await evaluate(folder);
  const [first, ...rest] = read(folder);
  write(folder, [...rest, { ...first, sample: -2 }]);
  await assert.rejects(evaluate(folder), /eval\.jsonl line 4 .*\n.*sample: .*>=0.*found -2/);
  const [draft, final] = first!.stages as [Stage, Stage];
  write(folder, [{ ...first, stages: [draft, { ...final, useful: [1, 2, 3] }] }]);
  await assert.rejects(
    evaluate(folder),
    /eval\.jsonl line 1 .*\n.*stages\.1\.useful: holds 3 values for 4 problems/,
  );
});

test('the direction is chosen on the validation split and reported on the held-out one', async () => {
  const folder = scratch();
  await evaluate(folder);
  // A>B is better on validation (2 of 3 against 1), worse on the held-out problems (1 of 4 against 3).
  const right: Record<string, string> = {
    'A>B validation': '110',
    'B>A validation': '100',
    'A>B heldout': '1000',
    'B>A heldout': '1110',
  };
  write(
    folder,
    read(folder).map((e) => {
      const [draft, final] = e.stages as [Stage, Stage];
      const correct = right[`${e.deployment} ${e.split}`]!;
      return {
        ...e,
        stages: [
          { ...draft, correct: '0'.repeat(correct.length) },
          { ...final, correct },
        ],
      };
    }),
  );
  const { chosen, validation, bestOnHeldout } = await evaluate(folder, { ...world, pool: NO_POOL });
  const facts = { seed: 0, runId: 'r', backend: 'wasm', metrics: [] };
  assert.deepEqual(
    [validation.deployment, validation.split, countCorrect(validation)],
    ['A>B', 'validation', 2],
  );
  const reported = methodResult(agon, chosen, facts);
  assert.equal(reported.direction, 'A>B');
  assert.deepEqual([reported.correct, reported.total], [1, 4], 'held-out problems, not validation');
  const postHoc = methodResult(agon, bestOnHeldout, facts);
  assert.equal(postHoc.direction, 'B>A');
  assert.equal(postHoc.correct, 3);
});

test('of equal deployments the first is taken, on either split', async () => {
  const made = (deployment: string, correct: string): Evaluation => ({
    eval: evalKey(RUN, EVALUATION),
    deployment,
    split: 'heldout',
    sample: 0,
    problems: ['p', 'q'],
    stages: [{ ...stage('A', {}), correct }],
    seconds: 0,
  });
  const [ab, ba, ca] = [made('A>B', '10'), made('B>A', '11'), made('C>A', '11')];
  const [lost, first, second] = [made('A>B', '00'), made('B>A', '01'), made('C>A', '10')];
  const choice = chooseEvaluations([ab, ba, ca], [lost, first, second]);
  assert.equal(choice.chosen, ba);
  assert.equal(choice.validation, first);
  assert.equal(choice.bestOnHeldout, ba);
  const against = chooseEvaluations([ab, ba, ca], [second, first, lost]);
  assert.equal(against.chosen, ab, 'as good on validation, and worse where it is reported');
  assert.equal(against.bestOnHeldout, ba);
});

test('the splits are disjoint; every method answers both', async () => {
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
  for (const method of [agon, methodByName('grpo')]) {
    queries.length = 0;
    await evaluate(folder, spied, EVALUATION, method);
    assert.deepEqual(
      [...new Set(queries.map((q) => `${q.split} ${q.count}`))],
      ['heldout 4', 'validation 3'],
      method.name,
    );
    assert.ok(queries.every((q) => q.minDifficulty === 4 && q.maxDifficulty === 16));
  }

  const { minDifficulty, maxDifficulty } = RUN;
  const ids = (split: 'train' | 'validation' | 'heldout') =>
    world.task.problems({ split, count: 1000, seed: 0, minDifficulty, maxDifficulty }).map((p) => p.id);
  const all = [...ids('train'), ...ids('validation'), ...ids('heldout')];
  assert.equal(new Set(all).size, 3000);
  const trained = new Set(trainingProblems(world, tinyConfig({ maxSteps: 500 })).map((p) => p.id));
  assert.ok(read(folder).every((e) => e.problems.every((id) => !trained.has(id))));
});

test('further samples: only of one pass, only held out, and none is reported', async () => {
  const folder = scratch();
  const three = evalSchema.parse({ problems: 4, validationProblems: 3, samples: 3 });
  const grpo = methodByName('grpo');
  const { chosen, validation, bestOnHeldout } = await evaluate(folder, world, three, grpo);
  const all = read(folder);
  assert.deepEqual(
    all.map((e) => [e.deployment, e.split, e.sample]),
    [
      ['A', 'heldout', 0],
      ['A', 'validation', 0],
      ['A', 'heldout', 1],
      ['A', 'heldout', 2],
    ],
  );
  assert.deepEqual([chosen, validation, bestOnHeldout], [all[0], all[1], all[0]]);
  const heldout = all.filter((e) => e.split === 'heldout');
  const samples = heldout.map((e) => JSON.stringify(e.stages));
  assert.equal(new Set(samples).size, 3, 'each has random numbers of its own');
  assert.ok(heldout.every((e) => e.problems.join() === chosen.problems.join()));

  // Asking for fewer reads the first; asking for more makes only the others.
  const one = await evaluate(folder, { ...world, pool: NO_POOL }, EVALUATION, grpo);
  assert.deepEqual(one.chosen, chosen);
  const { where, sampled } = counting();
  await evaluate(folder, where, { ...three, samples: 4 }, grpo);
  assert.equal(sampled(), 4);

  // Two passes or a choice between two adapters have spent their second sample already.
  for (const name of ['agon', 'grpo-self-cascade', 'shared-opponent']) {
    const other = scratch();
    await evaluate(other, world, three, methodByName(name));
    assert.ok(
      read(other).every((e) => e.sample === 0),
      name,
    );
  }
});

test('adapters of an earlier step are evaluated apart; a stop comes before the next deployment', async () => {
  const folder = scratch();
  const method = methodByName('grpo');
  const at = (step?: number, where = world) =>
    evaluateMethod(
      { world: where, folder, method, adapters, config: RUN, evaluation: EVALUATION },
      step === undefined ? {} : { step },
    );
  const [end, early] = [await at(), await at(2)];
  assert.equal(end.chosen.step, undefined);
  assert.equal(early.chosen.step, 2);
  assert.deepEqual(early.chosen.stages, end.chosen.stages, 'the same adapter, the same random numbers');
  assert.equal(read(folder).length, 4);
  assert.deepEqual(await at(2, { ...world, pool: NO_POOL }), early);

  const stop = new AbortController();
  stop.abort();
  const options = { signal: stop.signal };
  const subject = { world, folder, method, adapters, config: RUN, evaluation: EVALUATION };
  await evaluateMethod({ ...subject, world: { ...world, pool: NO_POOL } }, options);
  const other = evalSchema.parse({ problems: 2, validationProblems: 3 });
  await assert.rejects(evaluateMethod({ ...subject, evaluation: other }, options), Interrupted);
  assert.equal(read(folder).length, 4);
});

test('progress counts the answers of both stages', async () => {
  const seen: [number, number, string][] = [];
  const subject = { world, folder: scratch(), method: agon, adapters, config: RUN, evaluation: EVALUATION };
  await evaluateDeployment(subject, ['A', 'B'], 'heldout', {
    onProgress: (done, total, what) => seen.push([done, total, what]),
  });
  assert.deepEqual(seen.at(-1), [8, 8, 'agon A>B heldout']);
  assert.ok(seen.every(([done], i) => i === 0 || done > seen[i - 1]![0]));
});

test('the second stage is shown what its row says, and its trace is counted against that', async () => {
  const question = 'numbers 3 5 7 11 target 24';
  const only = { id: 'p', question, gold: '24', difficulty: 4, split: 'heldout' } as const;
  const task = { ...countdown, problems: () => [only] };
  const path = 'path 7 - 3 = 4 then 11 - 5 = 6 <answer> 6 x 4 </answer>';
  // The challenger tries the rival's dead end first.
  const script: Script = ({ role }) =>
    role === 'challenge'
      ? `<think> try 5 + 3 = 8 then 8 + 7 = 15 dead try 7 - 3 = 4 then 11 - 5 = 6 hit </think> ${path}`
      : `<think> then </think> dead 5 + 3 ${path}`;
  const scripted = scriptedWorld(script, task, loadTokenizer(world.base));
  const final = async (name: string) => {
    const folder = scratch();
    const method = methodByName(name);
    const adapters = namedAdapters();
    const subject = { world: scripted.world, folder, method, adapters, config: RUN, evaluation: EVALUATION };
    const made = await evaluateDeployment(subject, ['A', 'B'], 'heldout');
    const { deadAgain, useful, steps } = made.stages[1]!;
    const told = /rival (.*) <\|im_end\|>/.exec(scripted.asked.at(-1)!.prompt)![1]!;
    return { counts: [deadAgain[0], useful[0], steps[0]], told };
  };
  const [dead, way] = ['dead 5 + 3', 'path 7 - 3 = 4 then 11 - 5 = 6'];
  const knows = { counts: [1, 1, 2] };
  assert.deepEqual(await final('agon'), { ...knows, told: `${dead} ${way}` });
  assert.deepEqual(await final('agon-shows-dead-ends'), { ...knows, told: dead });
  assert.deepEqual(await final('agon-shows-trace'), { ...knows, told: `then ${dead} ${way}` });
  assert.deepEqual(await final('agon-shows-answer'), { ...knows, told: `${dead} ${path}` });
  // Who was not told of the dead end does not enter it again.
  const free = { counts: [0, 2, 2] };
  assert.deepEqual(await final('agon-shows-path'), { ...free, told: way });
  assert.deepEqual(await final('agon-shows-nothing'), { ...free, told: 'none' });
});

/** A stage of five problems; columns that are not given hold what no number of the table looks at. */
function stage(adapter: 'A' | 'B', columns: Partial<Stage>): Stage {
  const ones = [1, 1, 1, 1, 1];
  return {
    adapter,
    correct: '00000',
    formatted: '11111',
    truncated: '00000',
    promptTokens: ones,
    completionTokens: ones,
    logProb: ones,
    proposal: [null, null, null, null, null],
    steps: ones,
    useful: ones,
    repeated: ones,
    deadAgain: ones,
    wrong: ones,
    ...columns,
  };
}

test('kept, converted, copied, counted and paid for, on an evaluation made by hand', () => {
  const draft = stage('B', {
    correct: '11100',
    promptTokens: [9, 9, 9, 9, 9],
    completionTokens: [10, 11, 12, 13, 14],
    proposal: [7, 8, 9, null, 4],
  });
  const final = stage('A', {
    correct: '11010',
    promptTokens: [20, 20, 20, 20, 25],
    completionTokens: [20, 20, 20, 20, 20],
    proposal: [7, 8, 3, 5, 4],
    useful: [3, 2, 0, 1, 1],
    repeated: [0, 0, 2, 0, 0],
    wrong: [0, 0, 0, 0, 1],
  });
  const made: Evaluation = {
    eval: { temperature: 0.6, topP: 0.95, cap: 12, seed: 3, minDifficulty: 4, maxDifficulty: 16 },
    deployment: 'B>A',
    split: 'heldout',
    sample: 0,
    problems: ['p', 'q', 'r', 's', 't'],
    stages: [draft, final],
    seconds: 2,
  };
  const own = { seed: 3, runId: 'agon-s3-x', backend: 'wasm' };
  // The first step waits for workers to start; the tokens are counted up.
  const metrics = [
    { step_time: 9, num_tokens: 3000 },
    { step_time: 1, num_tokens: 6000 },
    { step_time: 2, num_tokens: 8000 },
    { step_time: 1, num_tokens: 9000 },
  ];
  const facts = { ...own, metrics };
  const result = methodResult(agon, made, facts);
  assert.deepEqual(result, {
    method: 'agon',
    ...own,
    steps: 4,
    secondsPerStep: 1.5,
    trainingTokens: 9000,
    correct: 3,
    total: 5,
    draftTokens: 12,
    finalTokens: 20,
    totalTokens: 32,
    promptTokens: 9 + 21,
    secondsPerProblem: 0.4,
    direction: 'B>A',
    draftCorrect: 3,
    keep: 2 / 3,
    convert: 1 / 2,
    copied: 3 / 4,
    usefulPer100: 7,
    repeatedPer100: 2,
    wrongPer100: 1,
  });
  assert.deepEqual(methodResultSchema.parse(result), result);
  assert.equal(per100(draft, [0, 3, 0, 3, 0]), 10, 'per generated token, not the mean of shares');

  const solo: Evaluation = { ...made, deployment: 'A', stages: [final] };
  const single = methodResult(methodByName('grpo'), solo, { ...own, metrics: [] });
  assert.equal(single.steps, 0);
  assert.deepEqual(
    [single.correct, single.draftTokens, single.totalTokens, single.promptTokens, single.direction],
    [3, 0, 20, 21, '-'],
  );
  for (const name of ['keep', 'convert', 'copied', 'draftCorrect', 'secondsPerStep', 'trainingTokens'])
    assert.ok(!(name in single), name);
  // One way to deploy, though in two stages: no direction to name, but what was kept is known.
  const self = methodResult(methodByName('self-refinement'), { ...made, deployment: 'A>A' }, facts);
  assert.deepEqual([self.direction, self.keep], ['-', 2 / 3]);
  // No draft was wrong: what would have been converted is not known.
  const sure = methodResult(agon, { ...made, stages: [{ ...draft, correct: '11111' }, final] }, facts);
  assert.ok(!('convert' in sure));
  assert.equal(sure.keep, 3 / 5);
  const mute = methodResult(agon, { ...made, stages: [stage('B', {}), final] }, facts);
  assert.ok(!('copied' in mute) && !('keep' in mute), 'no proposal, no copy');
});
