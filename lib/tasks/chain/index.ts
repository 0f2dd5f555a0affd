/** The chain: a second world beside countdown, in which errors are silent by nature. */
import { ARENA_STYLE } from '../../text/prompts.js';
import type { Task } from '../task.js';
import { chainParts, chainProposal, countChainTrace, markChainTrace } from './inspect.js';
import { chainProblems } from './problems.js';
import { chainSpellings, verifyChain } from './verify.js';

export {
  CHAIN_EXAMPLE_DEFAULTS,
  type ChainExampleOptions,
  chainExample,
  shownChain,
} from './example.js';
export { type ChainFilter, chainProblems, chainSplitOf, drawChain } from './problems.js';
export { writeChainTokenizer } from './tokenizer-files.js';
export {
  CHAIN_MODES,
  CHAIN_TRACE_DEFAULTS,
  type ChainMode,
  type ChainTraceOptions,
  chainTrace,
} from './trace.js';
export { chainSpellings, verifyChain } from './verify.js';

export const chain: Task = {
  name: 'chain',
  promptStyle: ARENA_STYLE,
  problems: chainProblems,
  verify: verifyChain,
  answerSpellings: chainSpellings,
  summaryParts: chainParts,
  countTrace: countChainTrace,
  markTrace: markChainTrace,
  proposal: chainProposal,
};
