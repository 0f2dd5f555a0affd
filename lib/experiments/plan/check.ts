/**
 * Does a plan fit on a machine, and if not, which setting to change, and to what. The largest allowed value is
 * found by planning again with smaller ones. Left out: changes of the model, and combinations of two settings
 * other than with gradient checkpointing.
 */

import type { DiskPart } from './disk.js';
import type { Machine } from './machine.js';
import type { MemoryPlan, Part, Phase, PlannedRun, PlanSetup } from './memory.js';
import { planMemory } from './memory.js';

/** Something that does not fit. */
export interface Misfit {
  /** `training`, or `disk`. */
  readonly where: string;
  readonly needed: number;
  readonly available: number;
  /** What has the room, in words: "the memory of the process". */
  readonly limit: string;
  readonly largest: { readonly name: string; readonly bytes: number };
  /** Any one of these makes it fit; empty where none does. */
  readonly fixes: readonly string[];
}

/** What a plan needs and a machine does not have, phase by phase; empty where everything fits. */
export function misfits(plan: MemoryPlan, disk: readonly DiskPart[], machine: Machine): Misfit[] {
  const found = plan.phases.flatMap((phase) => {
    const limit = limitsOf(phase, machine).find(({ needed, available }) => needed > available);
    return limit
      ? [
          {
            where: phase.name,
            ...limit,
            largest: largestPart(phase, limit.onlyBackend),
            fixes: fixes(plan, phase, machine),
          },
        ]
      : [];
  });
  const needed = disk.reduce((sum, part) => sum + part.bytes, 0);
  if (needed <= machine.disk) return found;
  const largest = disk.reduce((a, b) => (b.bytes > a.bytes ? b : a));
  const advice = ['fewer seeds or methods, a smaller lora.r, or another folder (--out)'];
  return [
    ...found,
    { where: 'disk', needed, available: machine.disk, limit: 'the free disk', largest, fixes: advice },
  ];
}

/**
 * Refuses what cannot fit; call it before anything is written.
 * @throws one error that names, for each phase that does not fit, the largest part, its size, what there is, and
 * the settings that make it fit with their largest allowed values
 */
export function checkPlan(
  plan: { readonly memory: MemoryPlan; readonly disk: readonly DiskPart[] },
  machine: Machine,
): void {
  const found = misfits(plan.memory, plan.disk, machine);
  if (found.length > 0)
    throw new Error(`this does not fit on the machine:\n${found.map(describeMisfit).join('\n')}`);
}

/** A misfit as lines of text. */
export function describeMisfit({ where, needed, available, limit, largest, fixes }: Misfit): string {
  const size = `${where} needs ${formatBytes(needed)}, and ${limit} is ${formatBytes(available)}`;
  const part = `the largest part is ${largest.name}, ${formatBytes(largest.bytes)}`;
  const change =
    fixes.length > 0
      ? `one of these makes it fit:\n${fixes.map((fix) => `    ${fix}`).join('\n')}`
      : 'no single setting makes it fit: take a smaller model, shorter prompts or a larger machine';
  return `  ${size}; ${part}; ${change}`;
}

/** Bytes for people: `812 MiB`, `3.4 GiB`. */
export function formatBytes(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib < 1 ? `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB` : `${gib.toFixed(1)} GiB`;
}

/** What a phase needs of each thing a machine has a limit of. */
function limitsOf(phase: Phase, { memory, heap, gpu }: Machine) {
  const limits = [
    {
      needed: gpu === undefined ? phase.process : phase.host,
      available: memory,
      limit: 'the memory of the process',
      onlyBackend: false,
    },
  ];
  if (heap !== undefined)
    limits.unshift({ needed: phase.backend, available: heap, limit: 'one wasm heap', onlyBackend: true });
  if (gpu !== undefined)
    limits.unshift({ needed: phase.backend, available: gpu, limit: "the GPU's memory", onlyBackend: true });
  return limits;
}

function largestPart({ parts }: Phase, onlyBackend: boolean): { name: string; bytes: number } {
  const size = (part: Part) => part.bytes * (onlyBackend ? 1 : part.copies);
  const largest = parts
    .filter((part) => !onlyBackend || part.space === 'backend')
    .reduce((a, b) => (size(b) > size(a) ? b : a));
  return { name: largest.name, bytes: size(largest) };
}

/** A setting that can be lowered: where it stands, and a run or set-up in which it is something else. */
interface Setting {
  readonly name: string;
  readonly value: number;
  readonly with: (value: number) => { readonly run?: PlannedRun; readonly setup?: PlanSetup };
}

function fixes(plan: MemoryPlan, { name }: Phase, machine: Machine): string[] {
  const { model, run, setup, evaluation } = plan.inputs;
  const fits = (change: { readonly run?: PlannedRun; readonly setup?: PlanSetup }, on = machine): boolean => {
    const { phases } = planMemory(model, change.run ?? run, change.setup ?? setup, evaluation);
    const phase = phases.find((phase) => phase.name === name)!;
    return limitsOf(phase, on).every(({ needed, available }) => needed <= available);
  };
  const lowered = (from: PlannedRun, note = ''): string[] =>
    settings(from, setup).flatMap((setting) => {
      const largest = largestThatFits(setting.value, (value) => fits(setting.with(value)));
      return largest === undefined ? [] : [`${setting.name} ${setting.value} -> at most ${largest}${note}`];
    });
  const found = lowered(run);
  if (name === 'training' && !run.grpo.gradientCheckpointing) {
    const checkpointed = { ...run, grpo: { ...run.grpo, gradientCheckpointing: true } };
    if (fits({ run: checkpointed })) found.unshift('grpo.gradientCheckpointing -> true');
    else if (found.length === 0)
      found.push(...lowered(checkpointed, ', with grpo.gradientCheckpointing true'));
  }
  const native = { ...setup, backend: 'tfjs-node' as const, workers: 0 };
  if (setup.backend === 'wasm' && fits({ setup: native }, { memory: machine.memory, disk: machine.disk }))
    found.push('a native backend: npm run setup:native');
  return found;
}

function settings(run: PlannedRun, setup: PlanSetup): Setting[] {
  const { grpo } = run;
  const ofRun = (name: 'generationBatchSize' | 'problemsPerStep'): Setting => ({
    name,
    value: run[name],
    with: (value) => ({ run: { ...run, [name]: value } }),
  });
  const ofGrpo = (name: 'perDeviceTrainBatchSize' | 'maxCompletionLength'): Setting => ({
    name: `grpo.${name}`,
    value: grpo[name],
    with: (value) => ({ run: { ...run, grpo: { ...grpo, [name]: value } } }),
  });
  return [
    ofRun('generationBatchSize'),
    ofGrpo('perDeviceTrainBatchSize'),
    ofGrpo('maxCompletionLength'),
    ofRun('problemsPerStep'),
    { name: 'workers', value: setup.workers, with: (workers) => ({ run, setup: { ...setup, workers } }) },
  ];
}

/** The largest whole number from 1 below `value` that fits; undefined where none does. */
function largestThatFits(value: number, fits: (value: number) => boolean): number | undefined {
  let bad = value;
  let good = value;
  // Down in steps of an eighth: what fits may end again further down, where more micro-batches hold more gradients.
  do {
    bad = good;
    good = Math.min(good - 1, Math.floor(good * 0.875));
    if (good < 1) return undefined;
  } while (!fits(good));
  while (bad - good > 1) {
    const middle = Math.floor((bad + good) / 2);
    if (fits(middle)) good = middle;
    else bad = middle;
  }
  return good;
}
