/** The room of text: tokens, prompts, parsing, withholding. */
export { parseCompletion } from './parse.js';
export {
  ARENA_STYLE,
  buildPrompt,
  ENGLISH_STYLE,
  type Message,
  type PromptStyle,
} from './prompts.js';
export { loadTokenizer, type Tokenizer } from './tokenizer.js';
export { type Shown, shownSummary, WITHHELD, withholdAnswer, withoutTags } from './withhold.js';
