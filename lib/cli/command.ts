/** How a command ends: 130 when it was interrupted and has saved, 1 with the error's message, else as `main` left it. */
import { Interrupted } from '../experiments/interrupted.js';

export async function runCommand(main: () => void | Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (error instanceof Interrupted) {
      console.log(error.message);
      process.exitCode = 130;
    } else {
      console.error((error as Error).message);
      process.exitCode = 1;
    }
  }
}
