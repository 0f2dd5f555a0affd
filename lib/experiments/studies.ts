/**
 * The studies of `npm run reproduce -- --preset full`: for each question the experiments that answer it. Each varies the
 * main regime in one thing, some at half the steps; a run that two studies need is trained once.
 *
 * How the regime, the learning rate and the number of steps were chosen, and what was looked at for it, is in
 * results/LOG.md ("The regime"); the pair methods were not looked at. Left out: running them (study.ts).
 */
import { METHOD_NAMES } from '../agon/methods.js';
import { type Experiment, parseExperiment, preset } from './config.js';
import type { Study } from './study.js';

type ExperimentInput = Omit<Partial<Experiment>, 'run' | 'eval'> & {
  readonly label: string;
  readonly methods: readonly string[];
  readonly run?: object;
  readonly grpo?: object;
  readonly lora?: object;
  readonly eval?: object;
};

const main = preset('full');
const FIVE = main.seeds;
const THREE = FIVE.slice(0, 3);
const PAIR = ['cooperative', 'agon'];
/** What a regime is judged by, and the two methods that a regime is for. */
const FIVE_METHODS = ['zero-shot', 'moa-untrained', 'grpo', ...PAIR];

/** Steps of the studies that do not share the main table's runs: half of its. */
const HALF = { maxSteps: main.run.maxSteps / 2 };

/** The main experiment, changed. */
function experiment(
  study: string,
  { run, grpo, lora, eval: evaluation, ...rest }: ExperimentInput,
): Experiment {
  const { saveSteps, ...base } = main;
  return parseExperiment(
    {
      ...base,
      name: study,
      seeds: THREE,
      ...rest,
      run: { ...base.run, ...run, grpo: { ...base.run.grpo, ...grpo }, lora: { ...base.run.lora, ...lora } },
      eval: { ...base.eval, samples: 1, ...evaluation },
    },
    `study ${study}, ${rest.label}`,
  );
}

function study(
  name: string,
  title: string,
  question: string,
  experiments: readonly ExperimentInput[],
): Study {
  return { name, title, question, experiments: experiments.map((e) => experiment(name, e)) };
}

/** A study of half-length runs. */
function halfStudy(...[name, title, question, experiments]: Parameters<typeof study>): Study {
  return study(
    name,
    title,
    question,
    experiments.map((e) => ({ ...e, run: { ...HALF, ...e.run } })),
  );
}

const between = (min: number, max: number) => ({ run: { minDifficulty: min, maxDifficulty: max } });
/** Of difficulty 13 and more there are 483 held-out problems. */
const EASY_HELDOUT = 480;

/** The second world and the second domain: their base, their task, and problems their base solves about as often. */
const CHAIN = {
  base: 'chain-base',
  run: { task: 'chain', minDifficulty: 7, maxDifficulty: 10 },
  grpo: { maxCompletionLength: 160 },
} as const;
const LISTS = {
  base: 'lists-base',
  run: { task: 'lists', minDifficulty: 3, maxDifficulty: 16 },
} as const;

const SHOWN = METHOD_NAMES.filter((name) => name.startsWith('agon-shows-'));

/** Every trained row of the main table, which is what is tuned. */
const ROWS = ['grpo', 'self-refinement', 'shared-opponent', ...PAIR];

