/** What several kernels share: four exponentials at once, a logarithm, sums across lanes. */

/**
 * e^x in four lanes; relative error below 2e-7. x is clamped to what float32 can hold: below -87.3 the result is
 * about 1e-38.
 * Cephes' expf: x = n ln 2 + r, a polynomial in r, times 2^n.
 */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const t = f32x4.pmax(f32x4.pmin(x, f32x4.splat(88)), f32x4.splat(-87.3)); // one instruction each; NaN stays
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
  const whole = f32x4.add(f32x4.mul(t, f32x4.splat(1.44269504088896341)), f32x4.splat(12582912));
  const n = f32x4.sub(whole, f32x4.splat(12582912));
  const high = f32x4.sub(t, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  p = f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), f32x4.add(r, f32x4.splat(1)));
  const power = i32x4.shl(i32x4.add(whole, i32x4.splat(127)), 23);
  return f32x4.mul(p, power);
}

// @ts-ignore: decorator
@inline
export function sum4(x: v128): f32 {
  return (
    f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3))
  );
}

/** The sums of four vectors, as one. */
// @ts-ignore: decorator
@inline
export function sums4(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
}

/** Loads the first `count` (1 to 4) of four numbers; the other lanes are zero. */
// @ts-ignore: decorator
@inline
export function loadPart(p: usize, count: i32): v128 {
  if (count >= 4) return v128.load(p);
  let x = v128.load32_zero(p);
  if (count > 1) x = v128.load_lane<f32>(p + 4, x, 1);
  if (count > 2) x = v128.load_lane<f32>(p + 8, x, 2);
  return x;
}

/** Stores the first `count` (1 to 4) lanes. */
// @ts-ignore: decorator
@inline
export function storePart(p: usize, x: v128, count: i32): void {
  if (count >= 4) {
    v128.store(p, x);
    return;
  }
  v128.store_lane<f32>(p, x, 0);
  if (count > 1) v128.store_lane<f32>(p + 4, x, 1);
  if (count > 2) v128.store_lane<f32>(p + 8, x, 2);
}

/**
 * The natural logarithm of a normal positive number, to 2e-7 of its own size or of 1; NaN of NaN, -Infinity of 0.
 * Cephes' logf: x = 2^e m with m around 1, a polynomial in m - 1.
 */
export function log(x: f32): f32 {
  if (!(x > 0)) return x == 0 ? -Infinity : NaN;
  if (x == Infinity) return x;
  const bits = reinterpret<i32>(x);
  let e = <f32>((bits >> 23) - 126);
  let m = reinterpret<f32>((bits & 0x007fffff) | 0x3f000000) - 1; // m in [1/2, 1), less 1
  if (m < -0.292893218813452) {
    e -= 1;
    m += m + 1;
  }
  const z = m * m;
  let y: f32 = 7.0376836292e-2;
  y = y * m - 1.1514610310e-1;
  y = y * m + 1.1676998740e-1;
  y = y * m - 1.2420140846e-1;
  y = y * m + 1.4249322787e-1;
  y = y * m - 1.6668057665e-1;
  y = y * m + 2.0000714765e-1;
  y = y * m - 2.4999993993e-1;
  y = y * m + 3.3333331174e-1;
  y = y * m * z + e * -2.12194440e-4 - 0.5 * z;
  return m + y + e * 0.693359375;
}

/**
 * A row of numbers x to e^(x - largest), and next to nothing from `count` to the next multiple of four, where x
 * must have room; returns their sum.
 */
export function expRow(x: usize, count: i32): f32 {
  const end = x + <usize>(((count + 3) & ~3) * 4);
  for (let i = x + <usize>(count * 4); i < end; i += 4) store<f32>(i, -1e30);
  let top = f32x4.splat(-1e30);
  for (let i = x; i < end; i += 16) top = f32x4.pmax(top, v128.load(i));
  const largest = f32x4.splat(
    max(
      max(f32x4.extract_lane(top, 0), f32x4.extract_lane(top, 1)),
      max(f32x4.extract_lane(top, 2), f32x4.extract_lane(top, 3)),
    ),
  );
  let sum = f32x4.splat(0);
  for (let i = x; i < end; i += 16) {
    const e = exp4(f32x4.sub(v128.load(i), largest));
    v128.store(i, e);
    sum = f32x4.add(sum, e);
  }
  return sum4(sum);
}
