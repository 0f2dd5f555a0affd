/**
 * Checks shipped run folders against themselves and against the tasks: the id is the hash of the config, the log has a
 * line per step, the answers are to exactly the problems they claim, none of which was trained on, columns fit together,
 * equal proposals are judged alike, and adapters load. Nothing is trained, sampled or written, and no backend is started.
 *
 * Left out: whether the tables follow from the folders (analysis/studies/verify.ts).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { deploymentName, METHODS } from '../agon/methods.js';
import { check, ROOT, readJson } from '../files.js';
import { readAdapter, readConfig } from '../model/index.js';
import { TASKS } from '../tasks/index.js';
import { BASE_NAMES, baseFolder } from './bases.js';
import { type RunConfig, runConfigSchema } from './config.js';
import { type Evaluation, EvaluationStore, type Stage } from './evaluation.js';
import { readDistances } from './pair.js';
import { hashBase, RESULTS_VERSION, type RunIdentity, readMetrics, runId } from './store.js';

/** Something that does not trace, or does not fit. */
export interface Finding {
  /** A file or a folder, seen from the results folder. */
  readonly where: string;
  readonly what: string;
}

const identitySchema = z.looseObject({
  version: z.int(),
  training: z.looseObject({ name: z.string(), adapters: z.array(z.string()) }).nullable(),
  config: z.unknown(),
  baseHash: z.string(),
  backend: z.string(),
});
type StoredIdentity = z.infer<typeof identitySchema>;

/** Where results are shipped. */
export const REFERENCE_FOLDER = join(ROOT, 'results', 'reference');

/** How a finding begins about a file that reading would cut. */
export const CUT_OFF = 'ends in half a line';

/** Folders in `runs` that hold the training of a base. */
const isPretraining = (id: string): boolean => id.startsWith('pretrain-');

/** The run folders of a results folder, pretraining left out. */
export function runFolders(resultsFolder: string): string[] {
  const runs = join(resultsFolder, 'runs');
  if (!existsSync(runs)) return [];
  return readdirSync(runs).filter((id) => !isPretraining(id) && !id.startsWith('.'));
}

/** Checks every run folder. */
export function verifyRuns(resultsFolder: string): Finding[] {
  const answers = new AnswerBook();
  const findings = runFolders(resultsFolder).flatMap((id) => verifyRun(resultsFolder, id, answers));
  return [...findings, ...answers.findings()];
}

function verifyRun(resultsFolder: string, id: string, answers: AnswerBook): Finding[] {
  const folder = join(resultsFolder, 'runs', id);
  const findings: Finding[] = [];
  /** Collects what a check finds in a file; what it throws is a finding too. */
  const collect = (file: string, check: () => Iterable<string>) => {
    const where = `runs/${id}/${file}`;
    try {
      for (const what of check()) findings.push({ where, what });
    } catch (error) {
      findings.push({ where, what: (error as Error).message.replaceAll(`${folder}/`, '') });
    }
  };
  for (const file of ['metrics.jsonl', 'eval.jsonl', 'distance.jsonl']) {
    const path = join(folder, file);
    if (!existsSync(path) || readFileSync(path, 'utf8').endsWith('\n')) continue;
    return [{ where: `runs/${id}/${file}`, what: `${CUT_OFF}: the file is cut off or was changed` }];
  }
  let found: { stored: StoredIdentity; config: RunConfig } | undefined;
  collect('config.json', () => {
    const text = readJson(join(folder, 'config.json'), z.unknown());
    const stored = check(identitySchema, text, 'config.json');
    const config = check(runConfigSchema, stored.config, 'config.json, config');
    found = { stored, config };
    return identityFaults(id, stored, text as RunIdentity & { version: number });
  });
  if (!found) return findings;
  const { stored, config } = found;
  collect('metrics.jsonl', () => metricsFaults(folder, stored, config));
  collect('eval.jsonl', () => {
    const { all } = new EvaluationStore(join(folder, 'eval.jsonl'));
    for (const [line, evaluation] of all.entries())
      answers.add(config.task, evaluation, `runs/${id}/eval.jsonl`, line + 1);
    return evaluationsFaults(all, stored, config);
  });
  collect('distance.jsonl', () => distanceFaults(folder, stored, config));
  for (const name of stored.training?.adapters ?? [])
    if (existsSync(join(folder, name)))
      collect(name, () => adapterFaults(join(folder, name), stored, config));
  return findings;
}

