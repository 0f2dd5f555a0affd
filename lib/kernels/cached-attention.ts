/**
 * Attention of one new token per row against its cached past: normalises (where the model does) and rotates its
 * queries and keys, appends key and value to the cache, and mixes the values, in one pass.
 *
 * A row's tokens lie in its cache from place 0 on, place = position: no padding, and a row's sums do not depend on
 * the other rows. The head size must be a multiple of 8. Left out: several new tokens at once.
 */
import { rotateHead, rmsNorm } from './elementwise';
import { expRow, sums4 } from './math';

/** The sums over depth of two queries by four keys, as two vectors in `scores`. */
// @ts-ignore: decorator
@inline
function scoreFour(q: usize, next: usize, k: usize, bytes: usize, scores: usize, nextScores: usize): void {
  const zero = f32x4.splat(0);
  const k1 = k + bytes;
  const k2 = k1 + bytes;
  const k3 = k2 + bytes;
  let a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  for (let at: usize = 0; at < bytes; at += 16) {
    const a = v128.load(q + at);
    const b = v128.load(next + at);
    let key = v128.load(k + at);
    a0 = f32x4.add(a0, f32x4.mul(a, key));
    b0 = f32x4.add(b0, f32x4.mul(b, key));
    key = v128.load(k1 + at);
    a1 = f32x4.add(a1, f32x4.mul(a, key));
    b1 = f32x4.add(b1, f32x4.mul(b, key));
    key = v128.load(k2 + at);
    a2 = f32x4.add(a2, f32x4.mul(a, key));
    b2 = f32x4.add(b2, f32x4.mul(b, key));
    key = v128.load(k3 + at);
    a3 = f32x4.add(a3, f32x4.mul(a, key));
    b3 = f32x4.add(b3, f32x4.mul(b, key));
  }
  v128.store(scores, sums4(a0, a1, a2, a3));
  v128.store(nextScores, sums4(b0, b1, b2, b3));
}

/** Two rows of weights times the values, `count` rows of `bytes`, each scaled; 16 or 4 columns at a time. */
// @ts-ignore: decorator
@inline
function mix(
  p: usize,
  nextP: usize,
  v: usize,
  count: i32,
  bytes: usize,
  scale: f32,
  nextScale: f32,
  out: usize,
  nextOut: usize,
): void {
  const zero = f32x4.splat(0);
  const s = f32x4.splat(scale);
  const t = f32x4.splat(nextScale);
  const end = p + <usize>(count * 4);
  let at: usize = 0;
  for (; at + 64 <= bytes; at += 64) {
    let a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
    let row = v + at;
    for (let i = p, j = nextP; i < end; i += 4, j += 4) {
      const a = v128.load32_splat(i);
      const b = v128.load32_splat(j);
      let value = v128.load(row);
      a0 = f32x4.add(a0, f32x4.mul(a, value));
      b0 = f32x4.add(b0, f32x4.mul(b, value));
      value = v128.load(row, 16);
      a1 = f32x4.add(a1, f32x4.mul(a, value));
      b1 = f32x4.add(b1, f32x4.mul(b, value));
      value = v128.load(row, 32);
      a2 = f32x4.add(a2, f32x4.mul(a, value));
      b2 = f32x4.add(b2, f32x4.mul(b, value));
      value = v128.load(row, 48);
      a3 = f32x4.add(a3, f32x4.mul(a, value));
      b3 = f32x4.add(b3, f32x4.mul(b, value));
      row += bytes;
    }
    v128.store(out + at, f32x4.mul(a0, s));
    v128.store(out + at, f32x4.mul(a1, s), 16);
    v128.store(out + at, f32x4.mul(a2, s), 32);
    v128.store(out + at, f32x4.mul(a3, s), 48);
    v128.store(nextOut + at, f32x4.mul(b0, t));
    v128.store(nextOut + at, f32x4.mul(b1, t), 16);
    v128.store(nextOut + at, f32x4.mul(b2, t), 32);
    v128.store(nextOut + at, f32x4.mul(b3, t), 48);
  }
  for (; at < bytes; at += 16) {
    let a = zero, b = zero;
    let row = v + at;
    for (let i = p, j = nextP; i < end; i += 4, j += 4) {
      const value = v128.load(row);
      a = f32x4.add(a, f32x4.mul(v128.load32_splat(i), value));
      b = f32x4.add(b, f32x4.mul(v128.load32_splat(j), value));
      row += bytes;
    }
    v128.store(out + at, f32x4.mul(a, s));
    v128.store(nextOut + at, f32x4.mul(b, t));
  }
}

/**
 * @param qkv [R, (H + 2 Hkv) hd]: this token's queries, keys and values; normalised and rotated in place
 * @param qNorm [hd], the norm's weight times 1 / sqrt(hd); 0: queries come with that scale, and neither they nor keys
 *   have a norm
 * @param cos [positions, hd / 2], as sin
 * @param positions [R] int32: where the token goes, and so how many came before it
 * @param k [R, Hkv, capacity, hd], as v; read up to three places beyond the last token's
 * @param scores scratch, two rows of capacity + 4
 * @param out [R, H hd]
 */
export function cachedAttention(
  qkv: usize,
  qNorm: usize,
  kNorm: usize,
  eps: f32,
  cos: usize,
  sin: usize,
  positions: usize,
  k: usize,
  v: usize,
  scores: usize,
  out: usize,
  R: i32,
  H: i32,
  Hkv: i32,
  hd: i32,
  capacity: i32,
): void {
  const bytes = <usize>(hd * 4);
  const block = <usize>capacity * bytes;
  const group = H / Hkv;
  const nextScores = scores + <usize>(((capacity + 3) & ~3) * 4);
  for (let r = 0; r < R; r++) {
    const position = load<i32>(positions + <usize>(r * 4));
    const count = position + 1;
    const angle = <usize>(position * (hd >> 1) * 4);
    const keys = qkv + <usize>H * bytes;
    const values = keys + <usize>Hkv * bytes;
    if (qNorm) {
      rmsNorm(qkv, qNorm, qkv, H, hd, eps);
      rmsNorm(keys, kNorm, keys, Hkv, hd, eps);
    }
    for (let h: usize = 0; h < <usize>H; h++)
      rotateHead(qkv + h * bytes, cos + angle, sin + angle, qkv + h * bytes, hd >> 1, 1);
    for (let h: usize = 0; h < <usize>Hkv; h++) {
      const place = <usize>position * bytes;
      rotateHead(keys + h * bytes, cos + angle, sin + angle, k + place, hd >> 1, 1);
      const value = values + h * bytes;
      for (let at: usize = 0; at < bytes; at += 16) v128.store(v + place + at, v128.load(value + at));
      for (let g = 0; g < group; g += 2) {
        // An odd query out is done twice, into the same places.
        const head = h * <usize>group + <usize>g;
        const next = g + 1 < group ? head + 1 : head;
        const q = qkv + head * bytes;
        const nextQ = qkv + next * bytes;
        for (let s = 0; s < count; s += 4)
          scoreFour(
            q,
            nextQ,
            k + <usize>s * bytes,
            bytes,
            scores + <usize>(s * 4),
            nextScores + <usize>(s * 4),
          );
        const scale: f32 = 1 / expRow(scores, count);
        const nextScale: f32 = 1 / expRow(nextScores, count);
        mix(scores, nextScores, v, count, bytes, scale, nextScale, out + head * bytes, out + next * bytes);
      }
      k += block;
      v += block;
    }
    qkv += <usize>(H + 2 * Hkv) * bytes;
    out += <usize>H * bytes;
  }
}
