/**
 * Deployment: one pass, or a cascade in which one policy drafts and the other reads the summary and answers.
 *
 * Left out: choosing the cascade's direction (experiments/evaluate.ts does it on the validation split).
 */
import type { Attempt, Problem } from '../records.js';
import { type Adapters, attempt, type Sampling, type World } from './attempt.js';
import type { Shows } from './exchange.js';
import type { Deployment } from './methods.js';
import { deploymentName } from './methods.js';

/**
 * Runs a deployment on problems, one sample per stage.
 * @param shows what the second stage is shown of the first, as it was in training
 * @param names of the random numbers (a seed, a split)
 * @returns the final stage's attempts in order; a cascade's carry their draft as `rival`
 */
export async function deploy(
  world: World,
  adapters: Adapters,
  deployment: Deployment,
  shows: Shows,
  problems: readonly Problem[],
  sampling: Sampling,
  names: readonly (string | number)[],
  onDone?: (done: number) => void,
): Promise<Attempt[]> {
  const all = [...names, 'deploy', deploymentName(deployment)];
  const tries = problems.map((problem) => ({ problem }));
  const [first, second] = deployment;
  if (!second) return attempt(world, adapters, first, 'solo', tries, sampling, all, onDone);
  const drafts = await attempt(world, adapters, first, 'draft', tries, sampling, all, onDone);
  const half = onDone && ((done: number) => onDone(problems.length + done));
  const reading = drafts.map((draft) => ({ problem: draft.problem, reads: draft, shows }));
  return attempt(world, adapters, second, 'challenge', reading, sampling, all, half);
}
