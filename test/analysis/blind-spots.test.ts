import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { meanOverlap, overlap, readingOf } from '../../lib/analysis/complementarity.js';
import { blindSpotsReport } from '../../lib/analysis/studies/blind-spots.js';
import type { Evaluation, Stage } from '../../lib/experiments/evaluation.js';
import type { ArmResult } from '../../lib/experiments/study.js';
import { cellsOf, fixtureArms, fixtureExperiment, fixtureStudy, PROBLEMS } from './arms.js';

const column = (values: readonly number[]) => [...values];

function stage(correct: string, proposal: readonly (number | null)[] = [...correct].map(() => null)): Stage {
  const zeros = column([...correct].map(() => 0));
  return {
    adapter: 'A',
    correct,
    formatted: correct,
    truncated: correct,
    promptTokens: zeros,
    completionTokens: zeros,
    logProb: zeros,
    proposal: [...proposal],
    steps: zeros,
    useful: zeros,
    repeated: zeros,
    deadAgain: zeros,
    wrong: zeros,
  };
}

test('overlap is of the wrong answers', () => {
  // Wrong: {2, 3, 4} and {3, 4, 5} of six.
  const found = overlap(stage('110001'), stage('111000'));
  assert.deepEqual([found.firstWrong, found.secondWrong, found.bothWrong], [0.5, 0.5, 2 / 6]);
  assert.equal(found.jaccard, 2 / 4);
  // (2 * 2 - 1 * 1) / 9.
  assert.ok(Math.abs(found.phi! - 1 / 3) < 1e-12);
  const mean = meanOverlap([found, overlap(stage('111111'), stage('111111'))]);
  assert.equal(mean.firstWrong, 0.25);
  assert.equal(mean.jaccard, 0.5, 'a pair without wrong answers has no Jaccard and does not count');
});

test('what is kept, converted and copied, by hand', () => {
  const evaluation = (draft: Stage, final: Stage) =>
    ({ deployment: 'A>B', stages: [draft, final] }) as Evaluation;
  // Drafts right at 0, 1, 2; finals right at 0, 1, 3. Proposals copied at 0 and 4; draft 2 proposes nothing.
  const found = readingOf(evaluation(stage('11100', [7, 8, null, 9, 5]), stage('11010', [7, 1, 2, 3, 5])));
  assert.deepEqual(found, {
    draftRight: 3 / 5,
    finalRight: 3 / 5,
    kept: 2 / 3,
    converted: 1 / 2,
    copied: 2 / 4,
    copiedRight: 1 / 2,
    copiedWrong: 1 / 2,
  });
  assert.equal(readingOf(evaluation(stage('11'), stage('11'))).converted, undefined);
  assert.throws(
    () => readingOf({ deployment: 'A', stages: [stage('1')] } as unknown as Evaluation),
    /one pass/,
  );
});

/** Replaces the right answers of a run's held-out evaluation of a deployment's first stage. */
function withFirstStage(arm: ArmResult, deployment: string, sample: number, correct: string): ArmResult {
  const evaluations = arm.evaluations.map((e) =>
    e.deployment === deployment && e.split === 'heldout' && e.sample === sample
      ? { ...e, stages: [{ ...e.stages[0]!, correct }, ...e.stages.slice(1)] }
      : e,
  );
  const chosen = evaluations[arm.evaluations.indexOf(arm.chosen)]!;
  return { ...arm, evaluations, chosen };
}

const study = fixtureStudy('main', [fixtureExperiment({ methods: ['grpo', 'agon'], saveSteps: 2 })]);

test('A and B that fail apart are told from two samples that fail together', () => {
  const half = '1'.repeat(PROBLEMS / 2) + '0'.repeat(PROBLEMS / 2);
  const other = '0'.repeat(PROBLEMS / 2) + '1'.repeat(PROBLEMS / 2);
  const arms = fixtureArms(study, () => 0.5).map((arm) =>
    arm.method.name === 'agon'
      ? // One problem aside, B fails where A does not; the seeds differ a little.
        withFirstStage(
          withFirstStage(arm, 'A>B', 0, half),
          'B>A',
          0,
          `${arm.seed > 0 ? '1' : '0'}${other.slice(1)}`,
        )
      : withFirstStage(withFirstStage(arm, 'A', 0, half), 'A', 1, half),
  );
  const report = blindSpotsReport(study, arms);
  const rows = cellsOf(report, 'main-blind-spots');
  const by = (pair: string) => rows.find((row) => row.pair === pair)!;
  assert.equal(by('two samples of grpo').phi, '1');
  assert.equal(by('two grpo adapters, different seeds').phi, '1');
  assert.equal(by('two grpo adapters, different seeds')['phi interval'], '1.000 to 1.000');
  assert.ok(Number(by('A and B of agon').phi) < -0.95);
  assert.match(report.notes.join(), /A and B of agon.*they fail at more different problems/);
});

test('the pair over training: a row per kept checkpoint, distances from the run folder', () => {
  const arms = fixtureArms(study, () => 0.5).map((arm) => {
    const folder = mkdtempSync(join(tmpdir(), 'distance-'));
    const lines = [2, 4].flatMap((step) => [
      { step, from: 'A', to: 'B', nats: 0.1 * step, tokens: 10 },
      { step, from: 'B', to: 'A', nats: 0.3 * step, tokens: 10 },
    ]);
    writeFileSync(join(folder, 'distance.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return { ...arm, folder };
  });
  const report = blindSpotsReport(study, arms);
  const rows = cellsOf(report, 'main-pair-over-training');
  assert.deepEqual(
    rows.map((row) => [row.method, row.step, row['KL A from B'], row['KL B from A'], row['KL A from base']]),
    [
      ['agon', '2', '0.2', '0.6', 'NaN'],
      ['agon', '4', '0.4', '1.2', 'NaN'],
    ],
  );
  const figure = report.figures.find((f) => f.name === 'main-pair-over-training')!;
  const distance = figure.spec.data.find((trace) => 'yaxis' in trace && trace.yaxis === 'y4') as {
    y: number[];
  };
  assert.deepEqual(
    distance.y.map((y) => y.toFixed(3)),
    ['0.400', '0.800'],
  );
});
