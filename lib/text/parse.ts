/**
 * Takes a completion's text apart: `<think>` private reasoning `</think>` summary `<answer>` answer `</answer>`.
 * White space around the tags is free (a word-level tokenizer writes spaces, Qwen newlines). Written with
 * indexOf, so that it takes linear time on any text.
 *
 * The rule for `<think>`: at the start of the completion it may stand or not, since some chat templates already
 * write it in the prompt. Left out: judging the answer (the task's verifier does).
 */
import type { Completion } from '../records.js';

const THINK = '<think>';
const END_THINK = '</think>';
const ANSWER = '<answer>';
const END_ANSWER = '</answer>';

/** Chat tokens such as `<|im_end|>` at the end, which a decoder may or may not have skipped. */
function withoutEndTokens(text: string): string {
  let out = text.trimEnd();
  while (out.endsWith('|>')) {
    const start = out.lastIndexOf('<|');
    if (start < 0 || /\s/.test(out.slice(start))) break;
    out = out.slice(0, start).trimEnd();
  }
  return out;
}

function count(text: string, tag: string): number {
  return text.split(tag).length - 1;
}

/**
 * Parses one completion. The summary is what stands between the last `</think>` and the first `<answer>`;
 * reasoning that was never closed, or was opened again, leaves no summary and no answer. With several answers the last one is taken, and the format
 * does not hold.
 * @param text the decoded completion, without the prompt
 * @returns `formatted` iff the reasoning is closed exactly once, the summary is not empty, exactly one non-empty
 *   answer ends the text, and the model stopped by itself
 */
export function parseCompletion(text: string, finishReason: 'stop' | 'length'): Completion {
  const whole = withoutEndTokens(text).trimStart();
  const body = whole.startsWith(THINK) ? whole.slice(THINK.length) : whole;
  // Everything up to the last `</think>` is private, and so is what a `<think>` after it opens: better no summary
  // than one that shows a rival some reasoning.
  const close = body.lastIndexOf(END_THINK);
  if (close < 0 || body.indexOf(THINK, close) >= 0)
    return { think: body.trim(), summary: '', answer: undefined, formatted: false };

  const think = body.slice(0, close).trim();
  const rest = body.slice(close + END_THINK.length);
  const firstAnswer = rest.indexOf(ANSWER);
  const summary = (firstAnswer < 0 ? rest : rest.slice(0, firstAnswer)).trim();

  const end = rest.lastIndexOf(END_ANSWER);
  const start = end < 0 ? -1 : rest.lastIndexOf(ANSWER, end);
  const written = start < 0 ? '' : rest.slice(start + ANSWER.length, end).trim();
  // A stray `</answer>` inside would make two readings of the same text.
  const answer = written === '' || written.includes(END_ANSWER) ? undefined : written;

  const formatted =
    finishReason === 'stop' &&
    count(body, THINK) === 0 &&
    count(body, END_THINK) === 1 &&
    summary !== '' &&
    answer !== undefined &&
    count(rest, ANSWER) === 1 &&
    count(rest, END_ANSWER) === 1 &&
    rest.endsWith(END_ANSWER);
  return { think, summary, answer, formatted };
}
