import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DataFrame } from 'danfojs-node';
import { escapeLatex, toCsv, toLatex, toMarkdown } from '../../lib/analysis/formats.js';
import { honestNotes } from '../../lib/analysis/notes.js';
import { readPaper } from '../../lib/analysis/paper.js';
import { cascadeTable, mainTable, summarise } from '../../lib/analysis/tables.js';
import { FIXTURE_RESULTS } from './fixtures.js';
import { matchesGolden } from './golden.js';

const paper = readPaper();
const awkward = new DataFrame({
  name: ['a,b', 'say "x"', 'p|q_r', '50% & {#$~^\\}'],
  value: [1.5, 2, Number.NaN, -3],
});

test('the paper is read whole, and a file that does not fit is refused by field', () => {
  assert.deepEqual(
    paper.main.map((row) => [row.method, row.pass1]),
    [
      ['zero-shot', 23],
      ['grpo', 30],
      ['self-refinement', 32],
      ['grpo-self-cascade', 35],
      ['moa-untrained', 34],
      ['shared-opponent', 32],
      ['cooperative', 46],
      ['agon', 61],
    ],
  );
  const path = join(mkdtempSync(join(tmpdir(), 'paper-')), 'tables.json');
  const bad = [{ method: 'agon', pass1: 161, ci95: [1, 2], final_stage_tokens: 1 }];
  writeFileSync(path, JSON.stringify({ source: 's', eval: { problems: 1 }, main: bad }));
  assert.throws(() => readPaper(path), /tables\.json[\s\S]*main\.0\.pass1[\s\S]*161/);
});

test('runs of one method are pooled; the interval is of one run of problems', () => {
  const grpo = summarise(FIXTURE_RESULTS).find((row) => row.method === 'grpo')!;
  assert.equal(grpo.problems, 300);
  assert.equal(grpo.accuracy.value, 100 / 300);
  // Clopper-Pearson of 100 of 300; of 200 of 600 it would be [29.6, 37.3].
  assert.equal((100 * grpo.accuracy.low).toFixed(1), '28.0');
  assert.equal((100 * grpo.accuracy.high).toFixed(1), '39.0');
  assert.equal(grpo.acrossSeeds.count, 2);
  assert.equal(grpo.acrossSeeds.sd!.toFixed(4), ((4 / 300) * Math.SQRT1_2).toFixed(4));
});

test('two results of one seed, or of different problem counts, are not pooled', () => {
  const first = FIXTURE_RESULTS[0]!;
  const twin = { ...first, runId: 'other' };
  assert.throws(
    () => mainTable([first, twin], paper),
    /zero-shot: two results of seed 0 .*zero-shot-fixture-0, other/,
  );
  assert.throws(() => mainTable([first, { ...twin, seed: 1, total: 200 }], paper), /total 200.*300/);
  assert.throws(() => mainTable([], paper), /no results/);
});

test('the main table in Markdown', () =>
  matchesGolden('tables/main.md', toMarkdown(mainTable(FIXTURE_RESULTS, paper))));

test('the main table is a DataFrame that sorts, with the paper beside it', () => {
  const table = mainTable(FIXTURE_RESULTS, paper);
  const best = table.sortValues('pass@1 %', { ascending: false });
  assert.equal(best.column('method').values[0], 'agon');
  assert.equal(best.column('paper pass@1 %').values[0], 61);
  assert.equal(best.column('paper 95% interval').values[0], '55.2\u201366.6');
});

test('the cascade table says what was kept and converted', () => {
  assert.match(
    toMarkdown(cascadeTable(FIXTURE_RESULTS)),
    /\| agon \| A>B \| 1 \| 30 \| 90 \| 25 \| 56\.7 \|/,
  );
  assert.throws(() => cascadeTable(FIXTURE_RESULTS.slice(0, 2)), /draftCorrect/);
});

test('CSV quotes what must be quoted', () => {
  assert.equal(toCsv(awkward), 'name,value\n"a,b",1.5\n"say ""x""",2\np|q_r,\n50% & {#$~^\\},-3\n');
});

test('Markdown escapes, aligns and shows a missing value as a dash', () => {
  assert.equal(
    toMarkdown(awkward),
    '| name | value |\n| :-- | --: |\n| a,b | 1.5 |\n| say "x" | 2.0 |\n| p\\|q\\_r | \u2013 |\n| 50% & {#$~^\\\\} | -3.0 |\n',
  );
});

test('LaTeX escapes every special character', () => {
  assert.equal(
    escapeLatex('50% & {#$~^\\} a_b A>B 1\u20132'),
    '50\\% \\& \\{\\#\\$\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\} a\\_b A\\textgreater{}B 1--2',
  );
});

test('LaTeX is a booktabs tabular, in a table environment when it has a caption', () => {
  const bare = toLatex(awkward);
  assert.ok(
    bare.startsWith('\\begin{tabular}{lr}\n\\toprule\nname & value \\\\\n\\midrule\na,b & 1.5 \\\\\n'),
  );
  assert.ok(bare.endsWith('\\bottomrule\n\\end{tabular}\n'));
  const whole = toLatex(awkward, { caption: 'R&D', label: 'tab:x' });
  assert.ok(
    whole.startsWith('\\begin{table}\n\\centering\n\\caption{R\\&D}\n\\label{tab:x}\n\\begin{tabular}'),
  );
  assert.ok(whole.endsWith('\\end{tabular}\n\\end{table}\n'));
});

test('honest notes: overlaps, order, and what a seed may change', () => {
  const notes = honestNotes(FIXTURE_RESULTS, paper);
  assert.ok(
    notes.includes('cooperative (42.0%) differs by less than the 95% intervals from agon-margin (40.7%).'),
    notes.join('\n'),
  );
  assert.ok(!notes.some((note) => note.startsWith('agon (')), 'agon stands apart from all others');
  // The paper orders all 15 pairs of the six methods it has; here only moa-untrained falls behind grpo and self-refinement.
  assert.ok(
    notes.includes(
      'Of the 15 pairs that the paper orders by pass@1, 13 stand in the same order here, 9 of them by more than their intervals.',
    ),
    notes.join('\n'),
  );
});

test('honest notes: a firm reversal, single runs, and runs that overlap are said', () => {
  const one = (method: string, seed: number, correct: number) => ({
    ...FIXTURE_RESULTS[0]!,
    method,
    seed,
    correct,
  });
  const reversed = honestNotes([one('grpo', 0, 200), one('agon', 0, 100)], paper);
  assert.deepEqual(reversed, [
    'All rows differ by more than their 95% intervals.',
    'Of the 1 pairs that the paper orders by pass@1, 0 stand in the same order here, 0 of them by more than their intervals.',
    'Against the paper, by more than the intervals: grpo (66.7%) over agon (33.3%).',
    'Every row is one training run: the intervals cover the choice of problems, not another run.',
  ]);
  const unstable = honestNotes(
    [one('grpo', 0, 20), one('grpo', 1, 150), one('agon', 0, 140), one('agon', 1, 250)],
    paper,
  );
  assert.ok(unstable.includes('grpo and agon differ by more than their intervals, but their runs overlap.'));
});
