/**
 * How every figure looks: typeface, margins, axes, and colours that colour-blind readers can tell apart. In grey
 * print the marker's shape and the line's dash carry what the colour says. Left out: dark backgrounds.
 */
import type { Annotation, Layout, LayoutAxis } from 'plotly.js';
import { FONT_FAMILY, textWidth } from './font.js';
import type { Figure } from './plotly-jsdom.js';

/** The palette of Okabe and Ito (2008); their yellow, too pale for lines on white, gives way to a grey. */
export const OKABE_ITO = {
  vermillion: '#D55E00',
  blue: '#0072B2',
  orange: '#E69F00',
  green: '#009E73',
  purple: '#CC79A7',
  sky: '#56B4E9',
  black: '#000000',
  grey: '#7F7F7F',
} as const;

const CYCLE = Object.values(OKABE_ITO);
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'triangle-down', 'cross', 'x'] as const;
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'] as const;

/** Marks that tell series apart by colour, shape and dash together. */
export interface Mark {
  readonly color: string;
  readonly symbol: (typeof SYMBOLS)[number];
  readonly dash: (typeof DASHES)[number];
}

/** The marks of the i-th series of a figure. */
export function markOf(i: number): Mark {
  return {
    color: CYCLE[i % CYCLE.length]!,
    // Eight colours and seven shapes: a pair of both comes back after 56 series.
    symbol: SYMBOLS[i % SYMBOLS.length]!,
    dash: DASHES[i % DASHES.length]!,
  };
}

export const GREY = '#6B6B6B';
const GRID = '#E4E4E4';

/** Sizes in pixels of text. */
export const TEXT = { title: 18, heading: 14, body: 13, small: 12 } as const;

/** What the layouts of all figures share. `subtitle` says in words what is drawn, in grey under the title. */
export function baseLayout(title: string, subtitle: string): Partial<Layout> {
  return {
    title: {
      text: `<b>${title}</b>`,
      subtitle: { text: subtitle, font: { size: TEXT.body, color: GREY } },
      font: { size: TEXT.title },
      x: 0,
      xref: 'container',
      xanchor: 'left',
      pad: { l: 16, t: 14 },
      y: 1,
      yref: 'container',
      yanchor: 'top',
      automargin: false,
    },
    font: { family: FONT_FAMILY, size: TEXT.body, color: '#222222' },
    paper_bgcolor: 'white',
    plot_bgcolor: 'white',
    hovermode: 'closest',
    showlegend: false,
  };
}

/** Pixels from a figure's top to its legend. */
export const LEGEND_TOP = 54;

/** Pixels that the widest entry of a legend takes: its line, its name, and room. */
export function legendEntry(names: readonly string[]): number {
  return 50 + Math.max(...names.map((name) => textWidth(name, TEXT.body)));
}

/** A legend in rows between the subtitle and the panels. @param height of the figure in pixels */
export function legendAbove(height: number): Layout['legend'] {
  return {
    orientation: 'h',
    x: 0,
    xanchor: 'left',
    y: 1 - LEGEND_TOP / height,
    yref: 'container',
    yanchor: 'top',
    font: { size: TEXT.body },
  };
}

/** What all axes share. @param label the quantity and its unit; undefined where a neighbour's axis says it */
export function axis(label: string | undefined, more: Partial<LayoutAxis> = {}): LayoutAxis {
  return {
    ...(label === undefined ? {} : { title: { text: label, standoff: 8, font: { size: TEXT.body } } }),
    showline: true,
    linecolor: '#444444',
    ticks: 'outside',
    tickcolor: '#444444',
    ticklen: 4,
    gridcolor: GRID,
    zeroline: false,
    ...more,
  };
}

/** A heading above the top left corner of a panel; x and y are shares of the plotting area. */
export function heading(text: string, x: number, y: number): Annotation {
  return {
    text: `<b>${text}</b>`,
    xref: 'paper',
    yref: 'paper',
    x,
    y,
    xanchor: 'left',
    yanchor: 'bottom',
    yshift: 4,
    showarrow: false,
    font: { size: TEXT.heading },
  };
}

/** What is clickable in a notebook; the figures are pictures first. */
export const CONFIG: Figure['config'] = { displaylogo: false, responsive: false };

/** The i-th of n equal parts of [0, 1] with a gap between them. */
export function share(i: number, n: number, gap: number): [number, number] {
  const size = (1 - gap * (n - 1)) / n;
  return [i * (size + gap), i * (size + gap) + size];
}
