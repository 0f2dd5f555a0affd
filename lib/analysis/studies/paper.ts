/**
 * The paper's other tables and figures, each a function of a study's gathered runs with ours beside the paper's:
 * decomposition, ablations, length tiebreak, transfer, scaling, code. (Its main table is tables.ts's `mainTable`, its main
 * figure `mainFigure`.) What the paper measured and nobody has run here stands there with the paper's number alone.
 *
 * Intervals of ours are t intervals over training seeds. The paper prints an interval for its main table only; elsewhere
 * the exact interval of the printed share of its 300 problems stands in (`printedInterval`), and none where the number of
 * problems is not printed. Left out: length by method, which is the main table's.
 */
import type { DataFrame } from 'danfojs-node';
import { finalStage, flagsOf } from '../../experiments/evaluation.js';
import type { ArmResult } from '../../experiments/study.js';
import { type Cell, fixed, frameOf, percent, range, round, span } from '../cells.js';
import { type Dot, dotsFigure } from '../dots.js';
import { mainFigure } from '../figures.js';
import { type Paper, type PaperRow, printedInterval, readPaper } from '../paper.js';
import type { Figure } from '../plotly-jsdom.js';
import { FEWEST_RUNS, pairedOverSeeds } from '../stats.js';
import { mainTable } from '../tables.js';
import { compare } from './differences.js';
import { accuracyOf, findSeries, overSeeds, pairedArms, type Series, seriesOf } from './series.js';

type Row = Record<string, Cell>;
const PAPER_METHODS = ['zero-shot', 'grpo', 'agon'] as const;
const DOTS_SUBTITLE =
  'bars: here 95% t intervals over seeds; paper: exact 95% intervals of the printed share';

/** A share over seeds as two cells. */
function shareCells(name: string, arms: readonly ArmResult[]): Row {
  const { mean, interval } = overSeeds(arms.map(accuracyOf));
  return { [`${name} %`]: percent(mean), [`${name}: t interval`]: span(interval, 100) };
}

function dotsOf(row: string, series: string, arms: readonly ArmResult[]): Dot[] {
  const { mean, interval, count } = overSeeds(arms.map(accuracyOf));
  if (mean === undefined) return [];
  const drawn = count < FEWEST_RUNS ? undefined : interval;
  return [
    {
      row,
      series,
      value: 100 * mean,
      interval: drawn && { low: 100 * drawn.low, high: 100 * drawn.high },
    },
  ];
}

/** Methods of our ablations beside the paper's factors, by its names. */
const FACTORS: Readonly<Record<string, string>> = {
  competition: 'cooperative',
  'information exchange': 'shared-opponent',
  'reward form': 'agon-margin',
  'role assignment': 'agon-fixed-roles',
};

export const ABLATIONS_CAPTION =
  "The paper's ablations: Agon with one thing taken away, pass@1 of both with 95% t intervals over training seeds, " +
  'and the difference paired over seeds (t interval, exact sign-flip p, bootstrap over problems and seeds); beside it ' +
  'what the paper prints, from one run each.';

/** One row per factor of the paper. @param arms of the study `ablations` */
export function ablationTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  const all = seriesOf(arms);
  const on = findSeries(all, 'agon');
  return frameOf(
    paper.ablations.map((row): Row => {
      const off = findSeries(all, FACTORS[row.factor] ?? '');
      const c = compare(on, off);
      const [[offName, paperOff], [onName, paperOn]] = [only(row.off), only(row.on)];
      return {
        factor: row.factor,
        off: offName,
        on: onName,
        seeds: c?.seeds.length ?? 0,
        ...shareCells('off', off?.arms ?? []),
        ...shareCells('on', on?.arms ?? []),
        'on \u2212 off, points': percent(c?.overSeeds.value),
        't interval over seeds': span(c?.overSeeds.interval, 100),
        'sign-flip p': round(c?.overSeeds.p, 4),
        'bootstrap over problems and seeds': span(c?.overProblems, 100),
        'paper off %': paperOff,
        'paper on %': paperOn,
        'paper on \u2212 off': paperOn - paperOff,
      };
    }),
  );
}

