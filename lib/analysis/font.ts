/**
 * The one typeface of every picture: DejaVu Sans, from an npm package, so that a figure looks the same on a
 * machine without any fonts installed. Knows how to tell resvg about it, how wide a text comes out, and how a
 * document carries the glyphs it needs with it. Left out: italics, and other typefaces.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Resvg, type ResvgRenderOptions } from '@resvg/resvg-js';

const require = createRequire(import.meta.url);
const fontFile = (name: string) => require.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`);

/** The font's files, by weight. */
export const FONT_FILES = { normal: fontFile('DejaVuSans'), bold: fontFile('DejaVuSans-Bold') } as const;

/** For a figure's `layout.font.family`; Verdana has the same widths where a browser lacks DejaVu. */
export const FONT_FAMILY = 'DejaVu Sans, Verdana, sans-serif';

/** Heights above and below the baseline, as shares of the font size (the font's hhea table). */
export const FONT_ASCENT = 0.928;
export const FONT_DESCENT = 0.236;

/** Tells resvg to draw with this typeface only. */
export const RESVG_FONT: NonNullable<ResvgRenderOptions['font']> = {
  loadSystemFonts: false,
  fontFiles: Object.values(FONT_FILES),
  defaultFontFamily: 'DejaVu Sans',
  sansSerifFamily: 'DejaVu Sans',
};

const widths = new Map<string, number>();

/**
 * The advance width of one line of text in pixels, kerning included.
 * @param size font size in pixels
 */
export function textWidth(text: string, size: number, bold = false): number {
  // Ink boxes leave out spaces at the ends, so the text is measured between two full stops, less the stops.
  return size * (inkWidth(`.${text}.`, bold) - inkWidth('..', bold));
}

/** Width of the ink of a text as a share of the font size. */
function inkWidth(text: string, bold: boolean): number {
  const key = `${bold ? 'b' : 'n'}${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  const size = 100;
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><text xml:space="preserve" y="100" ' +
    `font-size="${size}" font-weight="${bold ? 'bold' : 'normal'}">${escaped}</text></svg>`;
  const width = (new Resvg(svg, { font: RESVG_FONT }).getBBox()?.width ?? 0) / size;
  widths.set(key, width);
  return width;
}

/**
 * `@font-face` rules that carry the glyphs of a text, about 10 kB a weight: with them in its style an SVG or HTML file
 * looks right where the typeface is not installed.
 * @param text all that will be written with them
 */
export async function fontFaces(text: string): Promise<string> {
  // Loaded where it is used: a notebook that saves nothing does not wait for it.
  const { default: subsetFont } = await import('subset-font');
  const letters = [...new Set(text)].sort().join('');
  const faces = Object.entries(FONT_FILES).map(async ([weight, file]) => {
    const glyphs = await subsetFont(readFileSync(file), letters, { targetFormat: 'woff2' });
    return (
      `@font-face{font-family:"DejaVu Sans";font-weight:${weight};` +
      `src:url(data:font/woff2;base64,${glyphs.toString('base64')}) format("woff2")}`
    );
  });
  return (await Promise.all(faces)).join('');
}
