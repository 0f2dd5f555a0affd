/**
 * Evaluation: a run's deployments on validation and held-out problems, a line per problem and stage in
 * eval.jsonl, and what the table says of it.
 *
 * A cascade's direction is chosen on the validation split and reported on the held-out one; the paper's own
 * way (the better on the held-out set) is kept beside it as `bestOnHeldout`. Left out: intervals (analysis/).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Adapters, World } from '../agon/attempt.js';
import { deploy } from '../agon/cascade.js';
import { type Deployment, deploymentName, type Method } from '../agon/methods.js';
import { readJsonl, writeFileAtomic } from '../files.js';
import type { Attempt, Problem } from '../records.js';
import type { EvalConfig, RunConfig } from './config.js';
import { Interrupted } from './interrupted.js';
import type { MethodResult } from './result.js';

/** One stage of one deployment at one problem. */
export const evalLineSchema = z.strictObject({
  /** What the evaluation's numbers follow from beside the policy: sampling, problems, seed. */
  eval: z.string(),
  deployment: z.string(),
  split: z.enum(['validation', 'heldout']),
  problem: z.string(),
  stage: z.int().min(0).max(1),
  adapter: z.enum(['A', 'B', 'base']),
  correct: z.boolean(),
  formatted: z.boolean(),
  promptTokens: z.int(),
  completionTokens: z.int(),
  finishReason: z.enum(['stop', 'length']),
  answer: z.string().nullable(),
});
export type EvalLine = z.infer<typeof evalLineSchema>;

export interface EvalOptions {
  readonly onProgress?: (done: number, total: number, what: string) => void;
  /** Aborting it stops before the next deployment. */
  readonly signal?: AbortSignal;
}

/** One deployment on one split: per problem the stages in order. */
interface Outcome {
  readonly deployment: string;
  readonly lines: readonly (readonly EvalLine[])[];
}

/**
 * Evaluates a method's deployments in a run's folder; what eval.jsonl already holds whole is read, not made.
 * @param folder the run's folder (for untrained methods, the base's)
 */
export async function evaluateMethod(
  world: World,
  folder: string,
  method: Method,
  adapters: Adapters,
  config: RunConfig,
  evaluation: EvalConfig,
  options: EvalOptions = {},
): Promise<{ chosen: Outcome; bestOnHeldout: Outcome }> {
  const store = new EvalStore(join(folder, 'eval.jsonl'));
  const run = async (deployment: Deployment, split: 'validation' | 'heldout', problems: Problem[]) => {
    const name = deploymentName(deployment);
    const key = JSON.stringify({
      ...evaluation,
      ...difficulty(config),
      cap: config.grpo.maxCompletionLength,
      seed: config.seed,
    });
    const found = store.find(key, name, split, problems, deployment.length);
    if (found) return { deployment: name, lines: found };
    const total = problems.length * deployment.length;
    if (options.signal?.aborted) throw new Interrupted(config.maxSteps);
    const { grpo, generationBatchSize } = config;
    const sampling = { ...evaluation, generationBatchSize, maxCompletionLength: grpo.maxCompletionLength };
    const attempts = await deploy(
      world,
      adapters,
      deployment,
      problems,
      sampling,
      [config.seed, split],
      (done) => options.onProgress?.(done, total, `${method.name} ${name} ${split}`),
    );
    const lines = attempts.map((last) =>
      stages(last).map((a, stage) => evalLine(a, { eval: key, deployment: name, split, stage })),
    );
    store.add(lines.flat());
    return { deployment: name, lines };
  };
  const heldout: Outcome[] = [];
  const problems = evaluationProblems(world, config, evaluation, 'heldout');
  for (const deployment of method.deployments) heldout.push(await run(deployment, 'heldout', problems));
  let chosen = 0;
  if (method.deployments.length > 1) {
    const validation = [];
    const choosing = evaluationProblems(world, config, evaluation, 'validation');
    for (const deployment of method.deployments)
      validation.push(await run(deployment, 'validation', choosing));
    chosen = argmax(validation.map(accuracy));
  }
  return { chosen: heldout[chosen]!, bestOnHeldout: heldout[argmax(heldout.map(accuracy))]! };
}

