/**
 * Matrix products in tiles of 4 rows x 8 columns: eight sums in registers, two vectors of B, one number of A at a
 * time. B is packed first, panels of 8 columns in the order they are read, zeros beyond the last column.
 *
 * A number of C is summed over the depth in order (by `matMul` in sums of 256), whatever its tile: a row's result does
 * not depend on which other rows are there. Strides are in bytes. Left out: threads, float16.
 */

/** Blocks of A and B that stay in the second-level cache; scratch holds DEPTH x COLUMNS numbers. */
const DEPTH: i32 = 256;
const COLUMNS: i32 = 512;
const ROWS: i32 = 128;

/** B [K, N] to panels [ceil(N / 8)][K][8]; row k times scale[k] where there is a scale. */
export function pack(
  b: usize,
  packed: usize,
  K: i32,
  N: i32,
  bRow: i32,
  bColumn: i32,
  scale: usize,
): void {
  let out = packed;
  for (let n = 0; n < N; n += 8) {
    const width = min(8, N - n);
    let row = b + <usize>(n * bColumn);
    for (let k = 0; k < K; k++) {
      const factor: f32 = scale ? load<f32>(scale + <usize>(k * 4)) : 1;
      if (width == 8 && bColumn == 4) {
        const f = f32x4.splat(factor);
        v128.store(out, f32x4.mul(v128.load(row), f));
        v128.store(out, f32x4.mul(v128.load(row, 16), f), 16);
      } else {
        let at = row;
        for (let i = 0; i < 8; i++) {
          store<f32>(out + <usize>(i * 4), i < width ? load<f32>(at) * factor : 0);
          if (i < width) at += bColumn;
        }
      }
      out += 32;
      row += bRow;
    }
  }
}

// @ts-ignore: decorator
@inline
function put(c: usize, x: v128, y: v128, add: bool): void {
  v128.store(c, add ? f32x4.add(v128.load(c), x) : x);
  v128.store(c, add ? f32x4.add(v128.load(c, 16), y) : y, 16);
}

/** The first `width` of eight numbers. */
function putPart(c: usize, x: v128, y: v128, width: i32, add: bool): void {
  for (let i = 0; i < width; i++) {
    const value = f32x4.extract_lane(x, 0);
    store<f32>(c, add ? load<f32>(c) + value : value);
    c += 4;
    x = i == 3 ? y : v128.shuffle<f32>(x, x, 1, 2, 3, 0);
  }
}

/**
 * C [M, N] = A [M, K] B with B packed, or C += A B where `add` is set.
 * @param panel bytes from panel to panel of B: 32 K, or more where only the first K of its rows are wanted
 */
export function product(
  a: usize,
  packed: usize,
  c: usize,
  M: i32,
  N: i32,
  K: i32,
  aRow: i32,
  aColumn: i32,
  cRow: i32,
  panel: i32,
  add: bool,
): void {
  const zero = f32x4.splat(0);
  for (let n = 0; n < N; n += 8) {
    const end = packed + <usize>(K * 32);
    const width = N - n;
    let row = a;
    let out = c + <usize>(n * 4);
    let m = 0;
    for (; m + 4 <= M; m += 4) {
      let a0 = row;
      let a1 = a0 + aRow;
      let a2 = a1 + aRow;
      let a3 = a2 + aRow;
      let x0 = zero, y0 = zero, x1 = zero, y1 = zero, x2 = zero, y2 = zero, x3 = zero, y3 = zero;
      // Not unrolled: V8 would load both steps' operands at once and spill the sums (36 instead of 60 GFLOP/s).
      for (let p = packed; p < end; p += 32) {
        const u = v128.load(p);
        const v = v128.load(p, 16);
        let s = v128.load32_splat(a0);
        x0 = f32x4.add(x0, f32x4.mul(s, u));
        y0 = f32x4.add(y0, f32x4.mul(s, v));
        s = v128.load32_splat(a1);
        x1 = f32x4.add(x1, f32x4.mul(s, u));
        y1 = f32x4.add(y1, f32x4.mul(s, v));
        s = v128.load32_splat(a2);
        x2 = f32x4.add(x2, f32x4.mul(s, u));
        y2 = f32x4.add(y2, f32x4.mul(s, v));
        s = v128.load32_splat(a3);
        x3 = f32x4.add(x3, f32x4.mul(s, u));
        y3 = f32x4.add(y3, f32x4.mul(s, v));
        a0 += aColumn;
        a1 += aColumn;
        a2 += aColumn;
        a3 += aColumn;
      }
      if (width >= 8) {
        put(out, x0, y0, add);
        put(out + cRow, x1, y1, add);
        put(out + 2 * cRow, x2, y2, add);
        put(out + 3 * cRow, x3, y3, add);
      } else {
        putPart(out, x0, y0, width, add);
        putPart(out + cRow, x1, y1, width, add);
        putPart(out + 2 * cRow, x2, y2, width, add);
        putPart(out + 3 * cRow, x3, y3, width, add);
      }
      row += 4 * aRow;
      out += 4 * cRow;
    }
    for (; m < M; m++) {
      let a0 = row;
      let x = zero, y = zero;
      for (let p = packed; p < end; p += 32) {
        const s = v128.load32_splat(a0);
        x = f32x4.add(x, f32x4.mul(s, v128.load(p)));
        y = f32x4.add(y, f32x4.mul(s, v128.load(p, 16)));
        a0 += aColumn;
      }
      if (width >= 8) put(out, x, y, add);
      else putPart(out, x, y, width, add);
      row += aRow;
      out += cRow;
    }
    packed += panel;
  }
}

/** C = A B for every matrix of a batch, [M, K] and [K, N] under any strides, C dense. */
export function matMul(
  a: usize,
  b: usize,
  c: usize,
  batch: i32,
  M: i32,
  N: i32,
  K: i32,
  aRow: i32,
  aColumn: i32,
  bRow: i32,
  bColumn: i32,
  scratch: usize,
): void {
  for (let item = 0; item < batch; item++) {
    for (let n = 0; n < N; n += COLUMNS) {
      const width = min(COLUMNS, N - n);
      for (let k = 0; k < K; k += DEPTH) {
        const depth = min(DEPTH, K - k);
        pack(b + <usize>(k * bRow + n * bColumn), scratch, depth, width, bRow, bColumn, 0);
        for (let m = 0; m < M; m += ROWS)
          product(
            a + <usize>(m * aRow + k * aColumn),
            scratch,
            c + <usize>((m * N + n) * 4),
            min(ROWS, M - m),
            width,
            depth,
            aRow,
            aColumn,
            N * 4,
            depth * 32,
            k > 0,
          );
      }
    }
    a += <usize>(M * K * 4);
    b += <usize>(K * N * 4);
    c += <usize>(M * N * 4);
  }
}
