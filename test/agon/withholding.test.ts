/**
 * What a challenger's prompt may not hold: the rival's private reasoning and its final answer, in any spelling.
 * Planted drafts go through whole steps and whole cascades, and the prompts that come out are searched. Methods whose
 * row shows the reasoning or the answer are held to what their row says: the one hides the answer still, the other the
 * reasoning. What exactly is shown is in exchange.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy } from '../../lib/agon/cascade.js';
import type { Shows } from '../../lib/agon/exchange.js';
import { METHODS, type Method } from '../../lib/agon/methods.js';
import { sampleStep } from '../../lib/agon/step.js';
import { ARENA_BASE } from '../../lib/experiments/world.js';
import type { Problem } from '../../lib/records.js';
import { countdown, type Task } from '../../lib/tasks/index.js';
import { loadTokenizer } from '../../lib/text/index.js';
import { type Asked, namedAdapters, SAMPLING, type Script, scriptedWorld, textTask } from './support.js';

const showing = (...allowed: Shows[]): Method[] =>
  METHODS.filter(({ training }) => allowed.includes(training?.shows ?? 'summary'));
/** Every method but those whose row names the reasoning or the answer. */
const WITHHOLDING = METHODS.filter(({ training }) => !['trace', 'answer'].includes(training?.shows ?? ''));

/** Those that show no words of this task's summaries, which name no dead ends. */
const WORDLESS = showing('nothing', 'dead-ends', 'latent', 'latent-summary');

/** Every challenge prompt of some methods, in training and in deployment. */
async function challengePrompts(
  methods: readonly Method[],
  script: Script,
  problem: Problem,
  n: number,
  task: Task,
  tokenizer = scriptedWorld(script).world.tokenizer,
): Promise<Asked[]> {
  const { world, asked } = scriptedWorld(script, task, tokenizer);
  const adapters = namedAdapters();
  const options = { ...SAMPLING, numGenerations: n, scaleRewards: 'group', seed: 0 } as const;
  for (const { training, deployments } of methods) {
    if (training) await sampleStep(world, training, adapters, [problem], 0, options);
    for (const deployment of deployments)
      await deploy(
        world,
        adapters,
        deployment,
        training?.shows ?? 'summary',
        new Array<Problem>(n).fill(problem),
        SAMPLING,
        [0],
      );
  }
  return asked.filter(({ role }) => role === 'challenge');
}

const SEVEN: Problem = {
  id: 'six-times-seven',
  question: 'How much is six times seven?',
  gold: '42',
  difficulty: 1,
  split: 'train',
};

const maths: Task = {
  ...textTask,
  name: 'maths',
  problems: () => [SEVEN],
  answerSpellings: (_problem, { answer }) => (answer === '42' ? ['three dozen and a half dozen'] : []),
};

const PLANTED = [
  'so it is \\boxed{42}',
  'so it is \\boxed{\\text{42}}',
  'so it is \\fbox{x}, that is <answer>42',
  '6 \\cdot 7 = 42',
  'x=42.',
  'the answer is forty-two',
  'Forty two it is',
  'we get 42.0, or $42$',
  'this is \\frac{84}{2}',
  'this is 84/2 or 4200\\%',
  '42 apples, -42',
  'that makes three dozen and a half dozen',
];

/** How many prompts some methods make of n drafts: one training step, and every cascade. */
function promptCount(methods: readonly Method[], n: number): number {
  const trained = methods.filter((m) => m.training?.exchange === 'paired').length;
  const cascades = methods.flatMap((m) => m.deployments).filter((d) => d.length === 2).length;
  return n * (trained + cascades);
}

const ANSWERS = /42|forty|84|three dozen/i;

test('maths: planted answers and private reasoning never reach the challenger, the rest does', async () => {
  const script: Script = ({ row }) =>
    `<think>PRIVATE 42 forty-two</think>We multiply. ${PLANTED[row % PLANTED.length]} <answer>42</answer>`;
  const n = PLANTED.length;
  const prompts = await challengePrompts(WITHHOLDING, script, SEVEN, n, maths);
  assert.equal(prompts.length, promptCount(WITHHOLDING, n));
  for (const { prompt } of prompts) assert.doesNotMatch(prompt, /PRIVATE/);
  for (const { prompt } of prompts) assert.doesNotMatch(prompt, ANSWERS, prompt);
  for (const { prompt } of await challengePrompts(showing('summary', 'path'), script, SEVEN, n, maths))
    assert.match(prompt, /<rival>\nWe multiply\..*\n<\/rival>/s, 'the summary itself is shown');
  for (const { prompt } of await challengePrompts(WORDLESS, script, SEVEN, n, maths))
    assert.match(prompt, /left no summary/);
});

test('maths: where the reasoning is shown, the answer is withheld in it too', async () => {
  const script: Script = ({ row }) =>
    `<think>PRIVATE. ${PLANTED[row % PLANTED.length]}</think>We multiply.<answer>42</answer>`;
  const methods = showing('trace');
  const prompts = await challengePrompts(methods, script, SEVEN, PLANTED.length, maths);
  assert.equal(prompts.length, promptCount(methods, PLANTED.length));
  for (const { prompt } of prompts) {
    assert.match(prompt, /<rival>\nPRIVATE\..* We multiply\.\n<\/rival>/s);
    assert.match(prompt, /PRIVATE\..*withheld/s);
    assert.doesNotMatch(prompt, ANSWERS, prompt);
  }
});

