/** A whole experiment in small: runs that are shared, a second call that only reads, one that was stopped. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { World } from '../../lib/agon/attempt.js';
import { type Experiment, experimentSchema } from '../../lib/experiments/config.js';
import { type ExperimentEvent, runExperiment } from '../../lib/experiments/experiment.js';
import { Interrupted } from '../../lib/experiments/interrupted.js';
import { readResults, saveResults } from '../../lib/experiments/saved.js';
import { coinWorld, NO_POOL, scratch, tinyConfig } from './support.js';

let world: World;
before(async () => {
  world = await coinWorld();
});

const { seed: _, ...run } = tinyConfig({ maxSteps: 2 });
const EXPERIMENT: Experiment = experimentSchema.parse({
  name: 'tiny',
  methods: ['zero-shot', 'grpo', 'grpo-self-cascade', 'moa-untrained', 'agon'],
  seeds: [0],
  run,
  eval: { problems: 2, validationProblems: 2 },
});

test('methods of one training share a run; a second call computes nothing and says the same', async () => {
  const folder = scratch();
  const events: ExperimentEvent[] = [];
  const found = await runExperiment(world, EXPERIMENT, {
    resultsFolder: folder,
    onEvent: (event) => events.push(event),
  });
  const { results, metrics } = found;
  assert.deepEqual(
    results.map((r) => r.method),
    EXPERIMENT.methods,
  );
  const id = (method: string) => results.find((r) => r.method === method)!.runId;
  assert.equal(id('grpo'), id('grpo-self-cascade'));
  assert.equal(id('zero-shot'), id('moa-untrained'));
  assert.deepEqual(Object.keys(metrics), [id('grpo'), id('agon')]);
  assert.equal(readdirSync(join(folder, 'runs')).length, 3);
  assert.equal(events.filter((e) => e.kind === 'step').length, 2 * 2, 'two runs of two steps');
  assert.deepEqual(
    events.flatMap((e) => (e.kind === 'result' ? [e.result] : [])),
    results,
  );
  for (const r of results) {
    assert.equal(r.total, 2);
    assert.equal(r.steps, ['zero-shot', 'moa-untrained'].includes(r.method) ? 0 : 2);
    assert.equal(r.draftTokens > 0, ['grpo-self-cascade', 'moa-untrained', 'agon'].includes(r.method));
  }

  const again = await runExperiment({ ...world, pool: NO_POOL }, EXPERIMENT, { resultsFolder: folder });
  assert.deepEqual(again, found);
  const fewer = { ...EXPERIMENT, methods: ['agon'] };
  const part = await runExperiment({ ...world, pool: NO_POOL }, fewer, { resultsFolder: folder });
  assert.deepEqual(part.results, results.slice(-1));

  saveResults(EXPERIMENT, found, folder);
  assert.deepEqual(readResults(folder), { experiment: EXPERIMENT, ...found });
  assert.equal(readResults(scratch()), undefined);

  const fresh = await runExperiment(world, EXPERIMENT, { resultsFolder: folder, fresh: true });
  const timeless = (all: typeof results) =>
    all.map(({ secondsPerStep: _step, secondsPerProblem: _problem, ...rest }) => rest);
  assert.deepEqual(timeless(fresh.results), timeless(results), 'made anew, the numbers are the same');
});

test('stopped in its first run, it goes on from there', async () => {
  const folder = scratch();
  const experiment = { ...EXPERIMENT, methods: ['grpo'] };
  const stop = new AbortController();
  const stopped = runExperiment(world, experiment, {
    resultsFolder: folder,
    signal: stop.signal,
    onEvent: (event) => event.kind === 'step' && stop.abort(),
  });
  await assert.rejects(stopped, Interrupted);
  const steps: number[] = [];
  await runExperiment(world, experiment, {
    resultsFolder: folder,
    onEvent: (event) => event.kind === 'step' && steps.push(event.step),
  });
  assert.deepEqual(steps, [2]);
});
