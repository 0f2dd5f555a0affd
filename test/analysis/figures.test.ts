import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mainFigure, rewardFigure } from '../../lib/analysis/figures.js';
import { forestFigure } from '../../lib/analysis/forest.js';
import { placeLabels } from '../../lib/analysis/labels.js';
import { type Panel, panelsFigure } from '../../lib/analysis/panels.js';
import { readPaper } from '../../lib/analysis/paper.js';
import { trainingFigure } from '../../lib/analysis/training.js';
import { FIXTURE_RESULTS, fixtureMetrics } from './fixtures.js';
import { matchesSpec } from './golden.js';

const GROUP = [
  { name: 'b1', correct: true, rivalCorrect: false, reward: 3.5, advantage: 1.2 },
  { name: 'b2', correct: true, rivalCorrect: true, reward: 2.5, advantage: 0.4 },
  { name: 'b3', correct: false, rivalCorrect: true, reward: 0, advantage: -1.6 },
  { name: 'b4', correct: false, rivalCorrect: false, reward: undefined, advantage: 0 },
];

test('the main figure is the committed spec', () =>
  matchesSpec('main', mainFigure(FIXTURE_RESULTS, readPaper())));

test('the training figure is the committed spec', () => {
  const metrics = {
    agon: fixtureMetrics(0.2, ['draft', 'challenge']),
    grpo: fixtureMetrics(0, ['draft']),
  };
  matchesSpec('training', trainingFigure(metrics, { window: 5 }));
});

test('the reward figure is the committed spec', () => matchesSpec('reward', rewardFigure(GROUP)));

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

test('panels stand two to a row under one legend; the axis of a share ends at 100%, its intervals do not', () => {
  const panel = (title: string, y: readonly number[], share: boolean): Panel => ({
    title,
    x: 'step',
    y: 'share (%)',
    share,
    series: [
      { name: 'a', x: [1, 2], y, intervals: y.map((value) => ({ low: value - 1, high: value + 3 })) },
      { name: 'b', x: [1, 2], y: y.map((value) => value - 2) },
    ],
  });
  const figure = panelsFigure('Three panels', 'made up', [
    panel('kept', [98, 99], true),
    panel('in between', [40, 50], true),
    panel('no share', [98, 99], false),
  ]);
  const { xaxis1, xaxis2, xaxis3, yaxis1, yaxis2, yaxis3, width } = figure.layout;
  assert.deepEqual(xaxis3!.domain, xaxis1!.domain);
  assert.ok(xaxis2!.domain![0]! > xaxis1!.domain![1]!);
  assert.ok(yaxis3!.domain![1]! < yaxis1!.domain![0]!);
  assert.ok(width! < 900);
  const [low, high] = yaxis1!.range as [number, number];
  assert.ok(low < 96 && high > 100 && high < 100.2, `${low} to ${high}`);
  assert.deepEqual([yaxis2!.range, yaxis3!.range], [undefined, undefined]);
  const [first] = figure.data as { error_y: { array: number[] } }[];
  assert.deepEqual(first!.error_y.array, [3, 3]);
  matchesSpec('panels', figure);
});

test('the forest plot is the committed spec', () => {
  const value = (mean: number, filled: boolean) => ({
    value: mean,
    interval: { low: mean - 2, high: mean + 2 },
    filled,
    points: [mean - 1, mean + 1],
  });
  matchesSpec(
    'forest',
    forestFigure({
      title: 'Differences',
      subtitle: 'made up',
      axis: 'points',
      rows: ['one', 'two'],
      panels: [
        { title: 'exchange', values: [value(4, true), undefined] },
        { title: 'competition', values: [value(1, false), value(-1, false)] },
      ],
    }),
  );
});
