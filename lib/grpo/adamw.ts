/**
 * AdamW (Loshchilov & Hutter 2019, decoupled weight decay, as torch.optim.AdamW) over named parameters.
 *
 * It runs on the host: an adapter is small, the numbers are then the same on every backend, and the moments
 * are plain arrays keyed by name that a checkpoint writes as they are. `{ init, update }` over plain trees;
 * the caller owns the state. Left out: per-parameter groups, amsgrad.
 */

/** Parameters, gradients or moments by name. */
export type NamedArrays = Record<string, Float32Array>;

export interface AdamWState {
  step: number;
  readonly m: NamedArrays;
  readonly v: NamedArrays;
}

export interface AdamWOptions {
  readonly learningRate: number;
  /** TRL/transformers: `adam_beta1`, `adam_beta2`, `adam_epsilon`, `weight_decay`. */
  readonly adamBeta1: number;
  readonly adamBeta2: number;
  readonly adamEpsilon: number;
  readonly weightDecay: number;
}

/** Zero moments for these parameters. */
export function initAdamW(params: NamedArrays): AdamWState {
  const zeros = () =>
    Object.fromEntries(Object.entries(params).map(([name, p]) => [name, new Float32Array(p.length)]));
  return { step: 0, m: zeros(), v: zeros() };
}

/**
 * One step: changes `params` and `state` in place.
 * @throws when a gradient is missing, of another size or not finite – before anything is changed
 */
export function updateAdamW(
  params: NamedArrays,
  grads: NamedArrays,
  state: AdamWState,
  options: AdamWOptions,
): void {
  for (const [name, p] of Object.entries(params)) {
    const g = grads[name];
    if (!g || g.length !== p.length)
      throw new Error(
        `gradient of '${name}': ${g ? `${g.length} numbers` : 'missing'}, expected ${p.length}`,
      );
    for (let i = 0; i < g.length; i++)
      if (!Number.isFinite(g[i]!)) throw new Error(`gradient of '${name}' holds ${g[i]} at ${i}`);
  }
  const { learningRate: lr, adamBeta1: b1, adamBeta2: b2, adamEpsilon: eps, weightDecay } = options;
  state.step += 1;
  const correct1 = 1 - b1 ** state.step;
  const correct2 = Math.sqrt(1 - b2 ** state.step);
  for (const [name, p] of Object.entries(params)) {
    const g = grads[name]!;
    const m = state.m[name]!;
    const v = state.v[name]!;
    for (let i = 0; i < p.length; i++) {
      const gi = g[i]!;
      const mi = b1 * m[i]! + (1 - b1) * gi;
      const vi = b2 * v[i]! + (1 - b2) * gi * gi;
      m[i] = mi;
      v[i] = vi;
      p[i] = p[i]! * (1 - lr * weightDecay) - ((lr / correct1) * mi) / (Math.sqrt(vi) / correct2 + eps);
    }
  }
}

/** The Euclidean norm over all gradients (TRL's `grad_norm`). */
export function globalNorm(grads: NamedArrays): number {
  let sum = 0;
  for (const g of Object.values(grads)) for (let i = 0; i < g.length; i++) sum += g[i]! * g[i]!;
  return Math.sqrt(sum);
}

/** Scales gradients in place so that their norm is at most `maxGradNorm`; returns the norm before. */
export function clipGradNorm(grads: NamedArrays, maxGradNorm: number): number {
  const norm = globalNorm(grads);
  if (norm > maxGradNorm) {
    const scale = maxGradNorm / (norm + 1e-6);
    for (const g of Object.values(grads)) for (let i = 0; i < g.length; i++) g[i] = g[i]! * scale;
  }
  return norm;
}

/**
 * The learning rate's factor at `step` (0-based): linear warm-up, then constant, linear to 0 or half a cosine to 0.
 * After the warm-up these are transformers' schedules; in it the factor is (step + 1) / warmupSteps where theirs
 * is step / warmupSteps, which spends the first step at rate 0.
 */
export function scheduleFactor(
  step: number,
  options: { warmupSteps: number; maxSteps: number; lrSchedulerType: 'constant' | 'linear' | 'cosine' },
): number {
  const { warmupSteps, maxSteps, lrSchedulerType } = options;
  if (step < warmupSteps) return (step + 1) / warmupSteps;
  if (lrSchedulerType === 'constant') return 1;
  const left = Math.max(0, (maxSteps - step) / Math.max(1, maxSteps - warmupSteps));
  return lrSchedulerType === 'linear' ? left : 0.5 * (1 - Math.cos(Math.PI * left));
}
