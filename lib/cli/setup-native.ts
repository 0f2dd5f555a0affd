/**
 * `npm run setup:native`: TensorFlow's own library instead of wasm, checked against wasm before it is used.
 *
 * Takes what npm installed if that loads; else tries tfjs-node-gpu's official download; else compiles its binding
 * against the TensorFlow that pip serves. Everything happens in a folder beside `.native` and is renamed at the end.
 * Options: --gpu (CUDA), --status, --undo. `AGON_BACKEND=wasm` keeps a single run on wasm. Left out: Windows, macOS.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  compareSamples,
  PARITY_LIMIT,
  type ParitySample,
  paritySample,
  paritySampleSchema,
} from '../experiments/parity.js';
import { ARENA_BASE } from '../experiments/world.js';
import { readJson, writeJson } from '../files.js';
import { initBackend } from '../tensors/backend.js';
import {
  bytesIn,
  choosePlan,
  FLAVOURS,
  type Flavour,
  NATIVE_DIR,
  type NativeRecord,
  putInPlace,
  readRecord,
  removeLeftovers,
  TENSORFLOW_VERSION,
  type Tool,
  thisMachine,
  undo,
  whyNoRoom,
  whyToolsMissing,
  whyUnsupported,
  workFolder,
  writeRecord,
} from '../tensors/native.js';
import { buildFromPip, installOfficial, run } from '../tensors/native-build.js';

const start = performance.now();
const stop = new AbortController();

/** The native package itself is at fault: it is not to stay. */
class Unfit extends Error {}

/** A line of the log, with the time since the start. */
function say(line: string): void {
  console.log(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${line}`);
}

/** Runs the parity sample on a backend in a process of its own. @throws when the backend does not start there */
async function sampleOn(backend: string, nativeDir: string): Promise<ParitySample> {
  const folder = mkdtempSync(join(tmpdir(), 'agon-parity-'));
  const file = join(folder, 'sample.json');
  const env = { AGON_BACKEND: backend, AGON_NATIVE_DIR: nativeDir };
  try {
    const script = fileURLToPath(import.meta.url);
    await run(process.execPath, [script, '--sample', file], { env, signal: stop.signal, timeoutMs: 300_000 });
    return readJson(file, paritySampleSchema);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Compares a native package with wasm and says the numbers. @throws when they differ, or the GPU is not used */
async function checkParity(backend: string, nativeDir: string, flavour: Flavour): Promise<ParitySample> {
  say(`parity run: wasm against ${backend}, each in a process of its own`);
  const wasm = await sampleOn('wasm', nativeDir);
  const native = await sampleOn(backend, nativeDir).catch((error: Error) => {
    stop.signal.throwIfAborted();
    throw new Unfit(error.message);
  });
  const { logits, gradient, agrees } = compareSamples(wasm, native);
  const show = (x: { absolute: number; relative: number }) =>
    `max |difference| ${x.absolute.toExponential(1)} (relative ${x.relative.toExponential(1)}, limit ${PARITY_LIMIT})`;
  say(`  logits of the arena's base: ${show(logits)}`);
  say(`  one GRPO gradient:          ${show(gradient)}`);
  const ratio = native.gflops / wasm.gflops;
  say(
    `  matMul 512: wasm ${wasm.gflops.toFixed(1)}, native ${native.gflops.toFixed(1)} GFLOP/s, ${ratio.toFixed(1)} x`,
  );
  if (!agrees) throw new Unfit('the native backend does not compute what wasm computes');
  if (flavour === 'cuda' && !native.device.startsWith('GPU'))
    throw new Unfit('--gpu: TensorFlow found no GPU it can use (is the NVIDIA driver there? see nvidia-smi)');
  return native;
}

function has(tool: Tool): boolean {
  const [program, args] = tool === 'pip' ? ['python3', ['-m', 'pip', '--version']] : [tool, ['--version']];
  return spawnSync(program, args).status === 0;
}

function seesGpu(): boolean {
  return spawnSync('nvidia-smi', ['-L']).status === 0;
}

/** The native package that npm put into node_modules, where it loads there. */
async function fromNpm(work: string): Promise<ParitySample | undefined> {
  for (const name of ['tfjs-node-gpu', 'tfjs-node'])
    try {
      return await sampleOn(name, work); // the work folder is empty: only node_modules is left
    } catch {
      stop.signal.throwIfAborted();
    }
  return undefined;
}

/** Official first, then the build; the folder holds a package that passed the parity run when this returns. */
async function install(work: string, flavour: Flavour): Promise<NativeRecord> {
  const options = { signal: stop.signal, onStage: (stage: string) => say(stage) };
  const date = new Date().toISOString();
  try {
    say('first way: the official download');
    await installOfficial(work, options);
    const { device } = await checkParity('tfjs-node-gpu', work, flavour);
    const tensorflow = /TensorFlow (\S+)\)/.exec(device)?.[1] ?? 'unknown';
    return { way: 'official', flavour, package: 'tfjs-node-gpu', tensorflow, wheelSha256: null, date };
  } catch (error) {
    stop.signal.throwIfAborted();
    const [what, ...output] = (error as Error).message.split('\n');
    const reason = output.find((line) => /^\s*\w*Error:/.test(line)) ?? output.at(-1);
    say(`  does not work here: ${what}${reason ? ` (${reason.trim()})` : ''}`);
  }
  const { npm, peakGB, finalGB } = FLAVOURS[flavour];
  say(`second way: building against pip's TensorFlow (disk: ${peakGB} GB for a while, ${finalGB} GB stay)`);
  const { bavail, bsize } = statfsSync(dirname(work));
  const problem = whyToolsMissing(has) ?? whyNoRoom(flavour, bavail * bsize);
  if (problem) throw new Error(problem);
  const wheelSha256 = await buildFromPip(work, flavour, options);
  await checkParity(npm, work, flavour);
  return { way: 'built', flavour, package: npm, tensorflow: TENSORFLOW_VERSION, wheelSha256, date };
}

