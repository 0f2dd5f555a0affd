/**
 * Rows of logits to one token each. What is drawn and reported, and for which logits the log-prob is NaN:
 * lib/rollouts/sampler.ts.
 */
import { exp4, loadPart, log, storePart, sum4 } from './math';

/**
 * @param uniforms [R]
 * @param inverseTemperature one number
 * @param ids [R] int32
 * @param logProbs [R]
 * @param masses scratch, V numbers and up to three more
 * @param greedy the first of the largest instead of a draw
 */
export function sampleTokens(
  logits: usize,
  uniforms: usize,
  inverseTemperature: usize,
  ids: usize,
  logProbs: usize,
  masses: usize,
  R: i32,
  V: i32,
  greedy: bool,
): void {
  const scale = load<f32>(inverseTemperature);
  const scales = f32x4.splat(scale);
  const whole = V & ~3;
  for (let row = 0; row < R; row++) {
    let top: f32 = -Infinity;
    for (let i = 0; i < V; i++) top = max(top, load<f32>(logits + <usize>(i * 4)) * scale);
    const largest = f32x4.splat(top);
    let sums = f32x4.splat(0);
    for (let i = 0; i < V; i += 4) {
      const x = f32x4.sub(f32x4.mul(loadPart(logits + <usize>(i * 4), V - i), scales), largest);
      // What exp4 would clamp has no mass at all; NaN stays.
      const mass = v128.andnot(exp4(x), f32x4.lt(x, f32x4.splat(-87)));
      storePart(masses + <usize>(i * 4), mass, V - i);
      if (i < whole) sums = f32x4.add(sums, mass);
    }
    let total = sum4(sums);
    for (let i = whole; i < V; i++) total += load<f32>(masses + <usize>(i * 4));
    let id = 0;
    if (greedy) {
      while (id < V - 1 && load<f32>(logits + <usize>(id * 4)) * scale != top) id++;
    } else {
      // The last token with a mass, where rounding leaves the running sum below the target.
      const target = load<f32>(uniforms + <usize>(row * 4)) * total;
      let seen: f32 = 0;
      for (let i = 0; i < V; i++) {
        const mass = load<f32>(masses + <usize>(i * 4));
        if (mass == 0) continue;
        seen += mass;
        id = i;
        if (!(seen <= target)) break;
      }
    }
    store<i32>(ids + <usize>(row * 4), id);
    store<f32>(logProbs + <usize>(row * 4), load<f32>(logits + <usize>(id * 4)) * scale - top - log(total));
    logits += <usize>(V * 4);
  }
}
