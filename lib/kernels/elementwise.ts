/**
 * RMS normalisation, rotary positions and SwiGLU, each in one pass over the numbers, with their gradients; and the
 * rows of a table. Formulas: lib/model/operations.ts.
 */
import { exp4, loadPart, storePart, sum4 } from './math';

/** 1 / rms of a row. */
// @ts-ignore: decorator
@inline
function inverseRms(x: usize, n: i32, eps: f32): f32 {
  let sum = f32x4.splat(0);
  for (let i = 0; i < n; i += 4) {
    const v = loadPart(x + <usize>(i * 4), n - i);
    sum = f32x4.add(sum, f32x4.mul(v, v));
  }
  return 1 / Mathf.sqrt(sum4(sum) / <f32>n + eps);
}

/** y = x / rms(x) * weight over rows of n numbers; weight 0: none. */
export function rmsNorm(x: usize, weight: usize, y: usize, rows: i32, n: i32, eps: f32): void {
  const bytes = <usize>(n * 4);
  for (let row = 0; row < rows; row++) {
    const inverse = f32x4.splat(inverseRms(x, n, eps));
    for (let i = 0; i < n; i += 4) {
      const at = <usize>(i * 4);
      let v = f32x4.mul(loadPart(x + at, n - i), inverse);
      if (weight) v = f32x4.mul(v, loadPart(weight + at, n - i));
      storePart(y + at, v, n - i);
    }
    x += bytes;
    y += bytes;
  }
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
    for (let i = 0; i < n; i += 4) {
      const at = <usize>(i * 4);
      const part = f32x4.mul(loadPart(dy + at, n - i), f32x4.mul(loadPart(x + at, n - i), inverse));
      storePart(dWeight + at, f32x4.add(loadPart(dWeight + at, n - i), part), n - i);
      along = f32x4.add(along, f32x4.mul(part, loadPart(weight + at, n - i)));
    }
    const mean = f32x4.splat((sum4(along) / <f32>n) * scale);
    for (let i = 0; i < n; i += 4) {
      const at = <usize>(i * 4);
      const g = f32x4.mul(loadPart(dy + at, n - i), loadPart(weight + at, n - i));
      const v = f32x4.sub(g, f32x4.mul(loadPart(x + at, n - i), mean));
      storePart(dx + at, f32x4.mul(v, inverse), n - i);
    }
    x += bytes;
    dy += bytes;
    dx += bytes;
  }
}

/** Turns one head's two halves by the angles in cos and sin [half] (sin times `sign`). */
export function rotateHead(x: usize, cos: usize, sin: usize, y: usize, half: i32, sign: f32): void {
  const far = <usize>(half * 4);
  const s = f32x4.splat(sign);
  for (let i = 0; i < half; i += 4) {
    const at = <usize>(i * 4);
    const n = half - i;
    const a = loadPart(x + at, n);
    const b = loadPart(x + far + at, n);
    const c = loadPart(cos + at, n);
    const d = f32x4.mul(loadPart(sin + at, n), s);
    storePart(y + at, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, d)), n);
    storePart(y + far + at, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, d)), n);
  }
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

/** y = silu(gate) up; y's rows are dense, the others' `stride` bytes apart. */
export function swiglu(gate: usize, up: usize, y: usize, rows: i32, n: i32, stride: i32): void {
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < n; i += 4) {
      const at = <usize>(i * 4);
      const g = loadPart(gate + at, n - i);
      storePart(y + at, f32x4.mul(f32x4.mul(g, sigmoid4(g)), loadPart(up + at, n - i)), n - i);
    }
    gate += stride;
    up += stride;
    y += <usize>(n * 4);
  }
}

/** silu' = sigmoid (1 + gate (1 - sigmoid)) */
export function swigluGrad(gate: usize, up: usize, dy: usize, dGate: usize, dUp: usize, n: i32): void {
  const one = f32x4.splat(1);
  for (let i = 0; i < n; i += 4) {
    const at = <usize>(i * 4);
    const g = loadPart(gate + at, n - i);
    const d = loadPart(dy + at, n - i);
    const sigmoid = sigmoid4(g);
    const slope = f32x4.mul(sigmoid, f32x4.add(one, f32x4.mul(g, f32x4.sub(one, sigmoid))));
    storePart(dGate + at, f32x4.mul(f32x4.mul(d, loadPart(up + at, n - i)), slope), n - i);
    storePart(dUp + at, f32x4.mul(d, f32x4.mul(g, sigmoid)), n - i);
  }
}

/** y = the blocks of `bytes` of a table at whole-number indices, `stride` bytes apart on both sides. */
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
