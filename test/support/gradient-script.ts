/** Prints loss, metrics and gradient of fixed rows on the given backend: node gradient-script.js <backend> <base> */
import { gradientShard } from '../../lib/grpo/gradient.js';
import { stream } from '../../lib/random.js';
import { initBackend } from '../../lib/tensors/backend.js';
import { PROMPTS, tinyAdapter, VOCABULARY } from './tiny.js';

const [backend, base] = process.argv.slice(2) as [string, string];
await initBackend(backend);
const random = stream('gradient script');
const rows = PROMPTS.map((promptIds, i) => ({
  promptIds,
  completionIds: Array.from({ length: 2 + 3 * i }, () => random.int(VOCABULARY)),
  oldLogProbs: Array.from({ length: 2 + 3 * i }, () => -2 - random.uniform()),
  advantage: random.normal(),
  weight: 0.1,
}));
const options = { epsilon: 0.2, epsilonHigh: 0.3, beta: 0.05, temperature: 0.7 };
const sums = await gradientShard({ policy: { base, adapter: tinyAdapter(base, 'x') }, rows, options });
const grads = Object.fromEntries(Object.entries(sums.grads).map(([name, grad]) => [name, [...grad]]));
console.log(JSON.stringify({ ...sums, grads }));
