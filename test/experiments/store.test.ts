/** What a kill or a careless hand leaves in a run's folder: made good where that is safe, refused by name where not. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';
import { trainRun } from '../../lib/experiments/run.js';
import { lockRun, openRun, type RunFolder } from '../../lib/experiments/store.js';
import { type HostTensor, readSafetensors, writeSafetensors } from '../../lib/model/index.js';
import { coinWorld, fingerprint, NO_POOL, openTiny, scratch, tinyConfig } from './support.js';

let world: World;
let finished: RunFolder;
let folder: string;
const checkpoint = (run: RunFolder) => join(run.path, 'state', 'checkpoint.safetensors');
const metricsFile = (run: RunFolder) => join(run.path, 'metrics.jsonl');
/** The checkpoint as it was after step k. */
const kept = (step: number) => join(folder, `checkpoint-${step}`);

before(async () => {
  world = await coinWorld();
  folder = scratch();
  finished = openTiny(world, folder);
  await trainRun(world, finished, { onStep: (step) => cpSync(checkpoint(finished), kept(step)) });
});

/** A copy of the finished run, or of what it was after step k when its adapters were not written yet. */
function copy(step?: number): RunFolder {
  const target = scratch();
  cpSync(join(folder, 'runs'), join(target, 'runs'), { recursive: true });
  const run = openTiny(world, target);
  if (step !== undefined) {
    for (const name of ['A', 'B']) rmSync(join(run.path, name), { recursive: true });
    cpSync(kept(step), checkpoint(run));
  }
  return run;
}

const lines = (run: RunFolder) => readFileSync(metricsFile(run), 'utf8').split('\n').slice(0, -1);
const keepLines = (run: RunFolder, count: number) =>
  writeFileSync(
    metricsFile(run),
    lines(run)
      .slice(0, count)
      .map((line) => `${line}\n`)
      .join(''),
  );

