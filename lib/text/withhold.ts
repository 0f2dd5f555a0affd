/**
 * What a rival is shown: the summary with the final answer masked wherever it stands, in any spelling that means
 * the same. Where in doubt it masks: a sign is not looked at (5 also hides -5), and every `\boxed{...}` is hidden,
 * since a box claims to be the answer.
 *
 * Spellings covered: `\boxed{...}` with its braces matched, `<answer>...</answer>`; for a number every literal of the
 * same value (42, 42.0, 42,000 and 42{,}000 and 42\,000, \frac{1}{2}, 1/2, 0.5, 50\%, 1.5\times10^3) and English
 * words for whole numbers up to 999; for anything else the text itself, with free white space, and whatever
 * spellings the task names. Left out: symbolic equivalence ((x+1)^2 against x^2+2x+1), words past 999.
 */
import type { Completion, Problem, Rollout } from '../records.js';

/** What stands where the answer stood; a word of the arena's vocabulary. */
export const WITHHELD = 'withheld';

/** An exact fraction, in lowest terms, not negative. */
type Value = readonly [numerator: bigint, denominator: bigint];

function fraction(numerator: bigint, denominator: bigint): Value | undefined {
  if (denominator === 0n) return undefined;
  let [a, b] = [numerator, denominator];
  while (b !== 0n) [a, b] = [b, a % b];
  return [numerator / a, denominator / a];
}

// A thousands separator is `,` `{,}` `\,` or a space before exactly three digits; the grouped alternative stands
// first, so that 42,000 is not read as 42.
const SEPARATOR = String.raw`(?:\{?,\}?(?:\\!)?|\\[,!;: ]| )`;
const DIGITS = String.raw`(?:\d{1,3}(?:${SEPARATOR}\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+`;
const NUMBER = String.raw`(?:${DIGITS})(?:\s*(?:\\times|\\cdot|×|\*)\s*10\s*\^\s*(?:\{\s*-?\d{1,2}\s*\}|\d))?`;
const FRACTION = String.raw`\\[dt]?frac\s*(?:\{\s*-?\s*\d+\s*\}|\d)\s*(?:\{\s*-?\s*\d+\s*\}|\d)|\d+\s*/\s*\d+`;
const LITERAL = new RegExp(String.raw`(?:${FRACTION}|${NUMBER})(?:\s*(?:\\?%|percent\b))?`, 'g');
const WHOLE_LITERAL = new RegExp(`^(?:${LITERAL.source})$`);

function decimal(text: string): Value | undefined {
  const power = /^(.*?)(?:\\times|\\cdot|×|\*)\s*10\s*\^\s*\{?\s*(-?\d+)\s*\}?$/s.exec(text);
  const plain = (power?.[1] ?? text).replace(/[^\d.]/g, '');
  const [whole = '', part = ''] = plain.split('.');
  const exponent = BigInt(power?.[2] ?? 0);
  const digits = BigInt(`${whole}${part}` || 0);
  const scale = 10n ** BigInt(part.length);
  return exponent >= 0n
    ? fraction(digits * 10n ** exponent, scale)
    : fraction(digits, scale * 10n ** -exponent);
}

/** Longer numbers and answers are compared as text only, so that nothing is divided that has a million digits. */
const LONGEST = 200;

function short(text: string): boolean {
  return text.length <= LONGEST;
}

/**
 * The values that a literal may stand for: 28% is 28 and 0.28.
 * @param asPair whether 42,000 may also be the pair 42 and 0
 */
function valuesOf(literal: string, asPair: boolean): Value[] {
  const percent = /\s*(?:\\?%|percent)$/.exec(literal);
  const body = percent ? literal.slice(0, percent.index) : literal;
  let values: (Value | undefined)[];
  if (/frac|\//.test(body)) {
    // `\frac12` is two digits side by side, every other form has something between its two numbers.
    const [numerator, denominator] = body.match(/frac\s*\d\s*\d/) ? body.match(/\d/g)! : body.match(/\d+/g)!;
    values = short(body) ? [fraction(BigInt(numerator!), BigInt(denominator!))] : [];
  } else {
    const grouped = asPair && new RegExp(`\\d${SEPARATOR}\\d{3}`).test(body);
    values = [body, ...(grouped ? body.match(/[\d.]+/g)! : [])].filter(short).map(decimal);
  }
  const known = values.flatMap((value) => (value === undefined ? [] : [value]));
  return percent ? known.flatMap((value) => [value, fraction(value[0], value[1] * 100n)!]) : known;
}

