/** Named streams: reproducible, apart from each other, and distributed as they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hash32, stream } from '../lib/random.js';

const N = 20_000;
const draw = (n: number, next: () => number) => Array.from({ length: n }, next);
const mean = (x: readonly number[]) => x.reduce((a, b) => a + b, 0) / x.length;
const centred = (x: readonly number[], centre = mean(x)) => x.map((v) => v - centre);
const moment = (x: readonly number[], k: number) => mean(centred(x).map((v) => v ** k));
const correlation = (x: readonly number[], y: readonly number[], z = centred(y)) =>
  mean(centred(x).map((v, i) => v * z[i]!)) / Math.sqrt(moment(x, 2) * moment(y, 2));

test('the same names give the same numbers, on every machine', () => {
  const numbers = draw(3, stream(7, 'rollout', 0).uniform);
  assert.deepEqual(draw(3, stream(7, 'rollout', 0).uniform), numbers);
  // Computed apart, in Python, from the published sfc32, FNV-1a and murmur3.
  assert.deepEqual(numbers, [0.9577216191682965, 0.8070775326341391, 0.513756942935288]);
  assert.deepEqual([hash32('countdown'), hash32('countdown', 1)], [2681200394, 3027803717]);
});

test('a stream does not depend on what was drawn from others before', () => {
  const expected = draw(5, stream('a', 1).uniform);
  const [a, b] = [stream('a', 1), stream('a', 2)];
  const mixed = draw(5, () => {
    b.normal();
    return a.uniform();
  });
  assert.deepEqual(mixed, expected);
});

test('names that differ anywhere give other numbers, and their order counts', () => {
  const names = [[1, 2], [2, 1], [12], [1, 2, 0], ['1', 'rollout'], ['rollout', '1'], [1, 'Rollout']];
  const first = names.map((n) => stream(...n).uniform());
  assert.equal(new Set(first).size, names.length);
});

test('neighbouring streams are independent: first draws are uniform, whole streams uncorrelated', () => {
  const firsts = draw(
    N,
    (
      (i) => () =>
        stream(0, 'rollout', i++).uniform()
    )(0),
  );
  const bins = new Array<number>(20).fill(0);
  for (const u of firsts) bins[Math.floor(u * 20)]! += 1;
  const chi2 = bins.reduce((sum, n) => sum + (n - N / 20) ** 2 / (N / 20), 0);
  assert.ok(chi2 < 43.8, `chi-square with 19 degrees of freedom: ${chi2} (p < 0.001)`);
  assert.ok(Math.abs(correlation(firsts.slice(1), firsts.slice(0, -1))) < 4 / Math.sqrt(N));
  const [x, y] = [stream('row', 0), stream('row', 1)].map((random) => draw(N, random.uniform));
  assert.ok(Math.abs(correlation(x!, y!)) < 4 / Math.sqrt(N));
  assert.ok(Math.abs(correlation(x!.slice(1), x!.slice(0, -1))) < 4 / Math.sqrt(N));
});

test('uniform lies in [0, 1) with mean 1/2 and variance 1/12', () => {
  const x = draw(N, stream('uniform').uniform);
  assert.ok(x.every((u) => u >= 0 && u < 1));
  assert.ok(Math.abs(mean(x) - 0.5) < 4 * Math.sqrt(1 / 12 / N));
  assert.ok(Math.abs(moment(x, 2) - 1 / 12) < 0.002);
});

test('normal has mean 0, variance 1, no skew, kurtosis 3, and is always finite', () => {
  const x = draw(N, stream('normal').normal);
  assert.ok(x.every(Number.isFinite));
  assert.ok(Math.abs(mean(x)) < 4 / Math.sqrt(N));
  assert.ok(Math.abs(moment(x, 2) - 1) < 4 * Math.sqrt(2 / N));
  assert.ok(Math.abs(moment(x, 3)) < 4 * Math.sqrt(15 / N));
  assert.ok(Math.abs(moment(x, 4) - 3) < 4 * Math.sqrt(96 / N));
});

test('int covers 0 to n - 1 evenly, pick takes each, shuffle keeps the items and every order comes up', () => {
  const random = stream('discrete');
  const counts = new Array<number>(5).fill(0);
  for (let i = 0; i < N; i++) counts[random.int(5)]! += 1;
  for (const n of counts) assert.ok(Math.abs(n - N / 5) < 4 * Math.sqrt((N / 5) * 0.8), counts.join());
  assert.deepEqual(new Set(draw(100, () => random.pick([3, 4, 5]))), new Set([3, 4, 5]));
  assert.throws(() => random.pick([]), /cannot pick from an empty list/);
  const items = [1, 2, 3];
  const orders = new Map<string, number>();
  for (let i = 0; i < 6000; i++) {
    const order = random.shuffle(items).join('');
    orders.set(order, (orders.get(order) ?? 0) + 1);
  }
  assert.deepEqual(items, [1, 2, 3]);
  assert.equal(orders.size, 6);
  for (const [order, n] of orders)
    assert.ok(Math.abs(n - 1000) < 4 * Math.sqrt(1000 * (5 / 6)), `${order}: ${n}`);
});
