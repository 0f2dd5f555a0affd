/** Opening a world: the base and the task that were asked for, and errors that name what there is. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BASE_NAMES, BASES, type BaseName, baseFolder } from '../../lib/experiments/bases.js';
import { ARENA_BASE, openWorld, worldOf } from '../../lib/experiments/world.js';
import { TASKS, type TaskName } from '../../lib/tasks/index.js';
import { NO_POOL, scratch, tinyConfig } from './support.js';

const { seed: _, ...run } = tinyConfig();

test('a base that is not known is refused with the names there are', () => {
  const allowed = `allowed are ${BASE_NAMES.join(', ')}`;
  for (const name of ['arena', '', 'toString', '../arena-base'])
    assert.throws(() => baseFolder(name), { message: `unknown base '${name}': ${allowed}` });
  assert.throws(() => worldOf({ base: 'qwen' as BaseName, run }, NO_POOL), {
    message: `unknown base 'qwen': ${allowed}`,
  });
  assert.equal(baseFolder('arena-base'), ARENA_BASE);
});

test('the world of an experiment: its base, its task, the pool of another', async () => {
  const opened = await openWorld({ backend: 'wasm', workers: 0 });
  assert.equal(opened.task, TASKS.countdown);
  assert.equal(opened.base, ARENA_BASE);
  for (const base of BASE_NAMES.filter((name) => existsSync(baseFolder(name)))) {
    const world = worldOf({ base, run: { ...run, task: BASES[base].task } }, opened.pool);
    assert.equal(world.task, TASKS[BASES[base].task]);
    assert.equal(world.base, baseFolder(base));
    assert.equal(world.pool, opened.pool);
    const text = world.tokenizer.decode(world.tokenizer.encode('<think> </think>'));
    assert.equal(text, '<think> </think>', base);
  }
  await opened.pool.close();
});

test('a base that is not there, or whose tokenizer does not fit it, is refused', async () => {
  const missing = join(scratch(), 'nowhere');
  await assert.rejects(openWorld({ base: missing, backend: 'wasm', workers: 0 }), (error: Error) =>
    error.message.includes(missing),
  );
  const folder = scratch();
  cpSync(ARENA_BASE, folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8'));
  tokenizer.model.vocab = Object.fromEntries(Object.entries(tokenizer.model.vocab).concat([['extra', 500]]));
  writeFileSync(path, JSON.stringify(tokenizer));
  await assert.rejects(openWorld({ base: folder, backend: 'wasm', workers: 0 }), /501|vocab/);
});

test('every recipe names a task there is', () => {
  for (const [name, { task }] of Object.entries<{ task: TaskName }>(BASES)) assert.ok(task in TASKS, name);
});
