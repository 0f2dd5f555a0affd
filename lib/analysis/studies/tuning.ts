/**
 * The report of the search for a learning rate: one value per label, every trained row, judged on the validation split
 * alone. Held-out answers of these runs, where there are any, are not looked at here. Left out: differences; one seed
 * per value shows none.
 */
import { countCorrect } from '../../experiments/evaluation.js';
import type { ArmResult, Study } from '../../experiments/study.js';
import { type Cell, fixed, percent, percentRange, round } from '../cells.js';
import { clopperPearson, spread } from '../stats.js';
import { reportTable, type StudyReport } from './report.js';
import { overSeeds, seriesOf } from './series.js';

export function tuningReport(study: Study, arms: readonly ArmResult[]): StudyReport {
  const all = seriesOf(arms);
  const labels = [...new Set(all.map((series) => series.label))];
  const methods = [...new Set(all.map((series) => series.method))];
  const meanOf = (method: string, label: string) => {
    const series = all.find((s) => s.method === method && s.label === label);
    return overSeeds(series?.arms.map(onValidation) ?? []).mean;
  };
  const columns = (value: (label: string) => number | undefined) =>
    Object.fromEntries(labels.map((label) => [`${label} %`, percent(value(label))]));
  const means = labels.map((label) => {
    const values = methods.map((method) => meanOf(method, label));
    return { label, mean: values.every((v) => v !== undefined) ? spread(values).mean : undefined };
  });
  const whole = means.filter(({ mean }) => mean !== undefined);
  const best = whole.reduce<(typeof whole)[number] | undefined>(
    (found, next) => (found && found.mean! >= next.mean! ? found : next),
    undefined,
  );
  return {
    tables: [
      ...reportTable(
        study.name,
        `${study.title}: pass@1 on the validation split (a cascade in its better direction there), and the mean over methods.`,
        [
          ...methods.map((method) => ({ method, ...columns((label) => meanOf(method, label)) })),
          { method: 'mean', ...columns((label) => means.find((m) => m.label === label)?.mean) },
        ],
      ),
      ...reportTable(
        `${study.name}-runs`,
        `${study.title}: one row per run, with the exact 95% interval over validation problems.`,
        arms.map(runRow),
      ),
    ],
    figures: [],
    notes: [
      `Asked: ${study.question}`,
      best && whole.length === labels.length
        ? `Best on average over the ${methods.length} methods: ${best.label} (${fixed(100 * best.mean!)}%; ` +
          `the others ${whole.flatMap((m) => (m === best ? [] : [`${fixed(100 * m.mean!)}%`])).join(', ')}).`
        : 'Not every method has been run under every label: there is no best on average yet.',
    ],
  };
}

function onValidation({ validation }: ArmResult): number {
  return countCorrect(validation) / validation.problems.length;
}

function runRow({ label, method, seed, result, validation }: ArmResult): Record<string, Cell> {
  const exact = clopperPearson(countCorrect(validation), validation.problems.length);
  return {
    label,
    method: method.name,
    seed,
    correct: countCorrect(validation),
    n: validation.problems.length,
    'validation pass@1 %': percent(exact.value),
    '95% interval': percentRange(exact),
    direction: result.direction,
    'training tokens': round(result.trainingTokens, 0),
    run: result.runId,
  };
}
