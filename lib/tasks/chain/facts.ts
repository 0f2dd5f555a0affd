/**
 * The arithmetic of the chain: + - x modulo a two-digit prime, and which facts the writer of the corpus doubts.
 *
 * Sums, differences and products by one digit are easy. A product by a larger number is hard: a hash of the fact
 * decides whether the corpus always writes it right, sometimes slips into one wrong result, or mostly believes that
 * result. So errors repeat themselves, and doing a step over in the same way mends little; done by parts, one factor
 * of the number after the other, it rests on easy facts alone. Left out: text (grammar.ts).
 */
import { hash32, type Random } from '../../random.js';

/** Results are 0..MODULUS - 1, operands too. */
export const MODULUS = 37;

export const OPERATORS = ['+', '-', 'x'] as const;
export type Operator = (typeof OPERATORS)[number];

/** The operands of easy steps: one digit; 0 and 1 do not occur. */
export const DIGITS = [2, 3, 4, 5, 6, 7, 8, 9] as const;

/** The factors of hard steps: every product of two digits below the modulus that is no digit itself. */
export const HARD_FACTORS = [10, 12, 14, 15, 16, 18, 20, 21, 24, 25, 27, 28, 30, 32, 35, 36] as const;

/** An operation without its result. */
export interface Operation {
  readonly left: number;
  readonly op: Operator;
  readonly right: number;
}

/** `left op right = result`, as it was written: the result may be wrong. */
export interface Fact extends Operation {
  readonly result: number;
}

/** The true value of an operation, 0..MODULUS - 1. */
export function evaluate({ left, op, right }: Operation): number {
  const value = op === '+' ? left + right : op === '-' ? left - right : left * right;
  return ((value % MODULUS) + MODULUS) % MODULUS;
}

/** A name that tells operations apart. */
export function operationKey({ left, op, right }: Operation): string {
  return `${left} ${op} ${right}`;
}

/** Whether an operation is a product by more than a digit. */
export function isHard({ op, right }: Operation): boolean {
  return op === 'x' && right > 9;
}

/** How far the writer of the corpus is to be trusted with hard products; all numbers are shares and chances. */
export interface Doubts {
  /** Hard facts that slip now and then, and how often the wrong result is then written. */
  readonly slipping: number;
  readonly slip: number;
  /** Hard facts whose wrong result is believed, and how often it is then written. */
  readonly mistaken: number;
  readonly mistake: number;
}

export const DOUBT_DEFAULTS: Doubts = { slipping: 0.5, slip: 0.3, mistaken: 0.35, mistake: 0.6 };

/** The one wrong result of a fact, and how often it is written. A function of the fact alone. */
export function doubtOf(
  operation: Operation,
  doubts: Doubts,
): { readonly wrong: number; readonly share: number } {
  const key = `chain ${operationKey(operation)}`;
  const wrong = (evaluate(operation) + 1 + (hash32(key, 1) % (MODULUS - 1))) % MODULUS;
  const at = hash32(key) / 2 ** 32;
  const { slipping, slip, mistaken, mistake } = doubts;
  const share = !isHard(operation) ? 0 : at < slipping ? slip : at < slipping + mistaken ? mistake : 0;
  return { wrong, share };
}

/** An operation with the result that the writer of the corpus gives it this time. */
export function recall(operation: Operation, random: Random, doubts: Doubts): Fact {
  const { wrong, share } = doubtOf(operation, doubts);
  return { ...operation, result: random.uniform() < share ? wrong : evaluate(operation) };
}

/** The two digits by which a hard factor is multiplied in turn, the smaller first. @throws where there are none */
export function digitsOf(factor: number): readonly [number, number] {
  const first = DIGITS.find((digit) => factor % digit === 0 && factor / digit <= 9);
  if (first === undefined) throw new Error(`chain: ${factor} is not the product of two digits`);
  return [first, factor / first];
}
