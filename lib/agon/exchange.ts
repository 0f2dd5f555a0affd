/**
 * What a challenger is shown of its rival. The method shows the summary with the answer withheld; everything else here
 * is an ablation: less than that, the private reasoning too, or the answer itself.
 *
 * Left out: how text is masked (text/withhold.ts) and how a summary is cut into parts (the task's business).
 */
import type { Attempt } from '../records.js';
import type { Task } from '../tasks/index.js';
import { shownSummary, withoutTags } from '../text/index.js';

export const SHOWS = [
  'summary',
  'nothing',
  'dead-ends',
  'path',
  'trace',
  'answer',
  'latent',
  'latent-summary',
] as const;
/**
 * `trace`: reasoning and summary, the answer masked in both; `answer`: the summary and the answer, nothing masked;
 * `latent`, `latent-summary`: no words, but the rival's keys and values (latent.ts).
 */
export type Shows = (typeof SHOWS)[number];

/** Whether a rival is shown as keys and values and not as text. */
export function isLatent(shows: Shows | undefined): boolean {
  return shows === 'latent' || shows === 'latent-summary';
}

/** The text that stands in the challenger's prompt; undefined where there is none, and the prompt says so. */
export function shownOf(rival: Attempt, task: Task, shows: Shows = 'summary'): string | undefined {
  const summary = shownSummary(rival, task);
  if (summary === undefined || shows === 'summary') return summary;
  const { completion } = rival;
  const text = {
    nothing: () => '',
    latent: () => '',
    'latent-summary': () => '',
    'dead-ends': () => task.summaryParts(summary).deadEnds,
    path: () => task.summaryParts(summary).path,
    trace: () => {
      // The same mask, over the reasoning.
      const reasoning = { ...rival, completion: { ...completion, summary: completion.think } };
      return `${shownSummary(reasoning, task) ?? ''} ${summary}`;
    },
    answer: () => {
      const answer =
        completion.answer === undefined ? '' : `<answer> ${withoutTags(completion.answer)} </answer>`;
      return `${withoutTags(completion.summary).trim()} ${answer}`;
    },
  }
    [shows]()
    .trim();
  return text === '' ? undefined : text;
}
