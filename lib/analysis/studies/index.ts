/**
 * Studies as reports: `studyReport(study, collectStudy(study, folder))` makes every table, figure and sentence of a
 * study from its run folders; `writeStudyReport` writes them.
 */
import type { ArmResult, Study } from '../../experiments/study.js';
import { paperReport } from './beside-paper.js';
import { blindSpotsReport } from './blind-spots.js';
import { controlReport } from './control.js';
import { costReport } from './cost.js';
import { densityReport } from './density.js';
import { labelsReport } from './labels.js';
import { mainReport } from './main.js';
import { joinReports, type StudyReport } from './report.js';
import { tuningReport } from './tuning.js';

export * from './paper.js';
export { type ReportFigure, type ReportTable, type StudyReport, writeStudyReport } from './report.js';

/** Studies with questions of their own; the others vary one thing and are reported alike. */
const REPORTS: Readonly<Record<string, (study: Study, arms: readonly ArmResult[]) => StudyReport>> = {
  main: (study, arms) =>
    joinReports(
      mainReport(study, arms),
      blindSpotsReport(study, arms),
      costReport(study, arms),
      densityReport(study, arms),
    ),
  control: controlReport,
  tuning: tuningReport,
};

/** @throws when there are no runs */
export function studyReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  if (arms.length === 0) throw new Error(`study ${study.name}: there are no runs to report on`);
  return joinReports((REPORTS[study.name] ?? labelsReport)(study, arms), paperReport(study, arms));
}
