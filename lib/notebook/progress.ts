/**
 * A progress bar with the time left, wherever the code runs: in a notebook one output that changes in place,
 * on a terminal a live bar, elsewhere (a log file) a line now and then.
 *
 * The rooms below report progress through a plain callback `(done, note?) => void`; `progressBar(...).update`
 * is one.
 */
import { randomUUID } from 'node:crypto';
import cliProgress from 'cli-progress';
import { inNotebook, writeOutput } from './output.js';

export interface Progress {
  /** @param done how much of the total is done; @param note a few words, such as the latest reward */
  update(done: number, note?: string): void;
  /** Shows the last state and leaves it standing. */
  stop(): void;
}

const NOTEBOOK_INTERVAL_MS = 250;
const LOG_INTERVAL_MS = 10_000;
const BAR_CHARACTERS = 24;

/** Starts a progress bar. @param total how much there is to do, in the unit of `update`'s `done` */
export function progressBar(total: number, label: string): Progress {
  const startedAt = performance.now();
  const state: ProgressState = { label, total, done: 0, note: '', elapsedMs: 0 };
  const draw = inNotebook() ? notebookBar() : process.stderr.isTTY ? terminalBar(total) : logLines();
  const advance = (last: boolean) => {
    state.elapsedMs = performance.now() - startedAt;
    draw(describeProgress(state), state.done, last);
  };
  let running = true;
  advance(false);
  return {
    update(done, note = '') {
      if (!running) return; // A late report must not open a second bar under the finished one.
      Object.assign(state, { done, note });
      advance(false);
    },
    stop() {
      if (running) advance(true);
      running = false;
    },
  };
}

/** Draws a state; `last` when nothing follows. */
type Draw = (text: string, done: number, last: boolean) => void;

/** Lets a call through once per interval, and the last one always. */
function limited(intervalMs: number, draw: (text: string) => void): Draw {
  let drawnAt = Number.NEGATIVE_INFINITY;
  return (text, _done, last) => {
    if (!last && performance.now() - drawnAt < intervalMs) return;
    drawnAt = performance.now();
    draw(text);
  };
}

function notebookBar(): Draw {
  const displayId = randomUUID();
  let update = false;
  return limited(NOTEBOOK_INTERVAL_MS, (text) => {
    writeOutput({ data: { 'text/plain': text }, displayId, update });
    update = true;
  });
}

function terminalBar(total: number): Draw {
  const bar = new cliProgress.SingleBar({ format: '{text}', hideCursor: true, stopOnComplete: false });
  bar.start(total, 0, { text: '' });
  return (text, done, last) => {
    bar.update(done, { text });
    if (last) bar.stop();
  };
}

function logLines(): Draw {
  return limited(LOG_INTERVAL_MS, (text) => process.stderr.write(`${text}\n`));
}

interface ProgressState {
  label: string;
  total: number;
  done: number;
  note: string;
  elapsedMs: number;
}

/** One line: label, bar, count, time taken, time left at the pace so far, note. */
export function describeProgress({ label, total, done, note, elapsedMs }: ProgressState): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.round(share * BAR_CHARACTERS);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_CHARACTERS - filled);
  const left = share < 1 && done > 0 ? `, ${formatDuration((elapsedMs / share) * (1 - share))} left` : '';
  return `${label} ${bar} ${done}/${total}, ${formatDuration(elapsedMs)}${left}${note && `, ${note}`}`;
}

/** A duration for people: `0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`. */
export function formatDuration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(value).padStart(2, '0');
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}