/** The problems of a split that every method of an experiment answers. @throws when there are too few */
export function evaluationProblems(
  world: World,
  config: Pick<RunConfig, 'minDifficulty' | 'maxDifficulty'>,
  evaluation: EvalConfig,
  split: 'validation' | 'heldout',
): Problem[] {
  const count = split === 'heldout' ? evaluation.problems : evaluation.validationProblems;
  return world.task.problems({ split, count, seed: 0, ...difficulty(config) });
}

/** The table's record of an outcome. */
export function methodResult(
  method: Method,
  outcome: Outcome,
  run: {
    readonly seed: number;
    readonly steps: number;
    readonly secondsPerStep?: number;
    readonly runId: string;
  },
): MethodResult {
  const finals = outcome.lines.map((l) => l.at(-1)!);
  const drafts = outcome.lines.flatMap((l) => (l.length > 1 ? [l[0]!] : []));
  const mean = (lines: readonly EvalLine[]) =>
    lines.reduce((sum, l) => sum + l.completionTokens, 0) / Math.max(1, lines.length);
  const count = (lines: readonly EvalLine[]) => lines.filter((l) => l.correct).length;
  const after = (right: boolean) => outcome.lines.filter((l) => l.length > 1 && l[0]!.correct === right);
  const share = (lines: readonly (readonly EvalLine[])[]) =>
    lines.length === 0 ? undefined : count(lines.map((l) => l.at(-1)!)) / lines.length;
  const draftTokens = drafts.length > 0 ? mean(drafts) : 0;
  const [keep, convert] = [share(after(true)), share(after(false))];
  const direction = method.deployments.length > 1 ? (outcome.deployment as MethodResult['direction']) : '-';
  return {
    method: method.name,
    ...run,
    correct: count(finals),
    total: finals.length,
    draftTokens,
    finalTokens: mean(finals),
    totalTokens: draftTokens + mean(finals),
    direction,
    ...(drafts.length > 0 ? { draftCorrect: count(drafts) } : {}),
    ...(keep === undefined ? {} : { keep }),
    ...(convert === undefined ? {} : { convert }),
  };
}

/** eval.jsonl: evaluations are added whole; one that is there only in part is replaced. */
class EvalStore {
  private lines: EvalLine[];
  constructor(private readonly path: string) {
    this.lines = existsSync(path) ? readJsonl(path, evalLineSchema) : [];
  }
  find(key: string, deployment: string, split: string, problems: readonly Problem[], stages: number) {
    const own = this.lines.filter((l) => l.eval === key && l.deployment === deployment && l.split === split);
    const byProblem = new Map<string, EvalLine[]>();
    for (const line of own) byProblem.set(line.problem, [...(byProblem.get(line.problem) ?? []), line]);
    const found = problems.map((p) => byProblem.get(p.id) ?? []);
    return found.every((l) => l.length === stages) ? found : undefined;
  }
  add(lines: readonly EvalLine[]): void {
    const [{ eval: key, deployment, split }] = lines as readonly [EvalLine];
    const others = this.lines.filter(
      (l) => l.eval !== key || l.deployment !== deployment || l.split !== split,
    );
    this.lines = [...others, ...lines];
    writeFileAtomic(this.path, this.lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

function stages(last: Attempt): Attempt[] {
  return last.rival ? [last.rival, last] : [last];
}

function evalLine(a: Attempt, where: Pick<EvalLine, 'eval' | 'deployment' | 'split' | 'stage'>): EvalLine {
  return {
    ...where,
    problem: a.problem.id,
    adapter: a.adapter,
    correct: a.correct,
    formatted: a.formatted,
    promptTokens: a.rollout.promptIds.length,
    completionTokens: a.rollout.completionIds.length,
    finishReason: a.rollout.finishReason,
    answer: a.completion.answer ?? null,
  };
}

function accuracy(outcome: Outcome): number {
  return outcome.lines.filter((l) => l.at(-1)!.correct).length / outcome.lines.length;
}

function argmax(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

function difficulty({ minDifficulty, maxDifficulty }: { minDifficulty: number; maxDifficulty: number }) {
  return { minDifficulty, maxDifficulty };
}
