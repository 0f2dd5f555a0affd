/** Thrown when long work was asked to stop: everything up to the last whole step is saved. */
export class Interrupted extends Error {
  constructor(readonly steps: number) {
    super(`interrupted after ${steps} steps; the same command (without --fresh) goes on from there`);
    this.name = 'Interrupted';
  }
}
