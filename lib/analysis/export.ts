/**
 * Figures and tables as files, without a browser. A figure: the spec (JSON), SVG through plotly-jsdom.ts with its
 * glyphs inside, PNG from that SVG through resvg, PDF with text as text. A table: CSV, Markdown and LaTeX. `save` is what
 * a notebook's cell calls; commands and studies call `exportFigure` and `tableFiles`, which it is made of.
 */
import { join, relative } from 'node:path';
import { Resvg } from '@resvg/resvg-js';
import { DataFrame } from 'danfojs-node';
import { RESULTS_FOLDER } from '../experiments/store.js';
import { ROOT, writeFileAtomic } from '../files.js';
import { frameOf } from './cells.js';
import { fontFaces, RESVG_FONT } from './font.js';
import { tableFiles } from './formats.js';
import { openPdf, POINTS_PER_PIXEL } from './pdf.js';
import { drawSvg, type Figure, type Size } from './plotly-jsdom.js';

/** PNG pixels per CSS pixel. */
const SCALE = 2;

/** The files of a figure that is saved. */
export const FIGURE_FORMATS = ['json', 'svg', 'png', 'pdf'] as const;
export type FigureFormat = (typeof FIGURE_FORMATS)[number];

/**
 * Writes a figure or a table and says in one line what was written.
 *
 * A figure gives NAME.json (the spec), .svg, .png (two pixels per CSS pixel) and .pdf; a table NAME.csv, .md and .tex
 * (booktabs). Files of that name are replaced.
 * @param what a Plotly figure, a danfojs DataFrame, or rows whose keys are the columns
 * @param name of the files, without an extension: letters, digits, `-`, `_`
 * @param folder default `figures` or `tables` in the results folder
 * @returns the paths
 */
export async function save(
  what: Figure | DataFrame | readonly object[],
  name: string,
  folder?: string,
): Promise<string[]> {
  if (!/^[\w-]+$/.test(name))
    throw new Error(`save: name is '${name}'; allowed are letters, digits, - and _, without an extension`);
  const kind = kindOf(what);
  const base = join(folder ?? join(RESULTS_FOLDER, kind === 'figure' ? 'figures' : 'tables'), name);
  const paths: string[] = [];
  if (kind === 'figure') paths.push(...(await exportFigure(what as Figure, base)));
  else {
    const frame = kind === 'rows' ? frameOf(what as readonly object[]) : (what as DataFrame);
    for (const [extension, text] of Object.entries(tableFiles(frame))) {
      writeFileAtomic(`${base}.${extension}`, text);
      paths.push(`${base}.${extension}`);
    }
  }
  const extensions = paths.map((path) => path.slice(base.length)).join(' ');
  console.log(`saved ${relative(ROOT, base)}: ${extensions}`);
  return paths;
}

function kindOf(what: unknown): 'figure' | 'frame' | 'rows' {
  if (what instanceof DataFrame) return 'frame';
  if (Array.isArray(what)) return 'rows';
  if (typeof what === 'object' && what !== null && 'data' in what && 'layout' in what) return 'figure';
  throw new Error('save: a figure (data, layout), a DataFrame, or a list of rows is needed');
}

/** The size that a figure's layout asks for, in CSS pixels. */
export function sizeOf({ layout }: Figure): Size {
  return { width: layout.width ?? 800, height: layout.height ?? 480 };
}

/**
 * The figure as a standalone SVG document that carries its glyphs.
 * @param size in CSS pixels; default: the layout's own, else 800 x 480
 */
export async function toSvg(figure: Figure, size: Partial<Size> = {}): Promise<string> {
  return withFonts(await drawSvg(figure, { ...sizeOf(figure), ...size }));
}

/** The figure as a PNG on white. @param size as in {@link toSvg} @param scale pixels per CSS pixel */
export async function toPng(figure: Figure, size: Partial<Size> = {}, scale = SCALE): Promise<Buffer> {
  return rasterise(await drawSvg(figure, { ...sizeOf(figure), ...size }), scale);
}

/** The figure as a PDF of one page of its size, lines as lines and text as text. @param size as in {@link toSvg} */
export async function toPdf(figure: Figure, size: Partial<Size> = {}): Promise<Buffer> {
  const whole = { ...sizeOf(figure), ...size };
  return pageOf(await drawSvg(figure, whole), whole);
}

/**
 * Writes a figure's files and returns their paths.
 * @param path without an extension
 */
export async function exportFigure(
  figure: Figure,
  path: string,
  formats: readonly FigureFormat[] = FIGURE_FORMATS,
): Promise<string[]> {
  const size = sizeOf(figure);
  const svg = await drawSvg(figure, size);
  const contents: Readonly<Record<FigureFormat, () => string | Buffer | Promise<string | Buffer>>> = {
    json: () => jsonText(figure),
    svg: () => withFonts(svg),
    png: () => rasterise(svg),
    pdf: () => pageOf(svg, size),
  };
  for (const format of formats) writeFileAtomic(`${path}.${format}`, await contents[format]());
  return formats.map((format) => `${path}.${format}`);
}

/** A figure's spec as its .json file holds it. */
export function jsonText(figure: Figure): string {
  return `${JSON.stringify(figure, null, 2)}\n`;
}

/** An SVG document with the glyphs of its texts inside. */
async function withFonts(svg: string): Promise<string> {
  const at = svg.indexOf('>') + 1;
  return `${svg.slice(0, at)}<style>${await fontFaces(textOf(svg))}</style>${svg.slice(at)}`;
}

/** All that is written in an SVG or HTML document. */
export function textOf(markup: string): string {
  return markup
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

async function pageOf(svg: string, { width, height }: Size): Promise<Buffer> {
  const size = { width: width * POINTS_PER_PIXEL, height: height * POINTS_PER_PIXEL };
  const pdf = await openPdf({ size: [size.width, size.height], margin: 0 });
  pdf.drawSvg(svg, { x: 0, y: 0, ...size });
  return pdf.finish();
}

function rasterise(svg: string, scale = SCALE): Buffer {
  // resvg knows SVG 1.1's name of the heatmaps' `image-rendering: pixelated`, not the CSS one.
  const known = svg.replaceAll('image-rendering: pixelated', 'image-rendering: optimizeSpeed');
  const options = { font: RESVG_FONT, fitTo: { mode: 'zoom' as const, value: scale }, background: 'white' };
  return new Resvg(known, options).render().asPng();
}
