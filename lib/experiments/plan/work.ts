/** What an experiment has to do, as disk and time both count it: the rows it trains and the answers it judges. */
import { METHODS, methodByName, type TrainingRow } from '../../agon/methods.js';
import type { Experiment } from '../config.js';

/** The training rows of the experiment's methods; methods that share one train it once. */
export function trainedRows({ methods }: Experiment): TrainingRow[] {
  return [...new Set(METHODS.flatMap((m) => (methods.includes(m.name) && m.training ? [m.training] : [])))];
}

/** Answers judged for each method and one seed: every stage of every deployment on both splits, and samples for votes. */
export function judgedAnswers(experiment: Experiment): number[] {
  const { problems, validationProblems, samples } = experiment.eval;
  return experiment.methods.map(methodByName).map(({ deployments }) => {
    const stages = deployments.reduce((n, deployment) => n + deployment.length, 0);
    return stages * (problems + validationProblems) + (stages === 1 ? (samples - 1) * problems : 0);
  });
}
