/**
 * Reading traces: a draft, what was shown of it, the challenge that read it and the verdict, side by side, step by step,
 * with what was copied, corrected, abandoned, written wrong. `readTrace` is the pure part; `showTraces` puts it on the page.
 *
 * A notebook gets HTML and plain text. JupyterLab, VS Code, nbviewer and GitHub all take the HTML before any other form
 * (Markdown would be seen by none of them); GitHub then strips its styles, so the marks are signs and words in a plain
 * table, and colour only repeats them. Text that a model has written stands escaped inside of `<code>`, where no viewer
 * looks for formulas or links either.
 *
 * Left out: saved evaluations. eval.jsonl keeps columns of counts and hashes, no texts, so there is nothing to read in
 * it: sample the attempts again (`attempt`, or `cascade`) and show those.
 */
import { type Shows, shownOf } from '../agon/exchange.js';
import type { Attempt } from '../records.js';
import { countdown } from '../tasks/countdown/index.js';
import type { MarkedStep, StepMark, Task, TraceCounts } from '../tasks/task.js';
import { inNotebook, writeOutput } from './output.js';

/** What became of an answer beside its rival's; `right` and `wrong` where there is no rival. */
export type TraceOutcome = 'conversion' | 'keep' | 'loss' | 'both wrong' | 'right' | 'wrong';

/** One attempt, step by step. */
export interface AttemptReading {
  readonly attempt: Attempt;
  readonly steps: readonly MarkedStep[];
  readonly counts: TraceCounts;
}

/** An attempt beside its rival. */
export interface TraceReading {
  readonly own: AttemptReading;
  readonly rival: AttemptReading | undefined;
  /** What the attempt has read of its rival; undefined where that was nothing. */
  readonly shown: string | undefined;
  readonly outcome: TraceOutcome;
  /** Whether it proposes what its rival proposed. */
  readonly copied: boolean;
}

/** Which attempts are shown: a test on their readings. `failures` are all wrong answers, whatever the rival's was. */
const FILTERS = {
  conversions: ({ outcome }: TraceReading) => outcome === 'conversion',
  keeps: ({ outcome }: TraceReading) => outcome === 'keep',
  losses: ({ outcome }: TraceReading) => outcome === 'loss',
  failures: ({ own }: TraceReading) => !own.attempt.correct,
  copies: ({ copied }: TraceReading) => copied,
} as const;
export type TraceFilter = keyof typeof FILTERS;
export const TRACE_FILTERS = Object.keys(FILTERS) as TraceFilter[];

export interface ReadTraceOptions {
  /** The task that the attempts are at; default countdown. */
  readonly task?: Task;
  /** What the challenges were shown; default the summary. */
  readonly shows?: Shows;
}

export interface ShowTracesOptions extends ReadTraceOptions {
  /** Default: every attempt. */
  readonly filter?: TraceFilter;
  /** How many are shown at most, the first ones; default 3. */
  readonly limit?: number;
}

/**
 * Takes an attempt apart beside its rival. Only a challenge has read one: elsewhere a rival is scored against unseen.
 * @throws when the problem is not one of the task
 */
export function readTrace(
  attempt: Attempt,
  { task = countdown, shows = 'summary' }: ReadTraceOptions = {},
): TraceReading {
  const { rival, role, correct } = attempt;
  const shown = rival && role === 'challenge' ? shownOf(rival, task, shows) : undefined;
  const proposal = task.proposal(attempt.completion);
  const beside = correct ? (['keep', 'conversion'] as const) : (['loss', 'both wrong'] as const);
  return {
    own: readAttempt(attempt, task, shown),
    rival: rival && readAttempt(rival, task, undefined),
    shown,
    outcome: rival ? beside[rival.correct ? 0 : 1] : correct ? 'right' : 'wrong',
    copied: rival !== undefined && proposal !== undefined && proposal === task.proposal(rival.completion),
  };
}

function readAttempt(attempt: Attempt, task: Task, shown: string | undefined): AttemptReading {
  const { problem, completion } = attempt;
  const unmarked = completion.think === '' ? [] : [{ text: completion.think, marks: [] }];
  return {
    attempt,
    steps: task.markTrace?.(problem, completion, shown) ?? unmarked,
    counts: task.countTrace(problem, completion, shown),
  };
}

/**
 * Shows attempts beside their rivals: draft, what was shown of it, challenge, verdict.
 * @throws for an unknown filter, or a limit that is not a whole number from 1
 */
