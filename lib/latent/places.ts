/**
 * Which tokens of a draft a rival may read as keys and values: those of its summary, up to the first place
 * where the summary gives the answer away.
 *
 * **What this withholds and what not.** A key or value follows from its own token and those before it. The
 * answer's own tokens come after the summary, so they are in none of it; where the summary itself already
 * says the answer (what text exchange masks by `withheld`), everything from there on has seen it, and is left
 * out. But the summary's keys and values have also seen the private reasoning before `</think>`, and where
 * the reasoning worked the answer out, which it does whenever it finds one, they may hold it: latent exchange
 * leaks the think block, and through it possibly the answer, by attention. Text exchange does not. A gain
 * over text may be that leak and not the better channel.
 *
 * Left out: the computation of keys and values (rollouts/memories.ts).
 */
import type { Completion } from '../records.js';
import type { Tokenizer } from '../text/index.js';

/** Tokens of a completion: `end` is the first that is not among them. */
export interface Places {
  readonly start: number;
  readonly end: number;
}

/**
 * @param completion the draft's, as parsed
 * @param shown its summary as text exchange shows it, the answer withheld (text/withhold.ts); undefined where
 *   it is not shown at all
 * @returns undefined when nothing may be read
 */
export function readablePlaces(
  tokenizer: Tokenizer,
  completionIds: readonly number[],
  { summary }: Completion,
  shown: string | undefined,
): Places | undefined {
  if (shown === undefined) return undefined;
  const text = tokenizer.decode([...completionIds]);
  const closed = text.lastIndexOf('</think>') + '</think>'.length;
  const from = text.indexOf(summary, closed);
  let same = 0;
  while (same < Math.min(summary.length, shown.length) && summary[same] === shown[same]) same++;
  const lengthOf = (count: number): number => tokenizer.decode(completionIds.slice(0, count)).length;
  /** How many tokens the first `length` characters hold whole. */
  const tokensIn = (length: number): number => {
    let [low, high] = [0, completionIds.length];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (lengthOf(middle) <= length) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const first = tokensIn(from);
  // A token that begins inside the tag is not the summary's, even where it ends beyond it.
  const start = lengthOf(first) < closed ? first + 1 : first;
  const end = tokensIn(from + same);
  return start < end ? { start, end } : undefined;
}
