/**
 * A training cell that is interrupted in a real kernel stops after its step, says how to go on, and run again ends with
 * the same numbers as one that never was; nothing that is saved is lost.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readMetrics } from '../../lib/experiments/store.js';
import { ROOT } from '../../lib/files.js';
import { Kernel } from '../../lib/notebook/kernel.js';
import type { Published } from '../../lib/notebook/messages.js';
import { fingerprint, scratch } from '../experiments/support.js';

const STEPS = 4;
// Inside the repository, so that the cells find its node_modules.
const cwd = mkdtempSync(join(ROOT, 'dist', 'interrupt-test-'));
after(() => rmSync(cwd, { recursive: true, force: true }));

const SETUP = `import { lab, openWorld, type Reward } from 'agon';
const world = await openWorld({ backend: 'wasm', workers: 0 });
const letters: Reward = (own) => own.completion.think.length;
const rows = ['mine', 'other'].map((name) => ({ name, basedOn: 'agon', challengeReward: letters, draftReward: letters }));
const tiny = {
  steps: ${STEPS},
  run: {
    problemsPerStep: 1, minDifficulty: 4, maxDifficulty: 16, generationBatchSize: 8,
    grpo: { numGenerations: 4, temperature: 1, maxCompletionLength: 12, perDeviceTrainBatchSize: 3, learningRate: 1e-2 },
    lora: { r: 2, alpha: 4 },
  },
  eval: { problems: 4, validationProblems: 2 },
};`;

const training = (resultsFolder: string) =>
  `const found = await lab(world, { name: 'x', methods: rows, resultsFolder: ${JSON.stringify(resultsFolder)}, ...tiny });`;

/** The runs of a results folder by the name of their row. */
function runsOf(folder: string) {
  const runs = join(folder, 'runs');
  const ids = existsSync(runs) ? readdirSync(runs).sort() : [];
  return ids.map((id) => ({ id, path: join(runs, id) }));
}
const stepsOf = (folder: string) => runsOf(folder).map((run) => readMetrics(run).length);

test('interrupted in the middle, run again: as if never interrupted', async () => {
  const kernel = await Kernel.start({ cwd });
  /** Runs a cell. @param during called every few milliseconds while it runs, until it returns true */
  const cell = async (code: string, during: (stdout: string) => boolean = () => true) => {
    const seen: Published[] = [];
    const stream = (name: string) =>
      seen.map((m) => (m.type === 'stream' && m.content.name === name ? m.content.text : '')).join('');
    const timer = setInterval(() => {
      if (during(stream('stdout'))) clearInterval(timer);
    }, 10);
    const onPublished = (message: Published) => seen.push(message);
    const { status } = await kernel.execute(code, { timeoutMs: 280_000, onPublished });
    clearInterval(timer);
    return { status, stdout: stream('stdout'), stderr: stream('stderr') };
  };
  try {
    const setup = await cell(SETUP);
    assert.equal(setup.status, 'ok', setup.stderr);
    const [broken, whole] = [scratch(), scratch()];

    const stopped = await cell(training(broken), () => {
      if (Math.min(...stepsOf(broken), stepsOf(broken).length === 2 ? STEPS : 0) < 1) return false;
      kernel.interrupt();
      return true;
    });
    assert.equal(stopped.status, 'error');
    assert.match(stopped.stdout, /interrupted: stops after this step/);
    assert.match(
      stopped.stderr,
      /^\[Interrupted: interrupted after \d+ steps; everything is saved: run this cell again.*\]\n$/,
    );
    const saved = stepsOf(broken);
    assert.ok(
      saved.every((steps) => steps >= 1 && steps < STEPS),
      `steps ${saved}`,
    );
    const names = runsOf(broken).map(({ path }) => readdirSync(path));
    assert.ok(
      names.every((files) => !files.includes('lock')),
      'no folder is held',
    );

    // After that the kernel takes an interrupt as it always did, and lives; it may miss one while it compiles.
    let interruptedAt = Date.now();
    const waiting = await cell("console.log('on'); await new Promise(() => {});", (stdout) => {
      if (stdout === '' || Date.now() - interruptedAt < 1000) return false;
      interruptedAt = Date.now();
      kernel.interrupt();
      return false;
    });
    assert.match(waiting.stderr, /Interrupted asynchronously/);
    assert.deepEqual(stepsOf(broken), saved, 'nothing goes on in the background');

    for (const folder of [broken, whole]) {
      const made = await cell(training(folder));
      assert.equal(made.status, 'ok', made.stderr);
    }
    assert.deepEqual(stepsOf(broken), [STEPS, STEPS]);
    const prints = [broken, whole].map((folder) =>
      runsOf(folder).map((run) => fingerprint(run as Parameters<typeof fingerprint>[0])),
    );
    assert.deepEqual(prints[0], prints[1]);
  } finally {
    await kernel.stop();
  }
});
