/**
 * Plotly without a browser: plotly.js runs inside jsdom, which knows documents but not geometry. What Plotly
 * asks of a browser's layout engine is answered here: the boxes of texts (measured by font.ts), of shapes and
 * of groups, the length of a path, and a canvas for heatmaps. One window serves the whole process.
 *
 * Left out: curves (they count by their end points), skewed transforms, WebGL traces (scattergl, 3-D), and MathJax.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Canvas, createCanvas } from '@napi-rs/canvas';
import { type DOMWindow, JSDOM } from 'jsdom';
import type { Config, Data, Layout } from 'plotly.js';
import { stream } from '../random.js';
import { FONT_ASCENT, FONT_DESCENT, textWidth } from './font.js';

/** A Plotly figure, as JSON can hold it. */
export interface Figure {
  readonly data: Data[];
  readonly layout: Partial<Layout>;
  readonly config: Partial<Config>;
}

/** Size in CSS pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

interface PlotlyWindow extends DOMWindow {
  readonly Plotly: Pick<typeof import('plotly.js'), 'toImage'>;
}

let plotlyWindow: PlotlyWindow | undefined;

/** Draws a figure as a standalone SVG document; the same figure gives the same text. The figure is not changed. */
export async function drawSvg(figure: Figure, { width, height }: Size): Promise<string> {
  plotlyWindow ??= openWindow();
  // Plotly makes up element ids; named randomness keeps the file identical from run to run.
  plotlyWindow.Math.random = stream('plotly ids').uniform;
  const copy = structuredClone({ data: figure.data, layout: figure.layout, config: figure.config });
  return plotlyWindow.Plotly.toImage(copy, { format: 'svg', width, height, imageDataOnly: true });
}

function openWindow(): PlotlyWindow {
  const { window } = new JSDOM('<!doctype html><body></body>', { runScripts: 'outside-only' });
  installGeometry(window);
  installCanvas(window);
  Object.assign(window, { TextDecoder, requestAnimationFrame: setImmediate });
  window.URL.createObjectURL = () => '';
  window.eval(readFileSync(createRequire(import.meta.url).resolve('plotly.js'), 'utf8'));
  return window as PlotlyWindow;
}

/** Gives every SVG element of a window the measurements of a browser. */
function installGeometry(window: DOMWindow): void {
  const svg = window.SVGElement.prototype;
  Object.assign(svg, {
    getBBox(this: SVGElement): Box {
      return boxOf(this) ?? EMPTY;
    },
    getBoundingClientRect(this: SVGElement): Box & Record<'left' | 'top' | 'right' | 'bottom', number> {
      const own = boxOf(this);
      const box = own ? mapBox(own, matrixToRoot(this)) : EMPTY;
      return { ...box, left: box.x, top: box.y, right: box.x + box.width, bottom: box.y + box.height };
    },
    getComputedTextLength(this: SVGElement): number {
      return lineWidth(this);
    },
    getTotalLength(this: SVGElement): number {
      return pathLength(points(this));
    },
    getPointAtLength(this: SVGElement, length: number): Point {
      return pointAt(points(this), length);
    },
  });
}

/** Backs the window's canvas elements with real ones (heatmaps and images are drawn on them). */
function installCanvas(window: DOMWindow): void {
  const canvases = new WeakMap<HTMLCanvasElement, Canvas>();
  const backing = (element: HTMLCanvasElement): Canvas => {
    const { width, height } = element;
    const known = canvases.get(element);
    if (known?.width === width && known.height === height) return known;
    const canvas = createCanvas(width, height);
    canvases.set(element, canvas);
    return canvas;
  };
  Object.assign(window.HTMLCanvasElement.prototype, {
    getContext(this: HTMLCanvasElement, kind: string): unknown {
      return kind === '2d' ? backing(this).getContext('2d') : null;
    },
    toDataURL(this: HTMLCanvasElement): string {
      return backing(this).toDataURL('image/png');
    },
  });
}

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Box extends Point, Size {}

