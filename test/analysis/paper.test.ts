import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataFrame } from 'danfojs-node';
import { printedInterval, readPaper } from '../../lib/analysis/paper.js';
import { studyReport } from '../../lib/analysis/studies/index.js';
import {
  ablationFigure,
  ablationTable,
  codeFigure,
  codeTable,
  decompositionTable,
  scalingFigure,
  scalingTable,
  tiebreakFigure,
  tiebreakTable,
  transferFigure,
  transferTable,
} from '../../lib/analysis/studies/paper.js';
import type { ArmResult } from '../../lib/experiments/study.js';
import { fixtureArms, fixtureExperiment, fixtureStudy, PROBLEMS } from './arms.js';
import { matchesSpec } from './golden.js';

const SKILLS: Record<string, number> = { agon: 0.6, cooperative: 0.5, 'agon-margin': 0.45 };
const skill = (method: string) => SKILLS[method] ?? 0.3;
const arms = (name: string, experiments: readonly Record<string, unknown>[]) =>
  fixtureArms(fixtureStudy(name, experiments.map(fixtureExperiment)), skill);

const ablations = arms('ablations', [
  {
    methods: ['agon', 'cooperative', 'agon-margin', 'shared-opponent', 'agon-tiebreak', 'agon-tiebreak-1'],
  },
]);
const labelled = (labels: readonly string[]) =>
  labels.map((label, i) => ({
    label,
    eval: { problems: PROBLEMS, validationProblems: 40, minDifficulty: 1 + i, maxDifficulty: 20 },
  }));

const rowsOf = (frame: DataFrame): Record<string, unknown>[] =>
  frame.values.map((row) =>
    Object.fromEntries(frame.columns.map((c: string, i: number) => [c, (row as unknown[])[i]])),
  );
const accuracies = (all: readonly ArmResult[], method: string, label = '') =>
  all
    .filter((arm) => arm.method.name === method && arm.label === label)
    .map((arm) => (100 * arm.result.correct) / PROBLEMS);
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const rounded = (value: number) => Math.round(10 * value) / 10;

test('printed intervals are the exact ones of 300 problems, to within what the paper prints itself', () => {
  const paper = readPaper();
  for (const { pass1, ci95 } of paper.main) {
    const { low, high } = printedInterval(pass1, paper);
    assert.ok(Math.abs(low - ci95[0]) < 0.2 && Math.abs(high - ci95[1]) < 0.2, `${pass1}: ${low}, ${high}`);
  }
});

test('ablations: every factor of the paper has a row, ours beside it, and what is not run has no number', () => {
  const rows = rowsOf(ablationTable(ablations));
  assert.deepEqual(
    rows.map((row) => [row.factor, row['paper off %'], row['paper on %'], row['paper on \u2212 off']]),
    [
      ['competition', 46, 61, 15],
      ['information exchange', 32, 61, 29],
      ['reward form', 49, 61, 12],
      ['role assignment', 52, 61, 9],
    ],
  );
  const on = accuracies(ablations, 'agon');
  for (const [i, method] of ['cooperative', 'shared-opponent', 'agon-margin'].entries()) {
    const off = accuracies(ablations, method);
    assert.equal(rows[i]!['off %'], rounded(mean(off)));
    assert.equal(rows[i]!['on %'], rounded(mean(on)));
    assert.equal(rows[i]!['on \u2212 off, points'], rounded(mean(on.map((value, s) => value - off[s]!))));
    assert.match(String(rows[i]!['t interval over seeds']), /^-?[\d.]+ to -?[\d.]+$/);
  }
  const { seeds, 'off %': off, 't interval over seeds': interval } = rows[3]!;
  assert.deepEqual([seeds, off, interval], [0, Number.NaN, '']);
});

