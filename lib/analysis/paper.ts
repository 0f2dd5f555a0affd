/**
 * The figures the paper reports (arXiv 2607.07690v1), read from data/paper/tables.json and checked. Left out of the
 * schema: the settings of its training, and what it does not show.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, readJson } from '../files.js';
import { clopperPearson, type Estimate } from './stats.js';

const percent = z.number().min(0).max(100);

const three = { 'zero-shot': percent, grpo: percent, agon: percent };
/** One name and its pass@1. */
const named = z.record(z.string(), percent).refine((entry) => Object.keys(entry).length === 1, 'one name');

const paperSchema = z.object({
  source: z.string(),
  eval: z.object({ problems: z.int().positive() }),
  main: z
    .array(
      z.object({
        method: z.string(),
        /** Percent. */
        pass1: percent,
        /** Percent; the paper's own interval, kept as printed. */
        ci95: z.tuple([percent, percent]),
        /** Tokens of the answering stage only: the paper reports no total. */
        final_stage_tokens: z.number().positive(),
      }),
    )
    .min(1),
  decomposition: z.object({
    agon_drafter_alone: percent,
    agon_cascade: percent,
    challenger_tokens_when_rival_right: z.number().positive(),
    challenger_tokens_mean: z.number().positive(),
  }),
  /** pass@1 in percent by method. */
  transfer: z.array(z.object({ benchmark: z.string(), ...three })),
  scaling: z.array(z.object({ model: z.string(), ...three })),
  code: z.object({
    dataset: z.string(),
    model: z.string(),
    rows: z.array(
      z.object({ method: z.string(), pass1: percent, final_stage_tokens: z.number().positive() }),
    ),
  }),
  ablations: z.array(z.object({ factor: z.string(), off: named, on: named })),
  length_tiebreak: z.array(
    z.object({ reward: z.string(), pass1: percent, final_stage_tokens: z.number().positive() }),
  ),
});

/** The paper's tables and where they come from. */
export type Paper = z.infer<typeof paperSchema>;

/** One row of the paper's main table. */
export type PaperRow = Paper['main'][number];

/** Reads the paper's figures. @throws naming the file and the field when it does not fit */
export function readPaper(path: string = join(ROOT, 'data/paper/tables.json')): Paper {
  return readJson(path, paperSchema);
}

/**
 * The exact interval of a share the paper prints without one, in percent, as if it were the share of its held-out
 * problems: the paper's own intervals are these to within 0.2 points.
 */
export function printedInterval(pass1: number, { eval: { problems } }: Paper): Estimate {
  const { low, high } = clopperPearson((pass1 / 100) * problems, problems);
  return { value: pass1, low: 100 * low, high: 100 * high };
}
