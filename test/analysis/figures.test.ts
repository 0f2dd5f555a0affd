import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mainFigure, rewardFigure } from '../../lib/analysis/figures.js';
import { placeLabels } from '../../lib/analysis/labels.js';
import { readPaper } from '../../lib/analysis/paper.js';
import { trainingFigure } from '../../lib/analysis/training.js';
import { FIXTURE_RESULTS, fixtureMetrics } from './fixtures.js';
import { matchesGolden } from './golden.js';

const json = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`;
const GROUP = [
  { name: 'b1', correct: true, rivalCorrect: false, reward: 3.5, advantage: 1.2 },
  { name: 'b2', correct: true, rivalCorrect: true, reward: 2.5, advantage: 0.4 },
  { name: 'b3', correct: false, rivalCorrect: true, reward: 0, advantage: -1.6 },
  { name: 'b4', correct: false, rivalCorrect: false, reward: undefined, advantage: 0 },
];

test('the main figure is the committed spec', () =>
  matchesGolden('figures/main.json', json(mainFigure(FIXTURE_RESULTS, readPaper()))));

test('the training figure is the committed spec', () => {
  const metrics = {
    agon: fixtureMetrics(0.2, ['draft', 'challenge']),
    grpo: fixtureMetrics(0, ['draft']),
  };
  matchesGolden('figures/training.json', json(trainingFigure(metrics, { window: 5 })));
});

test('the reward figure is the committed spec', () =>
  matchesGolden('figures/reward.json', json(rewardFigure(GROUP))));

test('the main figure can show the answering stage alone', () => {
  const figure = mainFigure(FIXTURE_RESULTS, readPaper(), { tokens: 'final' });
  const agon = figure.data.find((trace) => 'name' in trace && trace.name === 'agon');
  assert.deepEqual((agon as { x: number[] }).x, [35]);
});

test('the training figure smooths, leaves out what was not logged, and says when nothing was', () => {
  const rows = [1, 5, 3, Number.NaN].map((reward, step) => ({ step, reward, note: 'text' }));
  const figure = trainingFigure({ run: rows }, { window: 3 });
  const lines = figure.data.map((trace) => (trace as { y: number[] }).y);
  assert.deepEqual(lines, [
    [1, 5, 3],
    [3, 3, 4],
  ]);
  assert.throws(() => trainingFigure({ run: [{ step: 0, loss: 1 }] }), /reward, accuracy.*found step, loss/);
  assert.throws(() => trainingFigure({ run: [{ reward: 1 }] }), /step is undefined/);
});

test('a reward figure needs a group', () => assert.throws(() => rewardFigure([]), /at least one attempt/));

test('labels of crowded points cover neither each other nor the markers', () => {
  const points = [0, 1, 2, 3, 4, 5].map((i) => ({
    x: 200 + 14 * (i % 3),
    y: 150 + 16 * Math.floor(i / 3),
    top: 120,
    bottom: 190,
    width: 80,
    height: 15,
  }));
  const places = placeLabels(points, { left: 0, right: 400, top: 0, bottom: 300 });
  const boxes = points.map((p, i) => ({ x: p.x + places[i]!.dx, y: p.y + places[i]!.dy }));
  for (const [i, a] of boxes.entries()) {
    assert.ok(a.x - 40 >= 0 && a.x + 40 <= 400 && a.y - 7.5 >= 0 && a.y + 7.5 <= 300, `label ${i} is inside`);
    for (const b of boxes.slice(i + 1)) {
      assert.ok(Math.abs(a.x - b.x) >= 80 || Math.abs(a.y - b.y) >= 15, `label ${i} is free of the others`);
    }
    for (const p of points) {
      assert.ok(Math.abs(a.x - p.x) >= 44 || Math.abs(a.y - p.y) >= 11, `label ${i} is free of the markers`);
    }
  }
});