export function showTraces(
  attempts: readonly Attempt[],
  { filter, limit = 3, ...options }: ShowTracesOptions = {},
): void {
  if (filter !== undefined && !TRACE_FILTERS.includes(filter))
    throw new Error(`showTraces: filter is '${filter}', allowed are ${TRACE_FILTERS.join(', ')}`);
  if (!Number.isInteger(limit) || limit < 1)
    throw new Error(`showTraces: limit is ${limit}, allowed are whole numbers from 1`);
  const readings = attempts.map((attempt) => readTrace(attempt, options));
  const chosen = filter === undefined ? readings : readings.filter(FILTERS[filter]);
  const shown = chosen.slice(0, limit);
  const title = `${shown.length} of ${chosen.length} ${filter ?? 'attempts'}${filter ? ` among ${attempts.length} attempts` : ''}`;
  const text = tracesText(title, shown);
  if (inNotebook()) writeOutput({ data: { 'text/html': tracesHtml(title, shown), 'text/plain': text } });
  else console.log(text);
}

/** How a mark looks: a sign for the eye, the bar beside it. */
const LOOKS = {
  copied: { sign: '≡', bar: 'solid #6c71c4' },
  corrected: { sign: '✎', bar: 'solid #2e9e6b' },
  settled: { sign: '→', bar: 'double #888888' },
  abandoned: { sign: '↩', bar: 'dotted #888888' },
  wrong: { sign: '✗', bar: 'solid #d0453f' },
  repeated: { sign: '↻', bar: 'dashed #b58900' },
  'dead again': { sign: '†', bar: 'dashed #b58900' },
} as const satisfies Record<StepMark, object>;

const MEANINGS: Record<StepMark, string> = {
  copied: "the rival's proposal as it stood",
  corrected: 'contradicts the rival, and is right',
  settled: 'what is proposed in the end',
  abandoned: 'left for something else',
  wrong: 'the written result is false',
  repeated: 'written before',
  'dead again': 'entered although known to be dead',
};

/** Which mark gives a step its bar where it has several. */
const LOUDEST: readonly StepMark[] = [
  'wrong',
  'corrected',
  'copied',
  'dead again',
  'repeated',
  'settled',
  'abandoned',
];

function signed(mark: StepMark): string {
  return `${LOOKS[mark].sign} ${mark}`;
}

function verdictOf({ correct }: Attempt): string {
  return correct ? '✓ right' : '✗ wrong';
}

/** What the verdict says of one attempt, a line each. */
function factsOf({ attempt, counts }: AttemptReading): string[] {
  const { rollout, formatted } = attempt;
  const cut = rollout.finishReason === 'length' ? 'cut off' : formatted ? 'format holds' : 'format broken';
  const rare = { repeated: counts.repeated, 'dead again': counts.deadAgain, wrong: counts.wrong };
  const named = Object.entries(rare).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []));
  return [
    `${rollout.completionIds.length} tokens, ${cut}`,
    [`${counts.steps} step${counts.steps === 1 ? '' : 's'}`, `${counts.useful} new and true`, ...named].join(
      ', ',
    ),
  ];
}

function headingOf({ attempt: { adapter, role } }: AttemptReading): string {
  return `${role[0]!.toUpperCase()}${role.slice(1)} by ${adapter}`;
}

function shownNote({ own, rival, shown }: TraceReading): string {
  if (shown !== undefined) return '';
  if (!rival) return 'there is no rival';
  return own.attempt.role === 'challenge' ? 'no words of the rival' : 'the rival was not read';
}

