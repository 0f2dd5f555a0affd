/** setup:native without network or compiler: what it decides, says and leaves behind. The build itself is not run. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { compareSamples, PARITY_LIMIT, type ParitySample } from '../../lib/experiments/parity.js';
import {
  choosePlan,
  FLAVOURS,
  type NativeRecord,
  putInPlace,
  readRecord,
  removeLeftovers,
  undo,
  whyNoRoom,
  whyToolsMissing,
  whyUnsupported,
  workFolder,
  writeRecord,
} from '../../lib/tensors/native.js';
import { patchSource, run } from '../../lib/tensors/native-build.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-native-'));
after(() => rmSync(folder, { recursive: true }));
const native = join(folder, '.native');
beforeEach(() => {
  for (const entry of readdirSync(folder)) rmSync(join(folder, entry), { recursive: true });
});

const record: NativeRecord = {
  way: 'built',
  flavour: 'cpu',
  package: 'tfjs-node',
  tensorflow: '2.21.0',
  wheelSha256: 'ab12',
  date: '2026-01-02T03:04:05.000Z',
};

/** A folder with one file of this content. */
function put(path: string, content: string): void {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'file'), content);
}
const content = (path: string) => readFileSync(join(path, 'file'), 'utf8');

test('machines without a build are refused with what they are and what works there', () => {
  const linux = { platform: 'linux', arch: 'x64', glibc: '2.36' };
  assert.equal(whyUnsupported(linux), undefined);
  assert.equal(whyUnsupported({ ...linux, glibc: '2.27' }), undefined);
  assert.match(
    whyUnsupported({ ...linux, platform: 'darwin', arch: 'arm64' })!,
    /Linux on x86_64 only; this is darwin on arm64.*wasm/,
  );
  assert.match(whyUnsupported({ ...linux, arch: 'arm64' })!, /this is linux on arm64/);
  assert.match(whyUnsupported({ ...linux, glibc: '2.26' })!, /glibc 2.27 or newer; this machine has 2.26/);
  assert.match(whyUnsupported({ ...linux, glibc: undefined })!, /another C library/);
});

test('missing tools are named with their Debian packages', () => {
  assert.equal(
    whyToolsMissing(() => true),
    undefined,
  );
  assert.equal(
    whyToolsMissing((tool) => tool !== 'g++' && tool !== 'pip'),
    'missing: g++, pip. On Debian or Ubuntu: apt install g++ python3-pip. Nothing was changed.',
  );
});

test('too little disk is refused with both numbers', () => {
  assert.equal(whyNoRoom('cpu', FLAVOURS.cpu.peakGB * 1e9), undefined);
  assert.match(whyNoRoom('cuda', 1.25e9)!, /needs \d+ GB of disk for a while, and 1.3 GB are free/);
});

test('the way: npm has it, .native has it, or it is to be installed', () => {
  const [cpu, gpu] = ['CPU, all cores (TensorFlow 2.9.1)', 'GPU (TensorFlow 2.9.1)'];
  assert.equal(choosePlan('cpu', cpu, record), 'use npm');
  assert.equal(choosePlan('cuda', gpu, undefined), 'use npm');
  assert.equal(choosePlan('cuda', cpu, undefined), 'install'); // npm's does not reach the GPU
  assert.equal(choosePlan('cpu', undefined, record), 'keep');
  assert.equal(choosePlan('cuda', undefined, record), 'install');
  assert.equal(choosePlan('cpu', undefined, undefined), 'install');
});

test('a record is read back; a damaged one is refused with its field; none is undefined', () => {
  assert.equal(readRecord(native), undefined);
  writeRecord(native, record);
  assert.deepEqual(readRecord(native), record);
  writeFileSync(join(native, 'setup-native.json'), JSON.stringify({ ...record, way: 'found' }));
  assert.throws(() => readRecord(native), /setup-native.json does not fit:\n {2}way: .*found "found"/);
});

test('a finished folder replaces the old one; a failed one leaves it', () => {
  put(native, 'old');
  const work = workFolder(native);
  assert.throws(() => putInPlace(work, native), /ENOENT/); // nothing was built
  assert.equal(content(native), 'old');
  put(work, 'new');
  putInPlace(work, native);
  assert.equal(content(native), 'new');
  assert.deepEqual(readdirSync(folder), ['.native']);
});

test('what killed builds left is removed, a running build and other folders are not', () => {
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  for (const path of [
    native,
    workFolder(native, dead),
    workFolder(native),
    `${workFolder(native, dead)}-old.tmp`,
  ])
    put(path, '');
  put(join(folder, '.native-notes.tmp'), '');
  assert.deepEqual(
    new Set(removeLeftovers(native)),
    new Set([`.native-${dead}.tmp`, `.native-${dead}.tmp-old.tmp`]),
  );
  assert.deepEqual(
    readdirSync(folder).sort(),
    [`.native-${process.pid}.tmp`, '.native', '.native-notes.tmp'].sort(),
  );
});