function same(a: Value, b: Value): boolean {
  return a[0] === b[0] && a[1] === b[1];
}

// A unit behind a number: `\text{ cm}^2`, `^\circ`, `apples`.
const UNIT =
  /(?:\\(?:text|mathrm|mbox)\s*\{[^{}]*\}(?:\^\{?\d\}?)?|\^\s*\{?\s*\\circ\s*\}?|°|(?<![\p{L}\\])\p{L}{2,}(?:\s+\p{L}+)*)$/u;

/** The values of an answer that is one number, whatever its sign, currency, unit or `x =`; otherwise none. */
function answerValues(answer: string): Value[] {
  if (!short(answer)) return [];
  const bare = answer
    .replace(/\\(?:left|right|displaystyle)|\\?\$/g, '')
    .replace(/^\s*\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}\s*$/, '$1')
    .replace(/^\s*[a-zA-Z]\s*=\s*/, '')
    .replace(/^\s*[-+\u2212]\s*/, '')
    .trim();
  for (const text of [bare, bare.replace(UNIT, '').replace(/(?:\s|\\[,!;: ])+$/, '')]) {
    const match = WHOLE_LITERAL.exec(text);
    if (match) return valuesOf(match[0], false);
  }
  return [];
}

const ONES =
  `zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen`.split(' ');
const TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');

function spelled(n: number): string {
  if (n < 20) return ONES[n]!;
  if (n < 100) return n % 10 === 0 ? TENS[n / 10 - 2]! : `${TENS[Math.floor(n / 10) - 2]!} ${ONES[n % 10]!}`;
  const hundreds = `${ONES[Math.floor(n / 100)]!} hundred`;
  return n % 100 === 0 ? hundreds : `${hundreds} ${spelled(n % 100)}`;
}

/** `forty two` -> 42, up to five words; `and` and hyphens are taken out before. */
const WORD_VALUES = new Map(Array.from({ length: 1000 }, (_, n) => [spelled(n), n] as const));
const NUMBER_WORD = `(?:${[...ONES, ...TENS].sort((a, b) => b.length - a.length).join('|')}|hundred|and|a)`;
// A run begins with a number word or `a hundred`, and goes on over spaces and hyphens.
const WORD_RUN = new RegExp(
  String.raw`(?<![\p{L}\p{N}])(?:a\s+hundred|${[...ONES, ...TENS].sort((a, b) => b.length - a.length).join('|')})` +
    String.raw`(?:[\s\u2010-\u2013-]+${NUMBER_WORD}(?![\p{L}\p{N}]))*(?![\p{L}\p{N}])`,
  'giu',
);

/** Masks the numerals equal to `n` inside one run of number words. */
function maskRun(run: string, n: number): string {
  const pieces = [...run.matchAll(/[a-z]+/gi)].map((m) => ({
    word: m[0].toLowerCase(),
    at: m.index ?? 0,
    end: (m.index ?? 0) + m[0].length,
  }));
  let out = '';
  let done = 0;
  for (let i = 0; i < pieces.length; ) {
    let taken = 1;
    for (let length = Math.min(5, pieces.length - i); length >= 1; length--) {
      const slice = pieces.slice(i, i + length).map((p) => p.word);
      if (slice[0] === 'and' || slice.at(-1) === 'and') continue;
      const text = slice
        .map((w) => (w === 'a' ? 'one' : w))
        .filter((w) => w !== 'and')
        .join(' ');
      const value = slice.join(' ') === 'a' ? undefined : WORD_VALUES.get(text);
      if (value === undefined) continue;
      if (value === n) {
        out += run.slice(done, pieces[i]!.at) + WITHHELD;
        done = pieces[i + length - 1]!.end;
      }
      taken = length;
      break;
    }
    i += taken;
  }
  return out + run.slice(done);
}

