/**
 * One row of logits to one token: temperature, top-p, and a uniform number from the row's own stream.
 *
 * The log-prob reported is that of the full softmax at the given temperature, *not* renormalised over the
 * top-p set: it is what the policy gradient needs, and training samples with top-p 1 where the two agree.
 * Left out: top-k, repetition penalties – the paper uses neither.
 */

export interface SamplingOptions {
  /** Divides the logits; 0 takes the most likely token. */
  readonly temperature: number;
  /** The smallest set of most likely tokens whose mass reaches topP; 1 keeps all. */
  readonly topP: number;
}

export interface Sampled {
  readonly id: number;
  /** Nats, under softmax(logits / temperature); at temperature 0 under softmax(logits). */
  readonly logProb: number;
}

/**
 * @param logits of one row, length = vocabulary
 * @param u uniform in [0, 1)
 * @throws when a logit is NaN or the largest is infinite; a token whose logit is -Infinity is never drawn
 */
export function sampleToken(
  logits: Float32Array,
  { temperature, topP }: SamplingOptions,
  u: number,
): Sampled {
  const n = logits.length;
  const scale = temperature > 0 ? 1 / temperature : 1;
  let best = 0;
  for (let i = 1; i < n; i++) if (logits[i]! > logits[best]!) best = i;
  const max = logits[best]! * scale;
  if (!Number.isFinite(max)) throw new Error(`logits are not finite (largest: ${logits[best]})`);
  const mass = new Float64Array(n);
  let sum = 0;
  for (let i = 0; i < n; i++) {
    mass[i] = Math.exp(logits[i]! * scale - max);
    sum += mass[i]!;
  }
  if (Number.isNaN(sum)) throw new Error('logits hold NaN');
  const logProb = (id: number) => logits[id]! * scale - max - Math.log(sum);
  if (temperature === 0) return { id: best, logProb: logProb(best) };
  const id = topP < 1 ? drawNucleus(mass, sum, topP, u) : draw(mass, sum * u);
  return { id, logProb: logProb(id) };
}

function draw(mass: Float64Array, target: number): number {
  let seen = 0;
  let last = 0;
  for (let i = 0; i < mass.length; i++) {
    if (mass[i] === 0) continue;
    seen += mass[i]!;
    last = i;
    if (seen > target) return i;
  }
  return last; // rounding left the target just above the total
}

function drawNucleus(mass: Float64Array, sum: number, topP: number, u: number): number {
  const order = Array.from(mass.keys()).sort((a, b) => mass[b]! - mass[a]! || a - b);
  let kept = 0;
  let count = 0;
  while (count < order.length && kept < topP * sum) kept += mass[order[count++]!]!;
  let seen = 0;
  for (let k = 0; k < count; k++) {
    seen += mass[order[k]!]!;
    if (seen > u * kept) return order[k]!;
  }
  return order[Math.max(0, count - 1)]!;
}
