/**
 * Counts what a chain's trace does, operation by operation: new and true, written before, false; marks its steps, what
 * was taken over from the rival and what contradicts it; also the parts of a summary and the proposal it settles for. Words outside the grammar are passed over. There are no dead ends in
 * this world. Left out: whether the answer is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { MarkedStep, SummaryParts, TraceCounts } from '../task.js';
import { marksOf, words } from '../words.js';
import { evaluate, operationKey } from './facts.js';
import { LETTERS, readAnswer, readClaims, readFacts, writeClaim } from './grammar.js';

/** The whole summary is the way. */
export function chainParts(summary: string): SummaryParts {
  return { deadEnds: '', path: summary.trim() };
}

/** The answer; undefined where there is none to read. */
export function chainProposal({ answer }: Completion): string | undefined {
  const claim = answer === undefined ? undefined : readAnswer(answer);
  return claim && writeClaim(claim);
}

/** An operation is a step, the parts of a product that is done by parts included. */
export function countChainTrace(_problem: Problem, { think }: Completion): TraceCounts {
  const facts = readFacts(think);
  const seen = new Set<string>();
  let [useful, repeated, wrong] = [0, 0, 0];
  for (const fact of facts) {
    const key = operationKey(fact);
    if (evaluate(fact) !== fact.result) wrong++;
    else if (!seen.has(key)) useful++;
    if (seen.has(key)) repeated++;
    seen.add(key);
  }
  return { steps: facts.length, useful, repeated, deadAgain: 0, wrong };
}

/** Cuts the reasoning where it takes a value over and where it begins a step. */
function blocksWritten(think: string): string[] {
  const w = words(think);
  const isLetter = (word: string | undefined) => (LETTERS as readonly (string | undefined)[]).includes(word);
  const begins = w.flatMap((word, i) =>
    word === 'take' || (isLetter(word) && w[i - 1] !== 'take') ? [i] : [],
  );
  const edges = [...new Set([0, ...begins, w.length])];
  return edges.slice(1).map((end, i) => w.slice(edges[i], end).join(' '));
}

/**
 * One step is a letter with all that is worked out for it: a value that is taken over from the rival (`copied`), or an
 * operation, perhaps done over. The value it goes on with is what `so` says, else the first result. Where the first result
 * was given up for another, the step is marked `abandoned`; where that value contradicts the rival's claim and is
 * right, `corrected`; where it is false, `wrong`. The step whose value is the answer is `settled`.
 */
export function markChainTrace(
  _problem: Problem,
  { think, answer }: Completion,
  shown?: string,
): MarkedStep[] {
  const claims = readClaims(shown ?? '');
  const own = answer === undefined ? undefined : readAnswer(answer);
  const seen = new Set<string>();
  return blocksWritten(think).map((text) => {
    const [head] = words(text);
    if (head === 'take') {
      const [claim] = readClaims(text.slice('take'.length));
      return { text, marks: marksOf({ copied: claim !== undefined && claims.get(claim[0]) === claim[1] }) };
    }
    const [first] = readFacts(text);
    if (first === undefined) return { text, marks: [] };
    const at = (LETTERS as readonly (string | undefined)[]).indexOf(head);
    const value = Number(/ so (\d+)/.exec(text)?.[1] ?? first.result);
    const right = value === evaluate(first);
    const claimed = claims.get(at);
    const key = operationKey(first);
    const repeated = seen.has(key);
    seen.add(key);
    return {
      text,
      marks: marksOf({
        corrected: right && claimed !== undefined && claimed !== value,
        settled: own !== undefined && own.at === at && own.value === value,
        abandoned: value !== first.result,
        wrong: !right,
        repeated,
      }),
    };
  });
}
