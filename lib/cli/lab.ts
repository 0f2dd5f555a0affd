/**
 * Opens JupyterLab on notebooks/ with tslab's kernel, on this machine's loopback interface alone.
 *
 *   npm run lab                          with the first Python found that has JupyterLab; Ctrl-C stops it
 *   npm run lab -- --no-browser          whatever follows goes to JupyterLab
 *   npm run lab -- --install             only the kernel, for VS Code and every Jupyter of this user
 *
 * The kernel is described in dist/jupyter, which JupyterLab is pointed at: nothing is written into a Python, and whichever
 * Python it is finds the same kernel, this repository's own. Left out: installing Python or JupyterLab (what is missing is
 * said, with the one command that gives it), and other interfaces than loopback.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT, writeJson } from '../files.js';
import { tslabArgv } from '../notebook/kernel.js';
import { runCommand } from './command.js';

/** What the one command installs: JupyterLab, and the package that brings Plotly's renderer for it. */
export const JUPYTER_PACKAGES = 'jupyterlab==4.6.6 plotly==7.1.0';

const WINDOWS = process.platform === 'win32';
const usage = `Usage: npm run lab [-- --install | OPTIONS OF JUPYTERLAB]
  --install          describe the kernel in this user's Jupyter folder (for VS Code), open nothing
  AGON_JUPYTER=PATH  the Python to use; default: .venv here, python3, python`;

/** A Python that has JupyterLab. */
export interface JupyterPython {
  readonly command: string;
  readonly version: string;
  /** Without it JupyterLab shows figures as pictures. */
  readonly drawsPlotly: boolean;
}

/** The command that gives what is missing, as it is typed in the repository's root. */
export function setupCommand(): string {
  const [python, pip] = WINDOWS ? ['py', '.venv\\Scripts\\pip'] : ['python3', '.venv/bin/pip'];
  return `${python} -m venv .venv && ${pip} install ${JUPYTER_PACKAGES}`;
}

/** The Python of the repository's own virtual environment, there or not. */
export function venvPython(root = ROOT): string {
  return WINDOWS ? join(root, '.venv', 'Scripts', 'python.exe') : join(root, '.venv', 'bin', 'python');
}

/** Reads what is installed without loading it: loading JupyterLab takes seconds. */
const PROBE = `
import importlib.metadata as m
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ''
print(version('jupyterlab') or 'none', int((version('plotly') or '0').split('.')[0]) >= 6)`;

/** Asks a Python; undefined when it is not there or has no JupyterLab. */
export function probePython(command: string): JupyterPython | undefined {
  const { status, stdout } = spawnSync(command, ['-c', PROBE], { encoding: 'utf8', timeout: 60_000 });
  const [, version, plotly] = /^(\S+) (True|False)$/m.exec(stdout ?? '') ?? [];
  return status === 0 && version && version !== 'none'
    ? { command, version, drawsPlotly: plotly === 'True' }
    : undefined;
}

/**
 * Finds a Python with JupyterLab.
 * @param candidates commands to try in turn
 * @throws with the one command that gives one
 */
export function findPython(
  candidates = process.env.AGON_JUPYTER ? [process.env.AGON_JUPYTER] : [venvPython(), 'python3', 'python'],
): JupyterPython {
  for (const command of candidates) {
    const found = probePython(command);
    if (found) return found;
  }
  throw new Error(
    `no Python with JupyterLab was found (tried ${candidates.join(', ')}); this gives one:\n  ${setupCommand()}`,
  );
}

/** Describes the kernel under a Jupyter data folder, and returns the description's path. */
export function writeKernelSpec(dataFolder: string): string {
  const path = join(dataFolder, 'kernels', 'tslab', 'kernel.json');
  writeJson(path, { argv: tslabArgv(), display_name: 'TypeScript', language: 'typescript' });
  return path;
}

/** Where Jupyter looks for this user's kernels. Source: jupyter_core's `jupyter_data_dir`. */
export function userDataFolder(env: NodeJS.ProcessEnv = process.env, platform = process.platform): string {
  if (env.JUPYTER_DATA_DIR) return env.JUPYTER_DATA_DIR;
  if (platform === 'darwin') return join(homedir(), 'Library', 'Jupyter');
  if (platform === 'win32') return join(env.APPDATA ?? homedir(), 'jupyter');
  return join(env.XDG_DATA_HOME ?? join(homedir(), '.local', 'share'), 'jupyter');
}

export interface LabOptions {
  /** Further arguments for JupyterLab. */
  readonly args?: readonly string[];
  /** What the file browser shows; default: the repository, opened at notebooks/. */
  readonly root?: string;
  readonly stdio?: 'inherit' | 'pipe';
}

/** An argument that would move the server to another interface. */
const ELSEWHERE = /^--(?:\w+\.)?(?:ip|sock|local_hostnames|allow_remote_access)(?:=|$)/;

/**
 * Starts JupyterLab. It runs in a process group of its own, so that Ctrl-C reaches it once, by `stopLab`.
 * @throws for an argument that would open it to other machines
 */
export function startLab(
  python: JupyterPython,
  { args = [], root, stdio = 'inherit' }: LabOptions = {},
): ChildProcess {
  const outside = args.find((arg) => ELSEWHERE.test(arg));
  if (outside !== undefined)
    throw new Error(
      `${outside}: JupyterLab is opened on 127.0.0.1 alone; another machine comes in by an SSH tunnel`,
    );
  const dataFolder = join(ROOT, 'dist', 'jupyter');
  writeKernelSpec(dataFolder);
  const { JUPYTER_PATH } = process.env;
  const command = [
    ...['-m', 'jupyterlab', '--ip=127.0.0.1'],
    `--ServerApp.root_dir=${root ?? ROOT}`,
    ...(root === undefined ? ['--LabApp.default_url=/lab/tree/notebooks'] : []),
    ...args,
  ];
  return spawn(python.command, command, {
    env: {
      ...process.env,
      JUPYTER_PATH: [dataFolder, ...(JUPYTER_PATH ? [JUPYTER_PATH] : [])].join(delimiter),
    },
    stdio: ['ignore', stdio, stdio],
    detached: !WINDOWS,
  });
}

/** Stops JupyterLab with its kernels: asks first, and insists when asked again. */
export function stopLab(lab: ChildProcess): void {
  lab.kill(lab.killed ? 'SIGKILL' : 'SIGTERM');
}

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes('--help')) {
    console.log(usage);
    return;
  }
  if (args.includes('--install')) {
    console.log(`kernel "TypeScript" (tslab) described in ${writeKernelSpec(userDataFolder())}`);
    return;
  }
  const python = findPython();
  console.log(
    `JupyterLab ${python.version} of ${python.command}, kernel "TypeScript" (tslab); Ctrl-C stops both`,
  );
  if (!python.drawsPlotly)
    console.log(`figures are shown as pictures: this Python lacks plotly; the whole set: ${setupCommand()}`);
  if (!existsSync(join(ROOT, 'notebooks'))) throw new Error('notebooks/: there is no such folder here');
  const lab = startLab(python, { args });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopLab(lab));
  const code = await new Promise<number>((resolve, reject) => {
    lab.once('error', reject).once('exit', (exit) => resolve(exit ?? 0));
  });
  process.exitCode = code;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await runCommand(main);
