/**
 * Lines and points in panels, two to a row, one legend for all: series of the same name have the same marks in every
 * panel. Left out: choosing ranges; Plotly fits them to the data, but the axis of a share ends at 100%.
 */
import type { Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import { textWidth } from './font.js';
import {
  axis,
  baseLayout,
  CONFIG,
  heading,
  LEGEND_TOP,
  legendAbove,
  legendEntry,
  markOf,
  TEXT,
} from './look.js';
import type { Figure } from './plotly-jsdom.js';
import type { Interval } from './stats.js';

export interface PanelSeries {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  /** Around each y; undefined where there is none. */
  readonly intervals?: readonly (Interval | undefined)[];
}

export interface Panel {
  readonly title: string;
  /** Quantities and their units. */
  readonly x: string;
  readonly y: string;
  /** The y axis is a share in percent: intervals may reach beyond 0 and 100, the axis does not. */
  readonly share?: boolean;
  readonly series: readonly PanelSeries[];
  /** Where x is numbered; default where Plotly likes. */
  readonly ticks?: readonly number[];
}

const PANEL = { width: 330, height: 300 };
const MARGIN = { l: 64, r: 20, b: 54 };
const LEGEND_ROW = 22;
const GAP = { columns: 96, rows: 96 };
const COLUMNS = 2;

/** @throws when there is nothing to draw */
export function panelsFigure(title: string, subtitle: string, panels: readonly Panel[]): Figure {
  const names = [...new Set(panels.flatMap((panel) => panel.series.map((s) => s.name)))];
  if (names.length === 0) throw new Error(`figure '${title}' has no series to draw`);
  const columns = Math.min(COLUMNS, panels.length);
  const rows = Math.ceil(panels.length / columns);
  const inner = {
    width: columns * PANEL.width + (columns - 1) * GAP.columns,
    height: rows * PANEL.height + (rows - 1) * GAP.rows,
  };
  const width = Math.max(640, inner.width + MARGIN.l + MARGIN.r, textWidth(subtitle, TEXT.body) + 32);
  const perRow = Math.max(1, Math.floor((width - MARGIN.l - MARGIN.r) / legendEntry(names)));
  const top = LEGEND_TOP + LEGEND_ROW * Math.ceil(names.length / perRow) + 42;
  const height = top + inner.height + MARGIN.b;
  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const named = new Set<string>();
  const left = (p: number) => ((p % columns) * (PANEL.width + GAP.columns)) / inner.width;
  const above = (p: number) => 1 - (Math.floor(p / columns) * (PANEL.height + GAP.rows)) / inner.height;
  for (const [p, panel] of panels.entries()) {
    const id = p === 0 ? '' : String(p + 1);
    const [xaxis, yaxis] = [`x${id}` as XAxisName, `y${id}` as YAxisName];
    axes[`xaxis${p + 1}`] = axis(panel.x, {
      domain: [left(p), Math.min(1, left(p) + PANEL.width / inner.width)],
      anchor: yaxis,
      ...(panel.ticks && { tickvals: [...panel.ticks] }),
    });
    axes[`yaxis${p + 1}`] = axis(panel.y, {
      domain: [Math.max(0, above(p) - PANEL.height / inner.height), above(p)],
      anchor: xaxis,
      ...(panel.share && shareRange(panel)),
    });
    for (const { name, x, y, intervals } of panel.series) {
      const mark = markOf(names.indexOf(name));
      data.push({
        type: 'scatter',
        mode: x.length > 1 ? 'lines+markers' : 'markers',
        name,
        legendgroup: name,
        showlegend: !named.has(name),
        x: [...x],
        y: [...y],
        ...(intervals && {
          error_y: {
            type: 'data',
            symmetric: false,
            array: intervals.map((interval, i) => (interval ? interval.high - y[i]! : 0)),
            arrayminus: intervals.map((interval, i) => (interval ? y[i]! - interval.low : 0)),
            color: mark.color,
            thickness: 1.2,
            width: 3,
          },
        }),
        line: { color: mark.color, width: 2, dash: mark.dash },
        marker: {
          color: mark.color,
          symbol: mark.symbol,
          size: x.length > 1 ? 7 : 10,
          line: { color: 'white', width: 1 },
        },
        hovertemplate: `${name}<br>%{x}: %{y:.3~f}<extra></extra>`,
        xaxis,
        yaxis,
      });
      named.add(name);
    }
  }
  return {
    data,
    layout: {
      ...baseLayout(title, subtitle),
      ...axes,
      width,
      height,
      margin: { ...MARGIN, t: top },
      showlegend: true,
      legend: legendAbove(height),
      annotations: panels.map((panel, p) => heading(panel.title, left(p), above(p))),
    },
    config: CONFIG,
  };
}

/** Where Plotly's own range would pass 0 or 100 by an interval's end: room for a marker there, but for no tick. */
function shareRange({ series }: Panel): { range?: [number, number] } {
  const ends = series.flatMap(({ y, intervals = [] }) => [
    ...y,
    ...intervals.flatMap((interval) => (interval ? [interval.low, interval.high] : [])),
  ]);
  const [low, high] = [Math.max(0, Math.min(...ends)), Math.min(100, Math.max(...ends))];
  if (low > 0 && high < 100) return {};
  const room = (end: number) => (end === 0 || end === 100 ? 0.03 : 0.06) * (high - low);
  return { range: [low - room(low), high + room(high)] };
}
