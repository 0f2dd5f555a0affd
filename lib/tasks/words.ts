/** Words between white space, and summaries cut by them: what the grammars of countdown and lists share. */
import type { SummaryParts } from './task.js';

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
