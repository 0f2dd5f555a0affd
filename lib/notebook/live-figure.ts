/**
 * The course of training in four small panels, for looking at while it runs: reward, completion length, conversions and
 * the share of groups without spread; one colour per run. Left out: the full picture after training, with every stream
 * in a column of its own (analysis/training.ts).
 */
import type { Data, LayoutAxis, XAxisName, YAxisName } from 'plotly.js';
import {
  axis,
  baseLayout,
  CONFIG,
  heading,
  LEGEND_TOP,
  legendAbove,
  markOf,
  share,
} from '../analysis/look.js';
import type { Figure } from '../analysis/plotly-jsdom.js';
import type { Metrics } from '../experiments/store.js';
import { smooth } from '../numbers.js';

interface LivePanel {
  readonly title: string;
  readonly axis: string;
  /** Metrics of the strong and of the faint line; of several names the first that a run has is drawn. */
  readonly strong: readonly string[];
  readonly faint: readonly string[];
  readonly range?: readonly [number, number];
}

const perStream = (name: string) => ({
  strong: [`challenge/${name}`, `solo/${name}`],
  faint: [`draft/${name}`],
});
const SHARE = [-0.03, 1.03] as const;
const PANELS: readonly LivePanel[] = [
  { title: 'Reward (faint: drafts)', axis: 'mean of a step', ...perStream('reward') },
  { title: 'Completion length (faint: drafts)', axis: 'tokens', ...perStream('completions/mean_length') },
  {
    title: 'Conversions (faint: kept)',
    axis: 'share of rivals wrong (right)',
    strong: ['challenge/convert'],
    faint: ['challenge/keep'],
    range: SHARE,
  },
  {
    title: 'Groups without spread (faint: drafts)',
    axis: 'share (they teach nothing)',
    ...perStream('frac_reward_zero_std'),
    range: SHARE,
  },
];

const SIZE = { width: 900, height: 560 };
const MARGIN = { l: 58, r: 16, b: 48 };
const LEGEND_ROW = 20;
/** Between panels, as shares of the plotting area. */
const GAP = { x: 0.1, y: 0.2 };

/**
 * @param runs the lines of each run's metrics.jsonl so far, under the name to show
 * @param subtitle what stands under the title, such as how far it is
 * @throws when no run has a step yet
 */
export function liveFigure(runs: Readonly<Record<string, readonly Metrics[]>>, subtitle: string): Figure {
  const started = Object.entries(runs).filter(([, lines]) => lines.length > 0);
  if (started.length === 0) throw new Error('no run has a step yet: there is nothing to draw');
  const reach = Math.floor(Math.max(3, Math.max(...started.map(([, lines]) => lines.length)) / 8) / 2);
  const names = Object.keys(runs);
  const top = LEGEND_TOP + LEGEND_ROW * Math.ceil(names.length / 5) + 34;
  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  const annotations = PANELS.map((panel, p) => heading(panel.title, share(p % 2, 2, GAP.x)[0], rowOf(p)[1]));
  for (const [p, panel] of PANELS.entries()) {
    const id = p === 0 ? '' : String(p + 1);
    const [xaxis, yaxis] = [`x${id}` as XAxisName, `y${id}` as YAxisName];
    axes[`xaxis${p + 1}`] = axis(p < 2 ? undefined : 'optimizer step', {
      domain: share(p % 2, 2, GAP.x),
      anchor: yaxis,
    });
    axes[`yaxis${p + 1}`] = axis(panel.axis, {
      domain: rowOf(p),
      anchor: xaxis,
      ...(panel.range && { range: [...panel.range] }),
    });
    for (const [run, lines] of started)
      for (const [kind, keys] of [
        ['faint', panel.faint],
        ['strong', panel.strong],
      ] as const) {
        const key = keys.find((name) => lines.some((line) => line[name] !== undefined));
        const points = key === undefined ? [] : lines.filter((line) => line[key] !== undefined);
        const mark = markOf(names.indexOf(run));
        const strong = kind === 'strong';
        // The first panel carries the legend: every run has a reward.
        if (points.length === 0) continue;
        data.push({
          type: 'scatter',
          mode: points.length > 1 ? 'lines' : 'markers',
          name: run,
          legendgroup: run,
          showlegend: strong && p === 0,
          x: points.map((line) => line.step!),
          // Rounded, to keep the figure's text short.
          y: smooth(
            points.map((line) => line[key!]!),
            reach,
          ).map((value) => Number(value.toFixed(4))),
          opacity: strong ? 1 : 0.45,
          line: { color: mark.color, dash: mark.dash, width: strong ? 2.2 : 1.2 },
          marker: { color: mark.color, symbol: mark.symbol, size: strong ? 8 : 5 },
          hovertemplate: `${run}, ${key}<br>step %{x}: %{y:.3~f}<extra></extra>`,
          xaxis,
          yaxis,
        });
      }
  }
  return {
    data,
    layout: {
      ...baseLayout('Training', subtitle),
      ...axes,
      ...SIZE,
      margin: { ...MARGIN, t: top },
      showlegend: true,
      legend: legendAbove(SIZE.height),
      annotations,
    },
    config: CONFIG,
  };
}

/** The upper or lower row of a panel, from the bottom. */
function rowOf(panel: number): [number, number] {
  return share(panel < 2 ? 1 : 0, 2, GAP.y);
}
