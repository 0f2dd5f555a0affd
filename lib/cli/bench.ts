/**
 * `npm run bench`: how fast sampling, training and whole steps are on every backend of this machine, beside the
 * machine's matmul rate and – where their Python is there – the peers. Writes results/bench/.
 *
 *   npm run bench -- [--peers | --no-peers] [--models arena,wide] [--repetitions N] [--threads N]
 *                    [--no-curve] [--out DIR]
 *
 * `--peers` makes `.bench-venv` with the pinned peers first; later calls use it. `AGON_BENCH_PYTHON` names another
 * Python that has them. About 10 minutes without peers, 25 with them.
 */
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exportFigure, toCsv } from '../analysis/index.js';
import { curveFigure } from '../bench/figure.js';
import { describeMachine, ourSpecs, PEERS, peerSpecs, peersPython, setUpPeers } from '../bench/machine.js';
import { type BenchResult, benchMarkdown, measuredTable } from '../bench/report.js';
import { benchModel, type ModelResult } from '../bench/run.js';
import { ARENA_PLAN, makeWideModel, makeWorkload, WIDE_PLAN } from '../bench/workload.js';
import { ARENA_BASE } from '../experiments/world.js';
import { ROOT, writeFileAtomic, writeJson } from '../files.js';
import { availableBackends, initBackend } from '../tensors/backend.js';

const OPTIONS = {
  peers: { type: 'boolean', default: false },
  'no-peers': { type: 'boolean', default: false },
  models: { type: 'string', default: 'arena,wide' },
  repetitions: { type: 'string' },
  threads: { type: 'string', default: String(availableParallelism()) },
  'no-curve': { type: 'boolean', default: false },
  out: { type: 'string', default: join(ROOT, 'results', 'bench') },
} as const;

const MODELS = ['arena', 'wide'];

function readOptions() {
  try {
    return parseArgs({ options: OPTIONS }).values;
  } catch (error) {
    const [what] = (error as Error).message.split('. ');
    const allowed = Object.keys(OPTIONS).map((name) => `--${name}`);
    throw new Error(`${what}: allowed are ${allowed.join(', ')}`);
  }
}

/** @throws when the text is no whole number from 1 */
function count(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} ${text}: allowed are whole numbers from 1`);
  return value;
}

async function main(values: ReturnType<typeof readOptions>): Promise<void> {
  const models = values.models.split(',');
  for (const model of models)
    if (!MODELS.includes(model)) throw new Error(`--models ${model}: allowed are ${MODELS.join(', ')}`);
  const threads = count('threads', values.threads);
  const repetitions =
    values.repetitions === undefined ? {} : { repetitions: count('repetitions', values.repetitions) };
  if (values.peers && !peersPython()) setUpPeers();
  const python = values['no-peers'] ? undefined : peersPython();

  const absent: string[] = [];
  if (!availableBackends().some((name) => name.startsWith('tfjs-node')))
    absent.push('native TensorFlow is not installed here: `npm run setup:native` installs it');
  if (!python)
    absent.push(
      `the peers (${Object.values(PEERS).join('; ')}) are not measured: \`npm run bench -- --peers\` makes a ` +
        'Python environment with them',
    );
  for (const line of absent) console.log(line);

  const specs = [...ourSpecs(), ...(python ? peerSpecs(python, threads) : [])];
  const options = { curve: !values['no-curve'], log: console.log };
  const results: ModelResult[] = [];
  if (models.includes('arena')) {
    console.log(`the arena's base: ${specs.map((spec) => spec.name).join(', ')}`);
    const plan = { ...ARENA_PLAN, ...repetitions };
    results.push(await benchModel(plan, makeWorkload(plan, ARENA_BASE, threads, false), specs, options));
  }
  if (models.includes('wide')) {
    console.log('the same architecture ten times wider, random');
    await initBackend('wasm');
    const base = makeWideModel();
    process.once('exit', () => rmSync(base, { recursive: true, force: true }));
    const plan = { ...WIDE_PLAN, ...repetitions };
    const workload = makeWorkload(plan, base, threads, true);
    results.push(await benchModel(plan, workload, specs, { ...options, curve: false }));
  }
  const date = new Date().toISOString();
  await report({ date, machine: describeMachine(), threads, models: results, absent }, resolve(values.out));
}

async function report(result: BenchResult, folder: string): Promise<void> {
  const markdown = benchMarkdown(result);
  writeJson(join(folder, 'bench.json'), result);
  writeFileAtomic(join(folder, 'bench.md'), markdown);
  writeFileAtomic(join(folder, 'bench.csv'), toCsv(measuredTable(result)));
  const curve = result.models.find((model) => model.curve.length > 0);
  if (curve) {
    const subtitle = `${result.machine.cpu}, ${result.threads} threads; ${curve.plan.model}, one run a point`;
    await exportFigure(curveFigure(curve.curve, subtitle), join(folder, 'curve'), ['json', 'svg', 'png']);
  }
  console.log(`\n${markdown}`);
  console.log(`written to ${relative(process.cwd(), folder)}`);
}

// Ending by exit() runs what ends the participants.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code));
try {
  await main(readOptions());
  process.exit(0); // a backend's threads do not keep a finished bench
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exit(1);
}
