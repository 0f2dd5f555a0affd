/**
 * What of a draft is read: never the answer's tokens, nothing after the summary gives it away; and a whole
 * run of it.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { type Adapters, attempt, type World } from '../../lib/agon/attempt.js';
import { deploy } from '../../lib/agon/cascade.js';
import { rivalMemories } from '../../lib/agon/latent.js';
import { methodByName } from '../../lib/agon/methods.js';
import { sampleStep } from '../../lib/agon/step.js';
import type { RunConfig } from '../../lib/experiments/config.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { initTrainees, trainingProblems, trainRun } from '../../lib/experiments/run.js';
import { openWorld } from '../../lib/experiments/world.js';
import { scoreLogProbs } from '../../lib/grpo/gradient.js';
import { gateValues, readablePlaces } from '../../lib/latent/index.js';
import { LATENT_GATE, readAdapter, readSafetensors, writeAdapter } from '../../lib/model/index.js';
import type { Attempt, Memory } from '../../lib/records.js';
import { sharedModel } from '../../lib/rollouts/policy.js';
import { parseCompletion, shownSummary } from '../../lib/text/index.js';
import { characters, textTask } from '../agon/support.js';
import { fingerprint, openTiny, scratch, tinyConfig } from '../experiments/support.js';
import { assertClose } from '../model/support.js';

let world: World;
before(async () => {
  world = await openWorld({ backend: 'wasm', workers: 0 });
});

const ROW = methodByName('agon-latent').training!;

/** A draft of the arena out of its words. */
function draftOf(words: string): Attempt {
  const text = `${words} <|im_end|>`;
  const completion = parseCompletion(text, 'stop');
  const problem = {
    id: 'p',
    question: 'numbers 3 5 7 2 target 24',
    gold: '',
    difficulty: 1,
    split: 'train',
  } as const;
  const completionIds = world.tokenizer.encode(text);
  const promptIds = world.tokenizer.encodePrompt([{ role: 'user', content: problem.question }]);
  const rollout = {
    promptIds,
    completionIds,
    logProbs: completionIds.map(() => -1),
    finishReason: 'stop' as const,
  };
  return {
    problem,
    adapter: 'A',
    role: 'draft',
    rollout,
    completion,
    correct: false,
    formatted: completion.formatted,
  };
}

/** The words that may be read. */
function readable(draft: Attempt): string | undefined {
  const { completionIds } = draft.rollout;
  const places = readablePlaces(
    world.tokenizer,
    completionIds,
    draft.completion,
    shownSummary(draft, world.task),
  );
  return places && world.tokenizer.decode(completionIds.slice(places.start, places.end));
}

const memories = (draft: Attempt, shows: 'latent' | 'latent-summary', adapters: Adapters = {}) =>
  rivalMemories(
    world,
    adapters,
    [{ problem: draft.problem, reads: { ...draft, adapter: 'base' }, shows }],
    8,
  );

test('what is read is the summary: from after the reasoning to before the answer', () => {
  const draft = draftOf(
    '<think> try 3 + 5 = 8 </think> dead 3 + 5 path 7 + 5 = 12 then 3 - 2 = 1 <answer> 12 + 1 = 13 </answer>',
  );
  assert.equal(readable(draft), 'dead 3 + 5 path 7 + 5 = 12 then 3 - 2 = 1');
});

test('where the summary gives the answer away, nothing from there on is read', () => {
  const draft = draftOf(
    '<think> try 3 + 5 = 8 </think> dead 3 + 5 path 12 + 1 = 13 then 3 - 2 = 1 <answer> 12 + 1 = 13 </answer>',
  );
  assert.match(shownSummary(draft, world.task)!, /^dead 3 \+ 5 path withheld/);
  assert.equal(readable(draft), 'dead 3 + 5 path');
  const first = draftOf('<think> try </think> 12 + 1 = 13 path 3 - 2 = 1 <answer> 12 + 1 = 13 </answer>');
  assert.equal(readable(first), undefined);
});

