/**
 * What the tests of latent exchange share: the tiny policies of test/support, with gates, and memories of
 * their drafts.
 */
import { gateValues, withGates } from '../../lib/latent/index.js';
import { type Adapter, LATENT_GATE } from '../../lib/model/index.js';
import type { Memory } from '../../lib/records.js';
import type { RolloutRequest } from '../../lib/rollouts/generate.js';
import { readShard } from '../../lib/rollouts/memories.js';
import { sharedModel } from '../../lib/rollouts/policy.js';
import { requests, tinyAdapter } from '../support/tiny.js';

/** The adapter with its gates' parameters as given, layer after layer. */
export function withGamma(adapter: Adapter, gamma: readonly number[]): Adapter {
  const { shape } = adapter.weights[LATENT_GATE]!;
  return {
    ...adapter,
    weights: { ...adapter.weights, [LATENT_GATE]: { shape, data: Float32Array.from(gamma) } },
  };
}

/** An adapter whose gates all differ, some of them negative. */
export function gatedAdapter(base: string, name: string): Adapter {
  const adapter = withGates(tinyAdapter(base, name), sharedModel(base).config);
  return withGamma(
    adapter,
    gateValues(adapter).map((_, i) => (i % 3 === 2 ? -0.05 : 0.03) * (1 + i)),
  );
}

const DRAFTS = [
  { ids: [4, 7, 1, 9, 12, 3], places: 3 },
  { ids: [8, 8, 5], places: 1 },
  { ids: [10, 1, 11, 6, 9, 2, 7, 3, 5], places: 7 },
] as const;

/** Three memories of 3, 1 and 7 places, and none. */
export async function memoriesOf(base: string, adapter: Adapter): Promise<(Memory | undefined)[]> {
  return [...(await readShard({ policy: { base, adapter }, requests: DRAFTS })), undefined];
}

/**
 * `count` requests over the prompts and memories in turn; five memories and four prompts never fall in step.
 */
export function readingRequests(
  count: number,
  memories: readonly (Memory | undefined)[],
  seed = 0,
): RolloutRequest[] {
  const longer = [...memories, memories[0]];
  return requests(count, seed).map((request, i) => {
    const memory = longer[i % longer.length];
    return { ...request, ...(memory ? { memory } : {}) };
  });
}
