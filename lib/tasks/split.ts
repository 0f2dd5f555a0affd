/** The split of a problem, alike for every task: a hash of its id, so that splits are disjoint by construction. */
import { hash32 } from '../random.js';
import type { Split } from '../records.js';

/** About 10% validation, 10% held out, 80% train. */
export function splitOfId(id: string): Split {
  const bucket = hash32(id) % 10;
  return bucket === 0 ? 'validation' : bucket === 1 ? 'heldout' : 'train';
}
