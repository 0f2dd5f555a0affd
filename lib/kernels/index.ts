/**
 * Our own kernels for the wasm backend, in AssemblyScript (asconfig.json): arguments are addresses in bytes and
 * numbers, all memory is the caller's, and nothing is allocated or static here. lib/tensors/wasm-kernels.ts loads
 * the module.
 */
export { attention, attentionGrad } from './attention';
export { cachedAttention } from './cached-attention';
export { gatherBlocks, rmsNorm, rmsNormalise, rmsNormGrad, rotate, swiglu, swigluGrad } from './elementwise';
export { matMul, pack, product } from './product';
export { sampleTokens } from './sample';
