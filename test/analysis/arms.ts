/**
 * Made-up runs of a study, for tests only; they say nothing about any method. Every answer is drawn from a named stream
 * with a chance of being right that the test sets, so that what the tables must find is known beforehand.
 */

import { deploymentName, type Method, methodByName } from '../../lib/agon/methods.js';
import type { StudyReport } from '../../lib/analysis/studies/index.js';
import { type Experiment, parseExperiment } from '../../lib/experiments/config.js';
import { chooseEvaluations, evalKey, methodResult } from '../../lib/experiments/evaluate.js';
import type { Evaluation, Stage } from '../../lib/experiments/evaluation.js';
import { type Metrics, runId } from '../../lib/experiments/store.js';
import type { ArmResult, Study } from '../../lib/experiments/study.js';
import { identityOf } from '../../lib/experiments/study.js';
import { stream } from '../../lib/random.js';

/** The chance of a right answer, by method and seed. */
export type Skill = (method: string, seed: number, label: string) => number;

export const PROBLEMS = 60;
export const VALIDATION = 40;

export function fixtureExperiment(more: Record<string, unknown> = {}): Experiment {
  return parseExperiment(
    {
      name: 'fixture',
      methods: ['zero-shot', 'grpo', 'cooperative', 'agon'],
      seeds: [0, 1, 2],
      run: {
        maxSteps: 4,
        problemsPerStep: 2,
        minDifficulty: 4,
        maxDifficulty: 16,
        grpo: {},
        lora: { alpha: 32 },
      },
      eval: { problems: PROBLEMS, validationProblems: VALIDATION, samples: 2 },
      ...more,
    },
    'fixture',
  );
}

export function fixtureStudy(name: string, experiments: readonly Experiment[]): Study {
  return { name, title: `Fixture ${name}`, question: 'Does it work?', experiments };
}

/** Four lines of metrics. */
export function fixtureRunMetrics(method: Method, steps: number): Metrics[] {
  const streams = method.training?.exchange === 'none' ? ['solo'] : ['draft', 'challenge'];
  return Array.from({ length: steps }, (_, step) => ({
    step,
    ...Object.fromEntries(
      streams.flatMap((name) => [
        [`${name}/reward`, 1 + step / 10],
        [`${name}/accuracy`, 0.3 + step / 20],
        [`${name}/completions/mean_length`, 60 - step],
      ]),
    ),
    num_tokens: 1000 * (step + 1),
    step_time: 0.5,
  }));
}

/** All evaluations of a method at a seed: every deployment on both splits, samples, and kept checkpoints. */
export function fixtureEvaluations(
  method: Method,
  experiment: Experiment,
  seed: number,
  skill: number,
  problemsOf: (split: 'validation' | 'heldout') => readonly string[],
): Evaluation[] {
  const { eval: evaluation, run, saveSteps } = experiment;
  const key = evalKey({ ...run, seed }, evaluation);
  const one = (
    deployment: Method['deployments'][number],
    split: 'validation' | 'heldout',
    sample: number,
    step?: number,
  ): Evaluation => {
    const problems = problemsOf(split);
    const names = [
      method.name,
      seed,
      experiment.label,
      deploymentName(deployment),
      split,
      sample,
      step ?? 'end',
    ];
    const stages: Stage[] = [];
    for (const [i, adapter] of deployment.entries())
      stages.push(stageFixture(adapter, problems, skill, stages[0], [...names, i]));
    return {
      eval: key,
      deployment: deploymentName(deployment),
      split,
      ...(step === undefined ? {} : { step }),
      sample,
      problems: [...problems],
      stages,
      seconds: 1.5,
    };
  };
  const { deployments } = method;
  const onePass = deployments.length === 1 && deployments[0]!.length === 1;
  const samples = onePass ? evaluation.samples : 1;
  const kept =
    saveSteps !== undefined && (method.training?.adapters.length ?? 0) > 1
      ? Array.from({ length: Math.floor(run.maxSteps / saveSteps) }, (_, i) => (i + 1) * saveSteps)
      : [];
  return [
    ...deployments.flatMap((d) => [one(d, 'heldout', 0), one(d, 'validation', 0)]),
    ...Array.from({ length: samples - 1 }, (_, i) => one(deployments[0]!, 'heldout', i + 1)),
    ...kept.flatMap((step) => deployments.map((d) => one(d, 'validation', 0, step))),
  ];
}