/** Signs in place of what a terminal or a browser would act on: control characters and those that turn text around. */
function visible(text: string): string {
  return text.replace(/\p{Cc}|\p{Bidi_Control}/gu, (sign) => (/[\n\t]/.test(sign) ? sign : '\ufffd'));
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return visible(text).replace(/[&<>"']/g, (sign) => entities[sign]!);
}

/** The readings as HTML: one table each. */
export function tracesHtml(title: string, readings: readonly TraceReading[]): string {
  const tables = readings.map((reading, i) => tableOf(reading, i + 1));
  return `<p><b>${escapeHtml(title)}</b></p>${tables.join('')}${legendHtml(readings)}`;
}

const CELL = 'text-align:left;vertical-align:top;padding:6px 8px;border:1px solid rgba(128,128,128,0.5)';
const CODE = 'white-space:pre-wrap;overflow-wrap:anywhere;background:none;color:inherit;padding:0';

function code(text: string): string {
  return `<code style="${CODE}">${escapeHtml(text)}</code>`;
}

function tableOf(reading: TraceReading, number: number): string {
  const { own, rival, shown, outcome } = reading;
  const columns = [
    ...(rival
      ? [
          { head: headingOf(rival), width: 32, html: attemptHtml(rival) },
          {
            head: 'Shown of it',
            width: 16,
            html: shown === undefined ? `<i>${shownNote(reading)}</i>` : code(shown),
          },
        ]
      : []),
    { head: headingOf(own), width: rival ? 36 : 70, html: attemptHtml(own) },
    { head: 'Verdict', width: rival ? 16 : 30, html: verdictHtml(reading) },
  ];
  const heads = columns.map(
    ({ head, width }) => `<th width="${width}%" style="${CELL}">${escapeHtml(head)}</th>`,
  );
  const cells = columns.map(({ html }) => `<td valign="top" style="${CELL};white-space:normal">${html}</td>`);
  const { question } = own.attempt.problem;
  return (
    `<p>${number}. <b>${outcome}</b>: ${code(question)}</p>` +
    `<table style="width:100%;border-collapse:collapse;table-layout:fixed"><thead><tr>${heads.join('')}</tr></thead>` +
    `<tbody><tr style="background:none">${cells.join('')}</tr></tbody></table>`
  );
}

function attemptHtml({ attempt, steps }: AttemptReading): string {
  const { summary, answer } = attempt.completion;
  const rows = steps.map(({ text, marks }) => {
    const loudest = LOUDEST.find((mark) => marks.includes(mark));
    const bar = loudest ? LOOKS[loudest].bar : 'solid rgba(128,128,128,0.3)';
    const words = marks.map((mark) => `<b>${signed(mark).replace(' ', '&nbsp;')}</b>`).join(' ');
    return `<div style="border-left:4px ${bar};padding-left:6px;margin-bottom:6px">${words}${words && '<br>'}${code(text)}</div>`;
  });
  return (
    rows.join('') +
    `<div><b>summary</b> ${summary === '' ? '<i>none</i>' : code(summary)}</div>` +
    `<div><b>answer</b> ${answer === undefined ? '<i>none</i>' : code(answer)}</div>`
  );
}

function verdictHtml({ own, rival, outcome, copied }: TraceReading): string {
  const of = (reading: AttemptReading) =>
    `<div style="margin-bottom:6px"><b>${headingOf(reading)}: ${verdictOf(reading.attempt)}</b><br>${factsOf(reading).join('<br>')}</div>`;
  const together = rival
    ? `<div><b>${outcome}</b>${copied ? '<br>≡ proposes what its rival proposed' : ''}</div>`
    : '';
  return `${rival ? of(rival) : ''}${of(own)}${together}`;
}

/** The marks that occur. */
function marksIn(readings: readonly TraceReading[]): StepMark[] {
  const steps = readings.flatMap(({ own, rival }) => [...own.steps, ...(rival?.steps ?? [])]);
  const found = new Set(steps.flatMap(({ marks }) => marks));
  return (Object.keys(LOOKS) as StepMark[]).filter((mark) => found.has(mark));
}

function legendHtml(readings: readonly TraceReading[]): string {
  const entries = marksIn(readings).map(
    (mark) => `<b>${signed(mark).replace(' ', '&nbsp;')}</b>: ${escapeHtml(MEANINGS[mark])}`,
  );
  return entries.length === 0 ? '' : `<p>${entries.join(' · ')}</p>`;
}

const TEXT_WIDTH = 108;

/** The readings as text for a terminal. */
export function tracesText(title: string, readings: readonly TraceReading[]): string {
  const blocks = readings.map((reading, i) => {
    const { own, rival, shown, outcome, copied } = reading;
    const read = shown === undefined ? `(${shownNote(reading)})` : visible(shown);
    return [
      `${i + 1}. ${outcome}: ${visible(own.attempt.problem.question)}`,
      ...(rival ? [...attemptText(rival), '  Shown of it', ...wrapped(read, 4)] : []),
      ...attemptText(own),
      ...(copied ? ['    ≡ proposes what its rival proposed'] : []),
    ].join('\n');
  });
  const legend = marksIn(readings).map((mark) => `${signed(mark)}: ${MEANINGS[mark]}`);
  return [title, ...blocks, ...(legend.length > 0 ? [legend.join('\n')] : [])].join('\n\n');
}

function attemptText(reading: AttemptReading): string[] {
  const { attempt, steps } = reading;
  const { summary, answer = '(none)' } = attempt.completion;
  return [
    `  ${headingOf(reading)}: ${verdictOf(attempt)} (${factsOf(reading).join('; ')})`,
    ...steps.flatMap(({ text, marks }) =>
      wrapped(`${marks.length > 0 ? `[${marks.map(signed).join(', ')}] ` : ''}${visible(text)}`, 4),
    ),
    ...wrapped(`summary: ${visible(summary || '(none)')}`, 4),
    ...wrapped(`answer: ${visible(answer)}`, 4),
  ];
}

/** Lines of at most `TEXT_WIDTH` characters, the later ones a little further in. */
function wrapped(text: string, indent: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= TEXT_WIDTH)
      lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`${' '.repeat(lines.length === 0 ? indent : indent + 2)}${word}`);
  }
  return lines;
}
