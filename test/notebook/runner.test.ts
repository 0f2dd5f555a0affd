import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { executeNotebooks } from '../../lib/cli/notebooks.js';
import { ROOT } from '../../lib/files.js';
import { type CodeCell, type Notebook, readNotebook } from '../../lib/notebook/nbformat.js';
import { type CellEvent, NotebookError, runNotebook } from '../../lib/notebook/runner.js';

// Inside the repository, so that the cells find its node_modules.
const folder = mkdtempSync(join(ROOT, 'dist', 'notebook-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const lib = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../lib/${path}`, import.meta.url)));

/** Writes a notebook whose cells are these sources; one that starts with `#` is Markdown. */
function writeSources(name: string, sources: readonly string[], change: object = {}): string {
  const path = join(folder, `${name}.ipynb`);
  const cells = sources.map((source) =>
    source.startsWith('#')
      ? { cell_type: 'markdown', metadata: {}, source: [source] }
      : { cell_type: 'code', metadata: {}, source, execution_count: 9, outputs: [] },
  );
  const kernelspec = { name: 'tslab', display_name: 'TypeScript', language: 'typescript' };
  const notebook = { nbformat: 4, nbformat_minor: 4, metadata: { kernelspec }, cells, ...change };
  writeFileSync(path, JSON.stringify(notebook));
  return path;
}

function codeCells(notebook: Notebook): CodeCell[] {
  return notebook.cells.filter((cell): cell is CodeCell => cell.cell_type === 'code');
}

/** Runs a notebook that must fail. */
async function failure(path: string, options: Parameters<typeof runNotebook>[1]): Promise<NotebookError> {
  const error = await runNotebook(path, options).then(
    () => assert.fail(`${path} ran to its end`),
    (error: unknown) => error,
  );
  if (!(error instanceof NotebookError)) throw error;
  return error;
}

describe('on tslab', { concurrency: 2 }, () => {
  test('cells run in order and every kind of output is kept, displays updated in place', async () => {
    const source = writeSources('good', [
      '# A title',
      "console.log('one'); console.error('two'); console.log('three'); const x: number = 1;",
      `import { newDisplay } from 'tslab';
       const d = newDisplay(); d.text('0 %');`,
      "d.html('<b>100 %</b>'); x + 1",
      '',
      `const { showTable, showMarkdown, showFigure } = require(${lib('notebook/display.js')});
       showTable([{ name: 'a_b', value: 0.5 }, { name: 'c', value: 12 }]);
       showMarkdown('$x^2$');
       await showFigure({ data: [{ type: 'bar', x: ['p'], y: [1], name: 'bars' }], layout: { title: { text: 'T' } }, config: {} });`,
      `const { progressBar } = require(${lib('notebook/progress.js')});
       const bar = progressBar(300, 'steps');
       for (let i = 1; i <= 300; i++) bar.update(i, 'note ' + i);
       bar.stop();`,
    ]);
    const out = join(folder, 'out', 'good.ipynb');
    const events: CellEvent[] = [];
    const before = readFileSync(source, 'utf8');
    const notebook = await runNotebook(source, { out, onCell: (event) => events.push(event) });
    const [streams, display, update, empty, shown, progress] = codeCells(notebook);
    assert.deepEqual(streams?.outputs, [
      { output_type: 'stream', name: 'stdout', text: 'one\n' },
      { output_type: 'stream', name: 'stderr', text: 'two\n' },
      { output_type: 'stream', name: 'stdout', text: 'three\n' },
    ]);
    const html = { output_type: 'display_data', data: { 'text/html': '<b>100 %</b>' }, metadata: {} };
    assert.deepEqual(display?.outputs, [html]);
    assert.deepEqual(update?.outputs, [{ output_type: 'stream', name: 'stdout', text: '2\n' }]);
    assert.deepEqual(
      codeCells(notebook).map((cell) => cell.execution_count),
      [1, 2, 3, null, 4, 5],
    );
    assert.deepEqual(empty?.outputs, []);

    const bundles = shown!.outputs.map((output) =>
      output.output_type === 'display_data' ? output : undefined,
    );
    const table = '| name | value |\n| :--- | ----: |\n| a\\_b |   0.5 |\n| c    |  12.0 |\n';
    assert.deepEqual(bundles[0]?.data, { 'text/markdown': table, 'text/plain': table });
    assert.deepEqual(bundles[1]?.data, { 'text/markdown': '$x^2$', 'text/plain': '$x^2$' });
    assert.equal(bundles[2]?.data['text/plain'], 'Figure: T (bars)');
    const png = Buffer.from(String(bundles[2]?.data['image/png']), 'base64');
    assert.equal(png.subarray(1, 4).toString(), 'PNG');
    assert.deepEqual(Object.keys(bundles[2]!.data).sort(), [
      'application/vnd.plotly.v1+json',
      'image/png',
      'text/plain',
    ]);
    assert.equal(progress?.outputs.length, 1);
    const bar = progress?.outputs[0];
    assert.match(JSON.stringify(bar), /300\/300.*note 300/);
    const drawn = events.filter((event) => event.kind === 'output' && event.output === bar).length;
    assert.ok(drawn >= 2 && drawn < 20, `300 updates were drawn ${drawn} times`);

    assert.equal(readFileSync(source, 'utf8'), before);
    const saved = readFileSync(out, 'utf8');
    assert.deepEqual(codeCells(readNotebook(out))[0]?.outputs, streams?.outputs);
    assert.match(saved, /"text": \[\n\s+"one\\n"\n\s+\]/);
    assert.match(saved, /"id": "cell-1"/);
    const ends = events.filter((event) => event.kind === 'end').map((event) => event.cell);
    assert.deepEqual(ends, [2, 3, 4, 6, 7]);
  });

  test("a cell imports the package 'agon' with its types; what does not compile is reported with its line", async () => {
    const path = writeSources('agon', [
      "import * as agon from 'agon';\nconst names = Object.keys(agon);",
      'const right = 1;\n\nconst wrong = agon.noSuchExport;',
    ]);
    const error = await failure(path, {});
    assert.equal(error.cell, 2, error.message);
    assert.match(error.reason, /^TypeScriptError: .*noSuchExport/);
    assert.equal(error.sourceLine, 'const wrong = agon.noSuchExport;');
  });

  test('a cell that throws is reported with number and message; later cells do not run', async () => {
    const path = writeSources('throws', [
      '# Title',
      'const a = 1;',
      "// a comment\nawait 0;\nthrow new RangeError('boom');",
      "console.log('never');",
    ]);
    const out = join(folder, 'out', 'throws.ipynb');
    const error = await failure(path, { out });
    assert.equal(error.cell, 3);
    assert.equal(error.sourceLine, 'await 0;');
    assert.equal(error.reason, 'RangeError: boom');
    assert.match(error.stderr, /RangeError: boom\n\s+at /);
    assert.match(error.message, /throws\.ipynb: cell 3 failed at `await 0;`: RangeError: boom/);
    const [, failed, never] = codeCells(readNotebook(out));
    assert.deepEqual(
      failed?.outputs.map((output) => output.output_type),
      ['stream', 'error'],
    );
    assert.deepEqual([never?.execution_count, never?.outputs], [null, []]);
  });

  test('a dying kernel and a cell that runs too long are reported, copies saved, sources left alone', async () => {
    const dying = writeSources('dying', ['process.exit(5);']);
    writeSources('slow', ["console.log('begun'); for (;;) {}", 'const never = 1;']);
    const before = readFileSync(dying, 'utf8');
    const options = { sourceFolder: folder, resultFolder: join(folder, 'copies'), timeoutMs: 3_000 };
    const [first, second] = await executeNotebooks(['dying', 'slow.ipynb'], options);
    assert.match(first!.error!.message, /dying\.ipynb: cell 1 failed.*KernelDiedError: .*exit code 5/);
    assert.match(second!.error!.message, /slow\.ipynb: cell 1 failed.*CellTimeoutError: .* longer than 3 s/);
    const outputs = codeCells(readNotebook(second!.out!)).map((cell) => JSON.stringify(cell.outputs));
    assert.match(outputs[0]!, /begun.*CellTimeoutError/);
    assert.equal(outputs[1], '[]');
    assert.equal(readFileSync(dying, 'utf8'), before);
  });

  test('the signal stops a run in the middle of a cell, with --check writing nothing', async () => {
    writeSources('aborted', ['await new Promise(() => {});']);
    const controller = new AbortController();
    const resultFolder = join(folder, 'unwritten');
    const options = { check: true, sourceFolder: folder, resultFolder, signal: controller.signal };
    const run = executeNotebooks(['aborted'], options);
    setTimeout(() => controller.abort(new Error('stopped by hand')), 4_000);
    await assert.rejects(run, /stopped by hand/);
    assert.equal(existsSync(resultFolder), false);
  });
});

test('what is not a notebook for tslab is refused by file and field, before a kernel starts', async () => {
  const started = performance.now();
  const broken = join(folder, 'broken.ipynb');
  writeFileSync(broken, '{');
  await assert.rejects(runNotebook(broken), /broken\.ipynb: not readable as JSON/);
  const old = writeSources('old', [], { nbformat: 3 });
  await assert.rejects(runNotebook(old), /old\.ipynb[\s\S]*nbformat: .*4[\s\S]*found 3/);
  const python = writeSources('python', [], { metadata: { kernelspec: { name: 'python3' } } });
  await assert.rejects(runNotebook(python), /python\.ipynb[\s\S]*kernelspec\.name: .*tslab[\s\S]*python3/);
  const cells = [{ cell_type: 'code', metadata: {}, source: 1, execution_count: null, outputs: [] }];
  await assert.rejects(runNotebook(writeSources('cells', [], { cells })), /cells\.0\.source/);
  await assert.rejects(
    executeNotebooks(['nowhere'], { sourceFolder: folder }),
    /no notebook named nowhere; there are: /,
  );
  assert.ok(performance.now() - started < 2_000);
});
