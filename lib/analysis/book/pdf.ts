/**
 * A book as a PDF to print: A4 across, for tables are wide; headings with bookmarks, sentences, figures as lines and text,
 * and tables ruled as booktabs does. A table that is too wide even so stands in parts that repeat its first column. Left
 * out: hyphenation, footnotes, and cells of several lines but in the head.
 */
import { type TextColumn, textColumns } from '../formats.js';
import { GREY } from '../look.js';
import { openPdf, PDF_FONT, type Pdf, POINTS_PER_PIXEL } from '../pdf.js';
import type { ReportTable } from '../studies/report.js';
import type { Book, BookFigure, Chapter } from './book.js';

const INK = '#222222';
const MARGIN = 48;
/** A4, in points. */
const PAGE = { width: 841.89, height: 595.28 };
const WIDTH = PAGE.width - 2 * MARGIN;
const BOTTOM = PAGE.height - MARGIN;
/** Lines longer than this are hard to read. */
const TEXT_WIDTH = 590;
/** Font sizes in points. */
const SIZE = { title: 22, heading: 15, body: 9, small: 7.5, cell: 7.5, smallest: 5.2 } as const;
const LEADING = 1.32;
/** Between columns of a table, in em. */
const COLUMN_GAP = 1.1;
/** Room for a table's caption, in points. */
const CAPTION = 56;
/** Points per pixel of a figure: smaller than life, so that two of them or one and its table share a page. */
const FIGURE_SCALE = 0.82 * POINTS_PER_PIXEL;

/** The book's file. */
export async function bookPdf(book: Book): Promise<Buffer> {
  const pdf = await openPdf({
    size: [PAGE.width, PAGE.height],
    margin: MARGIN,
    bufferPages: true,
    info: { Title: book.title },
  });
  const page = pageOf(pdf);
  page.text(book.title, SIZE.title, { bold: true, after: 10 });
  for (const [name, value] of book.facts) page.text(`${name}: ${value}`, SIZE.body, { after: 2 });
  page.text('Studies', SIZE.heading, { bold: true, before: 18, after: 6 });
  for (const [c, { title, coverage, name }] of book.chapters.entries())
    page.text(`${c + 1}  ${title} (${coverage})`, SIZE.body, { after: 3, goTo: name });
  if (book.missing.length > 0) {
    const names = book.missing.map((study) => `${study.title} (${study.name})`).join('; ');
    page.text(`Not run yet: ${names}.`, SIZE.body, { before: 8, grey: true });
  }
  for (const [c, chapter] of book.chapters.entries()) drawChapter(page, chapter, c + 1);
  numberPages(pdf);
  return pdf.finish();
}

function drawChapter(page: Page, chapter: Chapter, number: number): void {
  const { name, title, question, coverage, notes, figures, tables, settings, varied, runs } = chapter;
  page.begin();
  page.mark(name, title);
  page.text(`${number}  ${title}`, SIZE.heading, { bold: true, after: 4 });
  page.text(`${question} (study ${name}: ${coverage})`, SIZE.body, { grey: true, after: 8 });
  for (const note of notes) page.text(note, SIZE.body, { after: 3, bullet: true });
  for (const figure of figures) drawFigure(page, figure);
  for (const table of tables) drawTable(page, table);
  for (const table of varied) drawTable(page, table);
  const shared = settings.map(([key, value]) => `${key} ${value}`).join('; ');
  page.text(`What all its experiments share: ${shared}.`, SIZE.small, { before: 12, grey: true });
  page.text(`Runs: ${runs.join(', ')}.`, SIZE.small, { before: 8, grey: true });
}

/** Where the next thing goes. */
interface Page {
  readonly pdf: Pdf;
  /** A new page, unless the present one is empty. */
  begin(): void;
  /** Room for `height` points: a new page where there is none. */
  ensure(height: number): void;
  text(text: string, size: number, options?: TextOptions): void;
  /** A place that contents and bookmarks lead to. */
  mark(name: string, title: string): void;
}

interface TextOptions {
  readonly bold?: boolean;
  readonly grey?: boolean;
  readonly bullet?: boolean;
  /** Room above and below in points. */
  readonly before?: number;
  readonly after?: number;
  readonly goTo?: string;
}

function pageOf(pdf: Pdf): Page {
  const { doc } = pdf;
  const begin = () => {
    if (doc.y > MARGIN + 1) doc.addPage();
  };
  const ensure = (height: number) => {
    if (doc.y + height > BOTTOM) begin();
  };
  return {
    pdf,
    begin,
    ensure,
    text(text, size, { bold = false, grey = false, bullet = false, before = 0, after = 0, goTo } = {}) {
      doc
        .font(bold ? PDF_FONT.bold : PDF_FONT.normal)
        .fontSize(size)
        .fillColor(grey ? GREY : INK);
      const indent = bullet ? 12 : 0;
      const options = { width: TEXT_WIDTH - indent, lineGap: (LEADING - 1.16) * size };
      doc.y += before;
      ensure(Math.min(doc.heightOfString(text, options), 4 * size * LEADING));
      const { y } = doc;
      if (bullet) doc.text('\u2022', MARGIN, y, { lineBreak: false });
      doc.text(text, MARGIN + indent, y, { ...options, ...(goTo === undefined ? {} : { goTo }) });
      doc.y += after;
    },
    mark(name, title) {
      doc.addNamedDestination(name);
      doc.outline.addItem(title);
    },
  };
}

