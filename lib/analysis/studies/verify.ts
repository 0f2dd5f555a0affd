/**
 * Checks shipped tables and figure specs against the run folders beside them: each study whose tables lie there, and
 * the single experiment of a preset, is gathered from the raw lines, reported anew, and compared – CSV cell by cell,
 * everything else line by line.
 *
 * Left out: pictures (.svg, .png, .pdf), which are drawn from the specs; the run folders themselves (experiments/verify.ts).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ExperimentResults } from '../../experiments/experiment.js';
import type { MethodResult } from '../../experiments/result.js';
import { readResults, type SavedResults } from '../../experiments/saved.js';
import { STUDIES } from '../../experiments/studies.js';
import { type ArmResult, armsAsked, collectStudy, type Study } from '../../experiments/study.js';
import type { Finding } from '../../experiments/verify.js';
import { parseCsv } from '../formats.js';
import { presetFiles } from '../preset.js';
import { studyReport } from './index.js';
import { reportFiles } from './report.js';

/** One study whose tables were rebuilt. */
export interface StudyCheck {
  readonly study: string;
  readonly tables: number;
  /** CSV cells compared. */
  readonly cells: number;
  /** Runs and methods found, of those the study asks for. */
  readonly arms: number;
  readonly expected: number;
}

export interface TablesCheck {
  readonly checks: readonly StudyCheck[];
  readonly findings: readonly Finding[];
  /** Ids of the runs that some table is made of. */
  readonly used: ReadonlySet<string>;
}

/** Pictures are drawn from the specs beside them. */
const DRAWN = /\.(svg|png|pdf)$/;

/** @param studies those that may lie there */
export function verifyTables(resultsFolder: string, studies: readonly Study[] = STUDIES): TablesCheck {
  const there = ['tables', 'figures'].flatMap((kind) =>
    existsSync(join(resultsFolder, kind))
      ? readdirSync(join(resultsFolder, kind)).map((file) => `${kind}/${file}`)
      : [],
  );
  const checks: StudyCheck[] = [];
  const findings: Finding[] = [];
  const used = new Set<string>();
  const known = new Set<string>();
  const attempt = (name: string, check: () => void) => {
    try {
      check();
    } catch (error) {
      const [what] = (error as Error).message.split('\n');
      findings.push({ where: `tables of ${name}`, what: `cannot be made from the runs: ${what}` });
    }
  };
  /** Gathers a study, and compares what its runs say with its files. */
  const rebuild = (study: Study, own: readonly string[], filesOf: (arms: readonly ArmResult[]) => Files) => {
    const arms = collectStudy(study, resultsFolder, { partial: true });
    for (const arm of arms) used.add(basename(arm.folder));
    const files = filesOf(arms);
    const compared = compareFiles(files, study.name, resultsFolder, own);
    findings.push(...compared.findings);
    const expected = armsAsked(study);
    const tables = Object.keys(files).filter((file) => file.endsWith('.csv')).length;
    checks.push({ study: study.name, tables, cells: compared.cells, arms: arms.length, expected });
  };
  for (const name of ['main', 'smoke'] as const) {
    const record = `tables/${name}.json`;
    if (!there.includes(record)) continue;
    // Where the study of the name has been written too, the other files are its own.
    const own = there.includes(`tables/${name}-runs.csv`)
      ? []
      : there.filter((file) => file !== record && studyOf(file, [{ name }]) === name);
    for (const file of [record, ...own]) known.add(file);
    attempt(name, () => {
      const saved = readResults(resultsFolder, name)!;
      const study = { name, title: '', question: '', experiments: [saved.experiment] };
      rebuild(study, own, (arms) => {
        findings.push(...recordFaults(record, saved, arms));
        return own.length > 0 ? presetFiles(name, resultsOf(arms)) : {};
      });
    });
  }
  for (const study of studies) {
    const own = there.filter((file) => !known.has(file) && studyOf(file, studies) === study.name);
    if (own.length === 0) continue;
    for (const file of own) known.add(file);
    attempt(study.name, () => rebuild(study, own, (arms) => reportFiles(studyReport(study, arms))));
  }
  for (const file of there)
    if (!known.has(file))
      findings.push({ where: file, what: 'belongs to no study: nothing says where it is from' });
  return { checks, findings, used };
}

