/**
 * A process that trains the tests' tiny run and says how far it is, for kill.test.ts to kill.
 * Arguments: results folder, number of steps.
 */
import { trainRun } from '../../lib/experiments/run.js';
import { coinWorld, openTiny, tinyConfig } from './support.js';

const [folder, steps] = process.argv.slice(2);
if (!folder || !steps) throw new Error('arguments: results folder, number of steps');
const world = await coinWorld();
console.log('ready');
await trainRun(world, openTiny(world, folder, tinyConfig({ maxSteps: Number(steps) })), {
  onStep: (step) => console.log(`step ${step}`),
});
console.log('finished');