/** @param text the file's own value: the id is the hash of its fields in their order */
function* identityFaults(
  id: string,
  { version, baseHash }: StoredIdentity,
  { version: _, ...text }: RunIdentity & { readonly version: number },
): Generator<string> {
  if (version !== RESULTS_VERSION)
    yield `version is ${version}, results of this code have version ${RESULTS_VERSION}`;
  const wanted = runId(text);
  if (wanted !== id) yield `is the config of run ${wanted}: the folder's name is the hash of another config`;
  if (!baseOf(baseHash)) yield `baseHash ${baseHash.slice(0, 10)}... is that of no base in data/`;
}

const baseHashes = new Map<string, string>();

/** Folder of the shipped base with this hash. */
function baseOf(hash: string): string | undefined {
  if (baseHashes.size === 0)
    for (const folder of BASE_NAMES.map(baseFolder))
      if (existsSync(folder)) baseHashes.set(hashBase(folder), folder);
  return baseHashes.get(hash);
}

function* metricsFaults(
  folder: string,
  { training }: StoredIdentity,
  { maxSteps }: RunConfig,
): Generator<string> {
  const metrics = readMetrics({ path: folder });
  const wanted = training ? maxSteps : 0;
  if (metrics.length !== wanted)
    yield `holds ${metrics.length} steps, the config says ${wanted}${training ? '' : ' (nothing is trained)'}`;
  for (const [i, line] of metrics.entries()) {
    if (line.step !== i) yield `line ${i + 1}: step is ${line.step}, ${i} comes here`;
    if (i > 0 && !(line.num_tokens! > metrics[i - 1]!.num_tokens!))
      yield `line ${i + 1}: num_tokens is ${line.num_tokens}, not more than the line before`;
  }
}

/** Ids of the problems the run was trained on. */
function trainedProblems({ training }: StoredIdentity, config: RunConfig): ReadonlySet<string> {
  if (!training) return new Set();
  const { seed, minDifficulty, maxDifficulty, maxSteps, problemsPerStep } = config;
  const count = maxSteps * problemsPerStep;
  const query = { split: 'train', count, seed, minDifficulty, maxDifficulty } as const;
  return new Set(TASKS[config.task].problems(query).map((problem) => problem.id));
}

function* evaluationsFaults(
  all: readonly Evaluation[],
  stored: StoredIdentity,
  config: RunConfig,
): Generator<string> {
  if (all.length === 0) yield 'holds no evaluation';
  const trained = trainedProblems(stored, config);
  for (const [line, evaluation] of all.entries())
    for (const what of evaluationFaults(evaluation, stored, config, trained))
      yield `line ${line + 1}: ${what}`;
}

function* evaluationFaults(
  { eval: key, deployment, split, step, problems, stages }: Evaluation,
  { training }: StoredIdentity,
  config: RunConfig,
  trained: ReadonlySet<string>,
): Generator<string> {
  const known = METHODS.filter((m) => m.training?.name === training?.name).flatMap((m) => m.deployments);
  const adapters = stages.map((stage) => stage.adapter).join('>');
  if (adapters !== deployment) yield `deployment is ${deployment}, its stages are by ${adapters}`;
  if (known.length > 0 && !known.some((d) => deploymentName(d) === deployment))
    yield `deployment is ${deployment}: no method of '${training?.name ?? 'the base'}' is run that way`;
  if (key.seed !== config.seed) yield `seed is ${key.seed}, the run's is ${config.seed}`;
  if (key.cap !== config.grpo.maxCompletionLength)
    yield `cap is ${key.cap}, the run's is ${config.grpo.maxCompletionLength}`;
  if (step !== undefined && (!training || step < 1 || step > config.maxSteps))
    yield `step is ${step} of a run of ${training ? config.maxSteps : 0} steps`;
  const { minDifficulty, maxDifficulty } = key;
  const query = { split, count: problems.length, seed: 0, minDifficulty, maxDifficulty };
  const wanted = TASKS[config.task].problems(query).map((problem) => problem.id);
  const other = problems.findIndex((id, i) => id !== wanted[i]);
  if (other >= 0)
    yield `problem ${other + 1} is ${problems[other]}, the ${split} split of difficulty ` +
      `${minDifficulty}..${maxDifficulty} has ${wanted[other]} there`;
  const seen = problems.find((id) => trained.has(id));
  if (seen !== undefined) yield `problem ${seen} was trained on`;
  for (const [i, stage] of stages.entries()) {
    const wrong = misfitOf(stage, key.cap);
    if (wrong) yield `stage ${i + 1}, ${problems[wrong.problem]}: ${wrong.what}`;
  }
}

