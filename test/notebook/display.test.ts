import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { DataFrame } from 'danfojs-node';
import { alignColumns, showFigure, showMarkdown, showTable } from '../../lib/notebook/display.js';
import { inNotebook, writeOutput } from '../../lib/notebook/output.js';
import { OutputCollector } from '../../lib/notebook/outputs.js';
import { describeProgress, formatDuration, progressBar } from '../../lib/notebook/progress.js';

afterEach(() => mock.restoreAll());

function printed(run: () => void): string {
  const log = mock.method(console, 'log', () => {});
  run();
  return log.mock.calls.map((call) => String(call.arguments[0])).join('\n');
}

test('outside a notebook the text form is printed', async () => {
  assert.equal(inNotebook(), false);
  assert.throws(() => writeOutput({ data: {} }), /not a tslab kernel/);
  const text = printed(() => showTable(new DataFrame({ name: ['a', 'bcdef'], n: [1, 22] })));
  assert.equal(text, '| name  |   n |\n| :---- | --: |\n| a     |   1 |\n| bcdef |  22 |\n');
  assert.equal(
    printed(() => showMarkdown('**x**')),
    '**x**',
  );
  const log = mock.method(console, 'log', () => {});
  const layout = { title: { text: 'Reward<br>per step' } };
  await showFigure({ data: [{ type: 'bar', y: [1] }], layout, config: {} });
  assert.deepEqual(log.mock.calls[0]?.arguments, ['Figure: Reward per step (trace 1)']);
});

test('rows that do not share their columns, and no rows, are refused', () => {
  assert.throws(() => showTable([{ a: 1 }, { b: 1 }]), /row 2 has the columns b; row 1 has a/);
  assert.throws(() => showTable([]), /nothing to show/);
  assert.throws(() => showTable([{ a: { b: 1 } }]), /row 1, a: found \{"b":1\}; allowed are texts/);
  assert.match(
    printed(() => showTable([{ a: 1 }, { a: null }])),
    /–/,
  );
});

test('a cell that holds a bar does not end its column', () => {
  assert.equal(
    alignColumns('| a | b |\n| :-- | --: |\n| x \\| y | 1 |\n').split('\n')[2],
    '| x \\| y |   1 |',
  );
});

test('the progress line shows count, pace and note', () => {
  const state = { label: 'train', total: 200, done: 50, note: 'reward 0.4', elapsedMs: 30_000 };
  const line = describeProgress(state);
  assert.equal(line, `train ${'█'.repeat(6)}${'░'.repeat(18)} 50/200, 30 s, 1 min 30 s left, reward 0.4`);
  assert.match(describeProgress({ ...state, done: 0 }), / 0\/200, 30 s, reward/);
  assert.match(describeProgress({ ...state, done: 200, note: '' }), / 200\/200, 30 s$/);
  assert.equal(formatDuration(9_949), '9.9 s');
  assert.equal(formatDuration(59_600), '1 min 00 s');
  assert.equal(formatDuration(3_720_000), '1 h 02 min');
});

test('in a log a line comes at the start, every ten seconds, and at the end', () => {
  mock.method(performance, 'now', () => now);
  const lines: string[] = [];
  let now = 0;
  const isTTY = process.stderr.isTTY;
  process.stderr.isTTY = false;
  mock.method(process.stderr, 'write', (text: string) => lines.push(text));
  const bar = progressBar(100, 'steps');
  for (let i = 1; i <= 50; i++) {
    now = i * 500;
    bar.update(i);
  }
  bar.stop();
  bar.stop();
  bar.update(51);
  mock.restoreAll();
  process.stderr.isTTY = isTTY;
  assert.deepEqual(
    lines.map((line) => / (\d+)\/100/.exec(line)?.[1]),
    ['0', '20', '40', '50'],
  );
});

test('clear_output clears at once, or when the next output comes', () => {
  const cell = {
    ...{ cell_type: 'code' as const, metadata: {}, source: '', execution_count: 1 },
    outputs: [] as never[],
  };
  const collector = new OutputCollector();
  const print = (text: string) => collector.add(cell, { type: 'stream', content: { name: 'stdout', text } });
  print('a');
  collector.add(cell, { type: 'clear_output', content: { wait: true } });
  assert.equal(cell.outputs.length, 1);
  print('b');
  assert.deepEqual(cell.outputs, [{ output_type: 'stream', name: 'stdout', text: 'b' }]);
  collector.add(cell, { type: 'clear_output', content: { wait: false } });
  assert.equal(cell.outputs.length, 0);
});
