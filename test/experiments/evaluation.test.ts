/** One evaluation as a record: what fits, what is found again, and what is read off its columns, by hand. */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  copiedShare,
  countCorrect,
  draftStage,
  type Evaluation,
  type EvaluationQuery,
  EvaluationStore,
  evaluationSchema,
  finalStage,
  flagsOf,
  type Stage,
  stageOf,
} from '../../lib/experiments/evaluation.js';
import { check } from '../../lib/files.js';
import { hash32 } from '../../lib/random.js';
import type { Attempt, Problem } from '../../lib/records.js';
import { countdown } from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/index.js';
import { scratch } from './support.js';

/** A stage of n problems with the given columns; the others are zeros. */
function stage(n: number, columns: Partial<Stage> = {}): Stage {
  const zeros = new Array<number>(n).fill(0);
  const no = '0'.repeat(n);
  const [flags, counts] = [
    { correct: no, formatted: no, truncated: no },
    { steps: zeros, useful: zeros, repeated: zeros, deadAgain: zeros, wrong: zeros },
  ];
  const tokens = { promptTokens: zeros, completionTokens: zeros, logProb: zeros, proposal: zeros };
  return { adapter: 'A', ...flags, ...tokens, ...counts, ...columns };
}

function evaluationOf(stages: Stage[], changes: Partial<Evaluation> = {}): Evaluation {
  const n = stages[0]!.correct.length;
  return {
    eval: { temperature: 0.6, topP: 0.95, cap: 200, seed: 0, minDifficulty: 4, maxDifficulty: 16 },
    deployment: stages.length > 1 ? 'B>A' : 'A',
    split: 'heldout',
    sample: 0,
    problems: Array.from({ length: n }, (_, i) => `p${i}`),
    stages,
    seconds: 1.5,
    ...changes,
  };
}

test('a whole record is taken as it is', () => {
  const record = evaluationOf([stage(3, { adapter: 'B', proposal: [null, 7, 0] }), stage(3)], { step: 20 });
  assert.deepEqual(check(evaluationSchema, JSON.parse(JSON.stringify(record)), 'x'), record);
});

test('a column of another length is refused, and named', () => {
  const whole = stage(3);
  const columns = Object.keys(whole).filter((name) => name !== 'adapter') as (keyof Stage)[];
  assert.equal(columns.length, 12);
  for (const name of columns)
    for (const [column, length] of [
      [whole[name].slice(1), 2],
      [typeof whole[name] === 'string' ? '0000' : [0, 0, 0, 0], 4],
    ] as const) {
      const record = evaluationOf([whole, { ...whole, [name]: column }]);
      const message = `eval.jsonl line 1 does not fit:\n  stages.1.${name}: holds ${length} values for 3 problems`;
      assert.throws(
        () => check(evaluationSchema, record, 'eval.jsonl line 1'),
        (error: Error) =>
          error.message.startsWith(message) && !error.message.slice(message.length).includes('\n'),
      );
    }
  const both = evaluationOf([stage(3, { steps: [1] }), stage(3, { wrong: [] })]);
  assert.throws(
    () => check(evaluationSchema, both, 'x'),
    /stages\.0\.steps: .*1 values.*\n.*stages\.1\.wrong: .*0 values/,
  );
});

test('what no evaluation holds is refused, field by field', () => {
  const fits = (record: unknown) => check(evaluationSchema, record, 'x');
  const one = stage(2);
  const cases: [unknown, RegExp][] = [
    [evaluationOf([stage(2, { correct: '1x' })]), /stages\.0\.correct: /],
    [evaluationOf([stage(2, { useful: [1, -1] })]), /stages\.0\.useful\.1: .*>=0.*found -1/],
    [evaluationOf([stage(2, { promptTokens: [1.5, 1] })]), /stages\.0\.promptTokens\.0: .*int/],
    [
      evaluationOf([{ ...one, adapter: 'D' as 'A' }]),
      /stages\.0\.adapter: .*"A"\|"B"\|"C"\|"base".*found "D"/,
    ],
    [evaluationOf([one, one, one]), /stages: .*<=2/],
    [evaluationOf([one], { stages: [] }), /stages: .*>=1/],
    [evaluationOf([one], { problems: [] }), /problems: .*>=1/],
    [evaluationOf([one], { split: 'train' as 'heldout' }), /split: .*"validation"\|"heldout".*found "train"/],
    [evaluationOf([one], { step: -1 }), /step: .*>=0/],
    [{ ...evaluationOf([one]), shows: 'path' }, /Unrecognized key: "shows"/],
    [{ ...evaluationOf([one]), sample: undefined }, /sample: /],
  ];
  for (const [record, message] of cases) assert.throws(() => fits(record), message);
});

test('a store finds by everything an evaluation follows from', () => {
  const path = join(scratch(), 'eval.jsonl');
  const store = new EvaluationStore(path);
  const made = evaluationOf([stage(3)]);
  const query: EvaluationQuery = made;
  assert.equal(store.find(query), undefined);
  assert.ok(!existsSync(path), 'looking writes nothing');
  store.add(made);
  assert.equal(store.find(query), made);
  assert.deepEqual(new EvaluationStore(path).find(query), made);

  const others: Partial<EvaluationQuery>[] = [
    { eval: { ...query.eval, temperature: 0.7 } },
    { eval: { ...query.eval, topP: 1 } },
    { eval: { ...query.eval, cap: 110 } },
    { eval: { ...query.eval, seed: 1 } },
    { eval: { ...query.eval, minDifficulty: 1 } },
    { eval: { ...query.eval, maxDifficulty: 8 } },
    { deployment: 'B' },
    { split: 'validation' },
    { step: 0 },
    { step: 20 },
    { sample: 1 },
    { problems: query.problems.slice(0, 2) },
    { problems: [...query.problems].reverse() },
  ];
  for (const change of others)
    assert.equal(store.find({ ...query, ...change }), undefined, JSON.stringify(change));
  // The order in which a record names its fields says nothing.
  const { maxDifficulty, ...rest } = query.eval;
  assert.equal(store.find({ ...query, eval: { maxDifficulty, ...rest } }), made);
});