/** Masks `open ... }` with the braces matched; an unclosed one up to the end of the text. */
function maskBoxes(text: string): string {
  const opener = /\\f?boxed\s*\{/g;
  let out = '';
  let done = 0;
  for (let match = opener.exec(text); match !== null; match = opener.exec(text)) {
    let depth = 1;
    let at = opener.lastIndex;
    for (; at < text.length && depth > 0; at++) {
      if (text[at] === '\\') at++;
      else if (text[at] === '{') depth++;
      else if (text[at] === '}') depth--;
    }
    out += text.slice(done, match.index) + WITHHELD;
    done = Math.min(at, text.length);
    opener.lastIndex = done;
  }
  return out + text.slice(done);
}

/** Masks `<answer>...</answer>`; an unclosed one up to the end of the text. */
function maskAnswerTags(text: string): string {
  const [before = '', ...blocks] = text.split('<answer>');
  return blocks.reduce((out, block) => {
    const close = block.indexOf('</answer>');
    return `${out}${WITHHELD}${close < 0 ? '' : block.slice(close + '</answer>'.length)}`;
  }, before);
}

/** Without what `literalPattern` does not look at. A pattern that matches a text is a part of it, so squeezed. */
function squeezed(text: string): string {
  return text
    .toUpperCase()
    .replace(/\s|\\[,!;: ]/g, '')
    .replace(/\\[DT]FRAC/g, '\\FRAC');
}

/** A pattern for a spelling that is no number: free white space, fraction sizes alike, bounded by its neighbours. */
function literalPattern(spelling: string): RegExp {
  const gap = String.raw`(?:\s|\\[,!;: ])*`;
  const pieces = spelling.match(/\\\p{L}+|\p{L}+|\p{N}+|[^\s\p{L}\p{N}]/gu) ?? [];
  const source = pieces
    .map((piece) =>
      /^\\[dt]?frac$/.test(piece) ? String.raw`\\[dt]?frac` : piece.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
    )
    .join(gap);
  const before = /^[\p{L}\p{N}]/u.test(spelling) ? String.raw`(?<![\p{L}\p{N}]|\d[.,])` : '';
  const after = /[\p{L}\p{N}]$/u.test(spelling) ? String.raw`(?![\p{L}\p{N}]|[.,]\d)` : '';
  return new RegExp(before + source + after, 'giu');
}

/**
 * Masks the answer wherever it stands in a summary.
 * @param answer the final answer as it was written; undefined when there was none
 * @param spellings further texts that mean the same, which the task knows
 */
export function withholdAnswer(
  summary: string,
  answer: string | undefined,
  spellings: readonly string[] = [],
): string {
  let out = maskAnswerTags(maskBoxes(summary));
  if (answer === undefined) return out;
  const forms = [...new Set([answer, ...spellings].map((form) => form.trim()).filter((form) => form !== ''))];
  // Longest first: `8 + 5 = 13` goes as a whole before `8 + 5` does.
  for (const form of forms.sort((a, b) => b.length - a.length)) {
    const values = answerValues(form);
    if (values.length === 0) {
      // Compiling a pattern with Unicode classes costs far more than this look.
      if (squeezed(out).includes(squeezed(form))) out = out.replace(literalPattern(form), WITHHELD);
      continue;
    }
    out = out.replace(LITERAL, (literal) =>
      valuesOf(literal, true).some((found) => values.some((value) => same(found, value)))
        ? WITHHELD
        : literal,
    );
    for (const [n, d] of values) {
      if (d === 1n && n <= 999n) out = out.replace(WORD_RUN, (run) => maskRun(run, Number(n)));
    }
  }
  return out;
}

/** What has to be known of an attempt in order to show its summary. */
export interface Shown {
  readonly problem: Problem;
  readonly rollout: Pick<Rollout, 'finishReason'>;
  readonly completion: Completion;
}

/** Tags and chat tokens, which inside a prompt would end the turn or open a new one. */
const CONTROL = /<\|[^|<>\s]*\|>|<\/?(?:think|answer|rival)>/g;

/** A text in which nothing can end the turn that it is shown in. */
export function withoutTags(text: string): string {
  return text.replace(CONTROL, ' ');
}

/**
 * What a rival sees of an attempt: its summary with the answer withheld.
 * @returns undefined when the attempt was cut off or left no summary
 */
export function shownSummary(
  attempt: Shown,
  task: { answerSpellings(problem: Problem, completion: Completion): readonly string[] },
): string | undefined {
  const { problem, rollout, completion } = attempt;
  if (rollout.finishReason === 'length') return undefined;
  const spellings = task.answerSpellings(problem, completion);
  // Before the masking, so that no tag stands inside an answer and falls out of it afterwards.
  const clean = withoutTags(maskAnswerTags(completion.summary));
  const shown = withholdAnswer(clean, completion.answer, spellings).trim();
  return shown === '' ? undefined : shown;
}
