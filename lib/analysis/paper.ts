/**
 * The figures the paper reports (arXiv 2607.07690v1), read from data/paper/tables.json and checked. Left out of
 * the schema: the tables nothing here draws yet (transfer, scaling, code); they stay in the file.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, readJson } from '../files.js';

const percent = z.number().min(0).max(100);

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
});

/** The paper's main table and where it comes from. */
export type Paper = z.infer<typeof paperSchema>;

/** One row of the paper's main table. */
export type PaperRow = Paper['main'][number];

/** Reads the paper's figures. @throws naming the file and the field when it does not fit */
export function readPaper(path: string = join(ROOT, 'data/paper/tables.json')): Paper {
  return readJson(path, paperSchema);
}
