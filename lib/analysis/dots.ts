/**
 * Shares as dots with intervals, one row per thing and one mark per series, in panels below each other over one axis:
 * above what was measured here, below what the paper prints. Left out: sorting; rows stand as they are given.
 */
import type { Annotation, Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import { textWidth } from './font.js';
import { axis, baseLayout, CONFIG, heading, LEGEND_TOP, legendAbove, markOf, TEXT } from './look.js';
import type { Figure } from './plotly-jsdom.js';
import type { Interval } from './stats.js';

/** A share in percent. */
export interface Dot {
  readonly row: string;
  readonly series: string;
  readonly value: number;
  readonly interval?: Interval | undefined;
}

export interface DotPanel {
  readonly title: string;
  readonly dots: readonly Dot[];
  /** Open marks: not measured here. */
  readonly open: boolean;
}

const ROW = 46;
const WIDTH = 680;
const GAP = 84;
const MARGIN = { r: 24, b: 54 };
/** From one series of a row to the next, as a share of its height. */
const APART = 0.22;

/** @param label of the axis, with its unit @throws when there is nothing to draw */
export function dotsFigure(
  title: string,
  subtitle: string,
  label: string,
  panels: readonly DotPanel[],
): Figure {
  const drawn = panels.filter(({ dots }) => dots.length > 0);
  if (drawn.length === 0) throw new Error(`figure '${title}' has nothing to draw`);
  const names = [...new Set(drawn.flatMap(({ dots }) => dots.map((dot) => dot.series)))];
  const rowsOf = ({ dots }: DotPanel) => [...new Set(dots.map((dot) => dot.row))];
  const left =
    24 + Math.max(...drawn.flatMap((panel) => rowsOf(panel).map((row) => textWidth(row, TEXT.body))));
  const heights = drawn.map((panel) => ROW * rowsOf(panel).length);
  const inner = heights.reduce((sum, height) => sum + height, 0) + GAP * (drawn.length - 1);
  const top = LEGEND_TOP + 66;
  const height = top + inner + MARGIN.b;
  const ends = drawn.flatMap(({ dots }) =>
    dots.flatMap(({ value, interval }) => [value, ...(interval ? [interval.low, interval.high] : [])]),
  );
  const range: [number, number] = [Math.max(0, Math.min(...ends) - 4), Math.min(102, Math.max(...ends) + 4)];
  const data: Data[] = [];
  const annotations: Annotation[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const shown = new Set<string>();
  let above = 0;
  for (const [p, panel] of drawn.entries()) {
    const id = p === 0 ? '' : String(p + 1);
    const [x, y] = [`x${id}` as XAxisName, `y${id}` as YAxisName];
    const rows = rowsOf(panel);
    const domain: [number, number] = [Math.max(0, 1 - (above + heights[p]!) / inner), 1 - above / inner];
    axes[`xaxis${p + 1}`] = axis(label, { range: [...range], anchor: y });
    axes[`yaxis${p + 1}`] = axis(undefined, {
      domain,
      anchor: x,
      range: [rows.length - 0.5, -0.5],
      tickvals: rows.map((_, i) => i),
      ticktext: [...rows],
      ticks: '',
    });
    annotations.push(heading(panel.title, 0, domain[1]));
    for (const [s, name] of names.entries()) {
      const own = panel.dots.filter((dot) => dot.series === name);
      if (own.length === 0) continue;
      data.push({
        ...traceOf(own, s, names.length, rows, panel.open),
        showlegend: !shown.has(name),
        xaxis: x,
        yaxis: y,
      });
      shown.add(name);
    }
    above += heights[p]! + GAP;
  }
  return {
    data,
    layout: {
      ...baseLayout(title, subtitle),
      ...axes,
      width: Math.ceil(Math.max(WIDTH, textWidth(subtitle, TEXT.body) + 32)),
      height,
      margin: { l: Math.ceil(left), t: top, ...MARGIN },
      showlegend: names.length > 1,
      legend: legendAbove(height),
      annotations,
    },
    config: CONFIG,
  };
}

/** One series of a panel; series of a row stand below each other, the first on top. */
function traceOf(
  dots: readonly Dot[],
  s: number,
  count: number,
  rows: readonly string[],
  open: boolean,
): Data {
  const { color, symbol } = markOf(s);
  const apart = APART * (s - (count - 1) / 2);
  const name = dots[0]!.series;
  return {
    type: 'scatter',
    mode: 'markers',
    name,
    legendgroup: name,
    x: dots.map((dot) => dot.value),
    y: dots.map((dot) => rows.indexOf(dot.row) + apart),
    error_x: {
      type: 'data',
      symmetric: false,
      array: dots.map(({ value, interval }) => (interval ? interval.high - value : 0)),
      arrayminus: dots.map(({ value, interval }) => (interval ? value - interval.low : 0)),
      color,
      thickness: 1.6,
      width: 4,
    },
    marker: {
      color,
      symbol: open ? `${symbol}-open` : symbol,
      size: 10,
      line: { color: open ? color : 'white', width: open ? 1.8 : 1 },
    },
    hovertemplate: `${name}: %{x:.1f}%<extra></extra>`,
  };
}
