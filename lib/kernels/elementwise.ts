/**
 * RMS normalisation, rotary positions and SwiGLU, each in one pass over the numbers, with their gradients; and the
 * rows of a table. Formulas: lib/model/operations.ts.
 *
 * Every loop goes in fours and ends with the one to three numbers that are left: the same step with another count,
 * which is a constant in the loop and costs nothing there.
 */
import { exp4, loadPart, storePart, sum4 } from './math';

// @ts-ignore: decorator
@inline
function squares(x: usize, count: i32): v128 {
  const v = loadPart(x, count);
  return f32x4.mul(v, v);
}

/** 1 / rms of a row. */
function inverseRms(x: usize, n: i32, eps: f32): f32 {
  let sum = f32x4.splat(0);
  let i = 0;
  for (; i + 4 <= n; i += 4) sum = f32x4.add(sum, squares(x + <usize>(i * 4), 4));
  if (i < n) sum = f32x4.add(sum, squares(x + <usize>(i * 4), n - i));
  return 1 / Mathf.sqrt(sum4(sum) / <f32>n + eps);
}

// @ts-ignore: decorator
@inline
function scaleStep(x: usize, weight: usize, y: usize, at: usize, inverse: v128, count: i32): void {
  const scaled = f32x4.mul(loadPart(x + at, count), inverse);
  storePart(y + at, f32x4.mul(scaled, loadPart(weight + at, count)), count);
}

/** y = x / rms(x) * weight over rows of n numbers. */
export function rmsNorm(x: usize, weight: usize, y: usize, rows: i32, n: i32, eps: f32): void {
  const bytes = <usize>(n * 4);
  for (let row = 0; row < rows; row++) {
    const inverse = f32x4.splat(inverseRms(x, n, eps));
    let i = 0;
    for (; i + 4 <= n; i += 4) scaleStep(x, weight, y, <usize>(i * 4), inverse, 4);
    if (i < n) scaleStep(x, weight, y, <usize>(i * 4), inverse, n - i);
    x += bytes;
    y += bytes;
  }
}

/** y = x / rms(x) over rows of n numbers, n a multiple of 4. */
export function rmsNormalise(x: usize, y: usize, rows: i32, n: i32, eps: f32): void {
  const bytes = <usize>(n * 4);
  for (let row = 0; row < rows; row++) {
    const inverse = f32x4.splat(inverseRms(x, n, eps));
    for (let at: usize = 0; at < bytes; at += 16) v128.store(y + at, f32x4.mul(v128.load(x + at), inverse));
    x += bytes;
    y += bytes;
  }
}

/** Adds dy y to dWeight; returns dy y weight. */
// @ts-ignore: decorator
@inline
function alongStep(
  x: usize,
  weight: usize,
  dy: usize,
  dWeight: usize,
  at: usize,
  inverse: v128,
  count: i32,
): v128 {
  const part = f32x4.mul(loadPart(dy + at, count), f32x4.mul(loadPart(x + at, count), inverse));
  storePart(dWeight + at, f32x4.add(loadPart(dWeight + at, count), part), count);
  return f32x4.mul(part, loadPart(weight + at, count));
}

// @ts-ignore: decorator
@inline
function normGradStep(
  x: usize,
  weight: usize,
  dy: usize,
  dx: usize,
  at: usize,
  inverse: v128,
  mean: v128,
  count: i32,
): void {
  const g = f32x4.mul(loadPart(dy + at, count), loadPart(weight + at, count));
  storePart(dx + at, f32x4.mul(f32x4.sub(g, f32x4.mul(loadPart(x + at, count), mean)), inverse), count);
}

/** dx = (g - y mean(g y)) / rms with y = x / rms(x), g = dy weight; dWeight = sum over rows of dy y. */
export function rmsNormGrad(
  x: usize,
  weight: usize,
  dy: usize,
  dx: usize,
  dWeight: usize,
  rows: i32,
  n: i32,
  eps: f32,
): void {
  const bytes = <usize>(n * 4);
  memory.fill(dWeight, 0, bytes);
  for (let row = 0; row < rows; row++) {
    const scale = inverseRms(x, n, eps);
    const inverse = f32x4.splat(scale);
    let along = f32x4.splat(0);
    let i = 0;
    for (; i + 4 <= n; i += 4)
      along = f32x4.add(along, alongStep(x, weight, dy, dWeight, <usize>(i * 4), inverse, 4));
    if (i < n)
      along = f32x4.add(along, alongStep(x, weight, dy, dWeight, <usize>(i * 4), inverse, n - i));
    const mean = f32x4.splat((sum4(along) / <f32>n) * scale);
    for (i = 0; i + 4 <= n; i += 4) normGradStep(x, weight, dy, dx, <usize>(i * 4), inverse, mean, 4);
    if (i < n) normGradStep(x, weight, dy, dx, <usize>(i * 4), inverse, mean, n - i);
    x += bytes;
    dy += bytes;
    dx += bytes;
  }
}

