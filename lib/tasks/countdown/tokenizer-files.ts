/** The words of the arena: every number, operator, tag and word of countdown's grammar is one token. */
import { WITHHELD } from '../../text/withhold.js';
import { wordVocabulary, writeWordTokenizer } from '../tokenizer-files.js';
import { LARGEST, OPERATORS } from './arithmetic.js';

/** Rows of the arena model's embedding. */
export const ARENA_VOCAB_SIZE = 96;

const QUESTION = ['numbers', 'target', 'rival', 'none', WITHHELD];
const TRACE = ['check', 'try', 'then', 'left', 'dead', 'hit', 'guess', 'path', 'big', '=', ':'];

/** The vocabulary in the order of its ids. */
export function arenaVocabulary(): string[] {
  const numbers = Array.from({ length: LARGEST + 1 }, (_, n) => String(n));
  return wordVocabulary([...QUESTION, ...TRACE, ...OPERATORS, ...numbers], ARENA_VOCAB_SIZE);
}

/** Writes the tokenizer's files into a folder. */
export function writeArenaTokenizer(folder: string): void {
  writeWordTokenizer(folder, arenaVocabulary());
}
