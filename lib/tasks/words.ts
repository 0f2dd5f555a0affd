/** Words between white space, summaries cut by them, marks in their order: what the readers of several tasks share. */
import { STEP_MARKS, type StepMark, type SummaryParts } from './task.js';

/** The words of a text. */
export function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** The clauses that begin with `dead` and with `path`, in whatever order they stand; what belongs to neither is in no part. */
export function deadAndPath(summary: string): SummaryParts {
  const clauses = summary.trim().split(/\s+(?=(?:dead|path)(?:\s|$))/);
  const part = (word: string) => clauses.filter((clause) => words(clause)[0] === word).join(' ');
  return { deadEnds: part('dead'), path: part('path') };
}

/** The marks that hold, in their order. */
export function marksOf(holds: Partial<Record<StepMark, boolean | undefined>>): StepMark[] {
  return STEP_MARKS.filter((mark) => holds[mark]);
}
