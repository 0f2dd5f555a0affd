/**
 * Makes a cell that computes for long stop well when the kernel is interrupted.
 *
 * tslab (1.0.22) answers SIGINT by ending the cell at once with an error, while what the cell has started goes on
 * unseen: its promise is dropped, not stopped. So while `work` runs, the first interrupt only aborts a signal, which
 * training looks at after every step and evaluation before every deployment; the cell ends when the work has saved. A
 * second interrupt goes where the first would have gone; what runs on then still stops at the next look.
 *
 * A cell's part before its first `await` is no time to listen: vm.runInThisContext takes all listeners away for it and
 * gives the signal back to the system at its end, behind the back of a listener that was added meanwhile, and the next
 * interrupt would end the process.
 */
import { Interrupted } from '../experiments/interrupted.js';

/** How to go on, in a notebook. */
const GO_ON = 'everything is saved: run this cell again to go on from here';

/**
 * Runs `work` with a signal that an interrupt aborts.
 * @throws Interrupted, as one line, when `work` was interrupted; whatever else `work` throws
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  await new Promise(setImmediate);
  const controller = new AbortController();
  const others = process.rawListeners('SIGINT') as NodeJS.SignalsListener[];
  let ours = true;
  const restore = () => {
    if (!ours) return;
    ours = false;
    // Never without a listener: a SIGINT that nobody listens to ends the process.
    for (const listener of others) process.on('SIGINT', listener);
    process.removeListener('SIGINT', onInterrupt);
  };
  const onInterrupt = () => {
    if (controller.signal.aborted) {
      restore();
      process.kill(process.pid, 'SIGINT');
      return;
    }
    console.log('interrupted: stops after this step');
    controller.abort();
  };
  process.on('SIGINT', onInterrupt);
  for (const listener of others) process.removeListener('SIGINT', listener);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const stopped = new Interrupted(error.steps, GO_ON);
    // tslab prints an error with its stack and its fields; here the line alone helps.
    stopped.stack = `${stopped.name}: ${stopped.message}`;
    Object.defineProperty(stopped, 'steps', { enumerable: false });
    Object.defineProperty(stopped, 'name', { enumerable: false });
    throw stopped;
  } finally {
    restore();
  }
}
