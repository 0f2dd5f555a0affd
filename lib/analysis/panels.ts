/**
 * Lines and points in panels side by side, one legend for all: series of the same name have the same marks in every
 * panel. Left out: choosing ranges; Plotly fits them to the data.
 */
import type { Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import { axis, baseLayout, CONFIG, heading, LEGEND_TOP, legendAbove, markOf } from './look.js';
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
  readonly series: readonly PanelSeries[];
  /** Where x is numbered; default where Plotly likes. */
  readonly ticks?: readonly number[];
}

const PANEL = { width: 330, height: 300 };
const MARGIN = { l: 60, r: 20, b: 52 };
const LEGEND_ROW = 20;
const GAP = 70;

/** @throws when there is nothing to draw */
export function panelsFigure(title: string, subtitle: string, panels: readonly Panel[]): Figure {
  const names = [...new Set(panels.flatMap((panel) => panel.series.map((s) => s.name)))];
  if (names.length === 0) throw new Error(`figure '${title}' has no series to draw`);
  const inner = panels.length * PANEL.width + (panels.length - 1) * GAP;
  const width = Math.max(640, inner + MARGIN.l + MARGIN.r);
  const perRow = Math.max(1, Math.floor(width / 210));
  const top = LEGEND_TOP + LEGEND_ROW * Math.ceil(names.length / perRow) + 42;
  const height = top + PANEL.height + MARGIN.b;
  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const named = new Set<string>();
  const start = (p: number) => (p * (PANEL.width + GAP)) / inner;
  for (const [p, panel] of panels.entries()) {
    const id = p === 0 ? '' : String(p + 1);
    const [xaxis, yaxis] = [`x${id}` as XAxisName, `y${id}` as YAxisName];
    axes[`xaxis${p + 1}`] = axis(panel.x, {
      domain: [start(p), Math.min(1, start(p) + PANEL.width / inner)],
      anchor: yaxis,
      ...(panel.ticks && { tickvals: [...panel.ticks] }),
    });
    axes[`yaxis${p + 1}`] = axis(panel.y, { anchor: xaxis });
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
      annotations: panels.map((panel, p) => heading(panel.title, start(p), 1)),
    },
    config: CONFIG,
  };
}