const EMPTY: Box = { x: 0, y: 0, width: 0, height: 0 };

/** The box of an element in its own coordinates, without its own transform; undefined when it draws nothing. */
function boxOf(element: Element): Box | undefined {
  const number = (name: string) => Number(element.getAttribute(name) ?? 0);
  switch (element.tagName.toLowerCase()) {
    case 'text':
    case 'tspan':
      return textBox(element);
    case 'rect':
    case 'image':
      return { x: number('x'), y: number('y'), width: number('width'), height: number('height') };
    case 'circle':
      return boxAround([
        { x: number('cx') - number('r'), y: number('cy') - number('r') },
        { x: number('cx') + number('r'), y: number('cy') + number('r') },
      ]);
    case 'line':
      return boxAround([
        { x: number('x1'), y: number('y1') },
        { x: number('x2'), y: number('y2') },
      ]);
    case 'path':
      return boxAround(points(element));
    case 'defs':
    case 'clippath':
      return undefined;
    default:
      return boxAround(
        [...element.children].flatMap((child) => {
          const box = boxOf(child);
          return box ? corners(mapBox(box, matrixOf(child))) : [];
        }),
      );
  }
}

/** A text's lines are its `tspan.line` children, 1.3 em apart (Plotly's LINE_SPACING). */
function textBox(element: Element): Box | undefined {
  if (!element.textContent?.trim()) return undefined;
  const lines = [...element.querySelectorAll('tspan.line')];
  const width = Math.max(...(lines.length > 0 ? lines : [element]).map(lineWidth));
  const size = fontSize(element);
  const anchor = styleOf(element, 'text-anchor') ?? 'start';
  const shift = anchor === 'middle' ? width / 2 : anchor === 'end' ? width : 0;
  return {
    x: Number(element.getAttribute('x') ?? 0) - shift,
    y: Number(element.getAttribute('y') ?? 0) - FONT_ASCENT * size,
    width,
    height: size * (FONT_ASCENT + FONT_DESCENT + 1.3 * Math.max(0, lines.length - 1)),
  };
}

/** The width of all text inside an element, each piece in its own size and weight. */
function lineWidth(element: Element): number {
  let width = 0;
  for (const node of element.childNodes) {
    if (node.nodeType === node.TEXT_NODE) {
      const weight = styleOf(element, 'font-weight') ?? 'normal';
      width += textWidth(
        node.textContent ?? '',
        fontSize(element),
        weight === 'bold' || Number(weight) >= 600,
      );
    } else if (node.nodeType === node.ELEMENT_NODE) {
      width += lineWidth(node as Element);
    }
  }
  return width;
}

/** Font size in pixels; a tspan's percentage (Plotly's sub and sup) is of what surrounds it. */
function fontSize(element: Element): number {
  const text = ownStyle(element, 'font-size');
  const parent = element.parentElement;
  if (text === undefined) return parent ? fontSize(parent) : 12;
  const value = Number.parseFloat(text);
  return text.endsWith('%') ? (value / 100) * (parent ? fontSize(parent) : 12) : value;
}