/** The study a file belongs to by its name, `<study>` or `<study>-<what>`: the longest name that fits. */
function studyOf(file: string, studies: readonly Pick<Study, 'name'>[]): string | undefined {
  const name = basename(file).replace(/\.\w+$/, '');
  return studies
    .map((study) => study.name)
    .filter((study) => name === study || name.startsWith(`${study}-`))
    .sort((a, b) => b.length - a.length)[0];
}

/** Texts by their paths inside a results folder. */
type Files = Readonly<Record<string, string>>;

/** Gathered runs as an experiment gives them. */
function resultsOf(arms: readonly ArmResult[]): ExperimentResults {
  const trained = arms.filter((arm) => arm.method.training);
  return {
    results: arms.map((arm) => arm.result),
    bestOnHeldout: arms.map((arm) => arm.bestOnHeldout),
    metrics: Object.fromEntries(trained.map((arm) => [arm.result.runId, arm.metrics])),
  };
}

/** What a single experiment's saved records say otherwise than its runs. */
function recordFaults(where: string, saved: SavedResults, arms: readonly ArmResult[]): Finding[] {
  const found = resultsOf(arms);
  return (['results', 'bestOnHeldout'] as const).flatMap((kind) =>
    saved[kind].flatMap((record): Finding[] => {
      const own = found[kind].find((r) => r.method === record.method && r.seed === record.seed);
      const what = `${kind}, ${record.method}, seed ${record.seed}`;
      if (!own) return [{ where, what: `${what}: the run ${record.runId} is not there whole` }];
      const fields = Object.keys(record) as (keyof MethodResult)[];
      const other = fields.find((field) => own[field] !== record[field]);
      return other === undefined
        ? []
        : [{ where, what: `${what}: ${other} is ${record[other]}, recomputed ${own[other]}` }];
    }),
  );
}

function compareFiles(
  wanted: Files,
  study: string,
  resultsFolder: string,
  there: readonly string[],
): { cells: number; findings: Finding[] } {
  const findings: Finding[] = [];
  let cells = 0;
  for (const [file, text] of Object.entries(wanted)) {
    if (!there.includes(file)) {
      findings.push({ where: file, what: `is not there, and ${study} has it` });
      continue;
    }
    const shipped = readFileSync(join(resultsFolder, file), 'utf8');
    if (file.endsWith('.csv')) {
      cells += parseCsv(text).reduce((sum, row) => sum + row.length, 0);
      findings.push(...compareCsv(shipped, text).map((what) => ({ where: file, what })));
    } else {
      const what = compareLines(shipped, text);
      if (what) findings.push({ where: file, what });
    }
  }
  for (const file of there) {
    if (file in wanted || (DRAWN.test(file) && file.replace(DRAWN, '.json') in wanted)) continue;
    findings.push({ where: file, what: `is no table or figure of ${study}` });
  }
  return { cells, findings };
}

/** What differs between two CSV texts, cell by cell. */
export function compareCsv(shipped: string, recomputed: string): string[] {
  const [found, wanted] = [parseCsv(shipped), parseCsv(recomputed)];
  const [header = []] = wanted;
  if (found[0]?.join() !== header.join())
    return [`has the columns ${found[0]?.join(', ')}, recomputed are ${header.join(', ')}`];
  const differences = wanted.slice(1).flatMap((row, r) =>
    row.flatMap((cell, c) => {
      const other = found[r + 1]?.[c];
      if (other === undefined || other === cell) return [];
      const name = row
        .slice(0, 3)
        .filter((text) => text !== '')
        .join(', ');
      return [
        `row ${r + 1} (${name}), column '${header[c]}': shipped ${other || 'nothing'}, recomputed ${cell || 'nothing'}`,
      ];
    }),
  );
  return found.length === wanted.length
    ? differences
    : [`has ${found.length - 1} rows, recomputed are ${wanted.length - 1}`, ...differences];
}

/** The first line that differs between two texts. */
function compareLines(shipped: string, recomputed: string): string | undefined {
  if (shipped === recomputed) return undefined;
  const [found, wanted] = [shipped.split('\n'), recomputed.split('\n')];
  const at = wanted.findIndex((line, i) => line !== found[i]);
  const i = at < 0 ? wanted.length : at;
  const short = (line: string | undefined) => (line === undefined ? 'nothing' : line.trim().slice(0, 200));
  return `line ${i + 1}: shipped ${short(found[i])}, recomputed ${short(wanted[i])}`;
}
