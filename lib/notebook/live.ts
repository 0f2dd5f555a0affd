/**
 * Training as one output that changes in place: how far it is, the time left, and four small charts of one or several
 * runs. In plain Node it is a progress bar.
 *
 * A drawing costs a fifth of a second of the main thread, so it is made every few seconds at most, and rarer where it
 * costs more; the last state is always drawn. Each drawing replaces the one before, under one display id: the notebook
 * file holds one figure, however long the training was. Left out: what is trained (lab.ts).
 */
import { randomUUID } from 'node:crypto';
import type { Metrics } from '../experiments/store.js';
import { figureOutput } from './display.js';
import { liveFigure } from './live-figure.js';
import { inNotebook, writeOutput } from './output.js';
import { formatDuration, progressBar } from './progress.js';

export interface LiveTraining {
  /** A step of a run; the same step given again replaces what was there (a run that is resumed). */
  step(run: string, metrics: Metrics): void;
  /** What is being done beside training, in a few words; '' when that is over. */
  note(text: string): void;
  /** Draws the last state and leaves it standing. @param text how it ended, in place of the time left */
  stop(text?: string): Promise<void>;
}

export interface LiveOptions {
  /** Steps that were there before, by run: they are drawn, and count for no time. */
  readonly before?: Readonly<Record<string, readonly Metrics[]>>;
  /** The least time between two drawings. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 3_000;
/** Drawing takes at most this share of the time. */
const LARGEST_SHARE = 0.05;

/**
 * Starts a live display.
 * @param steps how many steps each run has in all, by its name
 */
export function liveTraining(
  steps: Readonly<Record<string, number>>,
  { before = {}, intervalMs = INTERVAL_MS }: LiveOptions = {},
): LiveTraining {
  const runs = new Map(Object.keys(steps).map((name) => [name, new Map<number, Metrics>()]));
  for (const [name, lines] of Object.entries(before))
    for (const line of lines) linesOf(name).set(line.step!, line);
  const total = Object.values(steps).reduce((a, b) => a + b, 0);
  const startedAt = performance.now();
  const there = Object.values(before).reduce((sum, lines) => sum + lines.length, 0);
  let made = 0;
  let note = '';
  let running = true;

  function linesOf(run: string): Map<number, Metrics> {
    const lines = runs.get(run);
    if (!lines) throw new Error(`unknown run '${run}': the display was started for ${[...runs.keys()]}`);
    return lines;
  }
  /** How far it is, in one line. */
  const status = (ended?: string) => {
    const done = [...runs.values()].reduce((sum, lines) => sum + lines.size, 0);
    const elapsed = performance.now() - startedAt;
    const left =
      made > 0 && done < total ? `about ${formatDuration((elapsed / made) * (total - done))} left` : '';
    return [`${done} of ${total} steps`, formatDuration(elapsed), ended ?? left, note]
      .filter((part) => part !== '')
      .join(', ');
  };

  if (!inNotebook()) {
    const bar = progressBar(Math.max(1, total - there), 'training');
    return {
      step(run, metrics) {
        linesOf(run).set(metrics.step!, metrics);
        bar.update(++made, run);
      },
      note: (text) => bar.update(made, text),
      async stop() {
        bar.stop();
      },
    };
  }

  const displayId = randomUUID();
  let pending: Promise<void> | undefined;
  let drawnAt = Number.NEGATIVE_INFINITY;
  let cost = 0;
  const draw = async (ended?: string): Promise<void> => {
    const start = performance.now();
    const lines = Object.fromEntries([...runs].map(([name, all]) => [name, inOrder(all)]));
    const text = status(ended);
    if (Object.values(lines).some((all) => all.length > 0)) {
      const output = await figureOutput(liveFigure(lines, text));
      writeOutput({
        ...output,
        data: { ...output.data, 'text/plain': `Training: ${text}` },
        displayId,
        update: true,
      });
    } else writeOutput({ data: { 'text/plain': `Training: ${text}` }, displayId, update: true });
    drawnAt = performance.now();
    cost = drawnAt - start;
  };
  /** Draws soon, unless it was done a moment ago or is being done. */
  const advance = () => {
    const wait = Math.max(intervalMs, cost / LARGEST_SHARE);
    if (!running || pending || performance.now() - drawnAt < wait) return;
    pending = draw()
      .catch((error: Error) => console.error(`the live display could not be drawn: ${error.message}`))
      .finally(() => {
        pending = undefined;
      });
  };
  writeOutput({ data: { 'text/plain': `Training: ${status()}` }, displayId });
  return {
    step(run, metrics) {
      linesOf(run).set(metrics.step!, metrics);
      made++;
      advance();
    },
    note(text) {
      note = text;
      advance();
    },
    async stop(ended = '') {
      if (!running) return;
      running = false;
      await pending;
      note = '';
      await draw(ended);
    },
  };
}

function inOrder(lines: ReadonlyMap<number, Metrics>): Metrics[] {
  return [...lines.values()].sort((a, b) => a.step! - b.step!);
}
