/**
 * One evaluation as a record: a deployment on the problems of a split, column by column, and what can be read off it.
 * A run's eval.jsonl holds one such line per evaluation; every table is computed from these lines.
 *
 * Columns are in the order of `problems`; yes/no columns are strings of 1 and 0. Left out: how an evaluation is made
 * (evaluate.ts) and intervals (analysis/).
 */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { readJsonl, writeFileAtomic } from '../files.js';
import { mean } from '../numbers.js';
import { hash32 } from '../random.js';
import type { AdapterName, Attempt } from '../records.js';
import type { Task } from '../tasks/index.js';

const bits = z.string().regex(/^[01]*$/);
const counts = z.array(z.int().min(0));

/** One stage of a deployment. */
const stageSchema = z.strictObject({
  adapter: z.enum(['A', 'B', 'C', 'base'] satisfies AdapterName[]),
  correct: bits,
  formatted: bits,
  /** Cut at the token cap. */
  truncated: bits,
  /** Prefilled tokens. */
  promptTokens: counts,
  /** Generated tokens. */
  completionTokens: counts,
  /** Mean log-probability (nats) per generated token under the sampling policy, rounded. */
  logProb: z.array(z.number()),
  /** Hash of what the completion settles for (Task.proposal); null where it proposes nothing. */
  proposal: z.array(z.int().min(0).nullable()),
  /** Task.countTrace. */
  steps: counts,
  useful: counts,
  repeated: counts,
  deadAgain: counts,
  wrong: counts,
});
export type Stage = z.infer<typeof stageSchema>;

/** What an evaluation's numbers follow from, beside the policies and the number of problems. */
const evalKeySchema = z.strictObject({
  temperature: z.number(),
  topP: z.number(),
  cap: z.int(),
  seed: z.int(),
  minDifficulty: z.int(),
  maxDifficulty: z.int(),
});
export type EvalKey = z.infer<typeof evalKeySchema>;

export const evaluationSchema = z
  .strictObject({
    eval: evalKeySchema,
    deployment: z.string(),
    split: z.enum(['validation', 'heldout']),
    /** Steps the adapters were trained for, where that is not the whole run. */
    step: z.int().min(0).optional(),
    /** Which of several samples per problem; 0 is the one that tables report. */
    sample: z.int().min(0),
    problems: z.array(z.string()).min(1),
    stages: z.array(stageSchema).min(1).max(2),
    /** Wall-clock of the whole evaluation; the only field that may differ between two equal ones. */
    seconds: z.number().min(0),
  })
  .superRefine(({ problems, stages }, context) => {
    stages.forEach((stage, i) => {
      for (const [name, column] of Object.entries(stage))
        if (name !== 'adapter' && column.length !== problems.length)
          context.addIssue({
            code: 'custom',
            path: ['stages', i, name],
            message: `holds ${column.length} values for ${problems.length} problems`,
          });
    });
  });
export type Evaluation = z.infer<typeof evaluationSchema>;

/** One stage's attempts as columns. */
export function stageOf(
  task: Task,
  attempts: readonly Attempt[],
  shown: (a: Attempt) => string | undefined,
): Stage {
  const flags = (test: (a: Attempt) => boolean) => attempts.map((a) => (test(a) ? '1' : '0')).join('');
  const traces = attempts.map((a) => task.countTrace(a.problem, a.completion, shown(a)));
  return {
    adapter: attempts[0]!.adapter,
    correct: flags((a) => a.correct),
    formatted: flags((a) => a.formatted),
    truncated: flags((a) => a.rollout.finishReason === 'length'),
    promptTokens: attempts.map((a) => a.rollout.promptIds.length),
    completionTokens: attempts.map((a) => a.rollout.completionIds.length),
    logProb: attempts.map((a) => Number(mean(a.rollout.logProbs).toFixed(4))),
    proposal: attempts.map((a) => {
      const proposal = task.proposal(a.completion);
      return proposal === undefined ? null : hash32(proposal);
    }),
    steps: traces.map((t) => t.steps),
    useful: traces.map((t) => t.useful),
    repeated: traces.map((t) => t.repeated),
    deadAgain: traces.map((t) => t.deadAgain),
    wrong: traces.map((t) => t.wrong),
  };
}

/** A yes/no column as booleans. */
export function flagsOf(column: string): boolean[] {
  return [...column].map((bit) => bit === '1');
}

/** The stage that answers. */
export function finalStage(evaluation: Evaluation): Stage {
  return evaluation.stages.at(-1)!;
}

/** The stage that is read; undefined for one pass. */
export function draftStage({ stages }: Evaluation): Stage | undefined {
  return stages.length > 1 ? stages[0] : undefined;
}

/** How many problems the final stage solves. */
export function countCorrect(evaluation: Evaluation): number {
  return flagsOf(finalStage(evaluation).correct).filter(Boolean).length;
}

/** Share of final answers whose proposal is the rival's own, of the problems where `among` says so. */
export function copiedShare(
  { stages: [draft, final] }: Evaluation,
  among: (i: number) => boolean = () => true,
): number | undefined {
  if (!draft || !final) return undefined;
  const told = draft.proposal.flatMap((p, i) => (p !== null && among(i) ? [p === final.proposal[i]] : []));
  return told.length === 0 ? undefined : told.filter(Boolean).length / told.length;
}

/** Which evaluation is asked for; the number of problems counts too. */
export type EvaluationQuery = Pick<
  Evaluation,
  'eval' | 'deployment' | 'split' | 'step' | 'sample' | 'problems'
>;

/** eval.jsonl. */
export class EvaluationStore {
  readonly all: Evaluation[];
  constructor(private readonly path: string) {
    this.all = existsSync(path) ? readJsonl(path, evaluationSchema) : [];
  }
  find(query: EvaluationQuery): Evaluation | undefined {
    const key = keyOf(query);
    return this.all.find((evaluation) => keyOf(evaluation) === key);
  }
  /** Adds an evaluation; the file is replaced whole. */
  add(evaluation: Evaluation): void {
    this.all.push(evaluation);
    writeFileAtomic(this.path, this.all.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

function keyOf({ eval: key, deployment, split, step, sample, problems }: EvaluationQuery): string {
  return JSON.stringify([
    key.temperature,
    key.topP,
    key.cap,
    key.seed,
    key.minDifficulty,
    key.maxDifficulty,
    deployment,
    split,
    step ?? 'end',
    sample,
    problems,
  ]);
}
