/**
 * The one interface of a task: where its problems come from, how a completion is judged, and what must be withheld
 * from a rival. Adding a task is adding one object of this type.
 */
import type { Completion, Problem, Split } from '../records.js';
import type { PromptStyle } from '../text/prompts.js';

/** Which problems: the same query gives the same problems. */
export interface ProblemQuery {
  readonly split: Split;
  readonly count: number;
  readonly seed: number;
  /** Bounds on `Problem.difficulty`, in the task's own unit, both inclusive. */
  readonly minDifficulty?: number;
  readonly maxDifficulty?: number;
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
}