async function setUp(flavour: Flavour): Promise<void> {
  const problem = whyUnsupported(thisMachine());
  if (problem) throw new Error(problem);
  for (const name of removeLeftovers(NATIVE_DIR)) say(`removed ${name}, left by a run that was killed`);
  if (flavour === 'cpu' && seesGpu())
    say('nvidia-smi shows a GPU here: with -- --gpu TensorFlow would use it');
  const work = workFolder(NATIVE_DIR);
  const forget = () => rmSync(work, { recursive: true, force: true });
  process.once('exit', forget);
  const npm = await fromNpm(work);
  const plan = choosePlan(flavour, npm?.device, readRecord(NATIVE_DIR));
  if (plan === 'use npm') {
    say(`npm has installed ${npm!.backend}, and it loads: ${npm!.device}. Nothing to build.`);
    await checkParity(npm!.backend, work, flavour);
    return;
  }
  if (plan === 'keep') {
    const { package: name } = readRecord(NATIVE_DIR)!;
    say(`${name} is set up already (--undo removes it)`);
    try {
      await checkParity(name, NATIVE_DIR, flavour);
    } catch (error) {
      if (error instanceof Unfit) say(undo(NATIVE_DIR));
      throw error;
    }
    return;
  }
  const record = await install(work, flavour);
  writeRecord(work, record);
  putInPlace(work, NATIVE_DIR);
  say(`${describe(record)} is in ${NATIVE_DIR} (${(bytesIn(NATIVE_DIR) / 1e6).toFixed(0)} MB)`);
  say(
    'It is used from now on. AGON_BACKEND=wasm keeps a run on wasm; npm run setup:native -- --undo removes it.',
  );
}

function describe({ way, package: name, tensorflow, wheelSha256, date }: NativeRecord): string {
  const from =
    way === 'official'
      ? 'the official download'
      : `built against pip's wheel, sha256 ${wheelSha256!.slice(0, 12)}`;
  return `${name} with TensorFlow ${tensorflow} (${from}, ${date.slice(0, 10)})`;
}

/** What is installed, and what a run without `AGON_BACKEND` uses. */
async function status(): Promise<void> {
  const record = readRecord(NATIVE_DIR);
  console.log(`${NATIVE_DIR}: ${record ? describe(record) : 'nothing that setup:native made'}`);
  const { name, device, why } = await initBackend('auto');
  console.log(`auto picks ${name} on ${device}: ${why}`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      gpu: { type: 'boolean', default: false },
      status: { type: 'boolean', default: false },
      undo: { type: 'boolean', default: false },
      // Internal: what the parity run's processes are started with.
      sample: { type: 'string' },
    },
  });
  if (values.sample !== undefined) {
    await initBackend();
    writeJson(values.sample, await paritySample(ARENA_BASE));
  } else if (values.undo) {
    console.log(undo(NATIVE_DIR));
    await status();
  } else if (values.status) await status();
  else await setUp(values.gpu ? 'cuda' : 'cpu');
}

for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stop.abort(new Error('stopped; nothing was changed')));
try {
  await main();
} catch (error) {
  console.error(`setup:native: ${(error as Error).message}`);
  process.exitCode = stop.signal.aborted ? 130 : 1;
}
