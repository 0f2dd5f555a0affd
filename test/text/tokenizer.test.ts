import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ROOT } from '../../lib/files.js';
import { loadTokenizer } from '../../lib/text/tokenizer.js';

const folder = join(ROOT, 'data/arena-base');
const tokenizer = loadTokenizer(folder);
const scratch = mkdtempSync(join(tmpdir(), 'agon-tokenizer-'));
after(() => rmSync(scratch, { recursive: true }));

/** A copy of the arena's files with one of them changed. */
function changed(name: string, file: string, change: (json: Record<string, unknown>) => void): string {
  const copy = join(scratch, name);
  cpSync(folder, copy, { recursive: true });
  const json = JSON.parse(readFileSync(join(copy, file), 'utf8')) as Record<string, unknown>;
  change(json);
  writeFileSync(join(copy, file), JSON.stringify(json));
  return copy;
}

const messages = [{ role: 'user' as const, content: 'numbers 3 5 7 11 target 24' }];

test('special tokens and size', () => {
  assert.equal(tokenizer.decode([tokenizer.eosId]), '<|im_end|>');
  assert.equal(tokenizer.decode([tokenizer.padId]), '<|endoftext|>');
  assert.equal(tokenizer.vocabSize, 96);
});

test('encodes word by word and adds nothing', () => {
  // The ids that Python's tokenizers gives for these files.
  assert.deepEqual(
    tokenizer.encode('<think> try 11 x 5 = 55 </think> <|im_end|>'),
    [4, 16, 40, 28, 34, 24, 84, 5, 2],
  );
  assert.deepEqual(tokenizer.encode(''), []);
  assert.deepEqual(tokenizer.encode('unheard 61'), tokenizer.encode('[UNK] [UNK]'));
});

test('decodes with single spaces; skips special tokens only when asked; ids past the vocabulary have no text', () => {
  const ids = tokenizer.encode('<think>  3\n+ 5 </think> <|im_end|>');
  assert.equal(tokenizer.decode(ids), '<think> 3 + 5 </think> <|im_end|>');
  assert.equal(tokenizer.decode(ids, { skipSpecial: true }), '<think> 3 + 5 </think>');
  assert.equal(tokenizer.decode([...ids.slice(0, 2), 5000]), '<think> 3');
  assert.equal(tokenizer.decode([]), '');
});

test('the chat template', () => {
  const open = '<|im_start|> user numbers 3 5 7 11 target 24 <|im_end|> <|im_start|> assistant';
  assert.equal(tokenizer.applyChatTemplate(messages, { addGenerationPrompt: true }), open);
  assert.deepEqual(tokenizer.encodePrompt(messages), tokenizer.encode(open));
  assert.equal(
    tokenizer.applyChatTemplate([...messages, { role: 'assistant', content: 'path' }]),
    `${open} path <|im_end|> `,
  );
});

test('a Qwen-style template in the config, and AddedToken objects', () => {
  const copy = changed('qwen', 'tokenizer_config.json', (json) => {
    json.eos_token = { content: '<|im_end|>', special: true };
    json.chat_template =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}" +
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  });
  rmSync(join(copy, 'chat_template.jinja'));
  const qwen = loadTokenizer(copy);
  assert.deepEqual(qwen.encodePrompt(messages), tokenizer.encodePrompt(messages));
  assert.equal(qwen.eosId, tokenizer.eosId);
});

test('checkFits: the embedding may be padded, not too small', () => {
  tokenizer.checkFits(96);
  tokenizer.checkFits(128);
  assert.throws(() => tokenizer.checkFits(95), /ids up to 95, but the model's vocab_size is 95.*>= 96/);
});

test('errors name the file and the field', () => {
  assert.throws(() => loadTokenizer(join(scratch, 'nowhere')), /tokenizer\.json: not readable/);
  const noEos = changed('no-eos', 'tokenizer_config.json', (json) => delete json.eos_token);
  assert.throws(() => loadTokenizer(noEos), /tokenizer_config\.json[\s\S]*eos_token/);
  const strangeEos = changed('strange-eos', 'tokenizer_config.json', (json) => {
    json.eos_token = '</s>';
  });
  assert.throws(() => loadTokenizer(strangeEos), /tokenizer_config\.json: eos_token is "<\/s>"/);
  const noVocab = changed('no-vocab', 'tokenizer.json', (json) => {
    json.model = {};
  });
  assert.throws(() => loadTokenizer(noVocab), /tokenizer\.json[\s\S]*model\.vocab/);
  const noTemplate = changed('no-template', 'tokenizer.json', () => undefined);
  rmSync(join(noTemplate, 'chat_template.jinja'));
  assert.throws(() => loadTokenizer(noTemplate).applyChatTemplate(messages), /no chat template/);
});