export function ablationFigure(arms: readonly ArmResult[], paper: Paper = readPaper()): Figure {
  const all = seriesOf(arms);
  const on = findSeries(all, 'agon')?.arms ?? [];
  const [withIt, without] = ['Agon', 'without it'];
  const ours = paper.ablations.flatMap(({ factor }) => {
    const off = findSeries(all, FACTORS[factor] ?? '')?.arms ?? [];
    return off.length > 0 ? [...dotsOf(factor, withIt, on), ...dotsOf(factor, without, off)] : [];
  });
  const theirs = paper.ablations.flatMap(({ factor, on: high, off: low }): Dot[] => [
    printedDot(factor, withIt, only(high)[1], paper),
    printedDot(factor, without, only(low)[1], paper),
  ]);
  return besideFigure('Agon with one thing taken away', ours, theirs);
}

export const TIEBREAK_CAPTION =
  'The length tiebreak: pass@1 and tokens of the answering stage with 95% t intervals over training seeds, and both less ' +
  "Agon's, paired over seeds. The paper does not print its weight; its row stands beside ours of weight 0.5.";

/** Agon and the weights of the tiebreak, the paper's rows beside two of them. @param arms of the study `ablations` */
export function tiebreakTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  const all = seriesOf(arms);
  const agon = findSeries(all, 'agon');
  return frameOf(
    TIEBREAKS.map(({ method, weight, printed }): Row => {
      const series = findSeries(all, method);
      const c = method === 'agon' ? undefined : compare(series, agon);
      const length = overSeeds((series?.arms ?? []).map((arm) => arm.result.finalTokens));
      const shorter = method === 'agon' ? undefined : lengthDifference(series, agon);
      const reported = paper.length_tiebreak.find((row) => row.reward === printed);
      return {
        method,
        weight,
        seeds: series?.arms.length ?? 0,
        ...shareCells('pass@1', series?.arms ?? []),
        'less Agon, points': percent(c?.overSeeds.value),
        'less Agon: t interval': span(c?.overSeeds.interval, 100),
        'final tokens': round(length.mean),
        'final tokens: t interval': span(length.interval),
        'tokens less Agon': round(shorter?.value),
        'tokens less Agon: t interval': span(shorter?.interval),
        'paper pass@1 %': reported?.pass1 ?? Number.NaN,
        'paper final tokens': reported?.final_stage_tokens ?? Number.NaN,
      };
    }),
  );
}

const TIEBREAKS = [
  { method: 'agon', weight: 0, printed: 'agon' },
  { method: 'agon-tiebreak-0.1', weight: 0.1, printed: '' },
  { method: 'agon-tiebreak', weight: 0.5, printed: 'agon + tiebreak' },
  { method: 'agon-tiebreak-1', weight: 1, printed: '' },
] as const;

function lengthDifference(a: Series | undefined, b: Series | undefined) {
  const pairs = a && b ? pairedArms(a, b) : [];
  if (pairs.length === 0) return undefined;
  return pairedOverSeeds(
    pairs.map(([arm]) => arm.result.finalTokens),
    pairs.map(([, arm]) => arm.result.finalTokens),
  );
}

/** Accuracy against the answering stage's tokens. @throws when none of the tiebreak's methods has been run */
export function tiebreakFigure(arms: readonly ArmResult[], paper: Paper = readPaper()): Figure {
  const methods = TIEBREAKS.map(({ method }): string => method);
  const rows = TIEBREAKS.flatMap(({ method, printed }) =>
    paper.length_tiebreak.filter((row) => row.reward === printed).map((row) => ({ ...row, method })),
  );
  return mainFigure(
    arms.filter((arm) => methods.includes(arm.method.name)).map((arm) => arm.result),
    { ...paper, main: rows.map((row) => paperRow(row, paper)) },
    { title: 'The length tiebreak', tokens: 'final' },
  );
}

export const DECOMPOSITION_CAPTION =
  "Where Agon's accuracy and its short answers come from: the drafter alone and the cascade, and the challenger's tokens " +
  'where the draft it read was right and where it was wrong; means over training seeds with 95% t intervals.';

