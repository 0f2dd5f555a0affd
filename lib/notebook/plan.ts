/**
 * A plan for people: a table of what is needed, part by part, and a few lines that say what it comes to. Left out:
 * making the plan (experiments/plan/).
 */
import { DataFrame } from 'danfojs-node';
import { toMarkdown } from '../analysis/formats.js';
import { describeMisfit, formatBytes } from '../experiments/plan/check.js';
import type { Plan } from '../experiments/plan/plan.js';
import { formatDuration } from './progress.js';

/**
 * One row per part and phase, then the disk. Columns: phase, part, MiB (of one copy), copies, MiB in all, and how
 * the number comes about.
 */
export function planTable({ memory, disk }: Plan): DataFrame {
  const rows = [
    ...memory.phases.flatMap(({ name, parts }) => parts.map((part) => ({ ...part, phase: name as string }))),
    ...disk.map((part) => ({ ...part, phase: 'disk', copies: 1 })),
  ];
  const mebibytes = (bytes: number) => Math.round((10 * bytes) / 2 ** 20) / 10;
  return new DataFrame({
    phase: rows.map((row) => row.phase),
    part: rows.map((row) => row.name),
    MiB: rows.map((row) => mebibytes(row.bytes)),
    copies: rows.map((row) => row.copies),
    'MiB in all': rows.map((row) => mebibytes(row.bytes * row.copies)),
    how: rows.map((row) => row.formula),
  });
}

/** What a plan comes to, a line for each question: memory, disk, time, and what does not fit. */
export function planSummary(plan: Plan): string {
  const { memory, disk, machine, misfits, time } = plan;
  const { setup } = memory.inputs;
  const perThread = memory.phases.map(({ name, backend }) => `${name} ${formatBytes(backend)}`).join(', ');
  const written = disk.reduce((sum, part) => sum + part.bytes, 0);
  const lines = [
    `memory: at most ${formatBytes(memory.peak.process)} of ${formatBytes(machine.memory)} (${memory.peak.name})`,
    `in ${setup.workers > 0 ? `each of ${setup.workers} workers'` : 'the'} ${setup.backend} backend: ${perThread}`,
    `disk: ${formatBytes(written)} of ${formatBytes(machine.disk)} free`,
  ];
  if (time) lines.push(...timeLines(time));
  if (misfits.length > 0) lines.push('this does not fit:', ...misfits.map(describeMisfit));
  return lines.join('\n');
}

/** The summary and the table as Markdown. */
export function planMarkdown(plan: Plan): string {
  return `${planSummary(plan).replaceAll('\n', '  \n')}\n\n${toMarkdown(planTable(plan))}`;
}

function timeLines(time: NonNullable<Plan['time']>): string[] {
  const duration = (seconds: number) => formatDuration(1000 * seconds);
  const { trainingRuns, stepsPerRun, rolloutsPerStep, sampleSeconds, updateSeconds } = time;
  return [
    `plan: ${trainingRuns} training runs of ${stepsPerRun} steps with ${rolloutsPerStep} rollouts each; ` +
      `about ${duration(time.seconds)} if nothing is finished yet (${time.rate.source})`,
    `a step: ${duration(sampleSeconds)} sampling, ${duration(updateSeconds)} updating; ` +
      `evaluation: ${duration(time.evaluationSeconds)}`,
  ];
}
