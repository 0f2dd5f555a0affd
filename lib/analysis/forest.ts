/**
 * A forest plot: one row per thing compared, the mean difference as a square, its interval as a line, single runs as
 * rings, and zero as a line through all of them; several panels share the rows. Drawn in black and grey, so that print
 * loses nothing. Left out: sorting; rows stand as they are given.
 */
import type { Annotation, Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import { textWidth } from './font.js';
import { axis, baseLayout, CONFIG, GREY, heading, TEXT } from './look.js';
import type { Figure } from './plotly-jsdom.js';
import type { Interval } from './stats.js';

/** One difference, in the unit of the axis. */
export interface ForestValue {
  readonly value: number;
  readonly interval: Interval | undefined;
  /** Whether the square is filled: it is told apart from zero. */
  readonly filled: boolean;
  /** Single runs. */
  readonly points: readonly number[];
}

export interface ForestPanel {
  /** Above the panel; '' for none. */
  readonly title: string;
  /** One per row; undefined where this panel has nothing to say of it. */
  readonly values: readonly (ForestValue | undefined)[];
}

export interface ForestOptions {
  readonly title: string;
  /** Says what the lines and rings are. */
  readonly subtitle: string;
  /** The quantity and its unit. */
  readonly axis: string;
  readonly rows: readonly string[];
  readonly panels: readonly ForestPanel[];
}

const ROW = 34;
const MARGIN = { r: 20, t: 92, b: 52 };
const PANEL = 380;
/** Between panels, as a share of the plotting area. */
const GAP = 0.05;
const INK = '#111111';
const ZERO = { zeroline: true, zerolinecolor: INK, zerolinewidth: 1.2 };

/** @throws when there is nothing to draw, or a panel has other rows than the figure */
export function forestFigure({ title, subtitle, axis: label, rows, panels }: ForestOptions): Figure {
  for (const panel of panels)
    if (panel.values.length !== rows.length)
      throw new Error(`panel '${panel.title}' has ${panel.values.length} rows, the figure ${rows.length}`);
  const range = rangeOf(panels.flatMap((panel) => panel.values.filter((value) => value !== undefined)));
  const left = 24 + Math.max(...rows.map((row) => textWidth(row, TEXT.body)));
  const size = (1 - GAP * (panels.length - 1)) / panels.length;
  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const annotations: Annotation[] = [];
  for (const [p, panel] of panels.entries()) {
    const id = p === 0 ? '' : String(p + 1);
    const [x, y] = [`x${id}` as XAxisName, `y${id}` as YAxisName];
    const start = p * (size + GAP);
    axes[`xaxis${p + 1}`] = axis(label, {
      domain: [start, start + size],
      range: [...range],
      anchor: y,
      ...ZERO,
    });
    axes[`yaxis${p + 1}`] = axis(undefined, {
      anchor: x,
      range: [rows.length - 0.4, -0.6],
      tickvals: rows.map((_, i) => i),
      ticktext: p === 0 ? rows.map(escaped) : rows.map(() => ''),
      ticks: '',
    });
    if (panel.title !== '') annotations.push(heading(escaped(panel.title), start, 1));
    data.push(...drawn(panel, x, y));
  }
  return {
    data,
    layout: {
      ...baseLayout(title, subtitle),
      ...axes,
      // At least as wide as its subtitle.
      width: Math.ceil(
        Math.max(
          left + MARGIN.r + PANEL * panels.length * (panels.length === 1 ? 1.3 : 1),
          textWidth(subtitle, TEXT.body) + 32,
        ),
      ),
      height: MARGIN.t + MARGIN.b + ROW * rows.length,
      margin: { l: Math.ceil(left), ...MARGIN },
      annotations,
    },
    config: CONFIG,
  };
}

function drawn({ title, values }: ForestPanel, xaxis: XAxisName, yaxis: YAxisName): Data[] {
  const rows = values.flatMap((value, i) => (value === undefined ? [] : [{ ...value, i }]));
  const rings = rows.flatMap(({ points, i }) => points.map((x) => ({ x, y: i + 0.26 })));
  return [
    {
      type: 'scatter',
      mode: 'markers',
      name: `${title}, single runs`,
      x: rings.map((ring) => ring.x),
      y: rings.map((ring) => ring.y),
      marker: { symbol: 'circle-open', color: GREY, size: 6, line: { color: GREY, width: 1 } },
      hovertemplate: '%{x:.1f}<extra></extra>',
      xaxis,
      yaxis,
    },
    {
      type: 'scatter',
      mode: 'markers',
      name: title,
      x: rows.map((row) => row.value),
      y: rows.map((row) => row.i),
      error_x: {
        type: 'data',
        symmetric: false,
        array: rows.map(({ value, interval }) => (interval ? interval.high - value : 0)),
        arrayminus: rows.map(({ value, interval }) => (interval ? value - interval.low : 0)),
        color: INK,
        thickness: 1.6,
        width: 4,
      },
      marker: {
        symbol: 'square',
        size: 9,
        color: rows.map(({ filled }) => (filled ? INK : 'white')),
        line: { color: INK, width: 1.6 },
      },
      hovertemplate: '%{x:.1f}<extra></extra>',
      xaxis,
      yaxis,
    },
  ];
}

/** A range with room that holds zero, every square, every ring and every interval's end. */
function rangeOf(values: readonly ForestValue[]): [number, number] {
  if (values.length === 0) throw new Error('a forest plot needs at least one difference');
  const all = values.flatMap(({ value, interval, points }) => [
    value,
    ...points,
    ...(interval ? [interval.low, interval.high] : []),
  ]);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const room = 0.06 * (high - low || 1);
  return [low - room, high + room];
}

/** Plotly reads `<` as the start of a tag. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
