/** The room of tasks: one interface, and the tasks that have it. */
import { chain } from './chain/index.js';
import { countdown } from './countdown/index.js';
import { lists } from './lists/index.js';
import type { Task } from './task.js';

export * from './chain/index.js';
export * from './countdown/index.js';
export type { Example, RivalShares } from './example.js';
export * from './lists/index.js';
export {
  type Corpus,
  type MarkedStep,
  type ProblemQuery,
  STEP_MARKS,
  type StepMark,
  type SummaryParts,
  type Task,
  type TraceCounts,
} from './task.js';

/** Every task by its name. */
export const TASKS = { countdown, chain, lists } as const satisfies Record<string, Task>;
export type TaskName = keyof typeof TASKS;
export const TASK_NAMES = Object.keys(TASKS) as [TaskName, ...TaskName[]];