/** The first problem whose columns contradict each other. */
function misfitOf(stage: Stage, cap: number): { problem: number; what: string } | undefined {
  const { correct, truncated, completionTokens, proposal, steps, useful, repeated, deadAgain, wrong } = stage;
  for (const [i, tokens] of completionTokens.entries()) {
    const found = (what: string) => ({ problem: i, what });
    if (tokens > cap) return found(`completionTokens is ${tokens}, the cap is ${cap}`);
    if (truncated[i] === '1' && tokens !== cap)
      return found(`is cut at the cap of ${cap} and has ${tokens} tokens`);
    if (correct[i] === '1' && proposal[i] === null) return found('is right and proposes nothing');
    if (useful[i]! + wrong[i]! > steps[i]!)
      return found(`${useful[i]} useful and ${wrong[i]} wrong steps of ${steps[i]}`);
    if (repeated[i]! > steps[i]! || deadAgain[i]! > steps[i]!)
      return found(`${repeated[i]} repeated steps and ${deadAgain[i]} dead ends again of ${steps[i]} steps`);
  }
  return undefined;
}

/** Where a proposal was called right, and where wrong. */
interface Verdicts {
  readonly right: { file: string; at: string }[];
  readonly wrong: { file: string; at: string }[];
}

/**
 * How each proposal to each problem was judged, over all runs: the verifier sees nothing but the proposal, so equal ones
 * must be judged alike.
 */
class AnswerBook {
  private readonly verdicts = new Map<string, Map<number, Verdicts>>();

  add(task: string, { problems, stages }: Evaluation, file: string, line: number): void {
    for (const [s, { proposal, correct }] of stages.entries())
      for (const [i, hash] of proposal.entries()) {
        if (hash === null) continue;
        const problem = `${task} ${problems[i]}`;
        const known = this.verdicts.get(problem) ?? new Map<number, Verdicts>();
        const verdicts = known.get(hash) ?? { right: [], wrong: [] };
        const own = correct[i] === '1' ? verdicts.right : verdicts.wrong;
        // Two places are enough to tell the one that is alone.
        if (own.length < 2) own.push({ file, at: `line ${line}, stage ${s + 1}` });
        known.set(hash, verdicts);
        this.verdicts.set(problem, known);
      }
  }

  findings(): Finding[] {
    const found: Finding[] = [];
    for (const [problem, known] of this.verdicts)
      for (const { right, wrong } of known.values()) {
        if (wrong.length === 0 || right.length === 0) continue;
        const [odd, others] = right.length <= wrong.length ? [right, wrong] : [wrong, right];
        found.push({
          where: odd[0]!.file,
          what:
            `${odd[0]!.at}, ${problem.split(' ')[1]}: the proposal is called ${odd === right ? 'right' : 'wrong'}, and ` +
            `the same one is not in ${others[0]!.file}, ${others[0]!.at}`,
        });
      }
    return found;
  }
}

function* distanceFaults(folder: string, { training }: StoredIdentity, config: RunConfig): Generator<string> {
  const names = [...(training?.adapters ?? []), 'base'];
  for (const [i, { step, from, to }] of readDistances({ path: folder }).entries()) {
    if (step < 1 || step > config.maxSteps) yield `line ${i + 1}: step is ${step} of ${config.maxSteps}`;
    if (!names.includes(from) || !names.includes(to) || from === to)
      yield `line ${i + 1}: from ${from} to ${to}: the run has ${names.join(', ')}`;
  }
}

/** Adapters need not be shipped; those that are must load into the run's base and be of the run's shape. */
function* adapterFaults(
  folder: string,
  { baseHash }: StoredIdentity,
  { lora }: RunConfig,
): Generator<string> {
  const base = baseOf(baseHash);
  if (!base) return;
  const { config, weights } = readAdapter(folder, readConfig(join(base, 'config.json')));
  const shape = ({ r, alpha, targetModules }: Pick<typeof lora, 'r' | 'alpha' | 'targetModules'>) =>
    JSON.stringify([r, alpha, [...targetModules].sort()]);
  if (shape(config) !== shape(lora))
    yield `has rank, alpha and modules ${shape(config)}, the run's are ${shape(lora)}`;
  const broken = Object.entries(weights).find(([, { data }]) => !data.every(Number.isFinite));
  if (broken) yield `tensor '${broken[0]}' holds a value that is not a number`;
}
