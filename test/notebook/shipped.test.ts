/**
 * What every shipped notebook keeps to, read from its file: the kernel's name, its run time in the first cell, versions and
 * backend in the first code cell, answers hidden until asked for, and no error and no path of a machine in saved outputs.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { z } from 'zod';
import { findPython, JUPYTER_PACKAGES, setupCommand, startLab, userDataFolder } from '../../lib/cli/lab.js';
import { ROOT, readJson } from '../../lib/files.js';
import { about } from '../../lib/notebook/about.js';
import { readNotebook } from '../../lib/notebook/nbformat.js';
import { currentBackend } from '../../lib/tensors/backend.js';

const FOLDER = join(ROOT, 'notebooks');
const PATHS = /(?<![\w.:/])\/(?:work|tmp|home|root|Users|mnt|var|opt)\/|\b[A-Za-z]:\\\\?[A-Za-z]/;

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.ipynb')))
  test(`${file} keeps to the rules of a chapter`, () => {
    const { cells, metadata } = readNotebook(join(FOLDER, file));
    assert.deepEqual(
      [metadata.kernelspec?.name, metadata.kernelspec?.display_name],
      ['tslab', 'TypeScript'],
      'the kernel as `npm run lab` names it',
    );
    const [first] = cells;
    assert.equal(first?.cell_type, 'markdown');
    assert.match(first.source, /\b(?:seconds?|minutes?|min)\b/, 'the first cell states the run time');
    const firstCode = cells.find((cell) => cell.cell_type === 'code');
    assert.match(
      firstCode?.source ?? '',
      /await about\(\)/,
      'the first code cell prints versions and backend',
    );

    const exercises = cells.findIndex((cell) => /^#+ Exercises?\b/m.test(cell.source));
    assert.ok(exercises >= 0, 'there are exercises');
    for (const { source } of cells.slice(exercises))
      if (/answer:?\*/i.test(source) || /<summary>.*answer/i.test(source))
        assert.match(source, /<details>[\s\S]*answer[\s\S]*<\/details>/i, 'answers are inside of <details>');

    for (const cell of cells) {
      if (cell.cell_type !== 'code') continue;
      for (const output of cell.outputs) {
        assert.notEqual(output.output_type, 'error', cell.source);
        assert.doesNotMatch(JSON.stringify(output), PATHS, cell.source);
      }
    }
  });

test('what counts as a path of a machine', () => {
  for (const path of ['/work/main/x', '"/tmp/a', 'at /home/me/x', '/root/.cache', 'C:\\\\Users', 'D:\\data'])
    assert.match(path, PATHS);
  for (const text of ['results/tmp/x', 'https://a.org/home/x', 'a/b', 'image/png', 'notebooks/01']) {
    assert.doesNotMatch(text, PATHS, text);
  }
});

test('about prints versions, backend and device, and nothing that changes from day to day', async () => {
  const log = mock.method(console, 'log', () => {});
  await about();
  await about();
  log.mock.restore();
  const lines = log.mock.calls.map((call) => String(call.arguments[0]));
  assert.deepEqual(lines.slice(3), lines.slice(0, 3));
  const { version } = readJson(join(ROOT, 'package.json'), z.looseObject({ version: z.string() }));
  const { name, why, device } = currentBackend();
  assert.deepEqual(lines.slice(0, 3), [
    `agon-notebooks ${version}, Node ${process.versions.node}`,
    `backend: ${name} (${why})`,
    `device: ${device}`,
  ]);
});

test('without a Python that has JupyterLab the one command is said; other interfaces are refused', () => {
  assert.throws(
    () => findPython(['no-such-python']),
    (error: Error) =>
      error.message.includes('tried no-such-python') && error.message.includes(setupCommand()),
  );
  const python = { command: 'no-such-python', version: '0', drawsPlotly: true };
  for (const arg of ['--ip=0.0.0.0', '--ServerApp.ip=::', '--ServerApp.allow_remote_access=True', '--ip'])
    assert.throws(() => startLab(python, { args: [arg] }), /127\.0\.0\.1 alone/, arg);
  assert.equal(userDataFolder({ JUPYTER_DATA_DIR: '/x' }), '/x');
  assert.equal(userDataFolder({ XDG_DATA_HOME: 'share' }, 'linux'), join('share', 'jupyter'));
});

test('the dev container installs the versions that `npm run lab` names, on a Node that the package allows', () => {
  const container = readJson(
    join(ROOT, '.devcontainer', 'devcontainer.json'),
    z.looseObject({
      image: z.string(),
      features: z.record(z.string(), z.record(z.string(), z.unknown())),
      postCreateCommand: z.string(),
      customizations: z.object({ vscode: z.looseObject({ extensions: z.array(z.string()) }) }),
    }),
  );
  assert.match(container.image, /:\d+-20-/);
  assert.ok(
    container.postCreateCommand.includes(setupCommand().replace(/^py /, 'python3 ').split(' && ')[0]!),
  );
  assert.ok(container.postCreateCommand.includes(JUPYTER_PACKAGES));
  assert.match(container.postCreateCommand, /npm ci.*npm run lab -- --install/);
  assert.ok(container.customizations.vscode.extensions.includes('ms-toolsai.jupyter'));
  assert.match(readFileSync(join(ROOT, '.gitignore'), 'utf8'), /^\.venv\/$/m);
});
