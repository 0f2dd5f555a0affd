/**
 * `npm run pretrain`: trains the arena's base from scratch into data/arena-base, resumable, with its log.
 * Options: --out DIR (needed with --steps or --seed, so that a trial does not replace the shipped base), --steps N,
 * --seed N, --fresh. The shipped base was made with the defaults on the backend that its pretrain.jsonl names.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Interrupted } from '../experiments/interrupted.js';
import { ARENA_MODEL, pretrain, pretrainConfigSchema } from '../experiments/pretrain.js';
import { RESULTS_FOLDER } from '../experiments/store.js';
import { ARENA_BASE } from '../experiments/world.js';
import { check } from '../files.js';
import { stream } from '../random.js';
import { countdownExample, writeArenaTokenizer } from '../tasks/index.js';
import { initBackend } from '../tensors/backend.js';
import { createPool } from '../tensors/pool.js';
import { loadTokenizer } from '../text/index.js';

const { values } = parseArgs({
  options: {
    steps: { type: 'string' },
    seed: { type: 'string' },
    out: { type: 'string' },
    fresh: { type: 'boolean', default: false },
  },
});
if ((values.steps || values.seed) && !values.out)
  throw new Error('--steps and --seed want --out DIR: data/arena-base is the base that is shipped');
const out = resolve(values.out ?? ARENA_BASE);
const config = check(
  pretrainConfigSchema,
  {
    ...(values.steps ? { maxSteps: Number(values.steps) } : {}),
    ...(values.seed ? { seed: Number(values.seed) } : {}),
  },
  'pretrain options',
);
// What is trained follows from the config, the model and the traces: a few examples stand for the latter.
const examples = Array.from({ length: 8 }, (_, i) => countdownExample(stream('fingerprint', i)));
const key = createHash('sha256')
  .update(JSON.stringify({ config, ARENA_MODEL, examples }))
  .digest('hex')
  .slice(0, 10);
const state = join(RESULTS_FOLDER, 'runs', `pretrain-${key}`);
if (values.fresh) rmSync(state, { recursive: true, force: true });
const backend = await initBackend();
console.log(`backend ${backend.name} on ${backend.device}: ${backend.why}`);
writeArenaTokenizer(out);
const pool = createPool();
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
const start = performance.now();
let [done, tokens] = [0, 0];
try {
  await pretrain(pool, out, loadTokenizer(out), config, state, {
    signal: stop.signal,
    onStep: (step, loss, stepTokens) => {
      done += 1;
      tokens += stepTokens;
      if (done % 20 !== 0) return;
      const seconds = (performance.now() - start) / 1000;
      const left = ((config.maxSteps - step) * seconds) / done / 60;
      const rate = Math.round(tokens / seconds);
      console.log(
        `step ${step}/${config.maxSteps} loss ${loss.toFixed(4)} ${rate} tokens/s ${left.toFixed(1)} min left`,
      );
    },
  });
  console.log(`base saved in ${out}`);
} catch (error) {
  if (!(error instanceof Interrupted)) throw error;
  console.log(error.message);
  process.exitCode = 130;
} finally {
  await pool.close();
}
