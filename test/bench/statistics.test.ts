import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePeak } from '../../lib/bench/participant.js';
import { fitLine, speedup, summary } from '../../lib/bench/statistics.js';

test('median and range of odd and even numbers of repetitions, whatever their order', () => {
  assert.deepEqual(summary([3, 1, 10]), { median: 3, min: 1, max: 10, repetitions: 3 });
  assert.deepEqual(summary([4, 1, 3, 2]), { median: 2.5, min: 1, max: 4, repetitions: 4 });
  assert.throws(() => summary([]), /no repetitions/);
});

test('a speedup compares neighbours, so weather that hits both cancels', () => {
  assert.deepEqual(speedup([10, 1, 4], [5, 0.5, 2]), { median: 2, min: 2, max: 2, repetitions: 3 });
  assert.equal(speedup([6, 6, 6], [3, 2]).repetitions, 2);
});

test('a line through straight points explains everything, through a parabola less', () => {
  const points = (f: (x: number) => number) => [0, 1, 2, 3].map((x) => ({ x, y: f(x) }));
  const straight = fitLine(points((x) => 3 + 2 * x));
  assert.ok(Math.abs(straight.slope - 2) < 1e-12 && Math.abs(straight.intercept - 3) < 1e-12);
  assert.equal(straight.explained, 1);
  assert.ok(fitLine(points((x) => x * x)).explained < 0.95);
  assert.throws(() => fitLine([{ x: 1, y: 1 }]), /two different x/);
});

test('the peak of memory is read from the status file, in bytes', () => {
  assert.equal(parsePeak('VmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n'), 2048 * 1024);
  assert.equal(parsePeak('Name:\tnode\n'), undefined);
});
