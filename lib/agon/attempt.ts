/**
 * The arrows from a problem to a judged attempt, composed: prompt, sample, parse, verify.
 *
 * What a challenger sees of its rival is in exchange.ts. Left out: who plays which role (methods.ts) and what an
 * attempt is paid (rewards.ts).
 */
import type { Adapter } from '../model/index.js';
import type { AdapterName, Attempt, Problem, Role } from '../records.js';
import { generate } from '../rollouts/generate.js';
import { policyOf } from '../rollouts/policy.js';
import type { Task } from '../tasks/index.js';
import type { Pool } from '../tensors/pool.js';
import { buildPrompt, parseCompletion, type Tokenizer } from '../text/index.js';
import { type Shows, shownOf } from './exchange.js';
import { rivalMemories } from './latent.js';

/** Everything that stays the same over a run: the task, the frozen base and its tokenizer, the pool. */
export interface World {
  readonly task: Task;
  readonly tokenizer: Tokenizer;
  /** Folder of the frozen base model. */
  readonly base: string;
  readonly pool: Pool;
}

/** How to sample: training and evaluation differ here. */
export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
  readonly maxCompletionLength: number;
  /** Rows per sampling batch (TRL's `generation_batch_size`). */
  readonly generationBatchSize: number;
}

/** The adapters by name; `base` needs none. */
export type Adapters = Partial<Record<Exclude<AdapterName, 'base'>, Adapter>>;

/** One attempt to make: at which problem, after reading which rival, scored against which. */
export interface Assignment {
  readonly problem: Problem;
  /** The rival that is read. */
  readonly reads?: Attempt;
  /** What is shown of it; default its summary. */
  readonly shows?: Shows;
  /** The rival the reward compares with; the one that is read, unless it is kept hidden. */
  readonly rival?: Attempt;
}

/** The prompt of one assignment as text, chat template applied. */
export function promptText(world: World, role: Role, { problem, reads, shows }: Assignment): string {
  const shown = reads && shownOf(reads, world.task, shows);
  const messages = buildPrompt(world.task.promptStyle, problem, role, shown);
  return world.tokenizer.applyChatTemplate(messages, { addGenerationPrompt: true });
}

/**
 * Makes one attempt per assignment, in order.
 * @param names the names of this batch's random numbers; the row's number is added
 * @throws when the adapter is not among `adapters`
 */
export async function attempt(
  world: World,
  adapters: Adapters,
  name: AdapterName,
  role: Role,
  assignments: readonly Assignment[],
  sampling: Sampling,
  names: readonly (string | number)[],
  onDone?: (done: number) => void,
): Promise<Attempt[]> {
  const policy = policyOf(world.base, adapters, name);
  const { tokenizer, task } = world;
  const memories = await rivalMemories(world, adapters, assignments, sampling.generationBatchSize);
  const beside = memories.map((memory) => (memory ? { memory } : {}));
  const requests = assignments.map((assignment, i) => ({
    promptIds: tokenizer.encode(promptText(world, role, assignment)),
    names: [...names, role, i],
    ...beside[i],
  }));
  const options = { ...sampling, eosId: tokenizer.eosId, padId: tokenizer.padId };
  const rollouts = await generate(
    world.pool,
    policy,
    requests,
    options,
    sampling.generationBatchSize,
    onDone,
  );
  return assignments.map(({ problem, reads, rival = reads }, i) => {
    const rollout = { ...rollouts[i]!, ...beside[i] };
    const text = tokenizer.decode([...rollout.completionIds]);
    const completion = parseCompletion(text, rollout.finishReason);
    return {
      problem,
      adapter: name,
      role,
      rollout,
      completion,
      correct: task.verify(problem, completion),
      formatted: completion.formatted,
      ...(rival ? { rival } : {}),
    };
  });
}
