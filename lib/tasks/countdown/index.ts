/** Countdown, the arena's task. */
import { ARENA_STYLE } from '../../text/prompts.js';
import type { Task } from '../task.js';
import { deadAndPath } from '../words.js';
import { countdownProposal, countTrace, markTrace } from './inspect.js';
import { countdownProblems } from './problems.js';
import { countdownSpellings, verifyCountdown } from './verify.js';

export {
  countdownExample,
  EXAMPLE_DEFAULTS,
  type ExampleOptions,
  shownTrace,
} from './example.js';
export {
  type CountdownFilter,
  countCountdown,
  countdownProblems,
  difficultyOf,
  drawCountdown,
  splitOf,
} from './problems.js';
export { ARENA_VOCAB_SIZE, arenaVocabulary, writeArenaTokenizer } from './tokenizer-files.js';
export { countdownTrace, RIVAL_MODES, type RivalMode, TRACE_DEFAULTS, type TraceOptions } from './trace.js';
export { countdownSpellings, verifyCountdown } from './verify.js';

export const countdown: Task = {
  name: 'countdown',
  promptStyle: ARENA_STYLE,
  problems: countdownProblems,
  verify: verifyCountdown,
  answerSpellings: (_problem, completion) => countdownSpellings(completion),
  summaryParts: deadAndPath,
  countTrace,
  markTrace,
  proposal: countdownProposal,
};
