/**
 * `npm run pretrain`: trains the arena's base from scratch into data/arena-base, resumable, with its log.
 * Options: --steps N, --seed N, --fresh. The base that is shipped was made by this command with its defaults.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Interrupted } from '../experiments/interrupted.js';
import { pretrain, pretrainConfigSchema } from '../experiments/pretrain.js';
import { check, ROOT } from '../files.js';
import { writeArenaTokenizer } from '../tasks/index.js';
import { initBackend } from '../tensors/backend.js';
import { createPool } from '../tensors/pool.js';
import { loadTokenizer } from '../text/index.js';

const { values } = parseArgs({
  options: {
    steps: { type: 'string' },
    seed: { type: 'string' },
    out: { type: 'string', default: join(ROOT, 'data', 'arena-base') },
    fresh: { type: 'boolean', default: false },
  },
});
const config = check(
  pretrainConfigSchema,
  {
    ...(values.steps ? { maxSteps: Number(values.steps) } : {}),
    ...(values.seed ? { seed: Number(values.seed) } : {}),
  },
  'pretrain options',
);
const state = join(ROOT, 'results', 'runs', `pretrain-s${config.seed}-${config.maxSteps}`);
if (values.fresh) {
  rmSync(state, { recursive: true, force: true });
  rmSync(join(values.out, 'pretrain.jsonl'), { force: true });
}
const backend = await initBackend();
console.log(`backend ${backend.name} on ${backend.device}: ${backend.why}`);
writeArenaTokenizer(values.out);
const pool = createPool();
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
const start = performance.now();
let [done, tokens] = [0, 0];
try {
  await pretrain(pool, values.out, loadTokenizer(values.out), config, state, {
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
  console.log(`base saved in ${values.out}`);
} catch (error) {
  if (!(error instanceof Interrupted)) throw error;
  console.log(error.message);
  process.exitCode = 130;
} finally {
  await pool.close();
}