test('maths: where the answer is shown, the reasoning is not', async () => {
  const script: Script = () => '<think>PRIVATE</think>We get 42.<answer>42</answer>';
  const methods = showing('answer');
  const prompts = await challengePrompts(methods, script, SEVEN, 2, maths);
  assert.equal(prompts.length, promptCount(methods, 2));
  for (const { prompt } of prompts) {
    assert.match(prompt, /<rival>\nWe get 42\. <answer> 42 <\/answer>\n<\/rival>/);
    assert.doesNotMatch(prompt, /PRIVATE/);
  }
});

test('maths: what stands after the answer, and a draft that was cut off, are not shown', async () => {
  const script: Script = ({ row, role }) => {
    if (role === 'draft' && row === 0) return { cut: '<think>PRIVATE</think>We multiply and get 42' };
    if (role === 'draft' && row === 1) return { cut: '<think>PRIVATE 42' };
    return '<think>PRIVATE</think>We multiply.<answer>42</answer> so 42, as PRIVATE <answer>42</answer>';
  };
  for (const { prompt, row } of await challengePrompts(WITHHOLDING, script, SEVEN, 3, maths)) {
    assert.doesNotMatch(prompt, /PRIVATE|42/);
    if (row < 2) assert.match(prompt, /left no summary/);
  }
  for (const { prompt, row } of await challengePrompts(METHODS, script, SEVEN, 3, maths))
    if (row < 2) assert.match(prompt, /left no summary/, 'a cut-off draft shows nothing, whatever the row');
  for (const { prompt, row } of await challengePrompts(showing('summary'), script, SEVEN, 3, maths))
    if (row === 2) assert.match(prompt, /We multiply\./);
});

const PUZZLE: Problem = {
  id: 'countdown-3-3-5-8-42',
  question: 'numbers 8 5 3 3 target 42',
  gold: '42',
  difficulty: 1,
  split: 'train',
};

const PATH = 'path 8 + 5 = 13 then 13 x 3 = 39';
const SEARCH = 'try 8 + 5 = 13 then 13 x 3 = 39 left 39 3 : 42 36 big hit';
const LAST = /39 \+ 3|3 \+ 39|42/;

test('countdown: the path is shown, the last operation in no order and no search trace', async () => {
  const planted = [
    PATH,
    `${PATH} then 39 + 3 = 42`,
    `dead 3 + 39 ${PATH}`,
    `${PATH} 42 = 3 + 39`,
    `${PATH} 39 + 3`,
  ];
  const script: Script = ({ row }) =>
    `<think> ${SEARCH} </think> ${planted[row % planted.length]} <answer> 39 + 3 </answer>`;
  const tokenizer = loadTokenizer(ARENA_BASE);
  const n = planted.length;
  const prompts = await challengePrompts(WITHHOLDING, script, PUZZLE, n, countdown, tokenizer);
  assert.equal(prompts.length, promptCount(WITHHOLDING, n));
  for (const { prompt } of prompts) {
    const shown = prompt.slice(prompt.indexOf('rival'));
    assert.doesNotMatch(shown, LAST, shown);
    assert.doesNotMatch(shown, /try|left|hit|:|<think>|<answer>/, shown);
  }
  const whole = await challengePrompts(showing('summary'), script, PUZZLE, n, countdown, tokenizer);
  for (const { prompt, row } of whole) {
    assert.match(prompt, /user numbers 8 5 3 3 target 42 rival .*path 8 \+ 5 = 13 then 13 x 3 = 39/);
    if (row > 0) assert.match(prompt, /withheld/);
  }
});

test('countdown: where the search is shown, the last operation is withheld in it too', async () => {
  const planted = [`${SEARCH} 39 + 3 = 42`, `${SEARCH} 42 = 3 + 39`, `3 + 39 ${SEARCH}`];
  const script: Script = ({ row }) =>
    `<think> ${planted[row % planted.length]} </think> ${PATH} <answer> 39 + 3 </answer>`;
  const prompts = await challengePrompts(
    showing('trace'),
    script,
    PUZZLE,
    planted.length,
    countdown,
    loadTokenizer(ARENA_BASE),
  );
  assert.ok(prompts.length > 0);
  for (const { prompt } of prompts) {
    const shown = prompt.slice(prompt.indexOf('rival'));
    assert.match(shown, /try 8 \+ 5 = 13 .*withheld.* path 8 \+ 5 = 13|withheld try 8 \+ 5 = 13/);
    assert.doesNotMatch(shown, /39 \+ 3|3 \+ 39|<think>|<answer>/, shown);
  }
});

test('countdown: a draft that was cut off leaves "none"', async () => {
  const script: Script = ({ role }) =>
    role === 'draft'
      ? { cut: '<think> try 8 + 5 = 13 </think> path 8 + 5 = 13' }
      : '<think> </think> <answer> 1 + 1 </answer>';
  const prompts = await challengePrompts(METHODS, script, PUZZLE, 1, countdown, loadTokenizer(ARENA_BASE));
  assert.equal(prompts.length, promptCount(METHODS, 1));
  for (const { prompt } of prompts) assert.match(prompt, /target 42 rival none <\|im_end\|>/);
});
