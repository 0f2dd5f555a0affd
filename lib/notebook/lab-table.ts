/**
 * Labs as a table: one row per method, with the exact interval of its share right and the difference from one of them on
 * the same problems. Left out: how sure a difference is over training runs; a lab has one or a few.
 */
import type { DataFrame } from 'danfojs-node';
import { frameOf, listed, percent, percentRange, round, span } from '../analysis/cells.js';
import { pairedDifference } from '../analysis/stats.js';
import { summarise } from '../analysis/tables.js';
import { finalStage, flagsOf } from '../experiments/evaluation.js';
import type { ArmResult } from '../experiments/study.js';
import { mean } from '../numbers.js';
import type { LabResults } from './lab.js';

/** Arms of one method. */
interface Group {
  readonly name: string;
  readonly arms: readonly ArmResult[];
}

/**
 * Columns: method, direction, seeds, n (problems), pass@1 and its exact 95% interval in percent, the difference from
 * `against` in points with its 95% interval (paired bootstrap over problems: what other problems would have given, not
 * what other trainings would have), right drafts kept and wrong ones converted in percent, tokens per problem.
 * @param labs one or several; a run that several labs share stands once, and methods of one name from different runs
 *   stand with their lab's name
 * @param against the method that the others are compared with; default the first one
 * @throws when the labs answered other problems, or `against` is none of theirs
 */
export function labTable(labs: LabResults | readonly LabResults[], against?: string): DataFrame {
  const groups = groupsOf('arms' in labs ? [labs] : labs);
  const reference = against === undefined ? groups[0] : groups.find((group) => group.name === against);
  if (!reference)
    throw new Error(`no method '${against}' to compare with: there are ${listed(groups.map((g) => g.name))}`);
  const there = scoresOf(reference);
  return frameOf(
    groups.map((group) => {
      const results = group.arms.map(({ result }) => ({ ...result, method: group.name }));
      const { direction, acrossSeeds, problems, accuracy, totalTokens } = summarise(results)[0]!;
      const own = scoresOf(group);
      if (own.problems.join() !== there.problems.join())
        throw new Error(
          `${group.name} and ${reference.name} answered other problems: they cannot be compared`,
        );
      const difference = group === reference ? undefined : pairedDifference(own.scores, there.scores);
      const shares = (of: 'keep' | 'convert') => results.flatMap((result) => result[of] ?? []);
      const share = (values: number[]) => percent(values.length > 0 ? mean(values) : undefined);
      return {
        method: group.name,
        direction,
        seeds: acrossSeeds.count,
        n: problems,
        'pass@1 %': percent(accuracy.value),
        '95% interval': percentRange(accuracy),
        [`minus ${reference.name}`]: percent(difference?.value),
        '95% interval of that': span(difference, 100),
        'kept %': share(shares('keep')),
        'converted %': share(shares('convert')),
        tokens: round(totalTokens),
      };
    }),
  );
}

/** The share of training seeds that solved each problem. */
function scoresOf({ arms }: Group): { problems: readonly string[]; scores: number[] } {
  const { problems } = arms[0]!.chosen;
  const right = arms.map(({ chosen }) => flagsOf(finalStage(chosen).correct));
  return { problems, scores: problems.map((_, i) => mean(right.map((flags) => Number(flags[i])))) };
}

function groupsOf(labs: readonly LabResults[]): Group[] {
  if (labs.length === 0) throw new Error('there is no lab to show');
  const groups: (Group & { readonly method: string; readonly lab: string })[] = [];
  for (const { name: lab, arms } of labs)
    for (const method of new Set(arms.map((arm) => arm.method.name))) {
      const own = arms.filter((arm) => arm.method.name === method);
      const ids = (all: readonly ArmResult[]) => all.map(({ result }) => result.runId).join();
      if (groups.some((group) => group.method === method && ids(group.arms) === ids(own))) continue;
      groups.push({ name: method, method, lab, arms: own });
    }
  return groups.map(({ method, lab, arms }) => ({
    name: groups.filter((group) => group.method === method).length > 1 ? `${method} (${lab})` : method,
    arms,
  }));
}
