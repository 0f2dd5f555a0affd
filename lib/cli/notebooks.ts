/**
 * Runs the notebooks from top to bottom, without Jupyter or Python, and saves executed copies.
 *
 *   npm run notebooks                         every notebook of notebooks/, in order of their names
 *   npm run notebooks -- 01-countdown         only these
 *   npm run notebooks -- --check              only try them: nothing is written
 *
 * Copies go to results/notebooks/NAME.ipynb; the sources stay as they are. A notebook that fails does not keep
 * the others from running; the exit code is 1 if any has failed. Ctrl-C stops the running kernel.
 */
import { readdirSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ROOT } from '../files.js';
import { formatDuration } from '../notebook/progress.js';
import { type CellEvent, runNotebook } from '../notebook/runner.js';

export interface ExecuteNotebooksOptions {
  /** Write no executed copies. */
  readonly check?: boolean;
  /** The most one cell may take; default: the runner's, an hour. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal;
  /** Where the notebooks are and where the copies go; default: the repository's folders. */
  readonly sourceFolder?: string;
  readonly resultFolder?: string;
}

export interface ExecutedNotebook {
  readonly name: string;
  readonly elapsedMs: number;
  /** The executed copy, unless `check`. It exists also when a cell has failed. */
  readonly out: string | undefined;
  /** Why it failed; `undefined` when every cell has run. */
  readonly error: Error | undefined;
}

const usage = `Usage: npm run notebooks [-- NAME ... [--check] [--timeout MINUTES]]
  NAME               notebooks to run (with or without .ipynb); default: all
  --check            run them, write nothing
  --timeout MINUTES  the most one cell may take (default 60)`;

/**
 * Executes notebooks one after the other, with a line per cell on stderr.
 * @param names of files in the source folder, with or without `.ipynb`; none means all
 * @returns one record per notebook, also for those that failed
 * @throws for a name that is not there, before anything runs; `signal`'s reason when aborted
 */
export async function executeNotebooks(
  names: readonly string[] = [],
  options: ExecuteNotebooksOptions = {},
): Promise<ExecutedNotebook[]> {
  const sourceFolder = options.sourceFolder ?? join(ROOT, 'notebooks');
  const resultFolder = options.resultFolder ?? join(ROOT, 'results', 'notebooks');
  const executed: ExecutedNotebook[] = [];
  for (const name of chooseNotebooks(sourceFolder, names)) {
    const out = options.check ? undefined : join(resultFolder, `${name}.ipynb`);
    const startedAt = performance.now();
    const log = cellLog(name, startedAt);
    let error: Error | undefined;
    try {
      const path = relative(process.cwd(), join(sourceFolder, `${name}.ipynb`));
      await runNotebook(path, {
        out,
        timeoutMs: options.timeoutMs,
        onCell: log.onCell,
        signal: options.signal,
      });
    } catch (cause) {
      options.signal?.throwIfAborted();
      error = cause instanceof Error ? cause : new Error(String(cause));
    } finally {
      log.stop();
    }
    const elapsedMs = performance.now() - startedAt;
    const outcome = error ? `failed: ${error.message}` : 'done';
    process.stderr.write(`${name}: ${outcome} (${formatDuration(elapsedMs)})\n`);
    executed.push({ name, elapsedMs, out, error });
  }
  return executed;
}

function chooseNotebooks(folder: string, names: readonly string[]): string[] {
  const found = readdirSync(folder)
    .filter((file) => file.endsWith('.ipynb'))
    .map((file) => basename(file, '.ipynb'))
    .sort();
  const wanted = names.map((name) => basename(name, '.ipynb'));
  const unknown = wanted.filter((name) => !found.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `${relative(process.cwd(), folder) || folder}: no notebook named ${unknown.join(', ')}; there are: ${found.join(', ') || 'none'}`,
    );
  return wanted.length > 0 ? wanted : found;
}

/** How often a cell that is still running says so: live on a terminal, now and then in a log. */
const LIVE_INTERVAL_MS = 1_000;
const LOG_INTERVAL_MS = 30_000;

/** Writes a line per cell, and what a long one is doing: its running time and the last line it has shown. */
function cellLog(name: string, startedAt: number): { onCell: (event: CellEvent) => void; stop: () => void } {
  const live = process.stderr.isTTY;
  let title = '';
  let latest = '';
  let cellStartedAt = startedAt;
  const line = () => {
    const text = `${title}  ${formatDuration(performance.now() - cellStartedAt)}${latest && `  ${latest}`}`;
    return live ? text.slice(0, (process.stderr.columns ?? 80) - 1) : text;
  };
  const timer = setInterval(
    () => {
      if (title) process.stderr.write(live ? `\r\x1b[K${line()}` : `${line()}\n`);
    },
    live ? LIVE_INTERVAL_MS : LOG_INTERVAL_MS,
  );
  return {
    onCell(event) {
      if (event.kind === 'start') {
        title = `${name} ${event.cell}/${event.cells} ${firstLine(event.source).slice(0, 40)}`;
        latest = '';
        cellStartedAt = performance.now();
      } else if (event.kind === 'output') {
        latest = lastLine(event.output);
      } else {
        latest = '';
        process.stderr.write(
          `${live ? '\r\x1b[K' : ''}${line()}, ${formatDuration(performance.now() - startedAt)} in all\n`,
        );
        title = '';
      }
    },
    stop() {
      clearInterval(timer);
      if (live) process.stderr.write('\r\x1b[K');
    },
  };
}

function firstLine(text: string): string {
  return text.trimStart().split('\n')[0] ?? '';
}

function lastLine(output: Extract<CellEvent, { kind: 'output' }>['output']): string {
  if (output.output_type === 'error') return output.evalue;
  const text = output.output_type === 'stream' ? output.text : output.data['text/plain'];
  return typeof text === 'string' ? (text.trimEnd().split('\n').at(-1) ?? '') : '';
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      check: { type: 'boolean', default: false },
      timeout: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return;
  }
  const minutes = values.timeout === undefined ? undefined : Number(values.timeout);
  if (minutes !== undefined && !(minutes > 0))
    throw new Error(`--timeout: found '${values.timeout}', allowed is a number of minutes above 0`);
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => controller.abort(new Error(`stopped by ${signal}`)));
  const executed = await executeNotebooks(positionals, {
    check: values.check,
    timeoutMs: minutes === undefined ? undefined : minutes * 60_000,
    signal: controller.signal,
  });
  const failed = executed.filter(({ error }) => error !== undefined);
  console.log(`${executed.length - failed.length} of ${executed.length} notebooks ran to their end`);
  if (failed.length > 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  main().catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