test('nothing is read of a draft without a summary or that was cut off', async () => {
  const silent = draftOf('<think> try 3 + 5 = 8 </think> <answer> 12 + 1 = 13 </answer>');
  assert.equal(readable(silent), undefined);
  const whole = draftOf('<think> try </think> path 3 - 2 = 1 <answer> 12 + 1 = 13 </answer>');
  const cut = { ...whole, rollout: { ...whole.rollout, finishReason: 'length' as const } };
  for (const shows of ['latent', 'latent-summary'] as const) {
    assert.deepEqual(await memories(cut, shows), [undefined]);
    assert.equal((await memories(whole, shows))[0]!.places, 6);
  }
});

test('a token that begins inside the tag is not read: characters, and tokens across the tag', () => {
  const read = (text: string, tokens: readonly string[]) => {
    assert.equal(tokens.join(''), text);
    const tokenizer = {
      ...characters,
      decode: (ids: readonly number[]) => ids.map((id) => tokens[id]!).join(''),
    };
    const completion = parseCompletion(text, 'stop');
    const shown = shownSummary(
      { problem: { ...draftOf('x').problem }, rollout: { finishReason: 'stop' }, completion },
      textTask,
    );
    const ids = tokens.map((_, i) => i);
    const places = readablePlaces(tokenizer, ids, completion, shown);
    return places && tokens.slice(places.start, places.end).join('');
  };
  const text = '<think>t</think>\n\nthe sum of both<answer>9</answer>';
  assert.equal(read(text, [...text]), 'the sum of both');
  assert.equal(
    read(text, ['<think>', 't', '</think', '>\n\nthe', ' sum', ' of', ' both', '<answer>9</answer>']),
    ' sum of both',
  );
  assert.equal(
    read(text, ['<think>', 't', '</think>', '\n\n', 'the', ' sum', ' of', ' both<', 'answer>9</answer>']),
    'the sum of',
  );
});

test('the answer is in no number of a memory; the reasoning is, unless the summary alone was read', async () => {
  const draft = (think: string, answer: string) =>
    draftOf(
      `<think> ${think} </think> dead 3 + 5 path 7 + 5 = 12 then 3 - 2 = 1 <answer> ${answer} </answer>`,
    );
  for (const shows of ['latent', 'latent-summary'] as const) {
    const [one] = await memories(draft('try 3 + 5 = 8', '12 + 1 = 13'), shows);
    const [otherAnswer] = await memories(draft('try 3 + 5 = 8', '12 * 2 = 24'), shows);
    assert.deepEqual(otherAnswer, one, `${shows}: the answer`);
    const [otherThink] = await memories(draft('try 3 + 5 = 9', '12 + 1 = 13'), shows);
    if (shows === 'latent') assert.notDeepEqual(otherThink, one);
    else assert.deepEqual(otherThink, one);
    assert.equal(one!.places, 16);
  }
});

const CONFIG: RunConfig = tinyConfig({
  maxSteps: 4,
  minDifficulty: 8,
  generationBatchSize: 24,
  grpo: {
    ...tinyConfig().grpo,
    numGenerations: 6,
    temperature: 0.8,
    maxCompletionLength: 140,
    perDeviceTrainBatchSize: 6,
  },
});

/** What two memories are compared by. */
const flat = ({ layers }: Memory) => layers.flatMap(({ k, v }) => [...k, ...v]);

test('a step: challengers read their own rival as a memory, in no words, and are on-policy', async () => {
  const trainees = initTrainees(world.base, ROW, CONFIG);
  const adapters: Adapters = Object.fromEntries(
    Object.entries(trainees).map(([name, t]) => [name, t.adapter]),
  );
  const { grpo, seed, generationBatchSize } = CONFIG;
  const options = { ...grpo, topP: 1, generationBatchSize, seed };
  const [problem] = trainingProblems(world, CONFIG);
  const [draft, challenge] = await sampleStep(world, ROW, adapters, [problem!], 1, options);
  assert.ok(draft!.attempts.every((a) => a.adapter === 'B' && !a.rollout.memory));
  const { attempts } = challenge!;
  const reading = attempts.filter((a) => a.rollout.memory);
  assert.ok(reading.length > 2, 'too few drafts left a summary for this to say anything');
  const prompt = `${problem!.question} rival none`;
  for (const [i, a] of attempts.entries()) {
    assert.deepEqual(a.rollout.promptIds, world.tokenizer.encodePrompt([{ role: 'user', content: prompt }]));
    const own = { problem: a.problem, reads: draft!.attempts[i]!, shows: 'latent' as const };
    const [memory] = await rivalMemories(world, adapters, [own], 1);
    assert.equal(memory?.places, a.rollout.memory?.places);
    if (memory) assertClose(flat(a.rollout.memory!), flat(memory), 1e-4, `row ${i}`);
  }
  const rollouts = attempts.map((a) => a.rollout);
  const scores = await scoreLogProbs({ base: world.base, adapter: adapters.A }, rollouts, grpo.temperature);
  assertClose(
    scores.map((row) => [...row]),
    rollouts.map((r) => [...r.logProbs]),
    1e-4,
  );
});

