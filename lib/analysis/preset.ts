/**
 * The files of a single experiment, as the presets `smoke` and `quick` write them: the main table with its notes, the
 * same with the direction chosen as the paper did, and two figures. Left out: pictures; studies have reports of their own
 * (studies/).
 */
import type { ExperimentResults } from '../experiments/experiment.js';
import { jsonText } from './export.js';
import { mainFigure } from './figures.js';
import { toCsv, toMarkdown } from './formats.js';
import { honestNotes } from './notes.js';
import { readPaper } from './paper.js';
import type { Figure } from './plotly-jsdom.js';
import { mainTable } from './tables.js';
import { trainingFigure } from './training.js';

/** The figures by name. */
export function presetFigures(
  name: string,
  { results, metrics }: Pick<ExperimentResults, 'results' | 'metrics'>,
): Record<string, Figure> {
  const training = Object.keys(metrics).length > 0 ? { [`${name}-training`]: trainingFigure(metrics) } : {};
  return { [name]: mainFigure(results, readPaper()), ...training };
}

/** The tables by their paths inside a results folder. @param name of the table, such as `main` */
export function presetTables(
  name: string,
  { results, bestOnHeldout }: Pick<ExperimentResults, 'results' | 'bestOnHeldout'>,
): Record<string, string> {
  const paper = readPaper();
  const table = mainTable(results, paper);
  const notes = honestNotes(results, paper).map((note) => `- ${note}\n`);
  return {
    [`tables/${name}.csv`]: toCsv(table),
    [`tables/${name}.md`]: `${toMarkdown(table)}\n${notes.join('')}`,
    [`tables/${name}-best-on-heldout.csv`]: toCsv(mainTable(bestOnHeldout, paper)),
  };
}

/** Every text file by its path inside a results folder. */
export function presetFiles(name: string, found: ExperimentResults): Record<string, string> {
  const figures = Object.entries(presetFigures(name, found));
  return {
    ...presetTables(name, found),
    ...Object.fromEntries(figures.map(([figure, spec]) => [`figures/${figure}.json`, jsonText(spec)])),
  };
}