test('steps and samples stand beside each other in one file, a line each', () => {
  const path = join(scratch(), 'eval.jsonl');
  const all = [{}, { sample: 1 }, { step: 20 }, { step: 20, sample: 1 }, { step: 40 }].map((change, i) =>
    evaluationOf([stage(3, { promptTokens: [i, i, i] })], change),
  );
  for (const made of all) new EvaluationStore(path).add(made);
  const store = new EvaluationStore(path);
  for (const made of all) assert.deepEqual(store.find(made), made);
  assert.deepEqual(store.all, all);
  assert.equal(readFileSync(path, 'utf8').trimEnd().split('\n').length, all.length);

  // What a killed process left of a line is dropped; a line that does not fit is named.
  appendFileSync(path, '{"eval":{"temp');
  assert.deepEqual(new EvaluationStore(path).all, all);
  const broken = { ...all[1]!, stages: [stage(3, { logProb: [0] })] };
  writeFileSync(path, [all[0]!, broken].map((line) => `${JSON.stringify(line)}\n`).join(''));
  assert.throws(
    () => new EvaluationStore(path),
    /eval\.jsonl line 2 does not fit:\n {2}stages\.0\.logProb: holds 1/,
  );
});

test('copies: of the proposals the rival made, those that the final answer settles for', () => {
  const draft = stage(5, { correct: '01011', proposal: [7, 7, null, 9, 3] });
  const pair = evaluationOf([draft, stage(5, { proposal: [7, 8, 5, 9, null] })]);
  assert.equal(copiedShare(pair), 2 / 4, 'the third draft proposed nothing, and is no part of it');
  const wrong = flagsOf(draft.correct).map((right) => !right);
  assert.equal(
    copiedShare(pair, (i) => wrong[i]!),
    1,
    'of the two wrong drafts one proposed',
  );
  assert.equal(
    copiedShare(pair, (i) => !wrong[i]!),
    1 / 3,
  );
  assert.equal(
    copiedShare(pair, (i) => i === 2),
    undefined,
    'nothing was proposed',
  );
  assert.equal(
    copiedShare(pair, () => false),
    undefined,
  );
  assert.equal(copiedShare(evaluationOf([draft])), undefined, 'one pass has nobody to copy');
});

test('stages by what they do', () => {
  const [first, second] = [stage(4, { correct: '1100' }), stage(4, { correct: '1011' })];
  const pair = evaluationOf([first, second]);
  assert.equal(finalStage(pair), second);
  assert.equal(draftStage(pair), first);
  assert.equal(countCorrect(pair), 3);
  const solo = evaluationOf([first]);
  assert.equal(finalStage(solo), first);
  assert.equal(draftStage(solo), undefined);
  assert.equal(countCorrect(solo), 2);
  assert.deepEqual(flagsOf('0110'), [false, true, true, false]);
  assert.deepEqual(flagsOf(''), []);
});

const PUZZLE: Problem = {
  id: 'p',
  question: 'numbers 3 5 7 11 target 24',
  gold: '24',
  difficulty: 1,
  split: 'heldout',
};

function attempt(text: string, logProbs: number[], more: Partial<Attempt> = {}, cut = false): Attempt {
  const finishReason = cut ? 'length' : 'stop';
  const completion = parseCompletion(text, finishReason);
  return {
    problem: PUZZLE,
    adapter: 'C',
    role: 'challenge',
    rollout: { promptIds: [1, 2], completionIds: logProbs.map(() => 3), logProbs, finishReason },
    completion,
    correct: countdown.verify(PUZZLE, completion),
    formatted: completion.formatted,
    ...more,
  };
}

test('attempts as columns', () => {
  const right =
    '<think> try 7 - 3 = 4 then 11 - 5 = 6 </think> path 7 - 3 = 4 then 11 - 5 = 6 <answer> 6 x 4 </answer>';
  const attempts = [
    attempt(right, [-0.5, -0.25, 0]),
    attempt('<think> try 7 - 3 = 4 then 11 - 5 = 6 then 11 - 5 = 6 then 5 + 4 = 8', [-2], {}, true),
    attempt('<think> </think> 24 <answer> 24 </answer>', [-1 / 3, -1 / 3]),
  ];
  const shown: (string | undefined)[] = ['dead 5 + 3', 'dead 7 - 3', undefined];
  const asked: Attempt[] = [];
  const columns = stageOf(countdown, attempts, (a) => {
    asked.push(a);
    return shown[attempts.indexOf(a)];
  });
  assert.deepEqual(asked, attempts);
  assert.deepEqual(columns, {
    adapter: 'C',
    correct: '100',
    formatted: '101',
    truncated: '010',
    promptTokens: [2, 2, 2],
    completionTokens: [3, 1, 2],
    logProb: [-0.25, -2, -0.3333],
    proposal: [hash32('7 - 3 = 4 then 11 - 5 = 6 then 6 x 4'), null, null],
    steps: [1, 3, 0],
    // The second enters what its rival ruled out, and hits there.
    useful: [1, 1, 0],
    repeated: [0, 1, 0],
    deadAgain: [0, 1, 0],
    wrong: [0, 1, 0],
  });
  assert.deepEqual(evaluationSchema.parse(evaluationOf([columns])).stages, [columns]);
});
