/** Files that cannot be half written, and files that are checked when read. */
import assert from 'node:assert/strict';
import fs, { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, mock, test } from 'node:test';
import { z } from 'zod';
import { appendJsonl, check, readJson, readJsonl, writeFileAtomic, writeJson } from '../lib/files.js';

const scratch = () => mkdtempSync(join(tmpdir(), 'files-test-'));
const schema = z.strictObject({ step: z.int(), loss: z.number() });

afterEach(() => mock.restoreAll());

test('writeFileAtomic makes the folder, writes text and bytes, and replaces', () => {
  const path = join(scratch(), 'a', 'b', 'file');
  writeFileAtomic(path, 'first é');
  assert.equal(readFileSync(path, 'utf8'), 'first é');
  const bytes = Uint8Array.from([9, 1, 2, 3, 9]);
  writeFileAtomic(path, bytes.subarray(1, 4)); // a view into a larger buffer
  assert.deepEqual([...readFileSync(path)], [1, 2, 3]);
});

for (const step of ['writeSync', 'fsyncSync', 'renameSync'] as const) {
  test(`a write that fails in ${step} leaves the old file, and nothing beside it`, () => {
    const folder = scratch();
    const path = join(folder, 'file');
    writeFileAtomic(path, 'old');
    mock.method(fs, step, () => {
      throw new Error('ENOSPC: no space left on device');
    });
    assert.throws(() => writeFileAtomic(path, 'new, and longer'), /no space left/);
    mock.restoreAll();
    assert.equal(readFileSync(path, 'utf8'), 'old');
    assert.deepEqual(readdirSync(folder), ['file']);
  });
}

test('JSON goes out and comes back; what does not fit names file, field, value and what is allowed', () => {
  const path = join(scratch(), 'x.json');
  writeJson(path, { step: 1, loss: 0.5 });
  assert.equal(readFileSync(path, 'utf8'), '{\n  "step": 1,\n  "loss": 0.5\n}\n');
  assert.deepEqual(readJson(path, schema), { step: 1, loss: 0.5 });
  writeJson(path, { step: 1.5, loss: 'low', extra: true });
  assert.throws(
    () => readJson(path, schema),
    /x\.json does not fit[\s\S]*step: [\s\S]*int[\s\S]*\(found 1\.5\)[\s\S]*loss: [\s\S]*number[\s\S]*\(found "low"\)[\s\S]*extra/,
  );
  writeFileSync(path, '{"step": 1,');
  assert.throws(() => readJson(path, schema), /x\.json: not readable as JSON/);
  assert.throws(() => readJson(`${path}.not`, schema), /x\.json\.not: not readable as JSON: ENOENT/);
  assert.throws(() => check(schema, 3, 'the cell'), /the cell does not fit:\n {2}\(whole\)/);
});

test('readJsonl reads what appendJsonl wrote; no file is no records', () => {
  const path = join(scratch(), 'deep', 'log.jsonl');
  assert.deepEqual(readJsonl(path, schema), []);
  const records = [0, 1, 2].map((step) => ({ step, loss: step / 3 }));
  for (const record of records) appendJsonl(path, record);
  assert.deepEqual(readJsonl(path, schema), records);
});

test('readJsonl cuts a half-written last line off the file, at every possible byte', () => {
  const path = join(scratch(), 'log.jsonl');
  const lineSchema = z.strictObject({ note: z.string() });
  const first = '{"note":"erste Zeile: ä"}\n';
  const second = Buffer.from('{"note":"zweite: ö"}\n');
  for (let cut = 0; cut < second.length; cut++) {
    writeFileSync(path, Buffer.concat([Buffer.from(first), second.subarray(0, cut)]));
    assert.deepEqual(readJsonl(path, lineSchema), [{ note: 'erste Zeile: ä' }]);
    assert.equal(readFileSync(path, 'utf8'), first);
  }
  appendJsonl(path, { note: 'next' });
  assert.equal(readJsonl(path, lineSchema).length, 2);
  writeFileSync(path, second.subarray(0, 5));
  assert.deepEqual(readJsonl(path, lineSchema), []);
  assert.equal(readFileSync(path, 'utf8'), '');
});

test('a damaged line inside the file is an error that names it, once and by its number in the file', () => {
  const path = join(scratch(), 'log.jsonl');
  writeFileSync(path, '{"step":0,"loss":1}\n\n{"step":1,\n{"step":2,"loss":1}\n');
  assert.throws(() => readJsonl(path, schema), /log\.jsonl line 3: not readable as JSON/);
  writeFileSync(path, '{"step":0,"loss":1}\n{"step":1,"loss":"?"}\n');
  assert.throws(
    () => readJsonl(path, schema),
    (error: Error) =>
      /log\.jsonl line 2 does not fit:\n {2}loss/.test(error.message) &&
      error.message.split('line 2').length === 2,
  );
});
