/**
 * JupyterLab as `npm run lab` starts it, looked at by a headless browser: cells run on our kernel, figures, tables and
 * traces stand in the page, and the outputs saved in notebooks/ do too. It needs a Python with JupyterLab (.venv here, or
 * AGON_JUPYTER) and a Chromium (AGON_CHROMIUM, or where Linux puts it), and says what is missing where it is skipped.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { probePython, startLab, stopLab, venvPython } from '../../lib/cli/lab.js';
import { ROOT } from '../../lib/files.js';
import { readNotebook } from '../../lib/notebook/nbformat.js';

// Native TensorFlow greets on stderr, which is looked at below.
process.env.AGON_BACKEND ??= 'wasm';
const PYTHON = process.env.AGON_JUPYTER ?? venvPython();
const CHROMIUMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const CHROMIUM = process.env.AGON_CHROMIUM ?? CHROMIUMS.find((path) => existsSync(path));
const NOTEBOOKS = join(ROOT, 'notebooks');
const SHIPPED = readdirSync(NOTEBOOKS).filter((file) => file.endsWith('.ipynb'));
const SCREENSHOTS = join(ROOT, 'results', 'notebooks', 'screenshots');
const PLOTLY = 'application/vnd.plotly.v1+json';

const python = probePython(PYTHON);

function whyNot(): string | undefined {
  if (!python) return `no JupyterLab in ${PYTHON}: set AGON_JUPYTER to a Python that has it`;
  if (!python.drawsPlotly) return `${PYTHON} lacks plotly 6 or later, which draws figures in JupyterLab`;
  if (CHROMIUM === undefined) return 'no Chromium: set AGON_CHROMIUM to one';
  return undefined;
}

const ROLLOUT =
  "rollout: { promptIds: [1], completionIds: [1, 2], logProbs: [0, 0], finishReason: 'stop' as const }";
const CELLS = [
  "import { about, countdown, parseCompletion, showFigure, showTable, showTraces, type Attempt } from 'agon';\nawait about();",
  "showTable([{ method: 'agon', 'pass@1': 0.41 }]);",
  "await showFigure({ data: [{ type: 'bar', x: ['a', 'b'], y: [1, 2], name: 'bars' }], layout: { title: { text: 'A figure' } }, config: {} });",
  `const problem = { id: 'p', question: 'numbers 3 5 7 11 target 24', gold: '24', difficulty: 1, split: 'train' as const };
const attemptAt = (text: string, extra: Pick<Attempt, 'adapter' | 'role' | 'rival'>): Attempt => {
  const completion = parseCompletion(text, 'stop');
  const correct = countdown.verify(problem, completion);
  return { problem, completion, correct, formatted: completion.formatted, ${ROLLOUT}, ...extra };
};
const draft = attemptAt('<think> <script>window.hacked = 1</script> <img src=x onerror=alert(1)> try 11 + 5 = 16 then 7 + 3 = 10 left 16 10 : 26 6 big target 24 guess </think> dead 7 - 3 path 11 + 5 = 16 then 7 + 3 = 10 <answer> 16 + 10 </answer>', { adapter: 'A', role: 'draft' });
const challenge = attemptAt('<think> check 11 + 5 = 16 then 7 + 3 = 10 left 16 10 : 26 6 big target 24 dead try 7 - 3 = 4 then 11 - 5 = 6 left 6 4 : 10 2 24 target 24 hit </think> path 7 - 3 = 4 then 11 - 5 = 6 <answer> 6 x 4 </answer>', { adapter: 'B', role: 'challenge', rival: draft });
showTraces([challenge], { filter: 'conversions' });`,
];

function writeSource(path: string): void {
  const cells = CELLS.map((source, i) => ({
    ...{ cell_type: 'code', id: `c${i}`, metadata: {}, source, execution_count: null, outputs: [] },
  }));
  const kernelspec = { name: 'tslab', display_name: 'TypeScript', language: 'typescript' };
  writeFileSync(path, JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: { kernelspec }, cells }));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

describe('JupyterLab in a browser', { skip: whyNot() ?? false }, () => {
  // Inside the repository, so that the kernel finds the library as it does from notebooks/.
  const folder = mkdtempSync(join(ROOT, 'dist', 'lab-test-'));
  const token = randomUUID();
  let url = '';
  let lab: ChildProcess;
  let browser: Browser;
  let log = '';

  before(async () => {
    const work = join(folder, 'notebooks');
    const settings = join(folder, 'settings', '@jupyterlab', 'notebook-extension');
    for (const path of [work, settings, SCREENSHOTS]) mkdirSync(path, { recursive: true });
    writeSource(join(work, 'live.ipynb'));
    for (const file of SHIPPED) copyFileSync(join(NOTEBOOKS, file), join(work, file));
    // Else only the cells near the top are in the page.
    writeFileSync(join(settings, 'tracker.jupyterlab-settings'), '{ "windowingMode": "none" }');
    const port = await freePort();
    url = `http://127.0.0.1:${port}/lab`;
    lab = startLab(python!, {
      root: work,
      stdio: 'pipe',
      args: [
        ...[
          '--no-browser',
          `--port=${port}`,
          '--ServerApp.port_retries=0',
          `--IdentityProvider.token=${token}`,
        ],
        ...['--LabApp.expose_app_in_browser=True', `--LabApp.user_settings_dir=${join(folder, 'settings')}`],
        `--LabApp.workspaces_dir=${join(folder, 'workspaces')}`,
        ...(process.getuid?.() === 0 ? ['--allow-root'] : []),
      ],
    });
    for (const stream of [lab.stdout!, lab.stderr!])
      stream.on('data', (chunk: Buffer) => {
        log += chunk.toString();
      });
    for (const deadline = Date.now() + 90_000; !log.includes('is running at'); ) {
      assert.ok(Date.now() < deadline && lab.exitCode === null, `JupyterLab did not start:\n${log}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    browser = await chromium.launch({
      ...{ executablePath: CHROMIUM!, headless: true },
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'],
    });
  });
  after(async () => {
    await browser?.close();
    if (lab && lab.exitCode === null) {
      const gone = new Promise((resolve) => lab.once('exit', resolve));
      stopLab(lab);
      await gone;
    }
    rmSync(folder, { recursive: true, force: true });
  });

  async function openNotebook(name: string): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1400, height: 1600 } });
    await page.goto(`${url}/tree/${name}?token=${token}`, { waitUntil: 'domcontentloaded', timeout: 90_000 });
    await page.locator('.jp-Notebook .jp-Cell').first().waitFor({ timeout: 90_000 });
    return page;
  }

  /** By how many pixels the widest picture so far is cut off. */
  let overhang = 0;

  /** Plotly's renderer shows the picture, one of its pixels to one of CSS, until the mouse is over it; then it draws. */
  async function drawFigures(page: Page, count: number): Promise<Locator[]> {
    const figures = page.locator('.jp-OutputArea .jp-RenderedPlotly');
    if (count > 0) await figures.nth(count - 1).waitFor({ timeout: 60_000 });
    assert.equal(await figures.count(), count);
    const all = await figures.all();
    for (const figure of all) {
      const picture = await figure.locator('img.plot-img').boundingBox();
      const room = await figure.boundingBox();
      if (picture && room) overhang = Math.max(overhang, picture.width - room.width);
      await figure.locator('img.plot-img').dispatchEvent('mouseenter');
      await figure.locator('.main-svg').first().waitFor({ timeout: 60_000 });
    }
    return all;
  }

  test('cells run on our kernel; figure, table and traces stand in the page; a script in a trace does not run', async () => {
    const page = await openNotebook('live.ipynb');
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    // Cells that are run before there is a kernel bring up a question which kernel it shall be.
    const kernel = 'jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel';
    await page.waitForFunction(`${kernel}?.connectionStatus === 'connected'`, undefined, { timeout: 90_000 });
    await page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')");
    const last = page.locator('.jp-OutputArea table').nth(1);
    await last
      .waitFor({ timeout: 120_000 })
      .finally(() => page.screenshot({ path: join(SCREENSHOTS, 'live.png') }));
    await drawFigures(page, 1);
    await page.locator('.js-plotly-plot .barlayer .point').nth(1).waitFor({ timeout: 30_000 });
    const text = (await page.locator('.jp-Notebook').textContent())?.replaceAll('\u00a0', ' ') ?? '';
    assert.match(text, /agon-notebooks \d+\.\d+\.\d+, Node \d+/);
    assert.match(text, /1 of 1 conversions among 1 attempts/);
    for (const mark of ['≡ copied', '↩ abandoned', '✎ corrected', '→ settled'])
      assert.ok(text.includes(mark), mark);
    assert.match(text, /<script>window\.hacked = 1<\/script>/);
    assert.deepEqual([dialogs, await page.evaluate('window.hacked ?? null')], [[], null]);
    assert.equal(await page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count(), 0);
    await page.screenshot({ path: join(SCREENSHOTS, 'live-drawn.png') });
    await page.close();
  });

  test('every figure that a shipped notebook has saved is drawn, and nothing is shown as an error', async () => {
    for (const name of SHIPPED) {
      const outputs = readNotebook(join(NOTEBOOKS, name)).cells.flatMap((cell) =>
        cell.cell_type === 'code' ? cell.outputs : [],
      );
      const figures = outputs.filter((output) => 'data' in output && PLOTLY in output.data).length;
      if (outputs.length === 0) continue;
      const page = await openNotebook(name);
      const drawn = await drawFigures(page, figures);
      assert.equal(await page.locator('[data-mime-type="application/vnd.jupyter.error"]').count(), 0, name);
      for (const [i, figure] of drawn.entries())
        await figure.screenshot({ path: join(SCREENSHOTS, `${name.replace('.ipynb', '')}-${i + 1}.png`) });
      await page.close();
    }
  });

  test('the picture that stands for a figure until the mouse is over it fits its cell', () => {
    assert.ok(overhang <= 1, `${overhang.toFixed(0)} px are cut off`);
  });
});
