/**
 * The course of cost as a Plotly spec: seconds against rollouts and against completion tokens, for sampling and
 * for training, one line per participant. Straight lines through the origin's neighbourhood mean linear cost.
 */
import type { Data, LayoutAxis } from 'plotly.js';
import type { Figure } from '../analysis/index.js';
import { axis, baseLayout, CONFIG, heading, markOf, TEXT } from '../analysis/look.js';
import type { CurvePoint } from './run.js';

const ROWS = [
  { measure: 'sample', domain: [0.57, 1], name: 'Sampling' },
  { measure: 'train', domain: [0, 0.43], name: 'Training' },
] as const;
const COLUMNS = [
  { vary: 'rows', domain: [0, 0.46] },
  { vary: 'completion', domain: [0.54, 1] },
] as const;

/** @throws when there are no points */
export function curveFigure(curve: readonly CurvePoint[], subtitle: string): Figure {
  if (curve.length === 0) throw new Error('the curve of cost has no points');
  const participants = [...new Set(curve.map((point) => point.participant))];
  const data: Data[] = [];
  const axes: Record<`xaxis${number}` | `yaxis${number}`, LayoutAxis> = {};
  for (const [r, row] of ROWS.entries())
    for (const [c, column] of COLUMNS.entries()) {
      const id = r * COLUMNS.length + c + 1;
      const suffix = (id === 1 ? '' : id) as '' | 2;
      const points = curve.filter((p) => p.measure === row.measure && p.vary === column.vary);
      const fixed = points[0] && (column.vary === 'rows' ? points[0].completion : points[0].rows);
      const label =
        column.vary === 'rows'
          ? `rollouts (of ${fixed} completion tokens)`
          : `completion tokens (of ${fixed} rollouts)`;
      axes[`xaxis${id}`] = axis(label, {
        domain: [...column.domain],
        anchor: `y${suffix}`,
        rangemode: 'tozero',
      });
      axes[`yaxis${id}`] = axis(c === 0 ? 'seconds' : undefined, {
        domain: [...row.domain],
        anchor: `x${suffix}`,
        rangemode: 'tozero',
      });
      for (const [i, participant] of participants.entries()) {
        const own = points.filter((p) => p.participant === participant);
        const { color, symbol, dash } = markOf(i);
        data.push({
          type: 'scatter',
          mode: 'lines+markers',
          name: participant,
          legendgroup: participant,
          showlegend: id === 1,
          x: own.map((p) => p[column.vary]),
          y: own.map((p) => p.seconds),
          xaxis: `x${suffix}`,
          yaxis: `y${suffix}`,
          line: { color, dash, width: 2 },
          marker: { color, symbol, size: 8 },
        });
      }
    }
  return {
    data,
    layout: {
      ...baseLayout('Cost against rollouts and length', subtitle),
      ...axes,
      width: 900,
      height: 720,
      margin: { l: 60, r: 20, t: 120, b: 52 },
      showlegend: true,
      legend: {
        orientation: 'h',
        x: 0,
        xanchor: 'left',
        y: 1.05,
        yanchor: 'bottom',
        font: { size: TEXT.body },
      },
      annotations: ROWS.map((row) => heading(row.name, 0, row.domain[1])),
    },
    config: CONFIG,
  };
}
