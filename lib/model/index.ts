/** The room's public face: the transformer of Qwen3 and Llama, its cache, LoRA adapters, and their files. */
export * from './block-cache.js';
export * from './blocks.js';
export * from './cache.js';
export * from './checkpoint.js';
export * from './config.js';
export * from './lora.js';
export * from './peft.js';
export * from './safetensors.js';
export * from './transformer.js';
