import assert from 'node:assert/strict';
import { test } from 'node:test';
import { studyReport } from '../../lib/analysis/studies/index.js';
import { cellsOf, fixtureArms, fixtureExperiment, fixtureStudy, type Skill } from './arms.js';

const seeds = [0, 1, 2, 3, 4];
const study = fixtureStudy('control', [
  fixtureExperiment({ methods: ['cooperative', 'difficulty-weighted', 'agon'], seeds }),
  fixtureExperiment({ methods: ['frozen-cooperative', 'frozen-agon'], seeds, label: 'frozen rival' }),
]);
const reportWith = (skills: Record<string, number>) => {
  const skill: Skill = (method) => skills[method] ?? 0.3;
  return studyReport(study, fixtureArms(study, skill));
};

test('each explanation is named where the numbers favour it', () => {
  const first = (skills: Record<string, number>) => reportWith(skills).notes[1]!;
  assert.match(first({}), /no gain for either explanation/);
  assert.match(first({ agon: 0.9 }), /favour the paired rival/);
  assert.match(first({ agon: 0.9, 'difficulty-weighted': 0.9 }), /favour difficulty weighting/);
  assert.match(first({ agon: 0.95, 'difficulty-weighted': 0.6 }), /Both are seen/);
  assert.match(first({ cooperative: 0.9 }), /costs accuracy/);
});

test('competition beside a rival that learns is set against competition beside a frozen one', () => {
  const report = reportWith({ agon: 0.9 });
  const rows = cellsOf(report, 'control-differences');
  const value = (comparison: string) =>
    Number(rows.find((row) => row.comparison === comparison)!['difference, points']);
  const interaction = value('(agon \u2212 cooperative) \u2212 (frozen-agon \u2212 frozen-cooperative)');
  const parts = value('agon \u2212 cooperative') - value('frozen-agon \u2212 frozen-cooperative');
  assert.ok(Math.abs(interaction - parts) < 0.16);
  assert.match(
    report.notes.join('\n'),
    /more beside a rival that learns than beside a frozen one .*: told apart/,
  );
  assert.ok(rows.some((row) => row.comparison === 'agon \u2212 frozen-agon (frozen rival)'));
});
