/** The command `reproduce` as a process: what it says to wrong options, and a small run from end to end, twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
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

test('a small run from end to end; a second call reads it and writes the same tables', () => {
  const out = scratch();
  const options = ['--preset', 'smoke', '--methods', 'zero-shot', '--out', out];
  const call = () => reproduce(...options, '--backend', 'wasm', '--workers', '0', '--no-notebooks');
  const first = call();
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.stdout, /backend: wasm .*asked for; worker threads: 0/);
  assert.match(first.stdout, /plan: 0 training runs/);
  assert.match(first.stdout, /\| zero-shot \| .*\| 40 \|/);
  const files = ['tables/main.csv', 'tables/main.md', 'tables/main.json', 'figures/main.svg', 'figures/main.png'];
  for (const file of files) assert.ok(statSync(join(out, file)).size > 100, file);
  assert.ok(!existsSync(join(out, 'notebooks')));

  const { results } = readResults(out)!;
  assert.deepEqual(results.map((r) => [r.method, r.total, r.steps]), [['zero-shot', 40, 0]]);
  const evaluation = join(out, 'runs', results[0]!.runId, 'eval.jsonl');
  const [made, table] = [statSync(evaluation), readFileSync(join(out, 'tables/main.csv'), 'utf8')];
  const second = call();
  assert.equal(second.status, 0, second.stderr);
  assert.equal(statSync(evaluation).ino, made.ino, 'the evaluation was read, not written again');
  assert.equal(statSync(evaluation).mtimeMs, made.mtimeMs);
  assert.equal(readFileSync(join(out, 'tables/main.csv'), 'utf8'), table);
});
