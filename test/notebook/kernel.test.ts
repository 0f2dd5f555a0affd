import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CellTimeoutError, Kernel, KernelDiedError } from '../../lib/notebook/kernel.js';
import { decodeMessage, encodeRequest, type Published } from '../../lib/notebook/messages.js';

const cwd = fileURLToPath(new URL('.', import.meta.url));
const argv = [
  process.execPath,
  fileURLToPath(new URL('fake-kernel.js', import.meta.url)),
  '{connection_file}',
];

// A temporary folder of this file's own, to see that nothing is left in it.
const temporary = mkdtempSync(join(tmpdir(), 'kernel-test-'));
process.env.TMPDIR = temporary;
after(() => rmSync(temporary, { recursive: true, force: true }));

/** Runs one cell; what it has printed is in `text`, also when it fails. */
async function execute(
  kernel: Kernel,
  code: string,
  options: { timeoutMs?: number; signal?: AbortSignal } = {},
) {
  const seen: Published[] = [];
  const reply = await kernel.execute(code, {
    timeoutMs: options.timeoutMs ?? 20_000,
    signal: options.signal,
    onPublished: (message) => seen.push(message),
  });
  const text = () => seen.map((m) => (m.type === 'stream' ? m.content.text : '')).join('');
  return { status: reply.status, text };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('a message survives the wire, and is ignored when its key or a byte of it is another', () => {
  const frames = encodeRequest('execute_request', { code: '1' }, { key: 'secret', session: 's', id: 'x' });
  const identity = Buffer.from('router identity');
  const message = decodeMessage([identity, ...frames], 'secret');
  assert.deepEqual(message, { type: 'execute_request', parentId: undefined, content: { code: '1' } });
  assert.equal(decodeMessage(frames, 'other'), undefined);
  const tampered = [...frames.slice(0, -1), Buffer.from('{"code":"2"}')];
  assert.equal(decodeMessage(tampered, 'secret'), undefined);
  assert.equal(decodeMessage(frames.slice(1), 'secret'), undefined);
  assert.equal(decodeMessage(frames.slice(0, 4), 'secret'), undefined);
});

describe('with a kernel that misbehaves', () => {
  test('forged messages are ignored, honest ones around them are read', async () => {
    const kernel = await Kernel.start({ cwd, argv });
    try {
      const forged = await execute(kernel, 'forge');
      assert.equal(forged.status, 'ok');
      const honest = await execute(kernel, 'hello');
      assert.equal(forged.text() + honest.text(), 'hello');
    } finally {
      await kernel.stop();
    }
  });

  test('what is published after the reply still reaches the cell it belongs to', async () => {
    const kernel = await Kernel.start({ cwd, argv });
    try {
      const late = await execute(kernel, 'late');
      await execute(kernel, 'next');
      assert.equal(late.text(), 'late');
    } finally {
      await kernel.stop();
    }
  });

  test('its death is reported with exit code and last words, and nothing is left behind', async () => {
    const kernel = await Kernel.start({ cwd, argv });
    await assert.rejects(execute(kernel, 'die'), (error: Error) => {
      assert.ok(error instanceof KernelDiedError);
      assert.match(error.message, /exit code 7[\s\S]*out of luck/);
      return true;
    });
    await assert.rejects(execute(kernel, 'again'), KernelDiedError);
    assert.equal(readdirSync(temporary).length, 1);
    await kernel.stop();
    await kernel.stop();
    assert.equal(isAlive(kernel.pid!), false);
    assert.deepEqual(readdirSync(temporary), []);
  });

  test('a cell that hangs ends by its time limit or by the signal, and stop() ends the process', async () => {
    const kernel = await Kernel.start({ cwd, argv });
    await assert.rejects(execute(kernel, 'hang', { timeoutMs: 100 }), CellTimeoutError);
    const stopped = new Error('stopped');
    const signal = AbortSignal.abort(stopped);
    await assert.rejects(execute(kernel, 'hello', { signal }), stopped);
    await kernel.stop();
    assert.equal(isAlive(kernel.pid!), false);
  });

  test('a command that is not there, or ends at once, is an error', async () => {
    const missing = Kernel.start({ cwd, argv: ['no-such-command-here'] });
    await assert.rejects(missing, /did not start.*no-such-command-here/);
    const quitter = Kernel.start({ cwd, argv: [process.execPath, '-e', 'process.exit(3)'] });
    await assert.rejects(quitter, /died \(exit code 3\)/);
  });
});

test('tslab: interrupt ends a waiting and a busy cell and keeps the variables', async () => {
  const kernel = await Kernel.start({ cwd });
  try {
    assert.equal((await execute(kernel, 'const kept = 41;')).status, 'ok');
    for (const code of [
      "console.log('on'); await new Promise(() => {});",
      "console.log('on'); for (;;) {}",
    ]) {
      const status = await new Promise<string>((resolve, reject) => {
        const onPublished = (message: Published) => {
          if (message.type === 'stream' && message.content.text.includes('on\n'))
            setTimeout(() => kernel.interrupt(), 300);
        };
        kernel
          .execute(code, { timeoutMs: 10_000, onPublished })
          .then((reply) => resolve(reply.status), reject);
      });
      assert.equal(status, 'error');
    }
    const after = await execute(kernel, 'kept + 1');
    assert.equal(after.text(), '42\n');
  } finally {
    await kernel.stop();
  }
  assert.equal(isAlive(kernel.pid!), false);
});
