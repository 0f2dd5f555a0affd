/**
 * Puts tfjs-node with TensorFlow's library into a work folder: the official download, or a build of the package's
 * own C++ binding against the TensorFlow that pip serves. The folder must lie inside the repository, so that the
 * package finds the repository's one @tensorflow/tfjs above it.
 *
 * Left out: deciding (native.ts), checking the result and putting it in place (cli/setup-native.ts). SavedModels
 * are not tried.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { FLAVOURS, type Flavour, type NativePackage, TENSORFLOW_VERSION, TFJS_VERSION } from './native.js';

export interface BuildOptions {
  /** Aborting it ends what runs; the call rejects. */
  readonly signal: AbortSignal;
  /** Called when a stage begins. */
  readonly onStage: (stage: string) => void;
}

/** npm packages by version: what tfjs-node's dist requires, less @tensorflow/tfjs; what each way needs beside. */
const RUN_TIME = { '@mapbox/node-pre-gyp': '1.0.9', 'google-protobuf': '3.21.4', progress: '2.0.3' };
const OFFICIAL_SCRIPT = { 'adm-zip': '0.5.16', 'https-proxy-agent': '2.2.4', rimraf: '2.7.1', tar: '6.2.1' };
const BUILD = { 'node-api-headers': '1.9.0' };
const OFFICIAL_TIME_LIMIT_MS = 10 * 60_000;

/** Downloads the official package with its official library. @throws when that does not work here */
export async function installOfficial(work: string, { signal, onStage }: BuildOptions): Promise<void> {
  onStage('fetching tfjs-node-gpu from npm');
  const folder = await fetchPackage(work, 'tfjs-node-gpu', OFFICIAL_SCRIPT, signal);
  onStage("running the package's own install script, which downloads TensorFlow");
  const bin = join(work, 'node_modules', '.bin');
  await run(process.execPath, ['scripts/install.js', 'gpu'], {
    cwd: folder,
    signal,
    timeoutMs: OFFICIAL_TIME_LIMIT_MS,
    env: { PATH: `${bin}${delimiter}${process.env.PATH}` },
  });
}

/**
 * Compiles the binding against pip's TensorFlow. Needs g++, strip, tar, python3 with pip.
 * @returns the wheel's SHA-256, which pip has compared with the file
 */
export async function buildFromPip(
  work: string,
  flavour: Flavour,
  { signal, onStage }: BuildOptions,
): Promise<string> {
  const { npm, pypi, sha256, downloadGB } = FLAVOURS[flavour];
  onStage(`fetching ${npm} ${TFJS_VERSION} from npm`);
  const folder = await fetchPackage(work, npm, BUILD, signal);
  const deps = join(folder, 'deps');
  const wheels = join(work, 'wheels');
  mkdirSync(wheels);

  onStage(`downloading ${pypi} ${TENSORFLOW_VERSION} with pip (downloads: about ${downloadGB} GB in all)`);
  const wheel = join(wheels, 'tensorflow.txt');
  writeFileSync(wheel, `${pypi}==${TENSORFLOW_VERSION} --hash=sha256:${sha256}\n`);
  await pipDownload(wheels, ['--require-hashes', '-r', wheel], signal);
  if (flavour === 'cuda') {
    onStage('downloading the CUDA libraries it asks for');
    const asked = await run('python3', ['-c', CUDA_REQUIREMENTS, onlyWheel(wheels)], { signal });
    const requirements = join(wheels, 'cuda.txt');
    writeFileSync(requirements, asked);
    await pipDownload(wheels, ['-r', requirements], signal);
  }

  onStage('unpacking the libraries and the headers');
  for (const name of readdirSync(wheels).filter((file) => file.endsWith('.whl'))) {
    await run('python3', ['-c', UNPACK, join(wheels, name), deps], { signal });
    rmSync(join(wheels, name)); // disk space
  }
  rmSync(wheels, { recursive: true });

  onStage('compiling the binding');
  const source = join(folder, 'binding-patched');
  cpSync(join(folder, 'binding'), source, { recursive: true });
  for (const file of readdirSync(source).filter((name) => /\.(cc|h)$/.test(name))) {
    const path = join(source, file);
    writeFileSync(path, patchSource(file, readFileSync(path, 'utf8')));
  }
  writeFileSync(join(source, 'quiet.cc'), QUIET_SOURCE);
  await run('g++', compilerArguments(work, folder, source), { signal });

  onStage('stripping the libraries');
  for (const library of LIBRARIES)
    await run('strip', ['--strip-unneeded', join(deps, 'lib', library)], { signal });
  // The binding that was compiled is kept beside the original: it is the source of what runs.
  rmSync(join(deps, 'include'), { recursive: true });
  for (const name of Object.keys(BUILD)) rmSync(join(work, 'node_modules', name), { recursive: true });
  return sha256;
}