export const STUDIES: readonly Study[] = [
  // Before all else: one search for every trained row, shorter and with a seed of its own, judged on validation.
  halfStudy('tuning', 'Learning rate', 'Which of three learning rates is best on the validation split?', [
    ...[3.75e-4, 7.5e-4, 1.5e-3].map((learningRate) => ({
      label: `lr ${learningRate}`,
      methods: ROWS,
      seeds: [100],
      grpo: { learningRate },
    })),
  ]),
  {
    name: 'main',
    title: 'Eight methods at equal rollout budget',
    question: 'Does exchange beat GRPO, and does competition beat exchange, over five training seeds?',
    experiments: [main],
  },
  study(
    'control',
    'Competition or difficulty weighting?',
    'Is it the paired rival that pays, or its difficulty?',
    [
      { label: '', methods: ['cooperative', 'difficulty-weighted', 'agon'], seeds: FIVE },
      { label: 'frozen rival', methods: ['frozen-cooperative', 'frozen-agon'], seeds: FIVE },
    ],
  ),
  study('signals', 'Other signals', 'Does a signal that does not push down agreement do better?', [
    { label: '', methods: [...PAIR, 'class-baseline', 'agon-bonus-0.25'], seeds: FIVE },
  ]),
  halfStudy(
    'ablations',
    "The paper's ablations",
    'What do reward form, exchange, roles and the tiebreak do?',
    [
      {
        label: '',
        methods: [
          'agon',
          'cooperative',
          'agon-margin',
          'shared-opponent',
          'agon-fixed-roles',
          'agon-tiebreak-0.1',
          'agon-tiebreak',
          'agon-tiebreak-1',
        ],
      },
    ],
  ),
  halfStudy('exchange', 'What is exchanged', 'How much must a challenger see of its rival?', [
    { label: '', methods: ['agon', ...SHOWN] },
  ]),
  halfStudy(
    'regimes',
    'When exchange and competition pay',
    'What does exchange add to GRPO, and competition to exchange?',
    [
      { label: 'main regime', methods: FIVE_METHODS },
      { label: 'difficulty 1..3', methods: FIVE_METHODS, ...between(1, 3) },
      {
        label: 'difficulty 13..40',
        methods: FIVE_METHODS,
        ...between(13, 40),
        eval: { problems: EASY_HELDOUT },
      },
      { label: 'cap 80', methods: FIVE_METHODS, grpo: { maxCompletionLength: 80 } },
      { label: 'copying base', base: 'arena-copying', methods: FIVE_METHODS },
      { label: 'silent errors', base: 'arena-silent', methods: FIVE_METHODS },
      { label: 'costly checks', base: 'arena-costly', methods: FIVE_METHODS },
      { label: 'chains: no error shows', ...CHAIN, methods: FIVE_METHODS },
    ],
  ),
  halfStudy('group-size', 'Group size at equal rollouts', 'How many drafts and challenges per problem?', [
    { label: 'N = 2', methods: ['agon'], grpo: { numGenerations: 2 }, run: { problemsPerStep: 24 } },
    { label: 'N = 4', methods: ['agon'], grpo: { numGenerations: 4 }, run: { problemsPerStep: 12 } },
    { label: 'N = 8', methods: ['agon'] },
    { label: 'N = 16', methods: ['agon'], grpo: { numGenerations: 16 }, run: { problemsPerStep: 3 } },
  ]),
  halfStudy('init-noise', "Noise in B's up-matrix", 'Must the two adapters differ at the start?', [
    { label: 'std 0: identical', methods: ['agon'], lora: { initNoise: { absolute: 0 } } },
    { label: 'std 0.001', methods: ['agon'], lora: { initNoise: { absolute: 0.001 } } },
    { label: 'std 0.01', methods: ['agon'] },
    { label: 'std 0.05', methods: ['agon'], lora: { initNoise: { absolute: 0.05 } } },
  ]),
  study(
    'transfer',
    'Transfer without further training',
    'What is learned on one difficulty, does it hold on others?',
    [
      ...[
        ['1', 1, 1, main.eval.problems],
        ['2..12', 2, 12, main.eval.problems],
        ['13..40', 13, 40, EASY_HELDOUT],
      ].map(([range, minDifficulty, maxDifficulty, problems]) => ({
        label: `difficulty ${range}`,
        methods: ['zero-shot', 'grpo', ...PAIR],
        eval: { problems, minDifficulty, maxDifficulty },
      })),
    ],
  ),
  halfStudy('scaling', 'Three sizes, two families', 'Does the picture change with the base?', [
    { label: '0.16M', base: 'arena-small', methods: FIVE_METHODS },
    { label: '0.53M', methods: FIVE_METHODS },
    { label: '1.25M', base: 'arena-large', methods: FIVE_METHODS },
    { label: '0.53M, Llama family', base: 'arena-llama', methods: FIVE_METHODS },
  ]),
  halfStudy(
    'domain',
    'Short programs',
    'Does the picture hold in the spirit of code, judged by hidden tests?',
    [{ label: '', ...LISTS, methods: [...FIVE_METHODS, 'self-refinement', 'grpo-self-cascade'] }],
  ),
  halfStudy(
    'beyond',
    'More policies, and exchange without words',
    'Does a ring of three do more than a pair? Do keys and values say more than a summary?',
    [
      {
        label: '',
        methods: ['agon', 'agon-ring', 'agon-latent', 'agon-latent-summary', 'agon-shows-nothing'],
      },
    ],
  ),
];

/** @throws naming the studies there are */
export function studyByName(name: string): Study {
  const found = STUDIES.find((s) => s.name === name);
  if (!found)
    throw new Error(`unknown study '${name}': allowed are ${STUDIES.map((s) => s.name).join(', ')}`);
  return found;
}
