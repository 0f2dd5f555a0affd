/** Lists: short programs judged by hidden unit tests, the arena's second domain. */
import { ARENA_STYLE } from '../../text/prompts.js';
import type { Task } from '../task.js';
import { deadAndPath } from '../words.js';
import { countListsTrace, listsProposal, markListsTrace } from './inspect.js';
import { listsProblems } from './problems.js';
import { listsSpellings, verifyLists } from './verify.js';

export {
  LISTS_EXAMPLE_DEFAULTS,
  type ListsExampleOptions,
  listsExample,
  shownListsTrace,
} from './example.js';
export { drawLists, type ListsFilter, listsDifficultyOf, listsProblems, listsSplitOf } from './problems.js';
export { listsVocabulary, writeListsTokenizer } from './tokenizer-files.js';
export {
  LISTS_RIVAL_MODES,
  LISTS_TRACE_DEFAULTS,
  type ListsRivalMode,
  type ListsTraceOptions,
  listsTrace,
} from './trace.js';
export { listsSpellings, verifyLists } from './verify.js';

export const lists: Task = {
  name: 'lists',
  promptStyle: ARENA_STYLE,
  problems: listsProblems,
  verify: verifyLists,
  answerSpellings: (_problem, completion) => listsSpellings(completion),
  summaryParts: deadAndPath,
  countTrace: countListsTrace,
  markTrace: markListsTrace,
  proposal: listsProposal,
};
