/**
 * Which of the paper's tables and figures belong to which study's report. Left out: what they hold (paper.ts); the main
 * table, which is the main report's own.
 */
import type { ArmResult, Study } from '../../experiments/study.js';
import {
  ABLATIONS_CAPTION,
  ablationFigure,
  ablationTable,
  CODE_CAPTION,
  codeFigure,
  codeTable,
  DECOMPOSITION_CAPTION,
  decompositionTable,
  SCALING_CAPTION,
  scalingFigure,
  scalingTable,
  TIEBREAK_CAPTION,
  TRANSFER_CAPTION,
  tiebreakFigure,
  tiebreakTable,
  transferFigure,
  transferTable,
} from './paper.js';
import type { ReportFigure, ReportTable, StudyReport } from './report.js';

type Parts = Partial<Pick<StudyReport, 'tables' | 'figures'>>;

function table(name: string, caption: string, frame: ReportTable['frame']): ReportTable {
  return { name, caption, frame };
}

function figure(name: string, spec: ReportFigure['spec']): ReportFigure {
  return { name, spec };
}

/** By study. Each needs the runs that its function names; what a study is cut to may leave them out. */
const PARTS: Readonly<Record<string, (arms: readonly ArmResult[]) => Parts>> = {
  main: (arms) =>
    has(arms, 'agon')
      ? { tables: [table('main-decomposition', DECOMPOSITION_CAPTION, decompositionTable(arms))] }
      : {},
  ablations: (arms) => ({
    tables: [
      table('ablations-paper', ABLATIONS_CAPTION, ablationTable(arms)),
      table('ablations-tiebreak', TIEBREAK_CAPTION, tiebreakTable(arms)),
    ],
    figures: [
      figure('ablations-paper', ablationFigure(arms)),
      ...(has(arms, 'agon') ? [figure('ablations-tiebreak', tiebreakFigure(arms))] : []),
    ],
  }),
  transfer: (arms) => ({
    tables: [table('transfer-paper', TRANSFER_CAPTION, transferTable(arms))],
    figures: [figure('transfer-paper', transferFigure(arms))],
  }),
  scaling: (arms) => ({
    tables: [table('scaling-paper', SCALING_CAPTION, scalingTable(arms))],
    figures: [figure('scaling-paper', scalingFigure(arms))],
  }),
  domain: (arms) => ({
    tables: [table('domain-paper', CODE_CAPTION, codeTable(arms))],
    figures: [figure('domain-paper', codeFigure(arms))],
  }),
};

/** The paper's tables and figures with a study's runs beside them; nothing where the paper has none. */
export function paperReport({ name }: Study, arms: readonly ArmResult[]): StudyReport {
  return { tables: [], figures: [], notes: [], ...PARTS[name]?.(arms) };
}

function has(arms: readonly ArmResult[], method: string): boolean {
  return arms.some((arm) => arm.method.name === method);
}