/** The npm package without its dependency on a second copy of tfjs. @returns its folder */
async function fetchPackage(
  work: string,
  name: NativePackage,
  beside: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string> {
  rmSync(work, { recursive: true, force: true });
  const folder = join(work, 'node_modules', '@tensorflow', name);
  mkdirSync(work, { recursive: true });
  const manifest = { private: true, dependencies: { ...RUN_TIME, ...beside } };
  writeFileSync(join(work, 'package.json'), JSON.stringify(manifest));
  await npmCommand(work, ['install'], signal);
  await npmCommand(work, ['pack', `@tensorflow/${name}@${TFJS_VERSION}`, '--pack-destination', work], signal);
  const archive = join(work, `tensorflow-${name}-${TFJS_VERSION}.tgz`);
  mkdirSync(folder, { recursive: true });
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1'], { signal });
  rmSync(archive);
  return folder;
}

/** npm keeps to the work folder whatever `npm run` has put into the environment. */
function npmCommand(work: string, command: readonly string[], signal: AbortSignal): Promise<string> {
  const flags = ['--prefix', work, '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund'];
  const cli = process.env.npm_execpath;
  const [program, first] = cli?.endsWith('.js') ? [process.execPath, [cli]] : ['npm', []];
  return run(program, [...first, ...command, ...flags], { cwd: work, signal });
}

function pipDownload(to: string, what: readonly string[], signal: AbortSignal): Promise<string> {
  const platforms = [
    'manylinux_2_27_x86_64',
    'manylinux_2_17_x86_64',
    'manylinux2014_x86_64',
    'manylinux1_x86_64',
  ];
  const flags = ['--no-deps', '--only-binary=:all:', '--implementation', 'cp', '--python-version', '3.11'];
  const target = platforms.flatMap((name) => ['--platform', name]);
  return run('python3', ['-m', 'pip', 'download', '-q', '-d', to, ...flags, ...target, ...what], { signal });
}

function onlyWheel(folder: string): string {
  const [wheel, ...others] = readdirSync(folder).filter((file) => file.endsWith('.whl'));
  if (!wheel || others.length > 0)
    throw new Error(`pip left ${others.length + (wheel ? 1 : 0)} wheels, not one`);
  return join(folder, wheel);
}

const LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'];

/**
 * g++'s arguments. `nodelete`: without it Node unloads TensorFlow with the last worker that used it, and the
 * process crashes at exit. The N-API functions are resolved by node itself when it loads the addon.
 */
function compilerArguments(work: string, folder: string, source: string): string[] {
  const out = join(folder, 'lib', 'napi-v8');
  mkdirSync(out, { recursive: true });
  return [
    ...['-shared', '-fPIC', '-O2', '-std=c++17', '-DNAPI_VERSION=8'],
    `-I${join(work, 'node_modules', 'node-api-headers', 'include')}`,
    `-I${join(folder, 'deps', 'include')}`,
    ...['tfjs_backend.cc', 'tfjs_binding.cc', 'quiet.cc'].map((file) => join(source, file)),
    ...['-o', join(out, 'tfjs_binding.node')],
    ...['-Wl,-z,nodelete', '-Wl,-rpath,$ORIGIN/../../deps/lib', `-L${join(folder, 'deps', 'lib')}`],
    ...LIBRARIES.map((library) => `-l:${library}`),
  ];
}

/**
 * Two repairs of the binding for worker threads: a global set that every thread writes gets a lock, and results
 * that stay unset when a call fails are initialised.
 * @throws when the source is not the one the repairs were made for
 */
export function patchSource(file: string, text: string): string {
  const initialised = text.replace(/^( *napi_value [a-z_]+);$/gm, '$1 = nullptr;');
  if (file !== 'tfjs_backend.cc') return initialised;
  const declaration = 'static std::set<std::string> ATTR_NAME_SET;';
  const use = 'ATTR_NAME_SET.insert(attr_name_string.c_str()).first->c_str()';
  for (const expected of ['#include <set>', declaration, use])
    if (!initialised.includes(expected)) throw new Error(`${file} of tfjs-node: '${expected}' is not there`);
  return initialised
    .replace('#include <set>', '#include <mutex>\n#include <set>')
    .replace(
      declaration,
      `${declaration}
static std::mutex ATTR_NAME_MUTEX;
static const char *KeepAttrName(const std::string &s) {
  std::lock_guard<std::mutex> lock(ATTR_NAME_MUTEX);
  return ATTR_NAME_SET.insert(s).first->c_str();
}`,
    )
    .replaceAll(use, 'KeepAttrName(attr_name_string)');
}

/**
 * TensorFlow logs its first lines before it has read TF_CPP_MIN_LOG_LEVEL. The addon comes before TensorFlow in
 * the order of symbols, so this definition of absl's last step replaces theirs, and obeys.
 */
const QUIET_SOURCE = `#include <cstdio>
#include <cstdlib>
#include "absl/log/internal/globals.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace log_internal {
__attribute__((visibility("default"))) void WriteToStderr(absl::string_view message, absl::LogSeverity severity) {
  const char *level = std::getenv("TF_CPP_MIN_LOG_LEVEL");
  if (level && static_cast<int>(severity) < std::atoi(level)) return;
  std::fwrite(message.data(), 1, message.size(), stderr);
}
}  // namespace log_internal
ABSL_NAMESPACE_END
}  // namespace absl
`;

/** Wheel, target: the two libraries, the headers and licences of TensorFlow; the run-time part of CUDA wheels. */
const UNPACK = `
import os, shutil, sys, zipfile
wheel, deps = sys.argv[1:]
headers = tuple('tensorflow/include/' + x for x in ('absl/', 'tensorflow/c/', 'tensorflow/core/platform/', 'tsl/', 'xla/tsl/'))
with zipfile.ZipFile(wheel) as z:
    for name in z.namelist():
        base = os.path.basename(name)
        if not base or '..' in name.split('/'): continue
        if name in ('tensorflow/libtensorflow_cc.so.2', 'tensorflow/libtensorflow_framework.so.2'): out = 'lib/' + base
        elif name.startswith(headers): out = name[len('tensorflow/'):]
        elif name.startswith('nvidia/') and '/include/' not in name and not name.endswith('.py'): out = name
        elif base.upper().startswith('LICENSE') or base == 'THIRD_PARTY_NOTICES.txt':
            out = 'licenses/' + os.path.basename(wheel).split('-')[0] + '/' + name.replace('/', '_')
        else: continue
        path = os.path.join(deps, out)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with z.open(name) as source, open(path, 'wb') as target: shutil.copyfileobj(source, target, 1 << 22)
        if '/bin/' in name: os.chmod(path, 0o755)
`;

/** Wheel: the CUDA packages its metadata asks for, one requirement a line. */
const CUDA_REQUIREMENTS = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    metadata = next(n for n in z.namelist() if n.endswith('.dist-info/METADATA'))
    for line in z.read(metadata).decode().splitlines():
        if line.startswith('Requires-Dist: nvidia-') and 'and-cuda' in line: print(line[15:].split(';')[0])
`;

interface RunOptions {
  readonly signal: AbortSignal;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a program in a process group of its own, so that ending it ends its children too.
 * @returns its stdout
 * @throws naming the program with the end of its output when it fails, takes too long or is aborted
 */
export function run(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { signal, cwd, timeoutMs, env } = options;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [output, everything, late] = ['', '', false];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      everything = (everything + text).slice(-4000);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      everything = (everything + text).slice(-4000);
    });
    const end = () => {
      if (child.pid === undefined || child.exitCode !== null) return;
      try {
        process.kill(-child.pid, 'SIGTERM');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has just ended
      }
    };
    const onTimeout = () => {
      late = true;
      end();
    };
    const timer = timeoutMs && setTimeout(onTimeout, timeoutMs);
    signal.addEventListener('abort', end);
    const finish = (error?: Error) => {
      if (timer) clearTimeout(timer);
      signal.removeEventListener('abort', end);
      if (error) reject(error);
      else resolve(output);
    };
    child.on('error', finish);
    child.on('close', (code, killedBy) => {
      const what = [program.split('/').at(-1), ...args].join(' ').split('\n')[0]!.slice(0, 100);
      if (signal.aborted) finish(signal.reason as Error);
      else if (late) finish(new Error(`${what}: ended after ${timeoutMs! / 1000} s`));
      else if (code === 0) finish();
      else finish(new Error(`${what}: ${killedBy ?? `exit code ${code}`}\n${everything.trim()}`));
    });
  });
}
