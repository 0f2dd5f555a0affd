/** The command `reproduce` as a process: what it says to wrong options, and a small run from end to end, twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readResults } from '../../lib/experiments/saved.js';
import { ROOT } from '../../lib/files.js';
import { scratch } from './support.js';

function reproduce(...options: string[]) {
  const command = join(ROOT, 'dist', 'lib', 'cli', 'reproduce.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...options], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

test('wrong options end with code 1 and one message that says what is allowed', () => {
  const cases: [options: string[], message: RegExp][] = [
    [['--preset', 'fast'], /^unknown preset 'fast': allowed are smoke, quick, full\n$/],
    [['--methods', 'grpo,argon'], /methods\.1: .*"zero-shot"\|"grpo".*found "argon"\)\n$/],
    [['--setps', '3'], /^Unknown option '--setps': allowed are --preset, .*--steps, .*--out.*\n$/],
    [['--backend', 'webgl'], /^unknown backend 'webgl': allowed are auto, .*wasm.*\n$/],
  ];
  for (const [options, message] of cases) {
    const { status, stderr } = reproduce(...options);
    assert.equal(status, 1, options.join(' '));
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /^\s+at /m, 'no stack trace');
  }
});

test('--plan says what a run will need and how long it will take, and writes nothing', () => {
  const out = scratch();
  const { status, stdout, stderr } = reproduce('--plan', '--preset', 'smoke', '--out', out, '--workers', '0');
  assert.equal(status, 0, stderr);
  assert.match(
    stdout,
    /memory: at most .*\nin the .* backend: loading .*\ndisk: .*\nplan: 3 training runs of 2 steps/,
  );
  assert.match(stdout, /\| phase \| part \| MiB \| copies \| MiB in all \| how \|/);
  assert.deepEqual(readdirSync(out), []);
});

test('a small run from end to end; a second call reads what is finished', () => {
  const out = scratch();
  const call = (methods: string) => {
    const options = [
      '--preset',
      'smoke',
      '--steps',
      '1',
      '--methods',
      methods,
      '--out',
      out,
      '--no-notebooks',
    ];
    const { status, stdout, stderr } = reproduce(...options, '--backend', 'wasm', '--workers', '0');
    assert.equal(status, 0, stderr);
    return { stdout, found: readResults(out, 'smoke')! };
  };
  const written = (name: string) => statSync(join(out, name));
  const { stdout, found } = call('zero-shot,grpo');
  assert.match(stdout, /backend: wasm .*asked for; worker threads: 0/);
  assert.match(stdout, /plan: 1 training runs of 1 steps with 32 rollouts each/);
  assert.match(stdout, /\| zero-shot \| .*\| 40 \|/);
  assert.match(stdout, /\| grpo \| .*\| 40 \|/);
  const names = [
    'tables/smoke.csv',
    'tables/smoke.md',
    'figures/smoke.svg',
    'figures/smoke.png',
    'figures/smoke-training.svg',
  ];
  for (const name of names) assert.ok(written(name).size > 100, name);
  assert.ok(!existsSync(join(out, 'notebooks')));
  assert.deepEqual(
    found.results.map((r) => [r.method, r.total, r.steps]),
    [
      ['zero-shot', 40, 0],
      ['grpo', 40, 1],
    ],
  );

  // Nothing is trained in this one: a table without a course of training.
  const [base] = found.results;
  const evaluation = `runs/${base!.runId}/eval.jsonl`;
  const before = written(evaluation);
  const second = call('zero-shot');
  assert.deepEqual(second.found.results, [base]);
  assert.equal(written(evaluation).ino, before.ino, 'the evaluation was read, not written again');
  assert.doesNotMatch(second.stdout, /\| grpo \|/);
});
