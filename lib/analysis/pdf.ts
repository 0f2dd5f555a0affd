/**
 * PDF without a browser: pages by pdfkit, on which a figure's SVG is drawn as lines and text (svg-to-pdfkit), in the
 * typeface of font.ts, embedded. The same content gives the same bytes. Left out: typesetting (report/pdf.ts).
 */
import { FONT_FILES } from './font.js';
import type { Size } from './plotly-jsdom.js';

/** Points per CSS pixel. */
export const POINTS_PER_PIXEL = 0.75;

/** Names of the typeface's weights inside a document. */
export const PDF_FONT = { normal: 'normal', bold: 'bold' } as const;

/** A document that is being written. */
export interface Pdf {
  readonly doc: PDFKit.PDFDocument;
  /** Draws an SVG document. @param box its top left corner and the size to fill, in points */
  drawSvg(svg: string, box: Size & { readonly x: number; readonly y: number }): void;
  /** Ends the document. */
  finish(): Promise<Buffer>;
}

/** @param options pdfkit's, such as the page's size in points */
export async function openPdf(options: PDFKit.PDFDocumentOptions): Promise<Pdf> {
  // Loaded where they are used: a notebook that saves nothing does not wait for them.
  const [{ default: PDFDocument }, { default: svgToPdf }] = await Promise.all([
    import('pdfkit'),
    import('svg-to-pdfkit'),
  ]);
  // The file's id is made of its info, so a date that stands still keeps the bytes the same.
  const doc = new PDFDocument({ ...options, info: { ...options.info, CreationDate: new Date(0) } });
  for (const [weight, file] of Object.entries(FONT_FILES)) doc.registerFont(weight, file);
  const parts: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    doc.on('data', (part: Buffer) => parts.push(part));
    doc.on('end', resolve);
    doc.on('error', reject);
  });
  return {
    doc,
    drawSvg(svg, { x, y, width, height }) {
      const known = svg
        // Plotly hides the rest of a line with dashes of no length, which svg-to-pdfkit refuses.
        .replaceAll(/stroke-dasharray:\s*0(px)?[,;][^;"]*;?/g, '')
        // Without a size of its own the drawing fills the box.
        .replace(/(<svg[^>]*?) width="[\d.]+" height="[\d.]+"/, '$1');
      svgToPdf(doc as never, known, x, y, {
        width,
        height,
        fontCallback: (_family, bold) => (bold ? PDF_FONT.bold : PDF_FONT.normal),
      });
    },
    async finish() {
      doc.end();
      await ended;
      return Buffer.concat(parts);
    },
  };
}