test('undo says what it removed, and that there was nothing', () => {
  put(native, 'x'.repeat(2_000_000));
  assert.equal(undo(native), `removed ${native} (2 MB)`);
  assert.ok(!existsSync(native));
  assert.equal(undo(native), `nothing to remove: there is no ${native}`);
});

test('the repairs of the binding are made, and refused on another source', () => {
  const source = [
    '#include <set>',
    'static std::set<std::string> ATTR_NAME_SET;',
    '  napi_value result;',
    '  f(ATTR_NAME_SET.insert(attr_name_string.c_str()).first->c_str());',
  ].join('\n');
  const patched = patchSource('tfjs_backend.cc', source);
  assert.match(patched, /napi_value result = nullptr;/);
  assert.match(patched, /f\(KeepAttrName\(attr_name_string\)\);/);
  assert.match(patched, /lock_guard<std::mutex>/);
  assert.equal(patchSource('other.h', 'napi_value a_b;'), 'napi_value a_b = nullptr;');
  assert.throws(
    () => patchSource('tfjs_backend.cc', source.replace('<set>', '<map>')),
    /'#include <set>' is not there/,
  );
});

test('a program that fails, hangs or is stopped is named, and its children end with it', async () => {
  const { signal } = new AbortController();
  assert.equal(await run('echo', ['a b'], { signal }), 'a b\n');
  await assert.rejects(
    run('sh', ['-c', 'echo the reason >&2; exit 3'], { signal }),
    /^Error: sh -c .*exit code 3\nthe reason$/,
  );
  await assert.rejects(run('no-such-program', [], { signal }), /ENOENT/);
  // The inner sleep holds the pipe: only when it has ended too does the call come back.
  await assert.rejects(
    run('sh', ['-c', 'sleep 30; true'], { signal, timeoutMs: 100 }),
    /sh -c .*: ended after 0.1 s/,
  );
  const stop = new AbortController();
  const running = run('sh', ['-c', 'sleep 30; true'], { signal: stop.signal });
  stop.abort(new Error('stopped'));
  await assert.rejects(running, { message: 'stopped' });
  await assert.rejects(run('echo', [], { signal: stop.signal }), { message: 'stopped' });
});

test('parity: within the limit agrees; a larger difference, a NaN and another length do not', () => {
  const sample = (logits: number[], gradient: number[]): ParitySample => ({
    backend: 'wasm',
    device: '',
    logits,
    gradient,
    gflops: 1,
  });
  const reference = sample([1, -8], [0.5, 0.25]);
  const near = compareSamples(reference, sample([1, -8 - 4 * PARITY_LIMIT], [0.5, 0.25]));
  assert.ok(near.agrees && Math.abs(near.logits.relative - PARITY_LIMIT / 2) < 1e-9, JSON.stringify(near));
  assert.equal(compareSamples(reference, sample([1, -8 - 16 * PARITY_LIMIT], [0.5, 0.25])).agrees, false);
  assert.equal(compareSamples(reference, sample([1, -8], [0.5, 0.26])).agrees, false);
  assert.equal(compareSamples(reference, sample([Number.NaN, -8], [0.5, 0.25])).agrees, false);
  assert.throws(() => compareSamples(reference, sample([1], [0.5])), /logits: 1 values, the reference has 2/);
});

/** The command itself on an empty folder. */
function command(...args: string[]) {
  const script = fileURLToPath(new URL('../../lib/cli/setup-native.js', import.meta.url));
  const env = { ...process.env, AGON_NATIVE_DIR: native, AGON_BACKEND: undefined };
  return spawnSync(process.execPath, [script, ...args], { env, encoding: 'utf8', timeout: 180_000 });
}

test('--undo removes the folder and says which backend is used then', () => {
  writeRecord(native, record);
  const { stdout, status } = command('--undo');
  assert.equal(status, 0);
  assert.ok(stdout.startsWith(`removed ${native}`), stdout);
  assert.match(stdout, /nothing that setup:native made\nauto picks (wasm|tfjs-node)/);
  assert.ok(!existsSync(native));
});

test('--status says what is there and what auto picks; an unknown option is refused', () => {
  writeRecord(native, record);
  assert.match(
    command('--status').stdout,
    /tfjs-node with TensorFlow 2.21.0 \(built .*sha256 ab12, 2026-01-02\)\nauto picks /,
  );
  const wrong = command('--cuda');
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /setup:native: Unknown option '--cuda'/);
});