// @ts-ignore: decorator
@inline
function rotateStep(
  x: usize,
  cos: usize,
  sin: usize,
  y: usize,
  far: usize,
  at: usize,
  sign: v128,
  count: i32,
): void {
  const a = loadPart(x + at, count);
  const b = loadPart(x + far + at, count);
  const c = loadPart(cos + at, count);
  const s = f32x4.mul(loadPart(sin + at, count), sign);
  storePart(y + at, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)), count);
  storePart(y + far + at, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)), count);
}

/** Turns one head's two halves by the angles in cos and sin [half] (sin times `sign`). */
export function rotateHead(x: usize, cos: usize, sin: usize, y: usize, half: i32, sign: f32): void {
  const far = <usize>(half * 4);
  const s = f32x4.splat(sign);
  let i = 0;
  for (; i + 4 <= half; i += 4) rotateStep(x, cos, sin, y, far, <usize>(i * 4), s, 4);
  if (i < half) rotateStep(x, cos, sin, y, far, <usize>(i * 4), s, half - i);
}

/** x [R, H, T, hd] by tables [R, T, hd], whose halves are equal; sign -1 turns back. */
export function rotate(
  x: usize,
  cos: usize,
  sin: usize,
  y: usize,
  R: i32,
  H: i32,
  T: i32,
  hd: i32,
  sign: f32,
): void {
  const bytes = <usize>(hd * 4);
  for (let r = 0; r < R; r++)
    for (let h = 0; h < H; h++)
      for (let t = 0; t < T; t++) {
        const at = <usize>(r * T + t) * bytes;
        rotateHead(x, cos + at, sin + at, y, hd >> 1, sign);
        x += bytes;
        y += bytes;
      }
}

// @ts-ignore: decorator
@inline
function sigmoid4(x: v128): v128 {
  return f32x4.div(f32x4.splat(1), f32x4.add(f32x4.splat(1), exp4(f32x4.neg(x))));
}

// @ts-ignore: decorator
@inline
function swigluStep(gate: usize, up: usize, y: usize, at: usize, count: i32): void {
  const g = loadPart(gate + at, count);
  storePart(y + at, f32x4.mul(f32x4.mul(g, sigmoid4(g)), loadPart(up + at, count)), count);
}

/** y = silu(gate) up; y's rows are dense, the others' `stride` bytes apart. */
export function swiglu(gate: usize, up: usize, y: usize, rows: i32, n: i32, stride: i32): void {
  for (let row = 0; row < rows; row++) {
    let i = 0;
    for (; i + 4 <= n; i += 4) swigluStep(gate, up, y, <usize>(i * 4), 4);
    if (i < n) swigluStep(gate, up, y, <usize>(i * 4), n - i);
    gate += stride;
    up += stride;
    y += <usize>(n * 4);
  }
}

// @ts-ignore: decorator
@inline
function swigluGradStep(
  gate: usize,
  up: usize,
  dy: usize,
  dGate: usize,
  dUp: usize,
  at: usize,
  count: i32,
): void {
  const one = f32x4.splat(1);
  const g = loadPart(gate + at, count);
  const d = loadPart(dy + at, count);
  const sigmoid = sigmoid4(g);
  const slope = f32x4.mul(sigmoid, f32x4.add(one, f32x4.mul(g, f32x4.sub(one, sigmoid))));
  storePart(dGate + at, f32x4.mul(f32x4.mul(d, loadPart(up + at, count)), slope), count);
  storePart(dUp + at, f32x4.mul(d, f32x4.mul(g, sigmoid)), count);
}

/** silu' = sigmoid (1 + gate (1 - sigmoid)) */
export function swigluGrad(gate: usize, up: usize, dy: usize, dGate: usize, dUp: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) swigluGradStep(gate, up, dy, dGate, dUp, <usize>(i * 4), 4);
  if (i < n) swigluGradStep(gate, up, dy, dGate, dUp, <usize>(i * 4), n - i);
}

/** y = a table's blocks of `bytes` at whole-number indices; `stride` bytes from block to block, `target` in y. */
export function gatherBlocks(
  table: usize,
  indices: usize,
  y: usize,
  count: i32,
  bytes: i32,
  stride: i32,
  target: i32,
): void {
  for (let i = 0; i < count; i++) {
    memory.copy(y, table + <usize>(load<i32>(indices + <usize>(i * 4)) * stride), <usize>bytes);
    y += target;
  }
}
