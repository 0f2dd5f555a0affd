/**
 * Softmax attention and its gradient over whole sequences, one row and key head at a time: the queries that read one
 * key head are the rows of one matrix. What a query cannot see at the end of its row (the future, padding) is not
 * computed. Formulas: lib/model/operations.ts.
 */
import { expRow, sum4 } from './math';
import { pack, product } from './product';

/** A bias below this hides its key. */
const HIDDEN: f32 = -1e8;

/** Columns as they are packed. */
function panels(n: i32): i32 {
  return (n + 7) & ~7;
}

/** Zeros from place `from` to `to`; memory.fill is a call out of the module, slow for so few. */
function zero(x: usize, from: i32, to: i32): void {
  for (; from + 4 <= to; from += 4) v128.store(x + <usize>(from * 4), f32x4.splat(0));
  for (; from < to; from++) store<f32>(x + <usize>(from * 4), 0);
}

/** For each query of a row, how many keys there are up to the last that it sees. */
function visible(bias: usize, limits: usize, T: i32, S: i32): void {
  for (let t = 0; t < T; t++) {
    let limit = S;
    while (limit > 1 && load<f32>(bias + <usize>((limit - 1) * 4)) < HIDDEN) limit--;
    store<i32>(limits + <usize>(t * 4), limit);
    bias += <usize>(S * 4);
  }
}

/** The largest limit of up to four queries. */
function widest(limits: usize, count: i32): i32 {
  let limit = load<i32>(limits);
  for (let i = 1; i < count; i++) limit = max(limit, load<i32>(limits + <usize>(i * 4)));
  return limit;
}

/** Scores of every query against the keys it sees: C [T, S] = A [T, hd] B with B packed. */
function seenProduct(a: usize, packed: usize, c: usize, limits: usize, T: i32, S: i32, hd: i32): void {
  for (let t = 0; t < T; t += 4) {
    const rows = min(4, T - t);
    const N = min(S, panels(widest(limits + <usize>(t * 4), rows)));
    const from = a + <usize>(t * hd * 4);
    product(from, packed, c + <usize>(t * S * 4), rows, N, hd, hd * 4, 4, S * 4, hd * 32, false);
  }
}

/** C [T, hd] = A [T, S] B with B packed, A zero beyond the limits. */
function mixProduct(a: usize, packed: usize, c: usize, limits: usize, T: i32, S: i32, hd: i32): void {
  for (let t = 0; t < T; t += 4) {
    const rows = min(4, T - t);
    const K = widest(limits + <usize>(t * 4), rows);
    const from = a + <usize>(t * S * 4);
    product(from, packed, c + <usize>(t * hd * 4), rows, hd, K, S * 4, 4, hd * 4, S * 32, false);
  }
}

/** C [S, hd] = or += A^T B with A [T, S] zero beyond the limits and B [T, hd] packed. */
function transposedProduct(
  a: usize,
  packed: usize,
  c: usize,
  limits: usize,
  T: i32,
  S: i32,
  hd: i32,
  add: bool,
): void {
  for (let s = 0; s < S; s += 4) {
    // The first query that sees any of these keys; none at all leaves the last, whose weights are zero.
    let t = 0;
    while (t < T - 1 && load<i32>(limits + <usize>(t * 4)) <= s) t++;
    product(
      a + <usize>((t * S + s) * 4),
      packed + <usize>(t * 32),
      c + <usize>(s * hd * 4),
      min(4, S - s),
      hd,
      T - t,
      4,
      S * 4,
      hd * 4,
      T * 32,
      add,
    );
  }
}

/**
 * @param q [R, H, T, hd]
 * @param k [R, Hkv, S, hd], as v
 * @param bias [R, T, S]
 * @param p [R, H, T, S]: the weights
 * @param out [R, H, T, hd]
 * @param scratch S + 4 + T + hd (S + 8) + S (hd + 8) numbers
 */
