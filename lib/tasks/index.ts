/** The room of tasks: one interface, and the tasks that have it. */
export * from './countdown/index.js';
export type { ProblemQuery, Task } from './task.js';
