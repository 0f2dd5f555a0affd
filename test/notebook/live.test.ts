/** The live display: one output however long the training is; the time left counts what was made now. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../../lib/files.js';
import { liveFigure } from '../../lib/notebook/live-figure.js';
import type { CodeCell } from '../../lib/notebook/nbformat.js';
import { type CellEvent, runNotebook } from '../../lib/notebook/runner.js';

const folder = mkdtempSync(join(ROOT, 'dist', 'live-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const lib = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../lib/${path}`, import.meta.url)));

const SETUP = `const { liveTraining } = require(${lib('notebook/live.js')});
const lines = (shift) => Array.from({ length: 100 }, (_, step) => ({
  step, 'challenge/reward': Math.sin(step + shift), 'draft/reward': 1, 'challenge/completions/mean_length': 100 + step,
  'challenge/convert': 0.2, 'challenge/keep': 0.9, 'challenge/frac_reward_zero_std': 0.5,
}));
const all = { agon: lines(0), mine: lines(1) };
const steps = { agon: 100, mine: 100 };`;

async function run(name: string, source: string) {
  const path = join(folder, `${name}.ipynb`);
  const kernelspec = { name: 'tslab', display_name: 'TypeScript', language: 'typescript' };
  const cells = [SETUP, source].map((text) => ({
    ...{ cell_type: 'code', metadata: {}, source: text, execution_count: null, outputs: [] },
  }));
  writeFileSync(path, JSON.stringify({ nbformat: 4, nbformat_minor: 4, metadata: { kernelspec }, cells }));
  const out = join(folder, 'out', `${name}.ipynb`);
  const shown: string[] = [];
  const onCell = (event: CellEvent) => {
    if (event.kind === 'output') shown.push(JSON.stringify(event.output));
  };
  const notebook = await runNotebook(path, { out, onCell });
  const { outputs } = notebook.cells[1] as CodeCell;
  return { outputs, shown, bytes: statSync(out).size };
}

test('two hundred updates leave one output, no larger than that of a single one', async () => {
  const many = await run(
    'many',
    `const live = liveTraining(steps, { intervalMs: 100 });
     for (let step = 0; step < 100; step++)
       for (const name of ['agon', 'mine']) {
         live.step(name, all[name][step]);
         await new Promise((resolve) => setTimeout(resolve, 5));
       }
     live.note('judging');
     await live.stop('trained');
     live.step('agon', all.agon[0]);
     live.note('too late');`,
  );
  const once = await run('once', "await liveTraining(steps, { before: all }).stop('trained');");
  for (const { outputs } of [many, once]) {
    assert.equal(outputs.length, 1, JSON.stringify(outputs.map((output) => output.output_type)));
    const [output] = outputs;
    assert.ok(output?.output_type === 'display_data');
    assert.deepEqual(Object.keys(output.data).sort(), [
      ...['application/vnd.plotly.v1+json', 'image/png', 'text/plain'],
    ]);
    assert.match(String(output.data['text/plain']), /^Training: 200 of 200 steps, .*, trained$/);
  }
  assert.match(many.shown[0]!, /Training: 0 of 200 steps/);
  assert.ok(many.shown.length >= 3 && many.shown.length < 100, `drawn ${many.shown.length} times`);
  assert.ok(many.shown.slice(1, -1).every((text) => /of 200 steps, .* left/.test(text)));
  assert.ok(Math.abs(many.bytes / once.bytes - 1) < 0.03, `${many.bytes} bytes, once ${once.bytes}`);
});

test('four panels; challenge or single stream strong, drafts faint; a run without conversions has no line there', () => {
  const line = (stream: string, step: number) => ({
    step,
    [`${stream}/reward`]: 1 + step,
    [`${stream}/completions/mean_length`]: 100,
    [`${stream}/frac_reward_zero_std`]: 0,
  });
  const pair = [0, 1, 2].map((step) => ({
    ...line('draft', step),
    ...line('challenge', step),
    'challenge/convert': 0.5,
  }));
  const figure = liveFigure({ agon: pair, grpo: [line('solo', 0)], later: [] }, '4 of 9 steps');
  const drawn = figure.data.map((trace) => {
    const { name, opacity, xaxis, mode, y } = trace as {
      name: string;
      opacity: number;
      xaxis: string;
      mode: string;
      y: number[];
    };
    return `${name} ${xaxis} ${opacity === 1 ? 'strong' : 'faint'} ${mode} ${y.join()}`;
  });
  assert.deepEqual(drawn, [
    'agon x faint lines 1.5,2,2.5',
    'agon x strong lines 1.5,2,2.5',
    'grpo x strong markers 1',
    'agon x2 faint lines 100,100,100',
    'agon x2 strong lines 100,100,100',
    'grpo x2 strong markers 100',
    'agon x3 strong lines 0.5,0.5,0.5',
    'agon x4 faint lines 0,0,0',
    'agon x4 strong lines 0,0,0',
    'grpo x4 strong markers 0',
  ]);
  assert.throws(() => liveFigure({ agon: [] }, ''), /no run has a step/);
});