/** One row per quantity that the paper prints of Agon's two stages. @param arms of the study `main` */
export function decompositionTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  const own = findSeries(seriesOf(arms), 'agon')?.arms ?? [];
  const printed = paper.decomposition;
  const row = (
    quantity: string,
    value: (arm: ArmResult) => number | undefined,
    reported: number,
    { scale = 1, decimals = 1 } = {},
  ): Row => {
    const { mean, interval, count } = overSeeds(own.map(value));
    return {
      quantity,
      seeds: count,
      here: mean === undefined ? '' : fixed(scale * mean, decimals),
      't interval over seeds': span(interval, scale, decimals),
      paper: Number.isNaN(reported) ? '' : String(reported),
      'paper: exact interval': scale === 100 ? printedRange(reported, paper) : '',
    };
  };
  const { challenger_tokens_mean: all, challenger_tokens_when_rival_right: right } = printed;
  const relative = (arm: ArmResult) => quotient(challengerTokens(arm, true), challengerTokens(arm));
  return frameOf([
    row('drafter alone, pass@1 %', draftAccuracy, printed.agon_drafter_alone, { scale: 100 }),
    row('cascade, pass@1 %', accuracyOf, printed.agon_cascade, { scale: 100 }),
    row("challenger's tokens", (arm) => challengerTokens(arm), all),
    row("challenger's tokens, draft right", (arm) => challengerTokens(arm, true), right),
    row("challenger's tokens, draft wrong", (arm) => challengerTokens(arm, false), Number.NaN),
    row('tokens, draft right / all', relative, round(right / all, 2), { decimals: 2 }),
  ]);
}

function draftAccuracy({ result: { draftCorrect, total } }: ArmResult): number | undefined {
  return draftCorrect === undefined ? undefined : draftCorrect / total;
}

/** Mean tokens of the answering stage over all problems, or over those whose draft is right, or wrong. */
function challengerTokens({ chosen }: ArmResult, draftRight?: boolean): number | undefined {
  const right = flagsOf(chosen.stages[0]!.correct);
  const tokens = finalStage(chosen).completionTokens.filter(
    (_, i) => draftRight === undefined || right[i] === draftRight,
  );
  return tokens.length === 0 ? undefined : tokens.reduce((sum, n) => sum + n, 0) / tokens.length;
}

function quotient(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b;
}

export const TRANSFER_CAPTION =
  'Transfer without further training: pass@1 with 95% t intervals over training seeds, and Agon less GRPO paired over ' +
  "seeds. Here to problems of other difficulties; the paper's benchmarks are not run here and stand below as printed.";
export const SCALING_CAPTION =
  "Other bases: pass@1 with 95% t intervals over training seeds, and Agon less GRPO paired over seeds. The paper's " +
  'models are not run here and stand below as printed.';

/** Our labels, then the paper's benchmarks. @param arms of the study `transfer` */
export function transferTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  return threeTable(
    'problems',
    arms,
    paper.transfer.map(({ benchmark, ...row }) => ({ name: benchmark, ...row })),
  );
}

/** Our bases, then the paper's models. @param arms of the study `scaling` */
export function scalingTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  return threeTable(
    'base',
    arms,
    paper.scaling.map(({ model, ...row }) => ({ name: model, ...row })),
  );
}

interface PrintedThree extends Readonly<Record<(typeof PAPER_METHODS)[number], number>> {
  readonly name: string;
}