/** A right answer costs 40 to 59 tokens, a wrong one 60 to 79; a final stage keeps nine of ten right drafts. */
function stageFixture(
  adapter: Stage['adapter'],
  problems: readonly string[],
  skill: number,
  draft: Stage | undefined,
  names: readonly (string | number)[],
): Stage {
  const random = stream('arm fixture', ...names);
  const right = problems.map((_, i) => {
    if (draft === undefined) return random.uniform() < skill;
    return draft.correct[i] === '1' ? random.uniform() < 0.9 : random.uniform() < skill / 2;
  });
  const completionTokens = right.map((r) => (r ? 40 : 60) + random.int(20));
  const count = (most: number) => right.map(() => random.int(most + 1));
  const [useful, repeated, wrong] = [count(6), count(2), count(1)];
  const steps = right.map((_, i) => useful[i]! + repeated[i]! + wrong[i]!);
  return {
    adapter,
    correct: right.map(Number).join(''),
    formatted: '1'.repeat(problems.length),
    truncated: '0'.repeat(problems.length),
    promptTokens: right.map(() => (draft ? 30 : 12)),
    completionTokens,
    logProb: right.map((r) => Number((-(r ? 0.1 : 0.3) - random.uniform() / 10).toFixed(4))),
    // A right proposal is the same for all; a wrong one is one of three, and one in eight proposes nothing.
    proposal: right.map((r) => (r ? 1 : random.int(8) === 0 ? null : 2 + random.int(3))),
    steps,
    useful,
    repeated,
    deadAgain: steps.map((n) => Math.min(n, random.int(2))),
    wrong,
  };
}

/** The runs of a study, as collectStudy gives them. */
export function fixtureArms(study: Study, skill: Skill): ArmResult[] {
  const problems = {
    heldout: Array.from({ length: PROBLEMS }, (_, i) => `heldout-${i}`),
    validation: Array.from({ length: VALIDATION }, (_, i) => `validation-${i}`),
  };
  return study.experiments.flatMap((experiment) =>
    experiment.seeds.flatMap((seed) =>
      experiment.methods.map((name): ArmResult => {
        const method = methodByName(name);
        const evaluations = fixtureEvaluations(
          method,
          experiment,
          seed,
          skill(name, seed, experiment.label),
          (split) => problems[split],
        );
        return fixtureArm(method, experiment, seed, evaluations);
      }),
    ),
  );
}

function fixtureArm(
  method: Method,
  experiment: Experiment,
  seed: number,
  evaluations: readonly Evaluation[],
): ArmResult {
  const on = (split: string) =>
    method.deployments.map(
      (d) =>
        evaluations.find(
          (e) =>
            e.deployment === deploymentName(d) && e.split === split && e.sample === 0 && e.step === undefined,
        )!,
    );
  const choice = chooseEvaluations(on('heldout'), on('validation'));
  const metrics = method.training ? fixtureRunMetrics(method, experiment.run.maxSteps) : [];
  const id = runId(identityOf(experiment, method, seed, 'wasm'));
  const facts = { seed, backend: 'wasm', runId: id, metrics };
  return {
    label: experiment.label,
    experiment,
    method,
    seed,
    folder: `nowhere/${id}`,
    metrics,
    evaluations,
    chosen: choice.chosen,
    validation: choice.validation,
    result: methodResult(method, choice.chosen, facts),
    bestOnHeldout: methodResult(method, choice.bestOnHeldout, facts),
  };
}

/** The rows of a report's table, every cell as text. */
export function cellsOf(report: StudyReport, name: string): Record<string, string>[] {
  const table = report.tables.find((t) => t.name === name);
  if (!table) throw new Error(`no table ${name} among ${report.tables.map((t) => t.name).join(', ')}`);
  return table.frame.values.map((row) =>
    Object.fromEntries(table.frame.columns.map((c: string, i: number) => [c, String((row as unknown[])[i])])),
  );
}
