/**
 * What the tests of agon/ share: hand-made attempts, a tokenizer of single characters, a task with a plain gold
 * answer, and a pool that "samples" what a script says and remembers what it was asked.
 */
import type { World } from '../../lib/agon/attempt.js';
import type { Adapter } from '../../lib/model/index.js';
import type { Attempt, Problem, Role } from '../../lib/records.js';
import type { GenerationOptions, RolloutRequest } from '../../lib/rollouts/generate.js';
import type { Policy } from '../../lib/rollouts/policy.js';
import type { Task } from '../../lib/tasks/index.js';
import type { JobFunction, Pool } from '../../lib/tensors/pool.js';
import { ENGLISH_STYLE, type Tokenizer } from '../../lib/text/index.js';

export function problem(id: string, question = `question ${id}`, gold = 'right'): Problem {
  return { id, question, gold, difficulty: 1, split: 'train' };
}

interface Facts {
  readonly correct?: boolean | 0 | 1;
  readonly formatted?: boolean | 0 | 1;
  /** Completion tokens. */
  readonly length?: number;
  readonly problem?: Problem;
  readonly rival?: Attempt;
}

/** A judged attempt out of nothing. */
export function attemptOf(facts: Facts = {}): Attempt {
  const { length = 3, rival } = facts;
  const formatted = Boolean(facts.formatted);
  return {
    problem: facts.problem ?? problem('p'),
    adapter: rival ? 'B' : 'A',
    role: rival ? 'challenge' : 'draft',
    rollout: {
      promptIds: [1],
      completionIds: new Array<number>(length).fill(5),
      logProbs: new Array<number>(length).fill(-1),
      finishReason: 'stop',
    },
    completion: { think: '', summary: 's', answer: 'a', formatted },
    correct: Boolean(facts.correct),
    formatted,
    ...(rival ? { rival } : {}),
  };
}

/** Every character is a token; 0 ends a sequence, 1 pads. */
export const characters: Tokenizer = {
  eosId: 0,
  padId: 1,
  vocabSize: 0x110000 + 2,
  encode: (text) => Array.from(text, (c) => c.codePointAt(0)! + 2),
  decode: (ids) => ids.map((id) => (id < 2 ? '' : String.fromCodePoint(id - 2))).join(''),
  applyChatTemplate: (messages) => `${messages.map((m) => `${m.role}: ${m.content}\n`).join('')}assistant:`,
  encodePrompt: (messages) => characters.encode(characters.applyChatTemplate(messages)),
  checkFits: () => {},
};

/** A task whose problems have a gold answer as text, asked in full sentences. */
export const textTask: Task = {
  name: 'text',
  promptStyle: ENGLISH_STYLE,
  problems: ({ count, split }) => Array.from({ length: count }, (_, i) => problem(`${split}-${i}`)),
  verify: (p, completion) => completion.answer === p.gold,
  answerSpellings: () => [],
  summaryParts: (summary) => ({ deadEnds: '', path: summary }),
  countTrace: () => ({ steps: 0, useful: 0, repeated: 0, deadAgain: 0, wrong: 0 }),
  proposal: ({ answer }) => answer,
};

/** One prompt that was sampled from. */
export interface Asked {
  readonly prompt: string;
  readonly role: Role;
  /** The row's place in its batch. */
  readonly row: number;
  readonly adapter: Adapter | undefined;
}

/** What a policy writes: the whole completion, or one that is cut at the cap. */
export type Script = (asked: Asked) => string | { readonly cut: string };

/** A world without a model: completions come from the script. */
export function scriptedWorld(script: Script, task: Task = textTask, tokenizer: Tokenizer = characters) {
  const asked: Asked[] = [];
  const sample = (policy: Policy, request: RolloutRequest) => {
    const [role, row] = request.names.slice(-2) as [Role, number];
    const prompt = tokenizer.decode(request.promptIds);
    const one = { prompt, role, row, adapter: policy.adapter };
    asked.push(one);
    const written = script(one);
    const whole = typeof written === 'string';
    const ids = tokenizer.encode(whole ? written : written.cut);
    const completionIds = whole ? [...ids, tokenizer.eosId] : ids;
    const logProbs = completionIds.map(() => -1);
    const finishReason = whole ? ('stop' as const) : ('length' as const);
    return { promptIds: request.promptIds, completionIds, logProbs, finishReason };
  };
  const pool: Pool = {
    workers: 0,
    async map<In, Out>(job: JobFunction<In, Out>, inputs: readonly In[]) {
      const shards = inputs as readonly unknown[] as readonly Shard[];
      // A draft that is remembered (rollouts/memories.ts) is not sampled: without a model, a memory of nothing.
      if (job.name === 'readShard')
        return shards.map(({ requests }) => requests.map(() => ({ places: 1, layers: [] }))) as Out[];
      return shards.map(({ policy, requests }) => requests.map((r) => sample(policy, r))) as Out[];
    },
    async close() {},
  };
  const world: World = { task, tokenizer, base: 'nowhere', pool };
  return { world, asked };
}

interface Shard {
  readonly policy: Policy;
  readonly requests: readonly RolloutRequest[];
  readonly options: GenerationOptions;
}

/** Three adapters that are only told apart. */
export function namedAdapters(): { A: Adapter; B: Adapter; C: Adapter } {
  const adapter = (): Adapter => ({
    config: { r: 1, alpha: 2, targetModules: ['q_proj'] },
    weights: {},
  });
  return { A: adapter(), B: adapter(), C: adapter() };
}

/** A completion in the format of the method. */
export function written(think: string, summary: string, answer: string): string {
  return `<think>${think}</think>${summary}<answer>${answer}</answer>`;
}

export const SAMPLING = {
  temperature: 1,
  topP: 1,
  maxCompletionLength: 16,
  generationBatchSize: 64,
} as const;
