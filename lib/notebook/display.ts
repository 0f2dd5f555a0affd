/**
 * What a cell calls to show something: a figure, a table, a piece of Markdown. In a notebook each sends one
 * output with every form a viewer may want (JupyterLab draws the Plotly figure, GitHub shows the picture, a
 * terminal reads the text); in plain Node the text is printed.
 *
 * Left out: HTML (JupyterLab would prefer it over the picture, GitHub strips it) and widgets.
 */
import type { DataFrame } from 'danfojs-node';
import { frameOf } from '../analysis/cells.js';
import { sizeOf, toPng } from '../analysis/export.js';
import { toMarkdown } from '../analysis/formats.js';
import { inNotebook, type NotebookOutput, writeOutput } from './output.js';

type Figure = Parameters<typeof toPng>[0];

/** Shows a Plotly figure: interactive where the viewer can, else as a picture. */
export async function showFigure(figure: Figure): Promise<void> {
  if (inNotebook()) writeOutput(await figureOutput(figure));
  else console.log(describeFigure(figure));
}

/**
 * A figure as one output: Plotly's JSON, the picture, and in words what it is. One pixel per CSS pixel, because JupyterLab's
 * Plotly shows the picture at its natural size until the mouse is over it.
 */
export async function figureOutput(figure: Figure): Promise<NotebookOutput> {
  const { data } = figure;
  const size = sizeOf(figure);
  const png = await toPng(figure, size, 1);
  const layout = { ...figure.layout, ...size };
  return {
    data: {
      'application/vnd.plotly.v1+json': { data, layout, config: figure.config },
      'image/png': png.toString('base64'),
      'text/plain': describeFigure(figure),
    },
    metadata: { 'image/png': size },
  };
}

/**
 * Shows a table: a danfojs DataFrame, or rows whose keys are the columns and whose values are texts, numbers,
 * booleans, or nothing.
 * @throws when there are no rows, a row has other columns than the first, or a value is something else
 */
export function showTable(table: DataFrame | readonly object[]): void {
  const markdown = alignColumns(
    toMarkdown(Array.isArray(table) ? frameOf(inOneOrder(table)) : (table as DataFrame)),
  );
  show(markdown, { data: { 'text/markdown': markdown, 'text/plain': markdown } });
}

/** Shows Markdown, formulas between dollar signs included. */
export function showMarkdown(markdown: string): void {
  show(markdown, { data: { 'text/markdown': markdown, 'text/plain': markdown } });
}

function show(text: string, output: NotebookOutput): void {
  if (inNotebook()) writeOutput(output);
  else console.log(text);
}

/** Rows of one table may name their columns in any order; the first row's is shown. */
function inOneOrder(rows: readonly object[]): object[] {
  const columns = Object.keys(rows[0] ?? {});
  const place = (name: string) => columns.indexOf(name);
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).sort(([one], [other]) => place(one) - place(other))),
  );
}

/** Pads the cells of a Markdown table, numbers to the right, so that it also reads well as plain text. */
export function alignColumns(markdown: string): string {
  const rows = markdown
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(2, -2).split(/(?<!\\) \| /));
  const rule = rows[1] ?? [];
  const widths = rule.map((_, c) => Math.max(3, ...rows.map((row) => row[c]!.length)));
  const pad = (cell: string, c: number, r: number) => {
    const right = rule[c]!.endsWith(':') && !rule[c]!.startsWith(':');
    if (r === 1) return right ? `${'-'.repeat(widths[c]! - 1)}:` : `:${'-'.repeat(widths[c]! - 1)}`;
    return right ? cell.padStart(widths[c]!) : cell.padEnd(widths[c]!);
  };
  return rows.map((row, r) => `| ${row.map((cell, c) => pad(cell, c, r)).join(' | ')} |\n`).join('');
}

function describeFigure({ data, layout }: Figure): string {
  const title = typeof layout.title === 'string' ? layout.title : layout.title?.text;
  const traces = data.map((trace, i) => ('name' in trace && trace.name ? trace.name : `trace ${i + 1}`));
  const plain = (text: string) =>
    text
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim();
  const names = [...new Set(traces.map((name) => plain(String(name))))];
  return `Figure: ${plain(title ?? 'without a title')} (${names.join(', ')})`;
}
