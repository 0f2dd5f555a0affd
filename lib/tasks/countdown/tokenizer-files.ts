/**
 * Writes the arena's tokenizer as Hugging Face files (tokenizer.json, tokenizer_config.json, chat_template.jinja),
 * which Python's `tokenizers` and `transformers` load unchanged: word level, split at white space, every number,
 * operator, tag and word one token. Unused words fill the vocabulary up to a size that tensors like.
 */
import { join } from 'node:path';
import { writeFileAtomic, writeJson } from '../../files.js';
import { WITHHELD } from '../../text/withhold.js';
import { LARGEST, OPERATORS } from './arithmetic.js';

/** Rows of the arena model's embedding. */
export const ARENA_VOCAB_SIZE = 96;

const PAD = '<|endoftext|>';
const EOS = '<|im_end|>';
const UNKNOWN = '[UNK]';
const SPECIAL = [PAD, '<|im_start|>', EOS, UNKNOWN];
const TAGS = ['<think>', '</think>', '<answer>', '</answer>'];
const CHAT = ['user', 'assistant'];
const QUESTION = ['numbers', 'target', 'rival', 'none', WITHHELD];
const TRACE = ['check', 'try', 'then', 'left', 'dead', 'hit', 'guess', 'path', 'big', '=', ':'];

/** The vocabulary in the order of its ids. */
export function arenaVocabulary(): string[] {
  const numbers = Array.from({ length: LARGEST + 1 }, (_, n) => String(n));
  const used = [...SPECIAL, ...TAGS, ...CHAT, ...QUESTION, ...TRACE, ...OPERATORS, ...numbers];
  const unused = Array.from({ length: ARENA_VOCAB_SIZE - used.length }, (_, i) => `<unused${i}>`);
  return [...used, ...unused];
}

const CHAT_TEMPLATE = `{%- for message in messages -%}
{{- '<|im_start|> ' + message['role'] + ' ' + message['content'] + ' <|im_end|> ' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|> assistant' -}}
{%- endif -%}
`;

/** Writes the three files into a folder. */
export function writeArenaTokenizer(folder: string): void {
  const vocabulary = arenaVocabulary();
  const added = SPECIAL.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  writeJson(join(folder, 'tokenizer.json'), {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: { type: 'WhitespaceSplit' },
    post_processor: null,
    decoder: null,
    model: {
      type: 'WordLevel',
      vocab: Object.fromEntries(vocabulary.map((word, id) => [word, id])),
      unk_token: UNKNOWN,
    },
  });
  writeJson(join(folder, 'tokenizer_config.json'), {
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: 512,
    clean_up_tokenization_spaces: false,
    padding_side: 'left',
    eos_token: EOS,
    pad_token: PAD,
    unk_token: UNKNOWN,
  });
  writeFileAtomic(join(folder, 'chat_template.jinja'), CHAT_TEMPLATE);
}
