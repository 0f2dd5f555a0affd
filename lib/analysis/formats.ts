/**
 * A DataFrame as CSV (for programs), Markdown (for a README or a notebook) and LaTeX (booktabs, for a paper). In
 * the last two a column of numbers is right-aligned with one number of decimals, and a missing value is a dash.
 * Written here because danfojs' own CSV writer does not quote cells that hold commas. CSV is read back as text, for
 * comparing files.
 */
import type { DataFrame } from 'danfojs-node';

/** The cells as text, column by column. */
export interface TextColumn {
  readonly name: string;
  readonly numeric: boolean;
  readonly cells: readonly string[];
}

/** Comma-separated, quoted as RFC 4180 says, missing values empty, one line per row, ending in a newline. */
export function toCsv(table: DataFrame): string {
  const quote = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [
    table.columns,
    ...rowsOf(table).map((row) => row.map((cell) => (isMissing(cell) ? '' : cell))),
  ];
  return lines.map((line) => `${line.map((cell) => quote(String(cell))).join(',')}\n`).join('');
}

/** The lines of a CSV file as cells of text, the header first. @throws on a quote that is never closed */
export function parseCsv(text: string): string[][] {
  const lines: string[][] = [];
  let [line, cell, quoted]: [string[], string, boolean] = [[], '', false];
  const endLine = () => {
    lines.push([...line, cell]);
    [line, cell] = [[], ''];
  };
  for (let i = 0; i < text.length; i++) {
    const sign = text[i]!;
    if (quoted && sign === '"' && text[i + 1] === '"') cell += text[++i]!;
    else if (sign === '"') quoted = !quoted;
    else if (!quoted && sign === ',') {
      line.push(cell);
      cell = '';
    } else if (!quoted && sign === '\n') endLine();
    else if (quoted || sign !== '\r') cell += sign;
  }
  if (quoted) throw new Error(`a quoted cell is never closed: ${cell.slice(0, 40)}`);
  if (line.length > 0 || cell !== '') endLine();
  return lines;
}

/** A GitHub-flavoured Markdown table, ending in a newline. */
export function toMarkdown(table: DataFrame): string {
  const plain = (text: string) => text.replace(/[\\|*_`<[\]]/g, '\\$&').replace(/\r?\n/g, '<br>');
  const columns = textColumns(table);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`;
  return (
    line(columns.map((column) => plain(column.name))) +
    line(columns.map((column) => (column.numeric ? '--:' : ':--'))) +
    transpose(columns)
      .map((row) => line(row.map(plain)))
      .join('')
  );
}

/** Options of {@link toLatex}; both are optional. */
export interface LatexOptions {
  /** Plain text, escaped here. With a caption the tabular is wrapped in a table environment. */
  readonly caption?: string;
  /** Such as `tab:main`; used with a caption only. */
  readonly label?: string;
}

/** A booktabs tabular (needs `\usepackage{booktabs}`), ending in a newline. */
export function toLatex(table: DataFrame, { caption, label }: LatexOptions = {}): string {
  const columns = textColumns(table);
  const line = (cells: readonly string[]) => `${cells.map(escapeLatex).join(' & ')} \\\\`;
  const tabular = [
    `\\begin{tabular}{${columns.map((column) => (column.numeric ? 'r' : 'l')).join('')}}`,
    '\\toprule',
    line(columns.map((column) => column.name)),
    '\\midrule',
    ...transpose(columns).map(line),
    '\\bottomrule',
    '\\end{tabular}',
  ];
  if (caption === undefined) return `${tabular.join('\n')}\n`;
  const head = ['\\begin{table}', '\\centering', `\\caption{${escapeLatex(caption)}}`];
  if (label !== undefined) head.push(`\\label{${label}}`);
  return `${[...head, ...tabular, '\\end{table}'].join('\n')}\n`;
}

/** The files of a table: their texts by extension. @param caption above the Markdown table and in the LaTeX one */
export function tableFiles(
  table: DataFrame,
  { caption, label }: LatexOptions = {},
): Record<'csv' | 'md' | 'tex', string> {
  return {
    csv: toCsv(table),
    md: caption === undefined ? toMarkdown(table) : `${caption}\n\n${toMarkdown(table)}`,
    tex: toLatex(table, {
      ...(caption === undefined ? {} : { caption }),
      ...(label === undefined ? {} : { label }),
    }),
  };
}

const LATEX: Readonly<Record<string, string>> = {
  '\\': '\\textbackslash{}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '<': '\\textless{}',
  '>': '\\textgreater{}',
  '|': '\\textbar{}',
  '\u2013': '--',
};

/** Text that LaTeX prints as it is written, in any font encoding. */
export function escapeLatex(text: string): string {
  return text.replace(/[\\~^<>|\u2013&%$#_{}]/g, (sign) => LATEX[sign] ?? `\\${sign}`);
}

/** A table's cells as a reader sees them: numbers of a column with one number of decimals, a dash for nothing. */
export function textColumns(table: DataFrame): TextColumn[] {
  const rows = rowsOf(table);
  return table.columns.map((name: string, c: number) => {
    const values = rows.map((row) => row[c]);
    const numbers = values.filter((value): value is number => typeof value === 'number' && !isMissing(value));
    const numeric =
      numbers.length > 0 && numbers.length === values.filter((value) => !isMissing(value)).length;
    const decimals = Math.max(0, ...numbers.map((value) => String(value).split('.')[1]?.length ?? 0));
    const text = (value: unknown) => (numeric ? (value as number).toFixed(decimals) : String(value));
    return { name, numeric, cells: values.map((value) => (isMissing(value) ? '\u2013' : text(value))) };
  });
}

function rowsOf(table: DataFrame): unknown[][] {
  return table.values.map((row) => (Array.isArray(row) ? row : [row]));
}

function transpose(columns: readonly TextColumn[]): string[][] {
  return (columns[0]?.cells ?? []).map((_, r) => columns.map((column) => column.cells[r]!));
}

function isMissing(value: unknown): boolean {
  return value === null || value === undefined || value === '' || Number.isNaN(value);
}
