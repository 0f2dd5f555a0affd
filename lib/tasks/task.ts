/**
 * The one interface of a task: where its problems come from, how a completion is judged, what must be withheld
 * from a rival, and what can be counted in a trace. Adding a task is adding one object of this type; a task with a
 * base of its own also has a corpus to train it on.
 */
import type { Random } from '../random.js';
import type { Completion, Problem, Split } from '../records.js';
import type { Message, PromptStyle } from '../text/prompts.js';

/** Which problems: the same query gives the same problems. */
export interface ProblemQuery {
  readonly split: Split;
  readonly count: number;
  readonly seed: number;
  /** Bounds on `Problem.difficulty`, in the task's own unit, both inclusive. */
  readonly minDifficulty?: number;
  readonly maxDifficulty?: number;
}

/** What can be counted exactly in one completion; all counts are whole numbers from 0. */
export interface TraceCounts {
  /** Steps the trace writes, in the task's own unit (countdown: leaves; chain: operations; lists: programs tried). */
  readonly steps: number;
  /** Steps that are true and new: neither written before in this trace nor, as a dead end, by the rival. */
  readonly useful: number;
  /** Steps written before in the same trace. */
  readonly repeated: number;
  /** Dead ends that this trace or the rival's summary had named already and that were entered again. */
  readonly deadAgain: number;
  /** Steps whose written result is false. */
  readonly wrong: number;
}

/** What can be said of a step of a trace, beside what a rival has shown of its own. */
export const STEP_MARKS = [
  'copied',
  'corrected',
  'settled',
  'abandoned',
  'wrong',
  'repeated',
  'dead again',
] as const;
/**
 * `copied`: the rival's own proposal, as it stood; `corrected`: what contradicts the rival and is right; `settled`: what
 * the completion proposes in the end; `abandoned`: what it left for something else; `wrong`, `repeated`, `dead again`:
 * as in `TraceCounts` (what turns out alive after all is corrected, not dead). Several may hold: a rival's path that is redone and dropped is copied and abandoned.
 */
export type StepMark = (typeof STEP_MARKS)[number];

/** A stretch of reasoning as it was written. */
export interface MarkedStep {
  readonly text: string;
  /** In the order of `STEP_MARKS`. */
  readonly marks: readonly StepMark[];
}

/** Parts of a summary that can be shown alone. */
export interface SummaryParts {
  /** What the summary rules out; '' where it rules out nothing. */
  readonly deadEnds: string;
  /** The way it proposes, without the answer; '' where it proposes none. */
  readonly path: string;
}

export interface Task {
  readonly name: string;
  /** The wording of its prompts for the base it is made for. */
  readonly promptStyle: PromptStyle;
  /** @throws when there are fewer than `count` */
  problems(query: ProblemQuery): Problem[];
  /** c of the paper: whether the final answer is right. The format is not looked at. */
  verify(problem: Problem, completion: Completion): boolean;
  /** Texts that give the completion's answer away, beside those that `withholdAnswer` knows for numbers. */
  answerSpellings(problem: Problem, completion: Completion): readonly string[];
  /** Cuts a summary (answer withheld) into its parts. */
  summaryParts(summary: string): SummaryParts;
  /** @param shown the rival's summary that was read, if any */
  countTrace(problem: Problem, completion: Completion, shown?: string): TraceCounts;
  /**
   * Cuts the reasoning into its steps, all of its words in their order, and marks them. A task without it is read unmarked.
   * @param shown the rival's summary that was read, if any
   */
  markTrace?(problem: Problem, completion: Completion, shown?: string): MarkedStep[];
  /**
   * The proposal that the completion settles for, as text that is equal for equal proposals (for majority votes and
   * for telling copies); undefined where it makes none.
   */
  proposal(completion: Completion): string | undefined;
}

/** What a base is trained on: its tokenizer's files and an endless stream of examples of the train split. */
export interface Corpus {
  /** Writes tokenizer.json, tokenizer_config.json and chat_template.jinja into a folder. */
  writeTokenizer(folder: string): void;
  /** Draws one example; the loss belongs on the completion and the end-of-sequence token that follows it. */
  example(random: Random): { readonly prompt: readonly Message[]; readonly completion: string };
}