test('tiebreak: tokens and accuracy less Agon, the paper beside the weight we take for its own', () => {
  const rows = rowsOf(tiebreakTable(ablations));
  assert.deepEqual(
    rows.map((row) => [row.weight, row.seeds, row['paper final tokens']]),
    [
      [0, 3, 3500],
      [0.1, 0, Number.NaN],
      [0.5, 3, 2600],
      [1, 3, Number.NaN],
    ],
  );
  const tokens = (method: string) =>
    ablations.filter((arm) => arm.method.name === method).map((arm) => arm.result.finalTokens);
  const difference = mean(tokens('agon-tiebreak').map((value, s) => value - tokens('agon')[s]!));
  assert.equal(rows[2]!['tokens less Agon'], rounded(difference));
  assert.equal(rows[0]!['tokens less Agon: t interval'], '');
});

test('decomposition: a challenger that reads right drafts is counted apart', () => {
  const main = arms('main', [{ methods: ['agon'], seeds: [0, 1, 2] }]);
  const rows = rowsOf(decompositionTable(main));
  const tokens = main.map(({ chosen: { stages } }) => {
    const [draft, final] = stages;
    const own = final!.completionTokens.filter((_, i) => draft!.correct[i] === '1');
    return { right: mean(own), all: mean(final!.completionTokens) };
  });
  assert.deepEqual(
    rows.map((row) => row.paper),
    ['46', '61', '3500', '2300', '', '0.66'],
  );
  assert.equal(rows[1]!.here, rounded(mean(accuracies(main, 'agon'))).toFixed(1));
  assert.equal(rows[3]!.here, rounded(mean(tokens.map((t) => t.right))).toFixed(1));
  assert.equal(rows[5]!.here, mean(tokens.map((t) => t.right / t.all)).toFixed(2));
  assert.equal(rows[1]!['paper: exact interval'], '55.2\u201366.6');
});

test('transfer and scaling: our rows, then the rows of the paper, which are said not to be run here', () => {
  const labels = ['difficulty 1', 'difficulty 13..40'];
  const transfer = arms('transfer', labelled(labels));
  const scaling = arms('scaling', labelled(['0.16M', '0.53M']));
  const rows = rowsOf(transferTable(transfer));
  assert.deepEqual(
    rows.map((row) => [row.problems, row.where]),
    [
      ...labels.map((label) => [label, 'here']),
      ['GSM8K', 'paper; not run here'],
      ['MATH-500', 'paper; not run here'],
    ],
  );
  assert.equal(rows[0]!['grpo %'], rounded(mean(accuracies(transfer, 'grpo', 'difficulty 1'))));
  assert.equal(rows[3]!['agon \u2212 grpo, points'], 12);
  assert.equal(rowsOf(scalingTable(scaling)).length, 2 + 5);
  matchesSpec('transfer', transferFigure(transfer));
  matchesSpec('scaling', scalingFigure(scaling));
});

test('code: the second domain in the columns of the main table beside CodeContests', () => {
  const domain = arms('domain', [
    { methods: ['zero-shot', 'grpo', 'cooperative', 'agon', 'self-refinement'] },
  ]);
  const rows = rowsOf(codeTable(domain));
  assert.deepEqual(
    rows.map((row) => row['paper pass@1 %']),
    [18, 24, 29, 34, Number.NaN],
  );
  assert.equal(rows[3]!['pass@1 %'], rounded(mean(accuracies(domain, 'agon'))));
  assert.equal(codeFigure(domain).data.length, 5 + 4);
});

test('the figures of ablations and tiebreak are the committed specs', () => {
  matchesSpec('ablations', ablationFigure(ablations));
  matchesSpec('tiebreak', tiebreakFigure(ablations));
});

test('the reports of the studies hold them', () => {
  const study = fixtureStudy('ablations', [fixtureExperiment({ methods: ['agon', 'cooperative'] })]);
  const report = studyReport(study, fixtureArms(study, skill));
  const names = (list: readonly { name: string }[]) => list.map(({ name }) => name);
  assert.deepEqual(names(report.tables).slice(-2), ['ablations-paper', 'ablations-tiebreak']);
  assert.deepEqual(names(report.figures), ['ablations', 'ablations-paper', 'ablations-tiebreak']);
  // Cut to one method that no table of the paper is about, nothing of the paper is drawn from nothing.
  const cut = fixtureStudy('main', [fixtureExperiment({ methods: ['grpo'] })]);
  assert.ok(!names(studyReport(cut, fixtureArms(cut, skill)).tables).includes('main-decomposition'));
});
