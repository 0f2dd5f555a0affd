/**
 * What a policy is asked: the plain prompt (draft, solo) and the challenger's, which also holds what a rival
 * left behind. A style is data: three templates with `{question}` and `{summary}` in them. What is shown of a
 * rival is its summary with the answer withheld (withhold.ts) and never its reasoning; this file only places
 * that text. Left out: system messages and few-shot examples, which the method does not use.
 */
import type { Role } from '../records.js';

/** One chat message, as Hugging Face chat templates take it. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** The wording of the prompts: templates in which `{question}` and `{summary}` are filled in. */
export interface PromptStyle {
  readonly name: string;
  /** For draft and solo. */
  readonly plain: string;
  /** For challenge, when the rival left a summary. */
  readonly challenge: string;
  /** For challenge, when the rival was cut off or left no summary. */
  readonly challengeWithout: string;
}

/** A few words of the arena's own vocabulary. */
export const ARENA_STYLE: PromptStyle = {
  name: 'arena',
  plain: '{question}',
  challenge: '{question} rival {summary}',
  challengeWithout: '{question} rival none',
};

const FORMAT = `First think inside <think> and </think>. After </think>, write a short summary of your solution for \
others to read. End with exactly one final answer in the form <answer>...</answer>, and write nothing after it.`;

const DISTRUST = `Do not trust the rival: its solution may be wrong. Solve the problem independently, check each \
of the rival's claims yourself, and keep only what you have verified. Your aim is to be right where the rival is \
wrong.`;

/** Full sentences, for instruction-tuned models such as Qwen. */
export const ENGLISH_STYLE: PromptStyle = {
  name: 'english',
  plain: `{question}\n\n${FORMAT}`,
  challenge: `{question}\n\nA rival has tried the same problem. Its summary, with the final answer withheld:\n\
<rival>\n{summary}\n</rival>\n\n${DISTRUST}\n\n${FORMAT}`,
  challengeWithout: `{question}\n\nA rival has tried the same problem and left no summary.\n\n${DISTRUST}\n\n${FORMAT}`,
};

/**
 * The messages that ask `role` to solve `problem`.
 * @param shown for a challenge: the rival's summary with the answer withheld; undefined when it left none
 * @throws when something is shown to a role that reads no rival
 */
export function buildPrompt(
  style: PromptStyle,
  problem: { readonly question: string },
  role: Role,
  shown?: string,
): Message[] {
  if (role !== 'challenge' && shown !== undefined) {
    throw new Error(`role ${role} reads no rival, but a summary was given; only challenge does`);
  }
  const template =
    role !== 'challenge' ? style.plain : shown === undefined ? style.challengeWithout : style.challenge;
  // One pass, so that a `{question}` or `$&` inside the filled-in text stays as it is.
  const content = template.replace(/\{(question|summary)\}/g, (_, slot) =>
    slot === 'question' ? problem.question : (shown ?? ''),
  );
  return [{ role: 'user', content }];
}
