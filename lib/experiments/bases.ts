/**
 * The bases this repository trains itself and ships in `data/`: for each the task, the corpus, the size and the
 * schedule. `npm run pretrain -- --base NAME` makes one anew.
 *
 * A variant of the arena's base goes on from it for a few hundred steps on other traces, so that variants differ in
 * what the traces teach and in nothing else. Left out: how a base is trained (pretrain.ts).
 */
import { join } from 'node:path';
import { ROOT } from '../files.js';
import {
  type Corpus,
  chainExample,
  countdownExample,
  EXAMPLE_DEFAULTS,
  listsExample,
  type TaskName,
  TRACE_DEFAULTS,
  type TraceOptions,
  writeArenaTokenizer,
  writeChainTokenizer,
  writeListsTokenizer,
} from '../tasks/index.js';
import { type PretrainConfig, type PretrainSource, pretrainConfigSchema } from './pretrain.js';

export interface BaseRecipe {
  readonly task: TaskName;
  readonly source: PretrainSource;
  readonly pretrain: PretrainConfig;
}

const qwen3 = {
  num_key_value_heads: 2,
  head_dim: 32,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-6,
  rope_theta: 10000,
  tie_word_embeddings: true,
} as const;

/** 0.53M parameters. */
export const ARENA_MODEL: PretrainSource['model'] = {
  ...qwen3,
  hidden_size: 128,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  intermediate_size: 320,
};

/** 0.16M parameters. */
const SMALL_MODEL = { ...ARENA_MODEL, hidden_size: 80, num_hidden_layers: 2, intermediate_size: 192 };
/** 1.25M parameters. */
const LARGE_MODEL = { ...ARENA_MODEL, hidden_size: 192, num_hidden_layers: 3, intermediate_size: 512 };

function countdownCorpus(trace: Partial<TraceOptions> = {}): Corpus {
  const options = { ...EXAMPLE_DEFAULTS, trace: { ...TRACE_DEFAULTS, ...trace } };
  return { writeTokenizer: writeArenaTokenizer, example: (random) => countdownExample(random, options) };
}

const arena = (model = ARENA_MODEL): BaseRecipe => ({
  task: 'countdown',
  source: { corpus: countdownCorpus(), model },
  pretrain: pretrainConfigSchema.parse({}),
});

/** Where the shipped bases lie. */
const DATA = join(ROOT, 'data');

const variant = (trace: Partial<TraceOptions>): BaseRecipe => ({
  task: 'countdown',
  source: { corpus: countdownCorpus(trace), model: ARENA_MODEL, from: join(DATA, 'arena-base') },
  pretrain: pretrainConfigSchema.parse({ maxSteps: 300, learningRate: 1e-3, warmupSteps: 20 }),
});

/** Goes on from the arena's base, which knows sums and where operands stand: from scratch it takes many times as long. */
const chain: BaseRecipe = {
  task: 'chain',
  source: {
    corpus: { writeTokenizer: writeChainTokenizer, example: (random) => chainExample(random) },
    model: ARENA_MODEL,
    from: join(DATA, 'arena-base'),
  },
  pretrain: pretrainConfigSchema.parse({ maxSteps: 700, batchSize: 32, warmupSteps: 50 }),
};

/** Goes on from the arena's base as the chain does. */
const lists: BaseRecipe = {
  task: 'lists',
  source: {
    corpus: { writeTokenizer: writeListsTokenizer, example: (random) => listsExample(random) },
    model: ARENA_MODEL,
    from: join(DATA, 'arena-base'),
  },
  pretrain: pretrainConfigSchema.parse({
    maxSteps: 2000,
    batchSize: 32,
    learningRate: 2e-3,
    warmupSteps: 50,
  }),
};

export const BASES = {
  'arena-base': arena(),
  'arena-small': arena(SMALL_MODEL),
  'arena-large': arena(LARGE_MODEL),
  /** The arena's base in the Llama family: goes on without its norms on queries and keys until it has relearned. */
  'arena-llama': {
    task: 'countdown',
    source: {
      corpus: countdownCorpus(),
      model: { ...ARENA_MODEL, model_type: 'llama' },
      from: join(DATA, 'arena-base'),
    },
    pretrain: pretrainConfigSchema.parse({ maxSteps: 700, learningRate: 2e-3, warmupSteps: 50 }),
  },
  /** Copies a rival's path twice as often. */
  'arena-copying': variant({ rival: { copy: 0.7, verify: 0.1, ignore: 0.1, continue: 0.1 } }),
  /** Errors do not show: slips are four times as frequent, and give-ups pass as hits. */
  'arena-silent': variant({ slip: 0.12, disguise: 0.9 }),
  /** Checking a rival's path is written out three times. */
  'arena-costly': variant({ checks: 3 }),
  /** The second domain: short programs over lists. */
  'lists-base': lists,
  /** The second world: chains of steps in which an error does not show. */
  'chain-base': chain,
} as const satisfies Record<string, BaseRecipe>;

export type BaseName = keyof typeof BASES;
export const BASE_NAMES = Object.keys(BASES) as [BaseName, ...BaseName[]];

/** Folder of a shipped base. @throws naming the bases there are */
export function baseFolder(name: string): string {
  if (!Object.hasOwn(BASES, name))
    throw new Error(`unknown base '${name}': allowed are ${BASE_NAMES.join(', ')}`);
  return join(DATA, name);
}
