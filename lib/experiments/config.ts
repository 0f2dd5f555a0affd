/**
 * The config of an experiment, checked, and the presets. A run's identity is the hash of what determines its
 * result: the method's training row, this config, the base's bytes and the backend.
 *
 * Numbers of the presets: METHOD.md's where the paper speaks, otherwise what works on the arena; the tuning is
 * in results/LOG.md. Left out: where runs are stored (store.ts).
 */
import { z } from 'zod';
import { MAIN_METHODS, METHOD_NAMES } from '../agon/methods.js';
import { check } from '../files.js';
import { grpoConfigSchema } from '../grpo/config.js';
import { LORA_TARGETS } from '../model/index.js';
import { TASK_NAMES } from '../tasks/index.js';
import { BASE_NAMES, BASES, type BaseName } from './bases.js';

export const loraSchema = z
  .strictObject({
    /** LoRA rank. */
    r: z.int().min(1).max(1024).default(16),
    /** The update's scale is alpha / r; default 2r; PEFT's `lora_alpha`. */
    alpha: z.number().gt(0).max(65536).optional(),
    /** PEFT's `target_modules`. */
    targetModules: z
      .array(z.enum(LORA_TARGETS))
      .nonempty()
      .default([...LORA_TARGETS]),
    /** Std of B's up-matrix: in units of its base weight's std, or outright; A's up-matrix is zero. */
    initNoise: z
      .union([
        z.strictObject({ relative: z.number().min(0).max(10) }),
        z.strictObject({ absolute: z.number().min(0).max(10) }),
      ])
      .default({ relative: 1e-3 }),
  })
  // Alpha last whether it was given or not: a config that is checked twice must keep its order, which a run's id is of.
  .transform(({ alpha, ...lora }) => ({ ...lora, alpha: alpha ?? 2 * lora.r }));

export const evalSchema = z.strictObject({
  /** Held-out problems the table reports. */
  problems: z.int().min(1).max(100_000).default(300),
  /** Validation problems that choose a cascade's direction. */
  validationProblems: z.int().min(1).max(100_000).default(200),
  temperature: z.number().min(0).max(10).default(0.6),
  topP: z.number().gt(0).max(1).default(0.95),
  /** Samples per held-out problem for methods of one pass; what lies beyond the first is for votes. */
  samples: z.int().min(1).max(1024).default(1),
  /** Difficulty of the problems where it is not that of training: transfer. */
  minDifficulty: z.int().min(0).max(1000).optional(),
  maxDifficulty: z.int().min(0).max(1000).optional(),
});

/** What determines a training run, beside its row, its base and the backend. */
export const runConfigSchema = z.strictObject({
  task: z.enum(TASK_NAMES).default('countdown'),
  seed: z
    .int()
    .min(0)
    .max(2 ** 31),
  /** Optimizer steps. */
  maxSteps: z.int().min(1).max(1_000_000),
  /** Problems per step; every method spends 2N rollouts on each. */
  problemsPerStep: z.int().min(1).max(4096),
  minDifficulty: z.int().min(0).max(1000),
  maxDifficulty: z.int().min(0).max(1000),
  /** Rows per sampling batch (TRL's `generation_batch_size`). */
  generationBatchSize: z.int().min(1).max(8192).default(48),
  grpo: grpoConfigSchema,
  lora: loraSchema,
});
export type RunConfig = z.infer<typeof runConfigSchema>;
export type EvalConfig = z.infer<typeof evalSchema>;

const distinct = <T extends z.ZodType>(item: T) =>
  z
    .array(item)
    .min(1)
    .refine((items) => new Set(items).size === items.length, 'must not name the same twice');

export const experimentSchema = z
  .strictObject({
    name: z.string().min(1),
    /** What tells the experiments of one study apart, such as `N = 4`. */
    label: z.string().default(''),
    /** The frozen base, one of those that are shipped. */
    base: z.enum(BASE_NAMES).default('arena-base'),
    methods: distinct(z.enum(METHOD_NAMES as [string, ...string[]])),
    seeds: distinct(
      z
        .int()
        .min(0)
        .max(2 ** 31),
    ),
    run: runConfigSchema.omit({ seed: true }),
    eval: evalSchema,
    /** Keeps the adapters after every so many steps (TRL's `save_steps`). */
    saveSteps: z.int().min(1).optional(),
  })
  .refine((e) => BASES[e.base].task === e.run.task, {
    path: ['base'],
    error: ({ input }) => {
      const { base, run } = input as { base: BaseName; run: { task: string } };
      return `${base} was trained on ${BASES[base].task}, run.task is ${run.task}`;
    },
  })
  .refine((e) => e.run.minDifficulty <= e.run.maxDifficulty, {
    path: ['run', 'minDifficulty'],
    message: 'must not exceed run.maxDifficulty',
  });
export type Experiment = z.infer<typeof experimentSchema>;

const arena = {
  problemsPerStep: 12,
  minDifficulty: 2,
  maxDifficulty: 12,
  grpo: {
    numGenerations: 8,
    temperature: 0.8,
    maxCompletionLength: 200,
    perDeviceTrainBatchSize: 24,
    learningRate: 1.5e-3,
    lrSchedulerType: 'linear',
    warmupSteps: 5,
    adamBeta2: 0.95,
  },
  lora: { initNoise: { absolute: 0.01 } },
} as const;

const main = ['zero-shot', 'grpo', 'grpo-self-cascade', 'moa-untrained', 'cooperative', 'agon'];

const PRESETS = {
  /** About a minute: proves that everything runs, trains next to nothing. */
  smoke: {
    methods: main,
    seeds: [0],
    run: { ...arena, maxSteps: 2, problemsPerStep: 2 },
    eval: { problems: 40, validationProblems: 20 },
  },
  /** The default: the arena's main table in less than 20 minutes on two cores. */
  quick: { methods: main, seeds: [0], run: { ...arena, maxSteps: 40 }, eval: { problems: 500 } },
  /** The main table of the studies: eight methods, five seeds. */
  full: {
    methods: MAIN_METHODS,
    seeds: [0, 1, 2, 3, 4],
    run: {
      ...arena,
      problemsPerStep: 6,
      maxSteps: 80,
      grpo: { ...arena.grpo, learningRate: 7.5e-4 },
    },
    eval: { problems: 500, validationProblems: 300, samples: 8 },
    saveSteps: 20,
  },
} as const;

export const PRESET_NAMES = Object.keys(PRESETS) as (keyof typeof PRESETS)[];

/** A preset as a checked experiment. @throws naming the presets there are */
export function preset(name: string): Experiment {
  if (!Object.hasOwn(PRESETS, name))
    throw new Error(`unknown preset '${name}': allowed are ${PRESET_NAMES.join(', ')}`);
  return parseExperiment({ name, ...PRESETS[name as keyof typeof PRESETS] }, `preset ${name}`);
}

/** Checks an experiment, fills in defaults. @throws naming `where` and each field that does not fit */
export function parseExperiment(value: unknown, where: string): Experiment {
  return check(experimentSchema, value, where);
}
