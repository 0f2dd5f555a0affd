/**
 * The course of training as a Plotly spec: one row of panels per metric, one column per stream (draft,
 * challenge), one line per run, each as it was logged (faint) and smoothed (strong). Left out: choosing what is
 * interesting; a metric that no run logged is simply not drawn.
 */
import type { Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import { smooth } from '../numbers.js';
import { axis, baseLayout, CONFIG, heading, legendAbove, markOf, share } from './look.js';
import type { Figure } from './plotly-jsdom.js';

/** One line of a run's metrics.jsonl: `step` and metrics by name; a value that is not a number is passed over. */
export type MetricsRow = Readonly<Record<string, unknown>>;

/** A metric to draw: its name without the stream's prefix, and what to write on its axis. */
export interface TrainingMetric {
  readonly name: string;
  readonly axis: string;
}

/** What is drawn unless asked otherwise, as far as it was logged. */
export const TRAINING_METRICS: readonly TrainingMetric[] = [
  { name: 'reward', axis: 'mean reward' },
  { name: 'accuracy', axis: 'share right' },
  { name: 'completions/mean_length', axis: 'completion (tokens)' },
];

/** Options of {@link trainingFigure}. */
export interface TrainingFigureOptions {
  readonly title?: string;
  readonly metrics?: readonly TrainingMetric[];
  /** Steps a smoothed point is the mean of, centred on it (so an odd number). Default: an eighth of the longest run. */
  readonly window?: number;
}

type AxisReference<Letter extends 'x' | 'y'> = Letter extends 'x' ? XAxisName : YAxisName;

const STREAM_ORDER = ['', 'solo', 'draft', 'challenge'];
const MARGIN = { l: 60, r: 20, t: 112, b: 52 };
/** Gaps between panels, as shares of the plotting area. */
const GAP = { columns: 0.07, rows: 0.06 };
const ROW_HEIGHT = 210;
/** On a smoothed line, so that lines are told apart without colours. */
const MARKERS = 6;

/**
 * Metrics against optimizer steps.
 * @param metricsByRun the lines of each run's metrics.jsonl, under the name to show
 * @throws when no run holds any of the metrics, or a line has no step
 */
export function trainingFigure(
  metricsByRun: Readonly<Record<string, readonly MetricsRow[]>>,
  { title = 'Training', metrics = TRAINING_METRICS, window }: TrainingFigureOptions = {},
): Figure {
  const runs = Object.entries(metricsByRun);
  const keys = new Set(runs.flatMap(([, rows]) => rows.flatMap((row) => Object.keys(row))));
  const streams = [...new Set(metrics.flatMap((metric) => streamsOf(metric, keys)))].sort(byStreamOrder);
  const shown = metrics.filter((metric) => streamsOf(metric, keys).length > 0);
  if (shown.length === 0) {
    const wanted = metrics.map((metric) => metric.name).join(', ');
    throw new Error(`no run has any of the metrics ${wanted}; found ${[...keys].join(', ') || 'no rows'}`);
  }
  const longest = Math.max(...runs.map(([, rows]) => rows.length));
  const reach = Math.floor((window ?? Math.max(3, longest / 8)) / 2);

  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const named = new Set<string>();
  for (const [r, metric] of shown.entries()) {
    for (const [c, streamName] of streams.entries()) {
      const id = r * streams.length + c + 1;
      const series = runs.flatMap(([run, rows], i) => {
        const line = lineOf(rows, streamName === '' ? metric.name : `${streamName}/${metric.name}`);
        return line.x.length > 0 ? [{ run, line, mark: markOf(i) }] : [];
      });
      const bottom = r === shown.length - 1;
      axes[`xaxis${id}`] = axis(bottom ? 'optimizer step' : undefined, {
        domain: share(c, streams.length, GAP.columns),
        anchor: reference('y', id),
        showticklabels: bottom,
      });
      const [low, high] = share(r, shown.length, GAP.rows);
      axes[`yaxis${id}`] = axis(c === 0 ? metric.axis : undefined, {
        domain: [1 - high, 1 - low],
        anchor: reference('x', id),
        ...(c === 0 ? {} : { matches: reference('y', id - c) }),
      });
      for (const { run, line, mark } of series) {
        const common = {
          type: 'scatter' as const,
          mode: 'lines' as const,
          name: run,
          legendgroup: run,
          xaxis: reference('x', id),
          yaxis: reference('y', id),
        };
        data.push({
          ...common,
          ...line,
          line: { color: mark.color, width: 1 },
          opacity: 0.25,
          showlegend: false,
          hoverinfo: 'skip',
        });
        data.push({
          ...common,
          mode: 'lines+markers',
          x: line.x,
          y: smooth(line.y, reach),
          line: { color: mark.color, width: 2.2, dash: mark.dash },
          marker: {
            color: mark.color,
            symbol: mark.symbol,
            size: 7,
            maxdisplayed: MARKERS,
            line: { color: 'white', width: 1 },
          },
          showlegend: !named.has(run),
        });
        named.add(run);
      }
    }
  }
  const height = MARGIN.t + MARGIN.b + ROW_HEIGHT * shown.length;
  return {
    data,
    layout: {
      ...baseLayout(title, `faint: as logged; strong: mean over ${2 * reach + 1} steps`),
      ...axes,
      width: streams.length > 1 ? 1000 : 640,
      height,
      margin: MARGIN,
      showlegend: true,
      legend: legendAbove(height),
      annotations: streams.flatMap((name, c) =>
        name === '' ? [] : [heading(name, share(c, streams.length, GAP.columns)[0], 1)],
      ),
    },
    config: CONFIG,
  };
}

/** The streams that logged a metric: `draft` for `draft/reward`, the empty name for a plain `reward`. */
function streamsOf(metric: TrainingMetric, keys: ReadonlySet<string>): string[] {
  return [...keys].flatMap((key) => {
    if (key === metric.name) return [''];
    return key.endsWith(`/${metric.name}`) ? [key.slice(0, -metric.name.length - 1)] : [];
  });
}

function byStreamOrder(a: string, b: string): number {
  const place = (name: string) =>
    STREAM_ORDER.includes(name) ? STREAM_ORDER.indexOf(name) : STREAM_ORDER.length;
  return place(a) - place(b) || a.localeCompare(b);
}

function lineOf(rows: readonly MetricsRow[], key: string): { x: number[]; y: number[] } {
  const line = { x: [] as number[], y: [] as number[] };
  for (const row of rows) {
    const [step, value] = [row.step, row[key]];
    if (typeof step !== 'number')
      throw new Error(`metrics line: step is ${JSON.stringify(step)}, not a number`);
    if (typeof value !== 'number' || !Number.isFinite(value)) continue;
    line.x.push(step);
    line.y.push(value);
  }
  return line;
}

/** Plotly's name of the i-th x or y axis: x, x2, x3. */
function reference<Letter extends 'x' | 'y'>(letter: Letter, i: number): AxisReference<Letter> {
  return (i === 1 ? letter : `${letter}${i}`) as AxisReference<Letter>;
}
