/** Training leaves no tensors behind and does not grow: 200 steps, or as many as LEAK_STEPS says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as tf from '@tensorflow/tfjs';
import { initTrainees, trainingProblems, trainStep } from '../../lib/experiments/run.js';
import { AGON, coinWorld, tinyConfig } from './support.js';

const STEPS = Number(process.env.LEAK_STEPS ?? 200);
const WARM_UP = 5;
/** V8's heap breathes by some tens of MB; the activations of one step alone are about 1 MB. */
const ALLOWED_GROWTH = 80e6;

test(`${STEPS} steps leave the number of tensors and the memory where they were`, async (t) => {
  const world = await coinWorld();
  const { grpo, lora } = tinyConfig();
  const config = tinyConfig({
    maxSteps: STEPS + WARM_UP,
    // With a KL term, so that the reference's forward pass is covered and every row is trained on.
    grpo: { ...grpo, beta: 0.01, numGenerations: 2, maxCompletionLength: 4 },
    lora: { ...lora, r: 1, targetModules: ['q_proj'] },
  });
  const trainees = initTrainees(world.base, AGON, config);
  const problems = trainingProblems(world, config);
  const run = async (first: number, end: number) => {
    for (let step = first; step < end; step++)
      await trainStep(world, AGON, config, trainees, problems.slice(step, step + 1), step);
  };
  await run(0, WARM_UP);
  const [tensors, bytes, resident] = [
    tf.memory().numTensors,
    tf.memory().numBytes,
    process.memoryUsage.rss(),
  ];
  await run(WARM_UP, WARM_UP + STEPS);
  assert.equal(tf.memory().numTensors, tensors);
  assert.equal(tf.memory().numBytes, bytes);
  const growth = process.memoryUsage.rss() - resident;
  t.diagnostic(`${tensors} tensors; resident memory grew by ${(growth / 1e6).toFixed(1)} MB`);
  assert.ok(growth < ALLOWED_GROWTH, `resident memory grew by ${growth} bytes`);
});
