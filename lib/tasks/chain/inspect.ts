/**
 * Counts what a chain's trace does, operation by operation: new and true, written before, false; also the parts of a
 * summary and the proposal it settles for. Words outside the grammar are passed over. There are no dead ends in
 * this world. Left out: whether the answer is right.
 */
import type { Completion, Problem } from '../../records.js';
import type { SummaryParts, TraceCounts } from '../task.js';
import { evaluate, operationKey } from './facts.js';
import { readAnswer, readFacts, writeClaim } from './grammar.js';

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
