import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { MAIN_METHODS } from '../../lib/agon/methods.js';
import { toCsv } from '../../lib/analysis/formats.js';
import { studyReport, writeStudyReport } from '../../lib/analysis/studies/index.js';
import { stream } from '../../lib/random.js';
import { cellsOf, fixtureArms, fixtureExperiment, fixtureStudy, PROBLEMS } from './arms.js';

const five = [0, 1, 2, 3, 4];
const mainStudy = fixtureStudy('main', [
  fixtureExperiment({
    methods: MAIN_METHODS,
    seeds: five,
    saveSteps: 2,
    eval: { problems: PROBLEMS, validationProblems: 40, samples: 8 },
  }),
]);
const SKILLS: Record<string, number> = {
  'zero-shot': 0.1,
  'moa-untrained': 0.1,
  cooperative: 0.5,
  agon: 0.55,
};
const mainArms = fixtureArms(mainStudy, (method) => SKILLS[method] ?? 0.4);
const mainReport = studyReport(mainStudy, mainArms);

test('main: eight rows, the direction of the held-out problems never below the chosen one, the paper beside', () => {
  const rows = cellsOf(mainReport, 'main');
  assert.deepEqual(
    rows.map((row) => row.method),
    MAIN_METHODS,
  );
  for (const row of rows) {
    assert.ok(Number(row['direction by held-out: pass@1 %']) >= Number(row['pass@1 %']), row.method);
    assert.equal(row.seeds, '5');
  }
  assert.equal(rows.at(-1)!['paper pass@1 %'], '61');
});

test('main: every run has a row that its evaluation counts out', () => {
  const rows = cellsOf(mainReport, 'main-runs');
  assert.equal(rows.length, 40);
  for (const [i, arm] of mainArms.entries()) {
    const right = [...arm.chosen.stages.at(-1)!.correct].filter((bit) => bit === '1').length;
    assert.equal(rows[i]!.correct, String(right));
    assert.equal(rows[i]!.run, arm.result.runId);
  }
});

test('main: differences are the mean over seeds, and what differs is said', () => {
  const rows = cellsOf(mainReport, 'main-differences');
  const row = rows.find((r) => r.comparison === 'grpo \u2212 zero-shot')!;
  const accuracy = (method: string) =>
    mainArms.filter((a) => a.method.name === method).map((a) => a.result.correct / PROBLEMS);
  const [grpo, base] = [accuracy('grpo'), accuracy('zero-shot')];
  const mean = grpo.reduce((sum, value, i) => sum + value - base[i]!, 0) / 5;
  assert.equal(Number(row['difference, points']), Math.round(1000 * mean) / 10);
  // All five seeds gain: the smallest p that five seeds can give.
  assert.equal(row['sign-flip p'], '0.0625');
  assert.ok(mainReport.notes.some((n) => n.startsWith('Told apart') && n.includes('grpo \u2212 zero-shot')));
  assert.ok(mainReport.notes.some((n) => n.includes('cannot give a p below 0.0625')));
});

const LABELS = ['one', 'two', 'three'];
const regimes = fixtureStudy(
  'regimes',
  LABELS.map((label, i) =>
    fixtureExperiment({
      label,
      run: { maxSteps: 4 + i, problemsPerStep: 2, minDifficulty: 4, maxDifficulty: 16, grpo: {}, lora: {} },
    }),
  ),
);

test('labels: exchange and competition under each label, pooled over labels with runs of their own, drawn side by side', () => {
  const report = studyReport(
    regimes,
    fixtureArms(regimes, (method, _, label) => (method === 'agon' && label === 'two' ? 0.95 : 0.3)),
  );
  assert.deepEqual(
    report.tables.map((t) => t.name),
    ['regimes', 'regimes-differences', 'regimes-pooled', 'regimes-runs'],
  );
  const competition = cellsOf(report, 'regimes-differences').filter((row) => row.what === 'competition');
  assert.deepEqual(
    competition.map((row) => row.label),
    LABELS,
  );
  assert.ok(Number(competition[1]!['lowest seed']) > 0);
  assert.match(report.notes.join('\n'), /Told apart.*two: agon \u2212 cooperative/);
  const [figure] = report.figures;
  assert.deepEqual(figure!.spec.layout.yaxis1!.ticktext, LABELS);
  assert.equal(figure!.spec.layout.xaxis1!.zeroline, true);
});

