/**
 * What a study has to say: tables, figures and sentences, and how they are written to files. A report is computed from
 * gathered runs alone, so the same folders give the same files. Left out: what a study's tables hold (the other files of
 * this folder).
 */
import { join } from 'node:path';
import type { DataFrame } from 'danfojs-node';
import { writeFileAtomic } from '../../files.js';
import { type Cell, frameOf } from '../cells.js';
import { exportFigure, type FigureFormat, jsonText } from '../export.js';
import { tableFiles } from '../formats.js';
import type { Figure } from '../plotly-jsdom.js';

/** What is kept of a study's figures: a PDF is made in no time from the spec when somebody wants one. */
const FORMATS: readonly FigureFormat[] = ['json', 'svg', 'png'];

/** One table; its name is the name of its files. */
export interface ReportTable {
  readonly name: string;
  readonly frame: DataFrame;
  /** What a row is and how its intervals were made, in a sentence or two. */
  readonly caption: string;
}

export interface ReportFigure {
  readonly name: string;
  readonly spec: Figure;
}

export interface StudyReport {
  readonly tables: readonly ReportTable[];
  readonly figures: readonly ReportFigure[];
  /** One sentence per finding, plain text. */
  readonly notes: readonly string[];
}

/** A table of rows, or none where there is nothing to say. */
export function reportTable(
  name: string,
  caption: string,
  rows: readonly Readonly<Record<string, Cell>>[],
): ReportTable[] {
  return rows.length === 0 ? [] : [{ name, caption, frame: frameOf(rows) }];
}

/** Several reports as one, in order. */
export function joinReports(...reports: readonly StudyReport[]): StudyReport {
  return {
    tables: reports.flatMap((report) => report.tables),
    figures: reports.flatMap((report) => report.figures),
    notes: reports.flatMap((report) => report.notes),
  };
}

/**
 * The files of a report that are text of its own, by their paths inside a results folder: tables/<name>.csv, .md and .tex
 * and figures/<name>.json. The notes stand under the first table's Markdown.
 */
export function reportFiles({ tables, figures, notes }: StudyReport): Record<string, string> {
  const files: Record<string, string> = {};
  for (const [i, { name, frame, caption }] of tables.entries()) {
    const list = i === 0 && notes.length > 0 ? `\n${notes.map((note) => `- ${note}\n`).join('')}` : '';
    const { csv, md, tex } = tableFiles(frame, { caption, label: `tab:${name}` });
    files[`tables/${name}.csv`] = csv;
    files[`tables/${name}.md`] = `${md}${list}`;
    files[`tables/${name}.tex`] = tex;
  }
  for (const { name, spec } of figures) files[`figures/${name}.json`] = jsonText(spec);
  return files;
}

/**
 * Writes the files of {@link reportFiles} and each figure's .svg and .png into a results folder.
 * @returns the paths written
 */
export async function writeStudyReport(report: StudyReport, folder: string): Promise<string[]> {
  const written: string[] = [];
  for (const [name, text] of Object.entries(reportFiles({ ...report, figures: [] }))) {
    writeFileAtomic(join(folder, name), text);
    written.push(join(folder, name));
  }
  for (const { name, spec } of report.figures)
    written.push(...(await exportFigure(spec, join(folder, 'figures', name), FORMATS)));
  return written;
}
