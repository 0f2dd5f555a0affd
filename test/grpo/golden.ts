/** test/golden/grpo.json: numbers that TRL, torch and transformers computed (make_grpo_golden.py), checked. */
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, readJson } from '../../lib/files.js';
import { LOSS_TYPES } from '../../lib/grpo/loss.js';

const numbers = z.array(z.number());
const named = z.record(z.string(), numbers);

const schema = z.object({
  losses: z.object({
    maxCompletionLength: z.int(),
    logProbs: z.array(numbers),
    oldLogProbs: z.array(numbers),
    refLogProbs: z.array(numbers),
    advantages: numbers,
    truncated: z.array(z.boolean()),
    cases: z.array(
      z.object({
        lossType: z.enum(LOSS_TYPES),
        epsilon: z.number(),
        epsilonHigh: z.number(),
        beta: z.number(),
        maskTruncated: z.boolean(),
        loss: z.number(),
        dLogProbs: z.array(numbers),
        metrics: z.record(z.string(), z.number()),
      }),
    ),
  }),
  advantages: z.array(
    z.object({
      scaleRewards: z.enum(['group', 'batch', 'none']),
      rewards: z.array(z.number().nullable()),
      advantages: numbers,
    }),
  ),
  adamw: z.object({
    start: named,
    steps: z.array(z.object({ learningRate: z.number(), gradNorm: z.number(), grads: named, params: named })),
    options: z.object({
      adamBeta1: z.number(),
      adamBeta2: z.number(),
      adamEpsilon: z.number(),
      weightDecay: z.number(),
    }),
    maxGradNorm: z.number(),
  }),
  schedules: z.array(
    z.object({
      lrSchedulerType: z.enum(['constant', 'linear', 'cosine']),
      warmupSteps: z.int(),
      maxSteps: z.int(),
      factors: numbers,
    }),
  ),
  logProbs: z.object({
    temperature: z.number(),
    logits: z.array(numbers),
    targets: numbers,
    weights: numbers,
    logProbs: numbers,
    entropies: numbers,
    dLogits: z.array(numbers),
  }),
  nuclei: z.array(z.object({ topP: z.number(), logits: numbers, kept: z.array(z.int()) })),
});

export const golden = readJson(join(ROOT, 'test', 'golden', 'grpo.json'), schema);
