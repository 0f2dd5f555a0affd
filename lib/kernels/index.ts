/** The module's exports; lib/tensors/wasm-kernels.ts loads it. AssemblyScript: it works in memory that the caller owns. */
export { attention, attentionGrad } from './attention';
export { cachedAttention } from './cached-attention';
export { gatherBlocks, rmsNorm, rmsNormalise, rmsNormGrad, rotate, swiglu, swigluGrad } from './elementwise';
export { matMul, pack, product } from './product';
export { sampleTokens } from './sample';