export function attention(
  q: usize,
  k: usize,
  v: usize,
  bias: usize,
  p: usize,
  out: usize,
  scratch: usize,
  R: i32,
  H: i32,
  Hkv: i32,
  T: i32,
  S: i32,
  hd: i32,
  scale: f32,
): void {
  const row = scratch;
  const limits = row + <usize>((S + 4) * 4);
  const keys = limits + <usize>(T * 4);
  const values = keys + <usize>(hd * panels(S) * 4);
  const factor = f32x4.splat(scale);
  for (let r = 0; r < R; r++) {
    visible(bias, limits, T, S);
    for (let h = 0; h < Hkv; h++) {
      pack(k, keys, hd, S, 4, hd * 4, 0);
      pack(v, values, S, hd, hd * 4, 4, 0);
      for (let g = H / Hkv; g > 0; g--) {
        seenProduct(q, keys, p, limits, T, S, hd);
        let weights = p;
        let b = bias;
        for (let t = 0; t < T; t++) {
          // Through a row of scratch, which has room beyond its last key.
          const limit = load<i32>(limits + <usize>(t * 4));
          let s = 0;
          for (; s + 4 <= limit; s += 4) {
            const at = <usize>(s * 4);
            v128.store(row + at, f32x4.add(f32x4.mul(v128.load(weights + at), factor), v128.load(b + at)));
          }
          for (; s < limit; s++) {
            const at = <usize>(s * 4);
            store<f32>(row + at, load<f32>(weights + at) * scale + load<f32>(b + at));
          }
          const inverse: f32 = 1 / expRow(row, limit);
          const inverses = f32x4.splat(inverse);
          for (s = 0; s + 4 <= limit; s += 4) {
            const at = <usize>(s * 4);
            v128.store(weights + at, f32x4.mul(v128.load(row + at), inverses));
          }
          for (; s < limit; s++) {
            const at = <usize>(s * 4);
            store<f32>(weights + at, load<f32>(row + at) * inverse);
          }
          zero(weights, limit, S);
          weights += <usize>(S * 4);
          b += <usize>(S * 4);
        }
        mixProduct(p, values, out, limits, T, S, hd);
        q += <usize>(T * hd * 4);
        p += <usize>(T * S * 4);
        out += <usize>(T * hd * 4);
      }
      k += <usize>(S * hd * 4);
      v += <usize>(S * hd * 4);
    }
    bias += <usize>(T * S * 4);
  }
}

/** p to the scores' gradient times the scale: p (dP - dOut . out) scale, zero beyond the limits. In dP's place. */
function scoresGrad(
  p: usize,
  dP: usize,
  dOut: usize,
  out: usize,
  limits: usize,
  T: i32,
  S: i32,
  hd: i32,
  scale: f32,
): void {
  const factor = f32x4.splat(scale);
  for (let t = 0; t < T; t++) {
    let sums = f32x4.splat(0);
    let d = 0;
    for (; d + 4 <= hd; d += 4) {
      const at = <usize>(d * 4);
      sums = f32x4.add(sums, f32x4.mul(v128.load(dOut + at), v128.load(out + at)));
    }
    let along = sum4(sums);
    for (; d < hd; d++) along += load<f32>(dOut + <usize>(d * 4)) * load<f32>(out + <usize>(d * 4));
    const four = f32x4.splat(along);
    const limit = load<i32>(limits + <usize>(t * 4));
    let s = 0;
    for (; s + 4 <= limit; s += 4) {
      const at = <usize>(s * 4);
      const change = f32x4.mul(f32x4.sub(v128.load(dP + at), four), factor);
      v128.store(dP + at, f32x4.mul(v128.load(p + at), change));
    }
    for (; s < limit; s++) {
      const at = <usize>(s * 4);
      store<f32>(dP + at, load<f32>(p + at) * ((load<f32>(dP + at) - along) * scale));
    }
    zero(dP, limit, S);
    p += <usize>(S * 4);
    dP += <usize>(S * 4);
    dOut += <usize>(hd * 4);
    out += <usize>(hd * 4);
  }
}

/**
 * The gradients dq, dk, dv of what `attention` gave (out, and its weights p) for dOut.
 * @param scratch T + T S + 2 S (hd + 8) + 2 T (hd + 8) + hd (S + 8) numbers
 */
export function attentionGrad(
  q: usize,
  k: usize,
  v: usize,
  bias: usize,
  p: usize,
  out: usize,
  dOut: usize,
  dq: usize,
  dk: usize,
  dv: usize,
  scratch: usize,
  R: i32,
  H: i32,
  Hkv: i32,
  T: i32,
  S: i32,
  hd: i32,
  scale: f32,
): void {
  const limits = scratch;
  const dP = limits + <usize>(T * 4);
  const keys = dP + <usize>(T * S * 4);
  const values = keys + <usize>(S * panels(hd) * 4);
  const queries = values + <usize>(hd * panels(S) * 4);
  const changes = queries + <usize>(T * panels(hd) * 4);
  for (let r = 0; r < R; r++) {
    visible(bias, limits, T, S);
    for (let h = 0; h < Hkv; h++) {
      pack(k, keys, S, hd, hd * 4, 4, 0);
      pack(v, values, hd, S, 4, hd * 4, 0);
      for (let g = 0; g < H / Hkv; g++) {
        pack(q, queries, T, hd, hd * 4, 4, 0);
        pack(dOut, changes, T, hd, hd * 4, 4, 0);
        seenProduct(dOut, values, dP, limits, T, S, hd);
        scoresGrad(p, dP, dOut, out, limits, T, S, hd, scale);
        transposedProduct(p, changes, dv, limits, T, S, hd, g > 0);
        mixProduct(dP, keys, dq, limits, T, S, hd);
        transposedProduct(dP, queries, dk, limits, T, S, hd, g > 0);
        q += <usize>(T * hd * 4);
        p += <usize>(T * S * 4);
        out += <usize>(T * hd * 4);
        dOut += <usize>(T * hd * 4);
        dq += <usize>(T * hd * 4);
      }
      k += <usize>(S * hd * 4);
      v += <usize>(S * hd * 4);
      dk += <usize>(S * hd * 4);
      dv += <usize>(S * hd * 4);
    }
    bias += <usize>(T * S * 4);
  }
}