test('killed between a metrics line and its checkpoint: the line is dropped and made again', async () => {
  const run = copy(1);
  assert.equal(lines(run).length, 3, 'metrics are two steps ahead');
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('a checkpoint that cannot be written: the metrics are ahead of the last one, never behind', async () => {
  const run = openTiny(world, scratch());
  const aside = join(run.path, 'aside');
  const blocked = trainRun(world, run, {
    onStep: () => {
      renameSync(checkpoint(run), aside);
      mkdirSync(join(checkpoint(run), 'in the way'), { recursive: true });
    },
  });
  await assert.rejects(blocked, /checkpoint\.safetensors/);
  assert.equal(lines(run).length, 2);
  rmSync(checkpoint(run), { recursive: true });
  renameSync(aside, checkpoint(run));
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('killed inside a metrics line: the half line is cut off', async () => {
  const run = copy(2);
  keepLines(run, 2);
  appendFileSync(metricsFile(run), '{"step":2,"draft/rew');
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('killed inside a checkpoint: its temporary file is not looked at', async () => {
  const run = copy(2);
  writeFileSync(`${checkpoint(run)}.999.tmp`, readFileSync(checkpoint(run)).subarray(0, 1000));
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('killed after the last checkpoint: the adapters are written without any more work', async () => {
  const run = copy(3);
  mkdirSync(join(run.path, 'A'));
  cpSync(
    join(finished.path, 'A', 'adapter_model.safetensors'),
    join(run.path, 'A', 'adapter_model.safetensors'),
  );
  await trainRun({ ...world, pool: NO_POOL }, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('killed before the first checkpoint, even inside config.json: the run starts', async () => {
  const target = scratch();
  const { path } = openTiny(world, target);
  rmSync(join(path, 'config.json'));
  writeFileSync(join(path, 'config.json.12345'), '{"train');
  const run = openTiny(world, target);
  appendFileSync(metricsFile(run), '{"step":0}\n');
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('metrics that are missing behind a checkpoint are an error that names the file', async () => {
  for (const step of [2, undefined]) {
    const run = copy(step);
    keepLines(run, 1);
    const steps = step ?? 3;
    await assert.rejects(trainRun(world, run), (error: Error) => {
      assert.ok(
        error.message.startsWith(`${metricsFile(run)}: 1 lines for ${steps} finished steps`),
        error.message,
      );
      return true;
    });
  }
});

test('a metrics line that is not one names file and line', async () => {
  const run = copy(2);
  writeFileSync(metricsFile(run), `${lines(run)[0]}\n{"step":"one"}\n`);
  await assert.rejects(trainRun(world, run), /metrics\.jsonl line 2 .*\n.*step: .*number.*found "one"/);
});

test('a changed config.json is refused, so is one that is no JSON', () => {
  const run = copy();
  const target = join(run.path, '..', '..');
  const path = join(run.path, 'config.json');
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace('"maxSteps": 3', '"maxSteps": 4'));
  assert.throws(
    () => openTiny(world, target),
    (error: Error) => {
      assert.ok(error.message.startsWith(`${path} is not the config of run ${run.id}`), error.message);
      return true;
    },
  );
  writeFileSync(path, text.slice(0, 100));
  assert.throws(() => openTiny(world, target), /config\.json: not readable as JSON/);
});

test('files without a config.json are refused; an empty folder is taken', () => {
  const run = copy();
  const target = join(run.path, '..', '..');
  rmSync(join(run.path, 'config.json'));
  assert.throws(
    () => openTiny(world, target),
    (error: Error) => {
      assert.ok(error.message.startsWith(`${run.path} holds files but no config.json`), error.message);
      return true;
    },
  );
  rmSync(run.path, { recursive: true });
  mkdirSync(run.path);
  assert.equal(openTiny(world, target).path, run.path);
});

test('fresh deletes what the run has made, and nothing of another', async () => {
  const run = copy();
  const target = join(run.path, '..', '..');
  const other = openTiny(world, target, tinyConfig({ seed: 5 }));
  appendFileSync(metricsFile(other), '{"step":0}\n');
  openRun(run.identity, target, true);
  assert.throws(() => readFileSync(metricsFile(run)), /ENOENT/);
  assert.equal(readFileSync(metricsFile(other), 'utf8'), '{"step":0}\n');
});

test('a cut-off checkpoint is refused by name', async () => {
  const run = copy(2);
  truncateSync(checkpoint(run), readFileSync(checkpoint(run)).length - 10);
  await assert.rejects(trainRun(world, run), (error: Error) => {
    assert.ok(error.message.startsWith(`${checkpoint(run)}: `), error.message);
    return true;
  });
  truncateSync(checkpoint(run), 4);
  await assert.rejects(trainRun(world, run), /checkpoint\.safetensors: 4 bytes are too few/);
});

test('a checkpoint with a tensor of another shape, without one, or without its step is refused by name', async () => {
  const run = copy(2);
  const { tensors, metadata } = readSafetensors(checkpoint(run));
  const name = Object.keys(tensors).find((key) => key.startsWith('B/m/') && key.includes('lora_A'))!;
  const { shape, data } = tensors[name]!;
  const write = (changed: Record<string, HostTensor>, meta = metadata) =>
    writeSafetensors(checkpoint(run), changed, { metadata: meta });
  const refused = (message: string) =>
    assert.rejects(trainRun(world, run), (error: Error) => {
      assert.ok(error.message.includes(checkpoint(run)) && error.message.includes(message), error.message);
      return true;
    });
  // The same numbers in another shape: a count of elements would not notice.
  const turned = [...shape].reverse();
  write({ ...tensors, [name]: { shape: turned, data } });
  await refused(`tensor '${name}' has shape [${turned}], the run wants [${shape}]`);
  const { [name]: _, ...without } = tensors;
  write(without);
  await refused(`tensor '${name}' is missing, the run wants [${shape}]`);
  write(tensors, { ...metadata, step: '1.5' });
  await refused(`metadata 'step' is "1.5"`);
  write(tensors, metadata);
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(finished));
});

test('a run that another process trains is refused, a lock whose process is gone is not', () => {
  const run = copy();
  const lock = join(run.path, 'lock');
  writeFileSync(lock, String(process.ppid));
  assert.throws(() => lockRun(run), new RegExp(`is being trained by process ${process.ppid}`));
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  for (const stale of [String(pid), '', 'half written']) {
    writeFileSync(lock, stale);
    const release = lockRun(run);
    assert.equal(readFileSync(lock, 'utf8'), String(process.pid));
    release();
    assert.equal(existsSync(lock), false);
  }
});

test('what leaves the result as it is leaves the run as it is: gradient checkpointing finds the finished one', () => {
  const { identity } = finished;
  const grpo = { ...identity.config.grpo, gradientCheckpointing: true };
  const found = openRun({ ...identity, config: { ...identity.config, grpo } }, folder);
  assert.equal(found.id, finished.id);
  assert.equal(found.identity.config.grpo.gradientCheckpointing, true);
  assert.doesNotMatch(readFileSync(join(found.path, 'config.json'), 'utf8'), /gradientCheckpointing/);
});
