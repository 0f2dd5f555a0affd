/**
 * What a challenger's prompt may not hold: the rival's private reasoning and its final answer, in any spelling.
 * Planted drafts go through whole steps and whole cascades, and the prompts that come out are searched.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploy } from '../../lib/agon/cascade.js';
import { METHODS } from '../../lib/agon/methods.js';
import { sampleStep } from '../../lib/agon/step.js';
import { ARENA_BASE } from '../../lib/experiments/world.js';
import type { Problem } from '../../lib/records.js';
import { countdown, type Task } from '../../lib/tasks/index.js';
import { loadTokenizer } from '../../lib/text/index.js';
import { type Asked, namedAdapters, SAMPLING, type Script, scriptedWorld, textTask } from './support.js';

/** Every challenge prompt of every method that shows a rival, in training and in deployment. */
async function challengePrompts(
  script: Script,
  problem: Problem,
  n: number,
  task: Task,
  tokenizer = scriptedWorld(script).world.tokenizer,
): Promise<Asked[]> {
  const { world, asked } = scriptedWorld(script, task, tokenizer);
  const adapters = namedAdapters();
  const options = { ...SAMPLING, numGenerations: n, scaleRewards: 'group', seed: 0 } as const;
  for (const { training, deployments } of METHODS) {
    if (training) await sampleStep(world, training, adapters, [problem], 0, options);
    for (const deployment of deployments)
      await deploy(world, adapters, deployment, new Array<Problem>(n).fill(problem), SAMPLING, [0]);
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

test('maths: planted answers and private reasoning never reach the challenger, the rest does', async () => {
  const script: Script = ({ row }) =>
    `<think>PRIVATE 42 forty-two</think>We multiply. ${PLANTED[row % PLANTED.length]} <answer>42</answer>`;
  const prompts = await challengePrompts(script, SEVEN, PLANTED.length, maths);
  const methods = METHODS.filter((m) => m.training?.exchange === 'paired').length;
  const cascades = METHODS.flatMap((m) => m.deployments).filter((d) => d.length === 2).length;
  assert.equal(prompts.length, PLANTED.length * (methods + cascades));
  for (const { prompt } of prompts) {
    assert.match(prompt, /<rival>\nWe multiply\..*\n<\/rival>/s, 'the summary itself is shown');
    assert.doesNotMatch(prompt, /PRIVATE/);
    assert.doesNotMatch(prompt, /42|forty|84|three dozen/i, prompt);
  }
});

test('maths: what stands after the answer, and a draft that was cut off, are not shown', async () => {
  const script: Script = ({ row, role }) => {
    if (role === 'draft' && row === 0) return { cut: '<think>PRIVATE</think>We multiply and get 42' };
    if (role === 'draft' && row === 1) return { cut: '<think>PRIVATE 42' };
    return '<think>PRIVATE</think>We multiply.<answer>42</answer> so 42, as PRIVATE <answer>42</answer>';
  };
  for (const { prompt, row } of await challengePrompts(script, SEVEN, 3, maths)) {
    assert.doesNotMatch(prompt, /PRIVATE|42/);
    if (row < 2) assert.match(prompt, /left no summary/);
    else assert.match(prompt, /We multiply\./);
  }
});

const PUZZLE: Problem = {
  id: 'countdown-3-3-5-8-42',
  question: 'numbers 8 5 3 3 target 42',
  gold: '42',
  difficulty: 1,
  split: 'train',
};

test('countdown: the path is shown, the last operation in no order and no search trace', async () => {
  const path = 'path 8 + 5 = 13 then 13 x 3 = 39';
  const search = 'try 8 + 5 = 13 then 13 x 3 = 39 left 39 3 : 42 36 big hit';
  const planted = [
    path,
    `${path} then 39 + 3 = 42`,
    `dead 3 + 39 ${path}`,
    `${path} 42 = 3 + 39`,
    `${path} 39 + 3`,
  ];
  const script: Script = ({ row }) =>
    `<think> ${search} </think> ${planted[row % planted.length]} <answer> 39 + 3 </answer>`;
  const prompts = await challengePrompts(
    script,
    PUZZLE,
    planted.length,
    countdown,
    loadTokenizer(ARENA_BASE),
  );
  assert.ok(prompts.length > 0);
  for (const { prompt, row } of prompts) {
    assert.match(prompt, /user numbers 8 5 3 3 target 42 rival .*path 8 \+ 5 = 13 then 13 x 3 = 39/);
    const shown = prompt.slice(prompt.indexOf('rival'));
    assert.doesNotMatch(shown, /39 \+ 3|3 \+ 39|42/, shown);
    assert.doesNotMatch(shown, /try|left|hit|:|<think>|<answer>/, shown);
    if (row > 0) assert.match(shown, /withheld/);
  }
});

test('countdown: a draft that was cut off leaves "none"', async () => {
  const script: Script = ({ role }) =>
    role === 'draft'
      ? { cut: '<think> try 8 + 5 = 13 </think> path 8 + 5 = 13' }
      : '<think> </think> <answer> 1 + 1 </answer>';
  for (const { prompt } of await challengePrompts(script, PUZZLE, 1, countdown, loadTokenizer(ARENA_BASE)))
    assert.match(prompt, /target 42 rival none <\|im_end\|>/);
});