function drawFigure(page: Page, { svg, size }: BookFigure): void {
  const { doc } = page.pdf;
  const scale = Math.min(FIGURE_SCALE, WIDTH / size.width, (BOTTOM - MARGIN - 12) / size.height);
  const [width, height] = [scale * size.width, scale * size.height];
  page.ensure(height + 12);
  page.pdf.drawSvg(svg, { x: MARGIN, y: doc.y + 6, width, height });
  doc.y += height + 12;
}

/** A table in one part or several. */
function drawTable(page: Page, { frame, caption, name }: ReportTable): void {
  const { doc } = page.pdf;
  const columns = textColumns(frame).map((column) => ({ ...column, em: emOf(doc, column) }));
  const parts = split(columns, (some) => totalEm(some) * SIZE.smallest <= WIDTH);
  for (const [i, part] of parts.entries()) {
    const size = Math.min(SIZE.cell, WIDTH / totalEm(part));
    const line = size * LEADING;
    const rows = part[0]!.cells.length;
    const words = parts.length > 1 ? `${name}, part ${i + 1} of ${parts.length}` : name;
    const head = Math.max(...part.map((column) => wrapped(doc, column, size).length));
    // A table of half a page is not cut.
    const whole = (head + rows) * line + CAPTION;
    page.ensure(whole < (BOTTOM - MARGIN) / 2 ? whole : (head + 4) * line + CAPTION);
    page.text(`${caption} (${words})`, SIZE.small, { before: 12, after: 4, grey: true });
    drawHead(page, part, size);
    for (let r = 0; r < rows; r++) {
      if (doc.y + line > BOTTOM) {
        rule(page, totalEm(part) * size, 0.9);
        page.begin();
        drawHead(page, part, size);
      }
      drawRow(page, part, size, (column) => column.cells[r]!);
    }
    rule(page, totalEm(part) * size, 0.9);
    doc.y += 6;
  }
}

/** Widths of columns and of the gaps between them. */
function totalEm(columns: readonly Measured[]): number {
  return columns.reduce((sum, column) => sum + column.em + COLUMN_GAP, -COLUMN_GAP);
}

interface Measured extends TextColumn {
  /** Width in em: of its widest cell, and of the longest word of its name. */
  readonly em: number;
}

function emOf(doc: PDFKit.PDFDocument, { name, cells }: TextColumn): number {
  doc.font(PDF_FONT.normal).fontSize(1);
  const widest = Math.max(0, ...cells.map((cell) => doc.widthOfString(cell)));
  doc.font(PDF_FONT.bold).fontSize(1);
  return Math.max(widest, ...name.split(' ').map((word) => doc.widthOfString(word)));
}

/** Columns in parts that fit; each part after the first repeats the first column. */
function split(columns: readonly Measured[], fits: (some: readonly Measured[]) => boolean): Measured[][] {
  const [first, ...rest] = columns;
  const parts: Measured[][] = [[first!]];
  for (const column of rest) {
    const part = parts.at(-1)!;
    if (part.length < 2 || fits([...part, column])) part.push(column);
    else parts.push([first!, column]);
  }
  return parts;
}

/** A column's name in lines no wider than the column. */
function wrapped(doc: PDFKit.PDFDocument, { name, em }: Measured, size: number): string[] {
  doc.font(PDF_FONT.bold).fontSize(size);
  const lines: string[] = [];
  for (const word of name.split(' ')) {
    const longer = lines.length > 0 ? `${lines.at(-1)} ${word}` : word;
    if (lines.length > 0 && doc.widthOfString(longer) <= em * size + 0.1) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function drawHead(page: Page, part: readonly Measured[], size: number): void {
  const width = totalEm(part) * size;
  const names = part.map((column) => wrapped(page.pdf.doc, column, size));
  const lines = Math.max(...names.map((name) => name.length));
  rule(page, width, 0.9);
  for (let l = 0; l < lines; l++)
    drawRow(page, part, size, (_, c) => names[c]![l - (lines - names[c]!.length)] ?? '', true);
  rule(page, width, 0.5);
}

function drawRow(
  page: Page,
  part: readonly Measured[],
  size: number,
  textOf: (column: Measured, c: number) => string,
  bold = false,
): void {
  const { doc } = page.pdf;
  doc
    .font(bold ? PDF_FONT.bold : PDF_FONT.normal)
    .fontSize(size)
    .fillColor(INK);
  const y = doc.y;
  let x = MARGIN;
  for (const [c, column] of part.entries()) {
    const text = textOf(column, c);
    const shift = column.numeric ? column.em * size - doc.widthOfString(text) : 0;
    if (text !== '') doc.text(text, x + shift, y, { lineBreak: false });
    x += (column.em + COLUMN_GAP) * size;
  }
  doc.y = y + size * LEADING;
}

function rule(page: Page, width: number, thickness: number): void {
  const { doc } = page.pdf;
  doc.y += 1.5;
  doc
    .moveTo(MARGIN, doc.y)
    .lineTo(MARGIN + width, doc.y)
    .lineWidth(thickness)
    .strokeColor(INK)
    .stroke();
  doc.y += 2.5;
}

function numberPages({ doc }: Pdf): void {
  const { start, count } = doc.bufferedPageRange();
  for (let p = start; p < start + count; p++) {
    doc.switchToPage(p);
    // Below the margin, where pdfkit would begin a new page.
    doc.page.margins.bottom = 0;
    const label = `${p + 1} / ${count}`;
    doc.font(PDF_FONT.normal).fontSize(SIZE.small).fillColor(GREY);
    const x = PAGE.width - MARGIN - doc.widthOfString(label);
    doc.text(label, x, PAGE.height - MARGIN / 2 - 8, { lineBreak: false });
  }
}
