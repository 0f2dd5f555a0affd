/**
 * The options of GRPO under TRL's names in camelCase. Where the paper is silent the default is TRL's, except
 * that values the arena's pilot found to work are set by the presets (experiments/). Every field says what it
 * allows; unknown fields are refused.
 */
import { z } from 'zod';
import { LOSS_TYPES } from './loss.js';

export const grpoConfigSchema = z.strictObject({
  /** N: rollouts per problem and stream (paper: 8). */
  numGenerations: z.int().min(1).max(1024).default(8),
  /** Divide advantages by the group's std, the batch's, or not at all. */
  scaleRewards: z.enum(['group', 'batch', 'none']).default('group'),
  /** How token losses are averaged; see `tokenWeights`. */
  lossType: z.enum(LOSS_TYPES).default('dapo'),
  /** Lower clip of the ratio. */
  epsilon: z.number().min(0).max(1).default(0.2),
  /** Upper clip of the ratio; TRL takes epsilon where it is not set. */
  epsilonHigh: z.number().min(0).max(10).optional(),
  /** Weight of the KL to the base; 0 computes no reference. */
  beta: z.number().min(0).max(10).default(0),
  /** Leave completions that were cut at the cap out of the loss. */
  maskTruncatedCompletions: z.boolean().default(false),
  /** Optimizer updates on the same rollouts (mu). */
  numIterations: z.int().min(1).max(16).default(1),
  /** Divides the logits of sampler, policy and reference alike. */
  temperature: z.number().gt(0).max(10).default(1),
  /** Token cap of one completion. */
  maxCompletionLength: z.int().min(1).max(131072).default(256),
  /** Rows per micro-batch of the backward pass: bounds memory, does not change the result beyond rounding. */
  perDeviceTrainBatchSize: z.int().min(1).max(4096).default(32),
  /** Compute each layer again in the backward pass and keep only its input: less memory, more time, same result. */
  gradientCheckpointing: z.boolean().default(false),
  learningRate: z.number().gt(0).max(1).default(1e-6),
  lrSchedulerType: z.enum(['constant', 'linear', 'cosine']).default('linear'),
  warmupSteps: z.int().min(0).max(1_000_000).default(0),
  adamBeta1: z.number().min(0).lt(1).default(0.9),
  adamBeta2: z.number().min(0).lt(1).default(0.999),
  adamEpsilon: z.number().gt(0).max(1).default(1e-8),
  weightDecay: z.number().min(0).max(1).default(0),
  maxGradNorm: z.number().gt(0).max(1e6).default(1),
});

export type GrpoConfig = z.infer<typeof grpoConfigSchema>;
