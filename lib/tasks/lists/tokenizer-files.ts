/**
 * The words of lists: every number, operation, tag and word of its grammar is one token. What it shares with the
 * arena's vocabulary has the same id there, so that a base of lists can go on from the arena's, which knows what a
 * number is and how to look back at what was written.
 */
import { WITHHELD } from '../../text/withhold.js';
import { arenaVocabulary } from '../countdown/tokenizer-files.js';
import { writeWordTokenizer } from '../tokenizer-files.js';
import { NIL } from './grammar.js';
import { LARGEST, OPS } from './programs.js';

const QUESTION = ['in', 'out', 'rival', 'none', WITHHELD];
const TRACE = ['check', 'test', 'try', 'then', 'need', 'last', 'dead', 'hit', 'guess', 'path', NIL];

/** The vocabulary in the order of its ids: the arena's, with the words that it lacks in the rows of those it alone has. */
export function listsVocabulary(): string[] {
  const arena = arenaVocabulary();
  const numbers = Array.from({ length: LARGEST + 1 }, (_, n) => String(n));
  const kept = new Set([...QUESTION, ...TRACE, ...OPS, ...numbers]);
  const missing = [...kept].filter((word) => !arena.includes(word));
  const common = arena.indexOf('numbers');
  return arena.map((word, id) => {
    if (id < common || kept.has(word)) return word;
    return missing.shift() ?? `<unused${id}>`;
  });
}

/** Writes the tokenizer's files into a folder. */
export function writeListsTokenizer(folder: string): void {
  writeWordTokenizer(folder, listsVocabulary());
}
