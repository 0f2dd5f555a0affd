/** The words of the chain: every number below the modulus, operator, step's letter and word is one token. */
import { WITHHELD } from '../../text/withhold.js';
import { wordVocabulary, writeWordTokenizer } from '../tokenizer-files.js';
import { MODULUS, OPERATORS } from './facts.js';
import { LETTERS } from './grammar.js';

/** Rows of the embedding. */
const CHAIN_VOCAB_SIZE = 80;

const QUESTION = ['start', 'rival', 'none', WITHHELD];
const TRACE = ['again', 'split', 'so', 'take', '='];

/** Writes the tokenizer's files into a folder. */
export function writeChainTokenizer(folder: string): void {
  const numbers = Array.from({ length: MODULUS }, (_, n) => String(n));
  const words = [...QUESTION, ...TRACE, ...OPERATORS, ...LETTERS, ...numbers];
  writeWordTokenizer(folder, wordVocabulary(words, CHAIN_VOCAB_SIZE));
}