test('labels that share their runs (transfer) are not pooled', () => {
  const transfer = fixtureStudy(
    'transfer',
    LABELS.map((label, i) =>
      fixtureExperiment({
        label,
        eval: { problems: PROBLEMS, validationProblems: 40, minDifficulty: 1 + i, maxDifficulty: 20 },
      }),
    ),
  );
  const report = studyReport(
    transfer,
    fixtureArms(transfer, () => 0.4),
  );
  assert.ok(!report.tables.some((t) => t.name === 'transfer-pooled'));
});

test('group size: each label against N = 8, on the same problems', () => {
  const sizes = [2, 8].map((n) =>
    fixtureExperiment({
      label: `N = ${n}`,
      methods: ['cooperative', 'agon'],
      run: {
        maxSteps: 4,
        problemsPerStep: 2,
        minDifficulty: 4,
        maxDifficulty: 16,
        grpo: { numGenerations: n },
        lora: {},
      },
    }),
  );
  const study = fixtureStudy('group-size', sizes);
  const rows = cellsOf(
    studyReport(
      study,
      fixtureArms(study, () => 0.4),
    ),
    'group-size-differences',
  );
  const across = rows.find((row) => row.comparison === 'agon: N = 2 \u2212 N = 8')!;
  assert.equal(across.label, '');
  assert.notEqual(across['bootstrap over problems and seeds'], '');
});

test('one seed has no interval over seeds, and is said to be one', () => {
  const study = fixtureStudy('more', [fixtureExperiment({ methods: ['cooperative', 'agon'], seeds: [3] })]);
  const report = studyReport(
    study,
    fixtureArms(study, () => 0.4),
  );
  const [row] = cellsOf(report, 'more-differences');
  assert.equal(row!['t interval over seeds'], '');
  assert.match(report.notes.join('\n'), /\(one seed\)/);
});

test('a method with two runs of one seed under one label, and a study without runs, are refused', () => {
  const study = fixtureStudy('more', [fixtureExperiment({ methods: ['agon'], seeds: [0] })]);
  const arms = fixtureArms(study, () => 0.4);
  assert.throws(() => studyReport(study, [...arms, ...arms]), /agon has two runs of seed 0/);
  assert.throws(() => studyReport(study, []), /study more: there are no runs/);
});

test('a report is written as CSV, Markdown and LaTeX, its notes under the first table, and repeats itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'study-report-'));
  const { tables, notes } = mainReport;
  const written = await writeStudyReport({ tables: tables.slice(0, 2), figures: [], notes }, folder);
  assert.deepEqual(
    written.map((path) => basename(path)),
    ['main', 'main-differences'].flatMap((name) => ['csv', 'md', 'tex'].map((ext) => `${name}.${ext}`)),
  );
  const markdown = readFileSync(written[1]!, 'utf8');
  assert.ok(markdown.includes(notes[0]!) && markdown.startsWith(tables[0]!.caption));
  assert.ok(!readFileSync(written[4]!, 'utf8').includes(notes[0]!));
  const again = studyReport(
    mainStudy,
    fixtureArms(mainStudy, (method) => SKILLS[method] ?? 0.4),
  );
  assert.deepEqual(
    again.tables.map((t) => toCsv(t.frame)),
    tables.map((t) => toCsv(t.frame)),
  );
});

test('seeds that agree by chance more closely than so few answers can do not tell methods apart', () => {
  const study = fixtureStudy('more', [
    fixtureExperiment({ methods: ['agon', 'agon-ring'], seeds: [0, 1, 2] }),
  ]);
  // Every seed of the ring has one more right answer of 60: a t interval of no width, and far less than the noise.
  const arms = fixtureArms(study, () => 0.5).map((arm) => {
    const right = arm.method.name === 'agon' ? 30 : 31;
    const stage = { ...arm.chosen.stages.at(-1)!, correct: shuffledBits(right, `${arm.seed} ${right}`) };
    const chosen = { ...arm.chosen, stages: [arm.chosen.stages[0]!, stage] };
    return { ...arm, chosen, result: { ...arm.result, correct: right } };
  });
  const report = studyReport(study, arms);
  const [row] = cellsOf(report, 'more-differences');
  assert.equal(row!['t interval over seeds'], '1.7 to 1.7');
  assert.match(row!['bootstrap over problems and seeds']!, /^-\d/);
  assert.match(report.notes.join('\n'), /No two of the methods compared are told apart/);
});

function shuffledBits(ones: number, name: string): string {
  return stream('bits', name)
    .shuffle(Array.from({ length: PROBLEMS }, (_, i) => (i < ones ? '1' : '0')))
    .join('');
}