test('a run stopped after every step goes on as if never stopped; the gates learn and lie beside the PEFT folder', async () => {
  const whole = openTiny(world, scratch(), CONFIG, ROW);
  const { adapters, metrics } = await trainRun(world, whole);
  const run = openTiny(world, scratch(), CONFIG, ROW);
  for (let finished = 1; finished <= 3; finished++) {
    const stop = new AbortController();
    const options = { signal: stop.signal, onStep: () => stop.abort() };
    await assert.rejects(trainRun(world, run, options), Interrupted);
  }
  await trainRun(world, run);
  assert.deepEqual(fingerprint(run), fingerprint(whole));

  const fresh = initTrainees(world.base, ROW, CONFIG);
  const model = sharedModel(world.base).config;
  for (const name of ['A', 'B'] as const) {
    const gates = gateValues(adapters[name]!);
    assert.equal(gates.length, 12);
    assert.notDeepEqual(gates, gateValues(fresh[name]!.adapter), `${name}: no gate has moved`);
    const mean = gates.reduce((a, b) => a + b, 0) / gates.length;
    assertClose(metrics.at(-1)![`${name}/gate_mean`]!, mean, 1e-9);
    const folder = join(whole.path, name);
    assert.deepEqual(readAdapter(folder, model), adapters[name]);
    assert.ok(
      !(LATENT_GATE in readSafetensors(join(folder, 'adapter_model.safetensors')).tensors),
      'PEFT would refuse it',
    );
    assert.deepEqual(Object.keys(readSafetensors(join(folder, 'latent.safetensors')).tensors), [LATENT_GATE]);
    const { [LATENT_GATE]: _, ...lora } = adapters[name]!.weights;
    writeAdapter(folder, { ...adapters[name]!, weights: lora }, 'base');
    assert.ok(!existsSync(join(folder, 'latent.safetensors')), 'gates of an adapter that is gone');
  }
});

test('a deployment reads as training did: gates of 0 answer as a challenger whose rival left nothing', async () => {
  const trainees = initTrainees(world.base, ROW, CONFIG);
  const { A, B } = Object.fromEntries(Object.entries(trainees).map(([name, t]) => [name, t.adapter]));
  const sampling = { temperature: 0, topP: 1, maxCompletionLength: 100, generationBatchSize: 24 };
  const problems = trainingProblems(world, CONFIG).slice(0, 4);
  const run = (reader: typeof B) =>
    deploy(world, { A: A!, B: reader! }, ['A', 'B'], 'latent', problems, sampling, ['seed']);
  const answers = (attempts: readonly Attempt[]) => attempts.map((a) => a.rollout.completionIds);
  const gate = (gamma: number) => {
    const { shape, data } = B!.weights[LATENT_GATE]!;
    return { ...B!, weights: { ...B!.weights, [LATENT_GATE]: { shape, data: data.map(() => gamma) } } };
  };
  const closed = await run(gate(0));
  assert.ok(closed.some((a) => a.rollout.memory));
  const drafts = closed.map((a) => ({ problem: a.problem, reads: a.rival!, shows: 'nothing' as const }));
  const alone = await attempt(world, { B: B! }, 'B', 'challenge', drafts, sampling, ['seed']);
  assert.deepEqual(answers(closed), answers(alone));
  assert.notDeepEqual(answers(await run(gate(0.2))), answers(alone));
  await assert.rejects(
    deploy(world, { A: A! }, ['A', 'base'], 'latent', problems, sampling, ['seed']),
    /read through gates, and the adapter has none/,
  );
});
