/**
 * The figures of results, as Plotly specs: accuracy against cost beside the paper's (`mainFigure`) and the
 * rewards and advantages of one group (`rewardFigure`). A spec depends on its input alone, so it can be kept as
 * a snapshot. training.ts draws the course of training; export.ts makes pictures.
 */
import type { Annotation, Data, Layout } from 'plotly.js';
import type { MethodResult } from '../experiments/result.js';
import { textWidth } from './font.js';
import { type LabelledPoint, placeLabels } from './labels.js';
import { axis, baseLayout, CONFIG, GREY, heading, markOf, OKABE_ITO, TEXT } from './look.js';
import type { Paper } from './paper.js';
import type { Figure } from './plotly-jsdom.js';
import { summarise } from './tables.js';

/** Options of {@link mainFigure}. */
export interface MainFigureOptions {
  readonly title?: string;
  /** Which length the left panel shows: both stages (default), or the answering stage as the paper counts. */
  readonly tokens?: 'total' | 'final';
}

/** One named point with its interval: x in tokens, the rest in percent. */
interface MethodPoint {
  readonly method: string;
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

const MAIN = { width: 1040, height: 520, margin: { l: 60, r: 16, t: 88, b: 52 } };
const PANELS = {
  ours: { x: 'x', y: 'y', domain: [0, 0.53], suffix: '' },
  paper: { x: 'x2', y: 'y2', domain: [0.61, 1], suffix: '-open' },
} as const;

/**
 * Accuracy against tokens per problem with 95% intervals, one named point per method; on the left the results,
 * on the right (open markers) what the paper reports, on the same scale of accuracy.
 * @throws when there are no results
 */
export function mainFigure(
  results: readonly MethodResult[],
  paper: Paper,
  { title = 'Accuracy and what it costs', tokens = 'total' }: MainFigureOptions = {},
): Figure {
  const rows = summarise(results);
  const ours = rows.map((row) => ({
    method: row.method,
    x: tokens === 'total' ? row.totalTokens : row.finalTokens,
    y: 100 * row.accuracy.value,
    low: 100 * row.accuracy.low,
    high: 100 * row.accuracy.high,
  }));
  const theirs = paper.main.map((row) => ({
    method: row.method,
    x: row.final_stage_tokens,
    y: row.pass1,
    low: row.ci95[0],
    high: row.ci95[1],
  }));
  const top = Math.min(
    102,
    Math.ceil(Math.max(...[...ours, ...theirs].map((point) => point.high)) / 5) * 5 + 5,
  );
  // A method has the same marks in both panels: the paper's methods from its last row up, then those only we have.
  const names = [...new Set([...[...theirs].reverse(), ...ours].map((point) => point.method))];
  const counts = [...new Set(rows.map((row) => row.acrossSeeds.count))].sort((a, b) => a - b);
  const runs = counts.length === 1 ? `${counts[0]}` : `${counts[0]}\u2013${counts.at(-1)}`;
  const panels = [panel('ours', ours, names, top), panel('paper', theirs, names, top)];
  const accuracy = (anchor: 'x' | 'x2') => axis('pass@1 (%)', { range: [0, top], anchor });
  return {
    data: panels.flatMap((part) => part.data),
    layout: {
      ...baseLayout(
        title,
        'bars: 95% intervals over problems; left: measured here, right: as the paper reports',
      ),
      ...MAIN,
      xaxis: axis(
        `mean tokens per problem, ${tokens === 'total' ? 'draft + answer' : 'answering stage only'}`,
        {
          domain: [...PANELS.ours.domain],
          range: panels[0]!.range,
        },
      ),
      yaxis: accuracy('x'),
      xaxis2: axis('mean tokens per problem, answering stage only', {
        domain: [...PANELS.paper.domain],
        range: panels[1]!.range,
        anchor: 'y2',
      }),
      yaxis2: accuracy('x2'),
      annotations: [
        heading(
          `Here: ${rows[0]!.problems} problems, ${runs} ${runs === '1' ? 'run' : 'runs'} per method`,
          0,
          1,
        ),
        heading(`Paper: ${paper.eval.problems} problems, 1 run per method`, PANELS.paper.domain[0], 1),
        ...panels.flatMap((part) => part.annotations),
      ],
    },
    config: CONFIG,
  };
}

/** The points, names and x range of one panel of the main figure. */
function panel(
  which: keyof typeof PANELS,
  points: readonly MethodPoint[],
  names: readonly string[],
  top: number,
): { data: Data[]; annotations: Annotation[]; range: [number, number] } {
  const { x: xref, y: yref, domain, suffix } = PANELS[which];
  const xs = points.map((point) => point.x);
  const room = 0.22 * Math.max(Math.max(...xs) - Math.min(...xs), 0.2 * Math.max(...xs));
  const range: [number, number] = [Math.max(0, Math.min(...xs) - room), Math.max(...xs) + room];

  const width = (domain[1] - domain[0]) * (MAIN.width - MAIN.margin.l - MAIN.margin.r);
  const height = MAIN.height - MAIN.margin.t - MAIN.margin.b;
  const pixelY = (value: number) => height * (1 - value / top);
  const boxes: LabelledPoint[] = points.map((point) => ({
    x: (width * (point.x - range[0])) / (range[1] - range[0]),
    y: pixelY(point.y),
    top: pixelY(point.high),
    bottom: pixelY(point.low),
    width: textWidth(point.method, TEXT.small) + 4,
    height: TEXT.small * 1.4,
  }));
  const places = placeLabels(boxes, { left: 2, right: width - 2, top: 2, bottom: height - 2 });

  const data = points.map((point): Data => {
    const { color, symbol } = markOf(names.indexOf(point.method));
    return {
      type: 'scatter',
      mode: 'markers',
      name: point.method,
      x: [point.x],
      y: [point.y],
      error_y: {
        type: 'data',
        symmetric: false,
        array: [point.high - point.y],
        arrayminus: [point.y - point.low],
        color,
        thickness: which === 'ours' ? 1.6 : 1,
        width: 4,
      },
      marker: {
        color,
        symbol: `${symbol}${suffix}`,
        size: 11,
        line: { color: which === 'ours' ? 'white' : color, width: 1.4 },
      },
      hovertemplate: `${point.method}<br>%{y:.1f}% [${point.low.toFixed(1)}, ${point.high.toFixed(1)}]<br>%{x:,.0f} tokens<extra></extra>`,
      xaxis: xref,
      yaxis: yref,
    };
  });
  const annotations = points.map((point, i): Annotation => {
    const { dx, dy, far } = places[i]!;
    const label = { text: point.method, x: point.x, y: point.y, xref, yref, font: { size: TEXT.small } };
    if (!far) return { ...label, showarrow: false, xshift: dx, yshift: -dy };
    return {
      ...label,
      showarrow: true,
      ax: dx,
      ay: dy,
      arrowhead: 0,
      arrowwidth: 0.8,
      arrowcolor: GREY,
      standoff: 7,
    };
  });
  return { data, annotations, range };
}

/** One attempt of a group, as {@link rewardFigure} draws it. */
export interface GroupMember {
  /** Under the bar, such as `b1`. */
  readonly name: string;
  readonly correct: boolean;
  /** For a challenger: whether the draft it read is right. */
  readonly rivalCorrect?: boolean;
  /** Undefined where the method's reward does not apply. */
  readonly reward: number | undefined;
  readonly advantage: number;
}

/**
 * One group of attempts at one problem: their rewards above, the advantages that GRPO makes of them below.
 * @throws on an empty group
 */
export function rewardFigure(
  group: readonly GroupMember[],
  title = 'Rewards of one group, and their advantages',
): Figure {
  if (group.length === 0) throw new Error('a reward figure needs at least one attempt');
  const positions = group.map((_, i) => i);
  const bars = (
    correct: boolean,
    value: (member: GroupMember) => number | undefined,
    yaxis: 'y' | 'y2',
  ): Data => {
    const values = group.map((member) => (member.correct === correct ? value(member) : undefined));
    return {
      type: 'bar',
      name: correct ? 'right answer' : 'wrong answer',
      x: positions,
      y: values.map((y) => y ?? null),
      text: values.map((y) => (y === undefined ? '' : signed(y, yaxis === 'y2'))),
      textposition: 'outside',
      cliponaxis: false,
      width: 0.6,
      marker: correct
        ? { color: OKABE_ITO.blue }
        : {
            color: OKABE_ITO.orange,
            pattern: { shape: '/', fillmode: 'overlay', fgcolor: 'white', size: 6, solidity: 0.25 },
          },
      hoverinfo: 'y',
      xaxis: 'x',
      yaxis,
    };
  };
  const names = group.map(({ name, correct, rivalCorrect }) => {
    const rival = rivalCorrect === undefined ? '' : `<br>rival ${rivalCorrect ? 'right' : 'wrong'}`;
    return `<b>${name}</b><br>${correct ? 'right' : 'wrong'}${rival}`;
  });
  const layout: Partial<Layout> = {
    ...baseLayout(title, 'blue: right answer; orange, hatched: wrong answer'),
    width: Math.max(480, 110 + 92 * group.length),
    height: 480,
    margin: { l: 60, r: 16, t: 72, b: 60 },
    barmode: 'overlay',
    xaxis: axis(undefined, {
      tickvals: positions,
      ticktext: names,
      range: [-0.6, group.length - 0.4],
      anchor: 'y2',
      showgrid: false,
      ticks: '',
    }),
    yaxis: axis('reward', { domain: [0.56, 1], range: padded(group.map((member) => member.reward ?? 0)) }),
    yaxis2: axis('advantage', { domain: [0, 0.46], range: padded(group.map((member) => member.advantage)) }),
    annotations: positions.flatMap((i): Annotation[] =>
      group[i]!.reward === undefined ? [{ text: 'n/a', x: i, y: 0, yshift: 9, showarrow: false }] : [],
    ),
    shapes: (['y', 'y2'] as const).map((yref) => ({
      type: 'line' as const,
      xref: 'paper' as const,
      x0: 0,
      x1: 1,
      yref,
      y0: 0,
      y1: 0,
      line: { color: '#444444', width: 1 },
    })),
  };
  const data = [true, false].flatMap((correct) => [
    bars(correct, (member) => member.reward, 'y'),
    bars(correct, (member) => member.advantage, 'y2'),
  ]);
  return { data, layout, config: CONFIG };
}

/** A range that holds zero, the values and a number written beyond each end of a bar. */
function padded(values: readonly number[]): [number, number] {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const room = 0.18 * (high - low || 1);
  return [low < 0 ? low - room : 0, high + room];
}

function signed(value: number, withPlus: boolean): string {
  const text = String(Math.round(Math.abs(value) * 100) / 100);
  if (text === '0') return text;
  return `${value < 0 ? '\u2212' : withPlus ? '+' : ''}${text}`;
}
