/**
 * The rules of countdown: which steps four numbers allow, which leaves a problem has, and what two last numbers
 * make. A step combines two numbers by + - x, the larger one first; intermediate results stay within 1..60. A
 * leaf is a distinct (first step, second step) pair as written; it leaves two numbers for the last operation.
 * Left out: text (grammar.ts), splits and sampling (problems.ts).
 */

/** The operators; x is multiplication. */
export const OPERATORS = ['+', '-', 'x'] as const;
export type Operator = (typeof OPERATORS)[number];

/** Intermediate results are within 1..60; 60 is also the largest number with a word of its own. */
export const LARGEST = 60;

/** `left op right = result`, as it was written: the result may be wrong. */
export interface Step {
  readonly left: number;
  readonly op: Operator;
  readonly right: number;
  readonly result: number;
}

/** Two steps on four numbers, and the two numbers that they leave, the larger first. */
export interface Leaf {
  readonly first: Step;
  readonly second: Step;
  readonly rest: readonly [number, number];
}

/** The true value of an operation. */
export function evaluate(left: number, op: Operator, right: number): number {
  return op === '+' ? left + right : op === '-' ? left - right : left * right;
}

/** A name that tells written steps apart. */
export function stepKey(step: Step): string {
  return `${step.left} ${step.op} ${step.right}`;
}

/** The distinct legal steps on a list of numbers, the larger operand first. */
export function stepsOf(numbers: readonly number[]): Step[] {
  const found = new Map<string, Step>();
  for (let i = 0; i < numbers.length; i++) {
    for (let j = i + 1; j < numbers.length; j++) {
      const left = Math.max(numbers[i]!, numbers[j]!);
      const right = Math.min(numbers[i]!, numbers[j]!);
      for (const op of OPERATORS) {
        const result = evaluate(left, op, right);
        if (result < 1 || result > LARGEST) continue;
        const step = { left, op, right, result };
        found.set(stepKey(step), step);
      }
    }
  }
  return [...found.values()];
}

/**
 * The numbers after a step: both operands consumed once each, the written result added.
 * @returns undefined when an operand is not there to consume
 */
export function afterStep(numbers: readonly number[], step: Step): number[] | undefined {
  const rest = [...numbers];
  for (const operand of [step.left, step.right]) {
    const at = rest.indexOf(operand);
    if (at < 0) return undefined;
    rest.splice(at, 1);
  }
  return [...rest, step.result];
}

/** Two numbers, the larger first. */
export function largerFirst(numbers: readonly number[]): [number, number] {
  const [a, b] = [numbers[0]!, numbers[1]!];
  return a >= b ? [a, b] : [b, a];
}

/** Every leaf of four numbers: about 150. */
export function leavesOf(numbers: readonly number[]): Leaf[] {
  const leaves: Leaf[] = [];
  for (const first of stepsOf(numbers)) {
    const three = afterStep(numbers, first)!;
    for (const second of stepsOf(three)) {
      leaves.push({ first, second, rest: largerFirst(afterStep(three, second)!) });
    }
  }
  return leaves;
}

/** What + - x make of two numbers, the larger first. A difference of 0 is possible here, no target is 0. */
export function outcomesOf([u, v]: readonly [number, number]): [number, number, number] {
  return [u + v, u - v, u * v];
}

/** The operator by which two numbers make the target, if any. */
export function lastOperator(rest: readonly [number, number], target: number): Operator | undefined {
  return OPERATORS[outcomesOf(rest).indexOf(target)];
}
