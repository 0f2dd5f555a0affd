/** The room of tasks: one interface, and the tasks that have it. */
import { countdown } from './countdown/index.js';
import type { Task } from './task.js';

export * from './countdown/index.js';
export type { ProblemQuery, Task } from './task.js';

/** The tasks by name. */
export const TASKS: Readonly<Record<string, Task>> = { countdown };

/** @throws naming the tasks there are */
export function taskByName(name: string): Task {
  const task = TASKS[name];
  if (task === undefined) {
    throw new Error(`no task ${JSON.stringify(name)}; expected one of ${Object.keys(TASKS).join(', ')}`);
  }
  return task;
}
