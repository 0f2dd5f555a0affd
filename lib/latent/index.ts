/** The room's public face: gates, memories as tensors, and what of a draft may be read. */
export * from './gate.js';
export * from './memory.js';
export * from './places.js';
