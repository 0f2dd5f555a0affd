/**
 * `npm run pretrain`: trains a base that is shipped in data/, resumable, with its log.
 *
 *   npm run pretrain -- [--base arena-base] [--out DIR] [--steps N] [--seed N] [--fresh] [--workers N]
 *
 * `--steps` and `--seed` need `--out`, so that a trial does not replace a shipped base. A shipped base was made with
 * the defaults on the backend that its pretrain.jsonl names.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BASE_NAMES, BASES, type BaseName, baseFolder } from '../experiments/bases.js';
import { pretrain, pretrainConfigSchema } from '../experiments/pretrain.js';
import { hashBase, RESULTS_FOLDER } from '../experiments/store.js';
import { check } from '../files.js';
import { progressBar } from '../notebook/progress.js';
import { stream } from '../random.js';
import { initBackend } from '../tensors/backend.js';
import { createPool } from '../tensors/pool.js';
import { loadTokenizer } from '../text/index.js';
import { runCommand } from './command.js';

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: 'arena-base' },
    steps: { type: 'string' },
    seed: { type: 'string' },
    out: { type: 'string' },
    workers: { type: 'string' },
    fresh: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

async function main(): Promise<void> {
  if (values.help) {
    console.log(`npm run pretrain -- [--base ${BASE_NAMES.join('|')}]`);
    console.log('  [--out DIR] [--steps N] [--seed N] [--workers N] [--fresh]');
    return;
  }
  if ((values.steps || values.seed) && !values.out)
    throw new Error('--steps and --seed want --out DIR: what lies in data/ is what is shipped');
  const out = resolve(values.out ?? baseFolder(values.base));
  baseFolder(values.base);
  const recipe = BASES[values.base as BaseName];
  const { source } = recipe;
  const config = check(
    pretrainConfigSchema,
    {
      ...recipe.pretrain,
      ...(values.steps ? { maxSteps: Number(values.steps) } : {}),
      ...(values.seed ? { seed: Number(values.seed) } : {}),
    },
    'pretrain options',
  );
  // What is trained follows from the config, the model and the traces: a few examples stand for the latter.
  const examples = Array.from({ length: 8 }, (_, i) => source.corpus.example(stream('fingerprint', i)));
  const from = source.from && hashBase(source.from);
  const key = createHash('sha256')
    .update(JSON.stringify({ config, model: source.model, from, examples }))
    .digest('hex')
    .slice(0, 10);
  const state = join(RESULTS_FOLDER, 'runs', `pretrain-${key}`);
  if (values.fresh) rmSync(state, { recursive: true, force: true });
  const backend = await initBackend();
  console.log(`${values.base} on backend ${backend.name} on ${backend.device}: ${backend.why}`);
  source.corpus.writeTokenizer(out);
  const pool = createPool(values.workers ? Number(values.workers) : undefined);
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  const bar = progressBar(config.maxSteps, values.base);
  try {
    await pretrain(pool, out, loadTokenizer(out), source, config, state, {
      signal: stop.signal,
      onStep: (step, loss) => bar.update(step, `loss ${loss.toFixed(4)}`),
    });
    bar.stop();
    console.log(`base saved in ${out}`);
  } finally {
    bar.stop();
    await pool.close();
  }
}

await runCommand(main);
