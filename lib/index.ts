/**
 * What a notebook cell imports: `import { openWorld, sampleStep, ... } from 'agon'`.
 *
 * Rooms, lowest floor first: kernels, tensors, model, text, tasks, latent, rollouts, grpo, agon, experiments,
 * analysis, notebook.
 * Everything public is exported by name from here; the rooms' own files are the reference.
 */
export * as tf from '@tensorflow/tfjs';
export { DataFrame } from 'danfojs-node';
export * from './agon/attempt.js';
export * from './agon/cascade.js';
export * from './agon/exchange.js';
export * from './agon/latent.js';
export * from './agon/methods.js';
export * from './agon/rewards.js';
export * from './agon/step.js';
export * from './agon/written.js';
export { percent, percentRange, round, span } from './analysis/cells.js';
export * from './analysis/index.js';
export { panelsFigure } from './analysis/panels.js';
export { overSeeds } from './analysis/studies/series.js';
export * from './experiments/bases.js';
export * from './experiments/config.js';
export * from './experiments/distance.js';
export * from './experiments/evaluate.js';
export * from './experiments/evaluation.js';
export * from './experiments/experiment.js';
export * from './experiments/interrupted.js';
export * from './experiments/own.js';
export * from './experiments/pair.js';
export { checkPlan, type Misfit } from './experiments/plan/check.js';
export { type Machine, thisMachine } from './experiments/plan/machine.js';
export { type MemoryPlan, type PlanSetup, planMemory } from './experiments/plan/memory.js';
export { type Plan, type PlanOptions, planExperiment, planRun, planWorld } from './experiments/plan/plan.js';
export { ASSUMED_RATES, measureRate, planTime, type Rate, type TimePlan } from './experiments/plan/time.js';
export * from './experiments/result.js';
export * from './experiments/run.js';
export * from './experiments/saved.js';
export * from './experiments/store.js';
export * from './experiments/studies.js';
export * from './experiments/study.js';
export { REFERENCE_FOLDER } from './experiments/verify.js';
export * from './experiments/world.js';
export * from './grpo/adamw.js';
export * from './grpo/advantages.js';
export * from './grpo/config.js';
export * from './grpo/gradient.js';
export * from './grpo/loss.js';
export * from './grpo/update.js';
export * from './latent/index.js';
export * from './model/index.js';
export { flops, samplingProducts } from './model/matmuls.js';
export { QWEN3 } from './model/qwen3.js';
export * from './notebook/about.js';
export * from './notebook/check.js';
export * from './notebook/display.js';
export * from './notebook/interruptible.js';
export * from './notebook/lab.js';
export * from './notebook/lab-table.js';
export * from './notebook/live.js';
export * from './notebook/live-figure.js';
export * from './notebook/plan.js';
export * from './notebook/progress.js';
export * from './notebook/traces.js';
export * from './random.js';
export * from './records.js';
export * from './rollouts/generate.js';
export * from './rollouts/memories.js';
export * from './rollouts/policy.js';
export * from './rollouts/sampler.js';
export * from './tasks/index.js';
export * from './tensors/backend.js';
export * from './tensors/pool.js';
export * from './text/index.js';
