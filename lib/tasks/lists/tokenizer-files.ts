/** The words of lists: every number, operation, tag and word of its grammar is one token. */
import { WITHHELD } from '../../text/withhold.js';
import { wordVocabulary, writeWordTokenizer } from '../tokenizer-files.js';
import { NIL } from './grammar.js';
import { LARGEST, OPS } from './programs.js';

/** Rows of the model's embedding. */
export const LISTS_VOCAB_SIZE = 96;

const QUESTION = ['in', 'out', 'rival', 'none', WITHHELD];
const TRACE = ['check', 'test', 'try', 'then', 'need', 'last', 'dead', 'hit', 'guess', 'path', NIL];

/** The vocabulary in the order of its ids. */
export function listsVocabulary(): string[] {
  const numbers = Array.from({ length: LARGEST + 1 }, (_, n) => String(n));
  return wordVocabulary([...QUESTION, ...TRACE, ...OPS, ...numbers], LISTS_VOCAB_SIZE);
}

/** Writes the tokenizer's files into a folder. */
export function writeListsTokenizer(folder: string): void {
  writeWordTokenizer(folder, listsVocabulary());
}
