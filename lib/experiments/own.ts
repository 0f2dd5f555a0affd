/**
 * Methods, rewards, prompts and tasks of the user's own beside the table's: an own row is data like the table's rows,
 * with functions where those have a reward's name; an own task is the task of the world it is trained in.
 *
 * A run's identity holds the row, the text of its functions, and what its rewards pay for hand-written attempts, so that
 * a constant that a reward closes over counts too. What a task's functions close over is not seen, except in its
 * problems. Functions stay on the main thread: workers get token ids and advantages only. Left out: training (run.ts).
 */
import { createHash } from 'node:crypto';
import type { World } from '../agon/attempt.js';
import {
  type Deployment,
  deploymentName,
  METHODS,
  type Method,
  methodByName,
  type TrainingRow,
} from '../agon/methods.js';
import { REWARDS, type RewardName } from '../agon/rewards.js';
import { payments } from '../agon/written.js';
import type { Reward } from '../records.js';
import { TASKS, type Task } from '../tasks/index.js';
import type { PromptStyle } from '../text/index.js';
import type { EvalConfig, RunConfig } from './config.js';
import { evaluationProblems } from './evaluate.js';
import { trainingProblems } from './run.js';
import type { RunIdentity } from './store.js';

/** A method that starts from one of the table and differs in what is given here. */
export interface OwnRow extends Partial<Omit<TrainingRow, 'name' | 'draftReward' | 'challengeReward'>> {
  /** A name that the table does not have, of letters, digits, `.`, `-` and `_`: runs are named after it. */
  readonly name: string;
  /** The method of the table it starts from. */
  readonly basedOn: string;
  /** What challenges are paid: a reward's name, or a function. */
  readonly challengeReward?: RewardName | Reward;
  /** What drafts are paid, and all attempts of a row that exchanges nothing. */
  readonly draftReward?: RewardName | Reward;
  /** How it is run; needed where its adapters are not those of `basedOn`. */
  readonly deployments?: readonly Deployment[];
  /** The wording of its prompts, in training and in evaluation. */
  readonly promptStyle?: PromptStyle;
}

/** A method with all that training it takes. */
export interface Entrant {
  readonly method: Method;
  /** The world with this method's prompts. */
  readonly world: World;
  /** Functions in place of the row's rewards. */
  readonly rewards: { readonly challengeReward?: Reward; readonly draftReward?: Reward };
  /** The table's method whose sizes it has: what a plan is made of. */
  readonly basedOn: string;
}

/**
 * A method of the table by its name, or a row of the user's own.
 * @throws naming the row and the field that does not fit
 */
export function entrant(world: World, row: string | OwnRow): Entrant {
  if (typeof row === 'string')
    return { method: methodByName(row), world, rewards: {}, basedOn: methodByName(row).name };
  const { name, basedOn, challengeReward, draftReward, deployments, promptStyle, ...changes } = row;
  const fail = (what: string): never => {
    throw new Error(`row '${name}': ${what}`);
  };
  if (!/^[\w.-]+$/.test(name)) fail('its name may have letters, digits, ., - and _ only');
  if (METHODS.some((method) => method.name === name || method.training?.name === name))
    fail('the table of methods has a row of this name: give it another');
  const base = methodByName(basedOn);
  const rewards = {
    ...(typeof challengeReward === 'function' && { challengeReward }),
    ...(typeof draftReward === 'function' && { draftReward }),
  };
  const named = {
    ...(typeof challengeReward === 'string' && { challengeReward }),
    ...(typeof draftReward === 'string' && { draftReward }),
  };
  for (const [field, reward] of Object.entries(named))
    if (!Object.hasOwn(REWARDS, reward))
      fail(`${field} is '${reward}': allowed are a function or ${Object.keys(REWARDS).join(', ')}`);
  const trained = base.training && { ...base.training, ...changes, ...named, name };
  if (!trained && Object.keys({ ...changes, ...named, ...rewards }).length > 0)
    fail(`'${basedOn}' is not trained: only deployments and promptStyle can be changed`);
  if (trained?.exchange === 'none' && challengeReward !== undefined)
    fail(`'${basedOn}' has no challenges to reward: give draftReward`);
  const ways = deployments ?? base.deployments;
  const policies = ['base', ...(trained?.adapters ?? [])];
  for (const deployment of ways)
    if (deployment.some((policy) => !policies.includes(policy)))
      fail(`the deployment ${deploymentName(deployment)} needs another policy than ${policies.join(', ')}`);
  const unknown = promptStyle ? unknownWords(world, promptStyle) : [];
  if (unknown.length > 0)
    fail(`promptStyle: words the base's tokenizer does not know: ${unknown.join(', ')}`);
  return {
    method: { name, training: trained, deployments: ways },
    world: promptStyle ? { ...world, task: { ...world.task, promptStyle } } : world,
    rewards,
    basedOn,
  };
}

/** Words of a style's templates that come back from the tokenizer as something else. */
function unknownWords({ tokenizer }: World, { plain, challenge, challengeWithout }: PromptStyle): string[] {
  const words = [plain, challenge, challengeWithout].flatMap((text) =>
    text.replace(/\{(question|summary)\}/g, ' ').split(/\s+/),
  );
  return [...new Set(words)].filter(
    (word) => word !== '' && tokenizer.decode(tokenizer.encode(word)).trim() !== word,
  );
}

/** What of an entrant's run is the user's own, as parts of its identity; nothing for a method of the table. */
export function ownParts(
  { world, rewards }: Entrant,
  config: RunConfig,
  evaluation: EvalConfig,
): Pick<RunIdentity, 'challengeReward' | 'draftReward' | 'own'> {
  const { challengeReward, draftReward } = rewards;
  const task = taskText(world.task, TASKS[config.task]);
  const own = {
    ...(challengeReward && { challengePays: payments(challengeReward, 'challenge') }),
    ...(draftReward && { draftPays: payments(draftReward, 'draft') }),
    ...(task && { task }),
    ...(task && 'problems' in task && { problems: problemsHash(world, config, evaluation) }),
  };
  return {
    ...(challengeReward && { challengeReward: challengeReward.toString() }),
    ...(draftReward && { draftReward: draftReward.toString() }),
    ...(Object.keys(own).length > 0 && { own }),
  };
}

/** What of a task is not the shipped one's: texts of functions, and data; undefined where nothing is. */
function taskText(task: Task, shipped: Task): Record<string, unknown> | undefined {
  const changed = Object.entries(task).filter(([field, value]) => value !== shipped[field as keyof Task]);
  if (changed.length === 0) return undefined;
  return Object.fromEntries(
    changed.map(([field, value]) => [field, typeof value === 'function' ? value.toString() : value]),
  );
}

function problemsHash(world: World, config: RunConfig, evaluation: EvalConfig): string {
  const heldout = evaluationProblems(world, config, evaluation, 'heldout');
  const text = JSON.stringify([trainingProblems(world, config), heldout]);
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}