function threeTable(what: string, arms: readonly ArmResult[], printed: readonly PrintedThree[]): DataFrame {
  const all = seriesOf(arms);
  const ours = [...new Set(arms.map((arm) => arm.label))].map((label): Row => {
    const at = (method: string) => findSeries(all, method, label);
    const c = compare(at('agon'), at('grpo'));
    return {
      [what]: label,
      where: 'here',
      seeds: Math.max(...PAPER_METHODS.map((method) => at(method)?.arms.length ?? 0)),
      ...Object.assign({}, ...PAPER_METHODS.map((method) => shareCells(method, at(method)?.arms ?? []))),
      'agon \u2212 grpo, points': percent(c?.overSeeds.value),
      't interval over seeds': span(c?.overSeeds.interval, 100),
      'sign-flip p': round(c?.overSeeds.p, 4),
    };
  });
  const theirs = printed.map(
    (row): Row => ({
      [what]: row.name,
      where: 'paper; not run here',
      seeds: 1,
      ...Object.fromEntries(
        PAPER_METHODS.flatMap((method) => [
          [`${method} %`, row[method]],
          [`${method}: t interval`, ''],
        ]),
      ),
      'agon \u2212 grpo, points': row.agon - row.grpo,
      't interval over seeds': '',
      'sign-flip p': Number.NaN,
    }),
  );
  return frameOf([...ours, ...theirs]);
}

export function transferFigure(arms: readonly ArmResult[], paper: Paper = readPaper()): Figure {
  // How many problems of each benchmark were asked is not printed, so there is no interval to draw.
  const theirs = paper.transfer.flatMap((row) =>
    PAPER_METHODS.map((method): Dot => ({ row: row.benchmark, series: method, value: row[method] })),
  );
  return besideFigure('Transfer without further training', threeDots(arms), theirs);
}

export function scalingFigure(arms: readonly ArmResult[], paper: Paper = readPaper()): Figure {
  const theirs = paper.scaling.flatMap((row) =>
    PAPER_METHODS.map((method) => printedDot(row.model, method, row[method], paper)),
  );
  return besideFigure('Other bases', threeDots(arms), theirs);
}

function threeDots(arms: readonly ArmResult[]): Dot[] {
  return seriesOf(arms)
    .filter(({ method }) => PAPER_METHODS.some((name) => name === method))
    .flatMap((series) => dotsOf(series.label, series.method, series.arms));
}

export const CODE_CAPTION =
  'Programs judged by hidden tests: here short programs in a small list language, in the paper CodeContests (easy) with ' +
  'Qwen3-1.7B, so rows compare in their order only. pass@1 with the exact 95% interval over problems and the t interval over ' +
  "seeds, mean tokens per problem; the paper's intervals are the exact ones of the printed shares.";

/** The main table's columns for the second domain. @param arms of the study `domain` */
export function codeTable(arms: readonly ArmResult[], paper: Paper = readPaper()): DataFrame {
  return mainTable(
    arms.map((arm) => arm.result),
    codePaper(paper),
    arms.map((arm) => arm.bestOnHeldout),
  );
}

export function codeFigure(arms: readonly ArmResult[], paper: Paper = readPaper()): Figure {
  return mainFigure(
    arms.map((arm) => arm.result),
    codePaper(paper),
    { title: 'Programs judged by hidden tests' },
  );
}

/** The paper's code table in the place of its main one. */
function codePaper(paper: Paper): Paper {
  return { ...paper, main: paper.code.rows.map((row) => paperRow(row, paper)) };
}

function paperRow(row: Omit<PaperRow, 'ci95'>, paper: Paper): PaperRow {
  const { low, high } = printedInterval(row.pass1, paper);
  return {
    method: row.method,
    pass1: row.pass1,
    ci95: [low, high],
    final_stage_tokens: row.final_stage_tokens,
  };
}

function printedRange(pass1: number, paper: Paper): string {
  const { low, high } = printedInterval(pass1, paper);
  return range(low, high);
}

function printedDot(row: string, series: string, pass1: number, paper: Paper): Dot {
  return { row, series, value: pass1, interval: printedInterval(pass1, paper) };
}

function besideFigure(title: string, ours: readonly Dot[], theirs: readonly Dot[]): Figure {
  return dotsFigure(title, DOTS_SUBTITLE, 'pass@1 (%)', [
    { title: 'Here', dots: ours, open: false },
    { title: 'Paper, 1 run each', dots: theirs, open: true },
  ]);
}

/** The one entry of a record. */
function only<T>(entry: Readonly<Record<string, T>>): [string, T] {
  return Object.entries(entry)[0]!;
}
