/**
 * Latent exchange: the challenger gets its rival's keys and values instead of its words. Two kinds, told
 * apart by what the keys and values have seen.
 *
 * `latent`: the drafter's own, as they stood while it wrote its summary. They have seen its private
 * reasoning, and may hold more than the summary says (latent/places.ts). `latent-summary`: the drafter reads
 * again what text exchange would show, behind its prompt and an empty reasoning block. They can hold nothing
 * that the text does not say: a control that tells the channel from the leak.
 *
 * Left out: how they are read (lib/latent) and that such a policy needs gates (experiments/run.ts gives it
 * some).
 */
import { readablePlaces } from '../latent/index.js';
import type { AdapterName, Attempt, Memory } from '../records.js';
import { type MemoryRequest, readMemories } from '../rollouts/memories.js';
import { policyOf } from '../rollouts/policy.js';
import { shownSummary } from '../text/index.js';
import type { Adapters, Assignment, World } from './attempt.js';
import { isLatent } from './exchange.js';

/** What the drafter reads again, in place of reasoning. */
const NO_REASONING = '<think> </think> ';

/**
 * The memories that assignments read, in order; undefined where nothing is shown as a memory or the rival
 * left nothing.
 * @param batchSize drafts that are read at once
 */
export async function rivalMemories(
  world: World,
  adapters: Adapters,
  assignments: readonly Assignment[],
  batchSize: number,
): Promise<(Memory | undefined)[]> {
  const memories: (Memory | undefined)[] = assignments.map(() => undefined);
  const asked = new Map<AdapterName, { readonly row: number; readonly request: MemoryRequest }[]>();
  assignments.forEach((assignment, row) => {
    const request = memoryRequest(world, assignment);
    if (!request) return;
    const { adapter } = assignment.reads!;
    asked.set(adapter, [...(asked.get(adapter) ?? []), { row, request }]);
  });
  for (const [name, rows] of asked) {
    const policy = policyOf(world.base, adapters, name);
    const requests = rows.map(({ request }) => request);
    const found = await readMemories(world.pool, policy, requests, batchSize);
    rows.forEach(({ row }, i) => {
      memories[row] = found[i]!;
    });
  }
  return memories;
}

function memoryRequest(world: World, { reads, shows }: Assignment): MemoryRequest | undefined {
  if (!reads || !isLatent(shows)) return undefined;
  const shown = shownSummary(reads, world.task);
  return shown === undefined
    ? undefined
    : shows === 'latent'
      ? asWritten(world, reads, shown)
      : asRead(world, reads, shown);
}

/** The draft up to the end of what may be read of its summary. */
function asWritten({ tokenizer }: World, draft: Attempt, shown: string): MemoryRequest | undefined {
  const { promptIds, completionIds } = draft.rollout;
  const places = readablePlaces(tokenizer, completionIds, draft.completion, shown);
  return (
    places && {
      ids: [...promptIds, ...completionIds.slice(0, places.end)],
      places: places.end - places.start,
    }
  );
}

/** The draft's prompt, no reasoning, and the summary as it is shown. */
function asRead({ tokenizer }: World, draft: Attempt, shown: string): MemoryRequest {
  const ids = tokenizer.encode(NO_REASONING + shown);
  const places = ids.length - tokenizer.encode(NO_REASONING).length;
  return { ids: [...draft.rollout.promptIds, ...ids], places };
}
