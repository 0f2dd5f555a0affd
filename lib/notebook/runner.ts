/**
 * Runs a notebook from top to bottom on a fresh tslab kernel, without Python, and saves the executed copy.
 *
 * The first cell that fails ends the run; what had run until then is saved all the same, with an `error`
 * output in the failing cell (tslab itself sends none: it prints to stderr and reports a bare status).
 * The kernel works in the notebook's own folder, as it does under Jupyter.
 */
import { dirname, resolve } from 'node:path';
import { CellTimeoutError, Kernel, KernelDiedError } from './kernel.js';
import { type CodeCell, type Notebook, type Output, readNotebook, writeNotebook } from './nbformat.js';
import { OutputCollector, streamText } from './outputs.js';

/** How a run gets on; `cell` counts all cells of the notebook from 1, `cells` is how many there are. */
export type CellEvent =
  | { readonly kind: 'start'; readonly cell: number; readonly cells: number; readonly source: string }
  | { readonly kind: 'output'; readonly cell: number; readonly cells: number; readonly output: Output }
  | { readonly kind: 'end'; readonly cell: number; readonly cells: number; readonly elapsedMs: number };

export interface RunNotebookOptions {
  /** Where the executed copy goes; without it nothing is written. */
  readonly out?: string | undefined;
  /** The most one cell may take. */
  readonly timeoutMs?: number | undefined;
  readonly onCell?: ((event: CellEvent) => void) | undefined;
  /** Interrupts the running cell and stops the kernel. */
  readonly signal?: AbortSignal | undefined;
}

/** A cell has failed: with an error of its own, by its time limit, or because the kernel died under it. */
export class NotebookError extends Error {
  override readonly name = 'NotebookError';
  constructor(
    readonly path: string,
    /** The cell's number among all cells of the notebook, from 1. */
    readonly cell: number,
    /** The line it failed on, or the cell's first line of code where the failure does not name one. */
    readonly sourceLine: string,
    /** What went wrong, in one line. */
    readonly reason: string,
    readonly stderr: string,
    options?: ErrorOptions,
  ) {
    const details = stderr.trim() === '' || stderr.trim() === reason ? '' : `\n${stderr.trimEnd()}`;
    super(`${path}: cell ${cell} failed at \`${sourceLine}\`: ${reason}${details}`, options);
  }
}

const DEFAULT_TIMEOUT_MS = 60 * 60_000;

/**
 * Executes the notebook at `path` and returns it with its outputs.
 * @throws NotebookError for the first failing cell; Error naming the field when the file is not a notebook for
 *   tslab; `signal`'s reason when aborted
 */
export async function runNotebook(path: string, options: RunNotebookOptions = {}): Promise<Notebook> {
  const notebook = readNotebook(path);
  for (const cell of notebook.cells)
    if (cell.cell_type === 'code') {
      cell.outputs = [];
      cell.execution_count = null;
    }
  const kernel = await Kernel.start({ cwd: dirname(resolve(path)) });
  try {
    await runCells(path, notebook, kernel, options);
  } finally {
    await kernel.stop();
    // A run that was called off must not replace the copy of a whole one.
    if (options.out !== undefined && !options.signal?.aborted) writeNotebook(options.out, notebook);
  }
  return notebook;
}

async function runCells(
  path: string,
  notebook: Notebook,
  kernel: Kernel,
  { timeoutMs = DEFAULT_TIMEOUT_MS, onCell, signal }: RunNotebookOptions,
): Promise<void> {
  const collector = new OutputCollector();
  const cells = notebook.cells.length;
  let executionCount = 0;
  for (const [i, cell] of notebook.cells.entries()) {
    if (cell.cell_type !== 'code' || cell.source.trim() === '') continue;
    const where = { cell: i + 1, cells };
    const startedAt = performance.now();
    cell.execution_count = ++executionCount;
    onCell?.({ kind: 'start', ...where, source: cell.source });
    const fail = (failure: Failure, cause?: Error) => {
      const { ename, evalue, line } = failure;
      const stderr = streamText(cell, 'stderr');
      const traceback = stderr.trimEnd().split('\n');
      if (!cell.outputs.some((output) => output.output_type === 'error'))
        cell.outputs.push({ output_type: 'error', ename, evalue, traceback });
      const source = line === undefined ? undefined : cell.source.split('\n')[line - 1];
      const reason = `${ename}: ${evalue}`;
      return new NotebookError(path, i + 1, (source ?? firstLine(cell.source)).trim(), reason, stderr, {
        cause,
      });
    };
    const reply = await kernel
      .execute(cell.source, {
        timeoutMs,
        signal,
        onPublished: (message) => {
          const output = collector.add(cell, message);
          if (output) onCell?.({ kind: 'output', ...where, output });
        },
      })
      .catch((error: unknown) => {
        if (error instanceof CellTimeoutError || error instanceof KernelDiedError)
          throw fail({ ename: error.name, evalue: error.message }, error);
        throw error;
      });
    if (reply.status !== 'ok') throw fail(readFailure(cell, reply));
    onCell?.({ kind: 'end', ...where, elapsedMs: performance.now() - startedAt });
  }
}

interface Failure {
  readonly ename: string;
  readonly evalue: string;
  /** Line of the cell's source, from 1, where it is known. */
  readonly line?: number;
}

/**
 * What went wrong, from what tslab has printed: `3:7 - message` for what does not compile (a line of the
 * source), or the thrown value (whose stack counts the lines of the compiled code, so none is given).
 */
function readFailure(
  cell: CodeCell,
  reply: { ename?: string | undefined; evalue?: string | undefined },
): Failure {
  const stderr = streamText(cell, 'stderr');
  const diagnostic = /^(\d+):\d+ - (.*)/.exec(stderr);
  if (diagnostic) return { ename: 'TypeScriptError', evalue: diagnostic[2]!, line: Number(diagnostic[1]) };
  const thrown = [...stderr.matchAll(/^([\w$]*(?:Error|Exception))(?: \[\w+\])?: (.*)/gm)].at(-1);
  const ename = reply.ename ?? thrown?.[1] ?? 'CellError';
  return { ename, evalue: reply.evalue ?? thrown?.[2] ?? (firstLine(stderr) || 'no message') };
}

function firstLine(text: string): string {
  return text.split('\n').find((line) => line.trim() !== '' && !line.trim().startsWith('//')) ?? '';
}
