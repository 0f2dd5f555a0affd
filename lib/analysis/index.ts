/** The analysis room: statistics, tables, figures and their export. */
export * from './book/index.js';
export * from './export.js';
export * from './figures.js';
export * from './formats.js';
export * from './notes.js';
export * from './paper.js';
export type { Figure, Size } from './plotly-jsdom.js';
export * from './preset.js';
export * from './stats.js';
export * from './studies/index.js';
export * from './tables.js';
export * from './training.js';
