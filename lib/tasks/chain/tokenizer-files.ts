/**
 * The words of the chain: every number, operator, step's letter and word is one token. What it shares with the arena's
 * vocabulary has the same id there, numbers and arithmetic above all, so that a base of the chain can go on from the
 * arena's and need not learn anew where the operands of a step stand.
 */
import { WITHHELD } from '../../text/withhold.js';
import { arenaVocabulary } from '../countdown/tokenizer-files.js';
import { writeWordTokenizer } from '../tokenizer-files.js';
import { MODULUS, OPERATORS } from './facts.js';
import { LETTERS } from './grammar.js';

const QUESTION = ['start', 'rival', 'none', WITHHELD];
const TRACE = ['again', 'split', 'so', 'take', '='];

/** The vocabulary in the order of its ids: the arena's, with the words that it lacks in the rows of those it alone has. */
export function chainVocabulary(): string[] {
  const numbers = Array.from({ length: MODULUS }, (_, n) => String(n));
  const arena = arenaVocabulary();
  const kept = new Set([...QUESTION, ...TRACE, ...OPERATORS, ...numbers]);
  const missing = [...kept, ...LETTERS].filter((word) => !arena.includes(word));
  const common = arena.indexOf('numbers');
  return arena.map((word, id) => {
    if (id < common || kept.has(word)) return word;
    return missing.shift() ?? `<unused${id}>`;
  });
}

/** Writes the tokenizer's files into a folder. */
export function writeChainTokenizer(folder: string): void {
  writeWordTokenizer(folder, chainVocabulary());
}
