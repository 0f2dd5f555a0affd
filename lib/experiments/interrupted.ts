/** Thrown when long work was asked to stop: everything up to the last whole step is saved. */
export class Interrupted extends Error {
  /** @param goOn how to go on */
  constructor(
    readonly steps: number,
    goOn = 'the same command (without --fresh) goes on from there',
  ) {
    super(`interrupted after ${steps} steps; ${goOn}`);
    this.name = 'Interrupted';
  }
}
