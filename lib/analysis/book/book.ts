/**
 * Everything that a results folder holds, as one book: a chapter per study with its tables, figures, sentences, settings
 * and runs, in the order of experiments/studies.ts, and the names of the studies that have not been run. Computed from the
 * run folders alone, so the same folders give the same book. Left out: HTML and PDF (html.ts, pdf.ts).
 */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { baseFolder } from '../../experiments/bases.js';
import { readResults } from '../../experiments/saved.js';
import { RESULTS_VERSION } from '../../experiments/store.js';
import { STUDIES } from '../../experiments/studies.js';
import { type ArmResult, armsAsked, collectStudy, type Study } from '../../experiments/study.js';
import { ROOT, readJson } from '../../files.js';
import { sizeOf } from '../export.js';
import { honestNotes } from '../notes.js';
import { readPaper } from '../paper.js';
import { drawSvg, type Size } from '../plotly-jsdom.js';
import { presetFigures } from '../preset.js';
import { studyReport } from '../studies/index.js';
import { type ReportTable, reportTable, type StudyReport } from '../studies/report.js';
import { mainTable } from '../tables.js';

export interface BookFigure {
  readonly name: string;
  /** Drawn, without the typeface: the book carries it once. */
  readonly svg: string;
  /** In CSS pixels. */
  readonly size: Size;
}

export interface Chapter extends Pick<Study, 'name' | 'title' | 'question'> {
  /** How much of what the study asks for is there. */
  readonly coverage: string;
  readonly notes: readonly string[];
  readonly tables: readonly ReportTable[];
  readonly figures: readonly BookFigure[];
  /** What all its experiments share: names and values. */
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** What they differ in: a table, where there is anything. */
  readonly varied: readonly ReportTable[];
  /** Ids of the run folders. */
  readonly runs: readonly string[];
}

export interface Book {
  readonly title: string;
  /** Where the numbers are from: names and values. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly chapters: readonly Chapter[];
  /** Studies without a run. */
  readonly missing: readonly Study[];
}

export interface BookOptions {
  /** Those that may lie there. */
  readonly studies?: readonly Study[];
  /** Called before each piece of work. @param done chapters and figures so far, of `total` as known by then */
  readonly onProgress?: (done: number, total: number, what: string) => void;
}

/** Gathers a results folder. @throws when it holds no run of any study and no saved experiment */
export async function gatherBook(
  resultsFolder: string,
  { studies = STUDIES, onProgress }: BookOptions = {},
): Promise<Book> {
  let [done, total] = [0, studies.length];
  const chapters: Chapter[] = [];
  const missing: Study[] = [];
  const backends = new Set<string>();
  const add = async (study: Study, arms: readonly ArmResult[], report: StudyReport) => {
    total += report.figures.length;
    const figures: BookFigure[] = [];
    for (const { name, spec } of report.figures) {
      onProgress?.(done++, total, name);
      figures.push({ name, svg: await drawSvg(spec, sizeOf(spec)), size: sizeOf(spec) });
    }
    for (const arm of arms) backends.add(arm.result.backend);
    chapters.push({
      name: study.name,
      title: study.title,
      question: study.question,
      coverage: `${arms.length} of ${armsAsked(study)} methods and seeds`,
      // The question has a line of its own.
      notes: report.notes.filter((note) => !note.startsWith('Asked: ')),
      tables: report.tables,
      figures,
      ...settingsOf(study),
      runs: [...new Set(arms.map((arm) => basename(arm.folder)))].sort(),
    });
  };
  for (const study of studies) {
    onProgress?.(done++, total, study.name);
    // A bar is drawn between two studies, not in the middle of one.
    await new Promise(setImmediate);
    // Where a base has not been made there is no run on it either.
    const there = study.experiments.filter((experiment) => existsSync(baseFolder(experiment.base)));
    const arms = collectStudy({ ...study, experiments: there }, resultsFolder, { partial: true });
    if (arms.length === 0) missing.push(study);
    else await add(study, arms, studyReport(study, arms));
  }
  const single = savedChapter(resultsFolder);
  if (single) await add(single.study, single.arms, single.report);
  if (chapters.length === 0)
    throw new Error(
      `${join(resultsFolder, 'runs')} holds no run of a study, and there is no saved experiment`,
    );
  onProgress?.(total, total, 'done');
  return { title: 'Agon on the arena', facts: factsOf([...backends]), chapters, missing };
}

/** The single experiment that `npm run reproduce` saved last, as a study of its own. */
function savedChapter(folder: string): { study: Study; arms: ArmResult[]; report: StudyReport } | undefined {
  const saved = readResults(folder, 'main') ?? readResults(folder, 'smoke');
  if (!saved) return undefined;
  const { experiment, results, bestOnHeldout } = saved;
  const study: Study = {
    name: `preset-${experiment.name}`,
    title: `Preset ${experiment.name}`,
    question: 'What does one experiment show?',
    experiments: [experiment],
  };
  const paper = readPaper();
  const caption =
    'pass@1 with the exact 95% interval over problems (direction chosen on the validation split), its spread over ' +
    'training seeds, mean tokens per problem, and what the paper reports.';
  return {
    study,
    arms: collectStudy(study, folder, { partial: true }),
    report: {
      tables: [{ name: study.name, caption, frame: mainTable(results, paper, bestOnHeldout) }],
      figures: Object.entries(presetFigures(study.name, saved)).map(([name, spec]) => ({ name, spec })),
      notes: honestNotes(results, paper),
    },
  };
}

const packageSchema = z.object({
  version: z.string(),
  dependencies: z.record(z.string(), z.string()),
});

function factsOf(backends: readonly string[]): [string, string][] {
  const { version, dependencies } = readJson(join(ROOT, 'package.json'), packageSchema);
  const paper = readPaper();
  const libraries = ['@tensorflow/tfjs', 'danfojs-node', 'plotly.js'].map(
    (name) => `${name} ${dependencies[name]!.replace(/^npm:.*@/, '')}`,
  );
  return [
    ['Software', `agon-notebooks ${version}, format of results ${RESULTS_VERSION}`],
    ['Runs computed on', backends.join(', ')],
    ['Made with', [...libraries, `Node ${process.versions.node}`].join(', ')],
    ['The paper', paper.source],
  ];
}

/** What the experiments of a study are set to. */
function settingsOf({ name, experiments }: Study): Pick<Chapter, 'settings' | 'varied'> {
  const flat = experiments.map((experiment) => new Map(flatten(experiment)));
  const keys = [...new Set(flat.flatMap((settings) => [...settings.keys()]))].filter(
    (key) => key !== 'label',
  );
  const shared = keys.filter((key) => new Set(flat.map((settings) => settings.get(key))).size === 1);
  const different = keys.filter((key) => !shared.includes(key));
  const rows = flat.map((settings, i) => ({
    experiment: experiments[i]!.label || `experiment ${i + 1}`,
    ...Object.fromEntries(different.map((key) => [key, settings.get(key) ?? ''])),
  }));
  return {
    settings: shared.map((key) => [key, flat[0]!.get(key)!]),
    varied:
      different.length === 0
        ? []
        : reportTable(`${name}-varied`, 'What the experiments of this study differ in.', rows),
  };
}

/** A value's fields by dotted names, lists as texts. */
function flatten(value: unknown, prefix = ''): [string, string][] {
  if (Array.isArray(value)) return [[prefix, value.join(', ')]];
  if (typeof value !== 'object' || value === null) return [[prefix, String(value)]];
  return Object.entries(value).flatMap(([key, field]) =>
    flatten(field, prefix === '' ? key : `${prefix}.${key}`),
  );
}