/** An inherited style property, from the element or the nearest ancestor that sets it. */
function styleOf(element: Element, name: string): string | undefined {
  for (let at: Element | null = element; at; at = at.parentElement) {
    const value = ownStyle(at, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

function ownStyle(element: Element, name: string): string | undefined {
  const { style } = element as SVGElement;
  return style?.getPropertyValue(name) || element.getAttribute(name) || undefined;
}

/** An affine map x' = a x + c y + e, y' = b x + d y + f, as SVG writes it. */
type Matrix = readonly [a: number, b: number, c: number, d: number, e: number, f: number];

const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

function multiply(m: Matrix, n: Matrix): Matrix {
  return [
    m[0] * n[0] + m[2] * n[1],
    m[1] * n[0] + m[3] * n[1],
    m[0] * n[2] + m[2] * n[3],
    m[1] * n[2] + m[3] * n[3],
    m[0] * n[4] + m[2] * n[5] + m[4],
    m[1] * n[4] + m[3] * n[5] + m[5],
  ];
}

/** An element's `transform` attribute. */
function matrixOf(element: Element): Matrix {
  let matrix = IDENTITY;
  for (const [, name, list] of (element.getAttribute('transform') ?? '').matchAll(/(\w+)\s*\(([^)]*)\)/g)) {
    matrix = multiply(matrix, matrixOfPart(name!, list!.split(/[\s,]+/).map(Number)));
  }
  return matrix;
}

function matrixOfPart(name: string, values: readonly number[]): Matrix {
  const [first = 0, second, third] = values;
  if (name === 'translate') return [1, 0, 0, 1, first, second ?? 0];
  if (name === 'scale') return [first, 0, 0, second ?? first, 0, 0];
  if (name === 'rotate') {
    const [cos, sin] = [Math.cos((first * Math.PI) / 180), Math.sin((first * Math.PI) / 180)];
    const [x, y] = [second ?? 0, third ?? 0];
    return [cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y];
  }
  return IDENTITY;
}

/** The map from an element's own coordinates to those of the outermost svg. */
function matrixToRoot(element: Element): Matrix {
  let matrix = IDENTITY;
  for (let at: Element | null = element; at; at = at.parentElement) matrix = multiply(matrixOf(at), matrix);
  return matrix;
}

function corners({ x, y, width, height }: Box): Point[] {
  return [
    { x, y },
    { x: x + width, y },
    { x, y: y + height },
    { x: x + width, y: y + height },
  ];
}

function mapBox(box: Box, [a, b, c, d, e, f]: Matrix): Box {
  return boxAround(corners(box).map(({ x, y }) => ({ x: a * x + c * y + e, y: b * x + d * y + f }))) ?? EMPTY;
}

function boxAround(all: readonly Point[]): Box | undefined {
  if (all.length === 0) return undefined;
  const [xs, ys] = [all.map((point) => point.x), all.map((point) => point.y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}

/** How many numbers one segment of each path command takes; the last two are its end point. */
const SEGMENT: Readonly<Record<string, number>> = { M: 2, L: 2, H: 1, V: 1, C: 6, S: 4, Q: 4, T: 2, A: 7 };

/** The end points of a path's segments, in order. */
function points(path: Element): Point[] {
  const out: Point[] = [];
  let at: Point = { x: 0, y: 0 };
  for (const [, letter, list] of (path.getAttribute('d') ?? '').matchAll(/([MLHVCSQTA])([^MLHVCSQTAZ]*)/gi)) {
    const values = (list!.match(/-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?/g) ?? []).map(Number);
    const command = letter!.toUpperCase();
    const length = SEGMENT[command]!;
    for (let end = length; end <= values.length; end += length) {
      const base = letter === command ? { x: 0, y: 0 } : at;
      const [x, y] = [values[end - 2] ?? 0, values[end - 1]!];
      if (command === 'H') at = { x: base.x + y, y: at.y };
      else if (command === 'V') at = { x: at.x, y: base.y + y };
      else at = { x: base.x + x, y: base.y + y };
      out.push(at);
    }
  }
  return out;
}

const distance = (a: Point, b: Point): number => Math.hypot(b.x - a.x, b.y - a.y);

function pathLength(path: readonly Point[]): number {
  return path.slice(1).reduce((sum, point, i) => sum + distance(path[i]!, point), 0);
}

function pointAt(path: readonly Point[], length: number): Point {
  let left = length;
  for (let i = 1; i < path.length; i++) {
    const [from, to] = [path[i - 1]!, path[i]!];
    const step = distance(from, to);
    if (left <= step && step > 0) {
      return { x: from.x + ((to.x - from.x) * left) / step, y: from.y + ((to.y - from.y) * left) / step };
    }
    left -= step;
  }
  return path.at(-1) ?? { x: 0, y: 0 };
}
