/**
 * Writes a word-level tokenizer as Hugging Face files (tokenizer.json, tokenizer_config.json, chat_template.jinja),
 * which Python's `tokenizers` and `transformers` load unchanged: split at white space, every word one token. Unused
 * words fill the vocabulary up to a size that tensors like. Left out: which words a task has (its own
 * tokenizer-files.ts).
 */
import { join } from 'node:path';
import { writeFileAtomic, writeJson } from '../files.js';

const PAD = '<|endoftext|>';
const EOS = '<|im_end|>';
const UNKNOWN = '[UNK]';
const SPECIAL = [PAD, '<|im_start|>', EOS, UNKNOWN];
const TAGS = ['<think>', '</think>', '<answer>', '</answer>'];
const CHAT = ['user', 'assistant'];

/**
 * The vocabulary in the order of its ids: special tokens, tags and roles, the task's words, and fillers.
 * @param size rows of the embedding
 * @throws when the words do not fit or one is there twice
 */
export function wordVocabulary(words: readonly string[], size: number): string[] {
  const used = [...SPECIAL, ...TAGS, ...CHAT, ...words];
  if (used.length > size) throw new Error(`a vocabulary of ${used.length} words has more than ${size} rows`);
  const twice = used.find((word, i) => used.indexOf(word) < i);
  if (twice !== undefined) throw new Error(`the word '${twice}' is twice in the vocabulary`);
  return [...used, ...Array.from({ length: size - used.length }, (_, i) => `<unused${i}>`)];
}

const CHAT_TEMPLATE = `{%- for message in messages -%}
{{- '<|im_start|> ' + message['role'] + ' ' + message['content'] + ' <|im_end|> ' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|> assistant' -}}
{%- endif -%}
`;

/** Writes the three files of a `wordVocabulary` into a folder. */
export function writeWordTokenizer(folder: string, vocabulary: readonly string[]): void {
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
