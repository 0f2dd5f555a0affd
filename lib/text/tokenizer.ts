/**
 * Text to token ids and back, from the files of a Hugging Face folder: tokenizer.json, tokenizer_config.json and
 * the chat template (chat_template.jinja, or the config's `chat_template`). The algorithms are Hugging Face's own
 * `@huggingface/tokenizers` and `@huggingface/jinja`; this file checks what comes in and fixes the two defaults
 * that surprise: no special tokens are added when encoding, and decoding does not tidy up spaces.
 * Left out: training a tokenizer, tool calls, multimodal messages.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Template } from '@huggingface/jinja';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';
import { readJson } from '../files.js';
import type { Message } from './prompts.js';

const tokenText = z.union([
  z.string(),
  z.looseObject({ content: z.string() }).transform((token) => token.content),
]);

const tokenizerFile = z.looseObject({
  model: z.looseObject({ vocab: z.union([z.record(z.string(), z.number()), z.array(z.unknown())]) }),
  added_tokens: z.array(z.looseObject({ id: z.int().min(0), content: z.string(), special: z.boolean() })),
});

const configFile = z.looseObject({
  eos_token: tokenText,
  bos_token: tokenText.nullish(),
  pad_token: tokenText.nullish(),
  unk_token: tokenText.nullish(),
  chat_template: z
    .union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() }))])
    .nullish(),
});

/** A loaded tokenizer. */
export interface Tokenizer {
  /** The end-of-sequence token (`eos_token`). */
  readonly eosId: number;
  /** The padding token (`pad_token`; the end-of-sequence token when the files name none). */
  readonly padId: number;
  /** One more than the largest id; a model's `vocab_size` may be larger (padded). */
  readonly vocabSize: number;
  /** The ids of a text, tags and chat tokens included, nothing added. */
  encode(text: string): number[];
  /** The text of ids. Ids past the vocabulary (a padded model can sample them) have no text. */
  decode(ids: readonly number[], options?: { readonly skipSpecial?: boolean }): string;
  /** The chat as one text, ready for `encode`. @throws when the folder has no chat template */
  applyChatTemplate(
    messages: readonly Message[],
    options?: { readonly addGenerationPrompt?: boolean },
  ): string;
  /** The ids of a chat that waits for the assistant's turn: what a rollout starts from. */
  encodePrompt(messages: readonly Message[]): number[];
  /** @throws when the model's embedding has fewer rows than the tokenizer has ids */
  checkFits(modelVocabSize: number): void;
}

function chatTemplate(
  folder: string,
  configured: z.infer<typeof configFile>['chat_template'],
): string | undefined {
  const path = join(folder, 'chat_template.jinja');
  if (existsSync(path)) return readFileSync(path, 'utf8');
  if (Array.isArray(configured)) return configured.find((entry) => entry.name === 'default')?.template;
  return configured ?? undefined;
}

/**
 * Loads the tokenizer of a Hugging Face folder.
 * @throws naming the file and the field when one is missing or does not fit
 */
export function loadTokenizer(folder: string): Tokenizer {
  const jsonPath = join(folder, 'tokenizer.json');
  const configPath = join(folder, 'tokenizer_config.json');
  const json = readJson(jsonPath, tokenizerFile);
  const config = readJson(configPath, configFile);
  const inner = new HuggingFaceTokenizer(json, config);

  let vocabSize = 0;
  for (const id of inner.get_vocab().values()) vocabSize = Math.max(vocabSize, id + 1);
  const idOf = (field: string, token: string): number => {
    const id = inner.token_to_id(token);
    if (id === undefined) {
      throw new Error(
        `${configPath}: ${field} is ${JSON.stringify(token)}, which is not a token of ${jsonPath}`,
      );
    }
    return id;
  };
  const eosId = idOf('eos_token', config.eos_token);
  const padId = config.pad_token ? idOf('pad_token', config.pad_token) : eosId;
  const source = chatTemplate(folder, config.chat_template);
  const template = source === undefined ? undefined : new Template(source);

  const encode = (text: string) => (text === '' ? [] : inner.encode(text, { add_special_tokens: false }).ids);
  const applyChatTemplate: Tokenizer['applyChatTemplate'] = (
    messages,
    { addGenerationPrompt = false } = {},
  ) => {
    if (template === undefined) {
      throw new Error(
        `${folder}: no chat template; expected chat_template.jinja or chat_template in ${configPath}`,
      );
    }
    return template.render({
      messages,
      add_generation_prompt: addGenerationPrompt,
      bos_token: config.bos_token ?? '',
      eos_token: config.eos_token,
      pad_token: config.pad_token ?? '',
    });
  };
  return {
    eosId,
    padId,
    vocabSize,
    encode,
    decode: (ids, { skipSpecial = false } = {}) => {
      const known = ids.filter((id) => inner.id_to_token(id) !== undefined);
      if (known.length === 0) return '';
      return inner.decode(known, { skip_special_tokens: skipSpecial, clean_up_tokenization_spaces: false });
    },
    applyChatTemplate,
    encodePrompt: (messages) => encode(applyChatTemplate(messages, { addGenerationPrompt: true })),
    checkFits: (modelVocabSize) => {
      if (vocabSize > modelVocabSize) {
        throw new Error(
          `${jsonPath} has ids up to ${vocabSize - 1}, but the model's vocab_size is ${modelVocabSize}: ` +
            `expected vocab_size >= ${vocabSize}; are the tokenizer and the model of the same base?`,
        );
      }
    },
  };
}
