/**
 * Figures as files and as pictures, without a browser: the spec (JSON), SVG through plotly-jsdom.ts, and PNG
 * from that SVG through resvg, always in the typeface of font.ts. Left out: PDF.
 */
import { Resvg } from '@resvg/resvg-js';
import { writeFileAtomic } from '../files.js';
import { RESVG_FONT } from './font.js';
import { drawSvg, type Figure, type Size } from './plotly-jsdom.js';

/** PNG pixels per CSS pixel. */
const SCALE = 2;

/** The figure as a standalone SVG document. @param size in CSS pixels; default: the layout's own, else 800 x 480 */
export async function toSvg(figure: Figure, size: Partial<Size> = {}): Promise<string> {
  return drawSvg(figure, {
    width: size.width ?? figure.layout.width ?? 800,
    height: size.height ?? figure.layout.height ?? 480,
  });
}

/** The figure as a PNG on white, at two pixels per CSS pixel. @param size as in {@link toSvg} */
export async function toPng(figure: Figure, size: Partial<Size> = {}): Promise<Buffer> {
  return rasterise(await toSvg(figure, size));
}

/**
 * Writes `path.json`, `path.svg` and `path.png`, and returns the three paths.
 * @param path without an extension
 */
export async function exportFigure(
  figure: Figure,
  path: string,
  size: Partial<Size> = {},
): Promise<string[]> {
  const svg = await toSvg(figure, size);
  writeFileAtomic(`${path}.json`, jsonText(figure));
  writeFileAtomic(`${path}.svg`, svg);
  writeFileAtomic(`${path}.png`, rasterise(svg));
  return ['json', 'svg', 'png'].map((extension) => `${path}.${extension}`);
}

/** A figure's spec as its .json file holds it. */
export function jsonText(figure: Figure): string {
  return `${JSON.stringify(figure, null, 2)}\n`;
}

function rasterise(svg: string): Buffer {
  // resvg knows SVG 1.1's name of the heatmaps' `image-rendering: pixelated`, not the CSS one.
  const known = svg.replaceAll('image-rendering: pixelated', 'image-rendering: optimizeSpeed');
  const options = { font: RESVG_FONT, fitTo: { mode: 'zoom' as const, value: SCALE }, background: 'white' };
  return new Resvg(known, options).render().asPng();
}
