/** What the traces of lists hold, what is counted in them, and what of them a rival is never shown. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { deploy } from '../../lib/agon/cascade.js';
import { stream } from '../../lib/random.js';
import type { Problem } from '../../lib/records.js';
import {
  drawLists,
  LISTS_TRACE_DEFAULTS,
  type ListsTraceOptions,
  lists,
  listsExample,
  listsTrace,
  shownListsTrace,
  writeListsTokenizer,
} from '../../lib/tasks/index.js';
import { readAnswer, readProgram, readQuestion, type Shown } from '../../lib/tasks/lists/grammar.js';
import { OPS, type Program, passes } from '../../lib/tasks/lists/programs.js';
import { parseCompletion } from '../../lib/text/parse.js';
import { loadTokenizer } from '../../lib/text/tokenizer.js';
import { shownSummary, WITHHELD } from '../../lib/text/withhold.js';
import { SAMPLING, scriptedWorld } from '../agon/support.js';

const folder = mkdtempSync(join(tmpdir(), 'agon-lists-'));
writeListsTokenizer(folder);
after(() => rmSync(folder, { recursive: true }));

/** Writes only what is true, and sees what there is to see. */
const FAITHFUL: ListsTraceOptions = { ...LISTS_TRACE_DEFAULTS, slip: 0, disguise: 0, sight: 1 };

function only(
  mode: keyof ListsTraceOptions['rival'],
  options: ListsTraceOptions = FAITHFUL,
): ListsTraceOptions {
  return { ...options, rival: { copy: 0, verify: 0, ignore: 0, continue: 0, [mode]: 1 } };
}

const problem: Problem = {
  id: 'lists-by-hand',
  question: 'in 3 1 2 out 6 4 8 in 0 5 7 9 out 20 16 12 2',
  gold: 'inc then dbl then rev',
  difficulty: 4,
  split: 'train',
};
const shown: Shown = readQuestion(problem.question);

/** Draws problems, writes a trace of each, and says how it ended. */
function endings(name: string, options: ListsTraceOptions) {
  const random = stream(1, name);
  return Array.from({ length: 600 }, () => {
    const drawn = drawLists(random, { split: 'train', maxDifficulty: 16 });
    const examples = readQuestion(drawn.question);
    const completion = parseCompletion(listsTrace(examples, undefined, random, options), 'stop');
    assert.ok(completion.formatted);
    const program = readProgram(lists.proposal(completion)!);
    return {
      says: completion.think.endsWith('hit'),
      fits: [passes(program, examples.slice(0, 1)), passes(program, examples)] as const,
      right: lists.verify(drawn, completion),
    };
  });
}

function share<T>(items: readonly T[], holds: (item: T) => boolean): number {
  return items.filter(holds).length / items.length;
}

test('a faithful solver says hit exactly where the program fits what it has looked at', () => {
  const careless = endings('careless', { ...FAITHFUL, thorough: 0 });
  for (const { says, fits } of careless) assert.equal(says, fits[0]);
  const thorough = endings('thorough', { ...FAITHFUL, thorough: 1 });
  for (const { says, fits } of thorough) assert.equal(says, fits[1]);
  // What fits the first example is a coincidence about as often as not; the second one weeds most of these out.
  const [lax, strict] = [careless, thorough].map((all) =>
    share(
      all.filter((e) => e.says),
      (e) => e.right,
    ),
  );
  assert.ok(lax! > 0.35 && lax! < 0.7, String(lax));
  assert.ok(strict! > 0.7 && strict! > lax! + 0.15, String(strict));
});

test('slips and disguised give-ups make some hits false', () => {
  const says = endings('unfaithful', LISTS_TRACE_DEFAULTS).filter((e) => e.says);
  assert.ok(share(says, (e) => !e.fits[0]) > 0.1);
  assert.ok(share(says, (e) => e.right) > 0.25);
});

test('what a rival mode does', () => {
  const write = (rival: string, options: ListsTraceOptions, seed = 1) =>
    parseCompletion(listsTrace(shown, rival, stream(seed, 'mode'), options), 'stop');

  const taken = write('path rev then inc', only('verify'));
  assert.equal(
    taken.think,
    'check rev 2 1 3 then inc 3 2 4 need 6 4 8 last dbl 6 4 8 hit ' +
      'test rev 9 7 5 0 then inc 10 8 6 1 need 20 16 12 2 last dbl 20 16 12 2 hit',
  );
  assert.equal(taken.summary, 'path rev then inc');
  assert.equal(taken.answer, 'last dbl');
  assert.deepEqual(write('path rev then inc', only('continue')), taken);
  assert.equal(
    write('path rev then inc', only('copy')).think,
    taken.think.slice(0, taken.think.indexOf(' test')),
  );
  assert.match(write('path rev then inc', only('ignore')).think, /^try /);

  // Swapping the ends turns three numbers around, but not four.
  assert.match(
    write('path swap then inc', only('copy')).think,
    /^check swap 2 1 3 then inc 3 2 4 need 6 4 8 last dbl 6 4 8 hit$/,
  );
  assert.match(write('path swap then inc', only('verify')).think, /^check .* hit test .* dead try /);
  const copied = write('path sort then half', only('copy'));
  assert.match(copied.think, /^check sort 1 2 3 then half 0 1 1 need 6 4 8 last \S+ [\d ]+ guess$/);
  assert.match(
    write('path sort then half', only('verify')).think,
    /^check sort 1 2 3 then half 0 1 1 need 6 4 8 last \S+ [\d ]+ dead try /,
  );

  for (let seed = 0; seed < 200; seed++) {
    const { think } = write('dead tail dead rev path sort then half', only('continue'), seed);
    assert.doesNotMatch(think, /try (tail|rev|sort) /, 'a dead end of the rival again');
  }
});

test('an unusable summary is ignored, and one that calls everything dead leaves something to try', () => {
  for (const rival of ['path rev', WITHHELD, `path ${WITHHELD} then inc`, 'path constructor then inc'])
    assert.match(listsTrace(shown, rival, stream(1, 'garbage')), /^<think> try /);
  const all = `${OPS.map((op) => `dead ${op}`).join(' ')} path sort then half`;
  const patient = only('continue', { ...FAITHFUL, maxPrograms: 60, thorough: 1 });
  for (let seed = 0; seed < 50; seed++)
    assert.ok(parseCompletion(listsTrace(shown, all, stream(seed, 'all'), patient), 'stop').formatted);
});

test('half of the examples have a rival, all are of the train split, most have 25 to 150 tokens', () => {
  const random = stream(3, 'shares');
  const examples = Array.from({ length: 1500 }, () => listsExample(random));
  const prompts = examples.map((e) => e.prompt[0]!.content);
  assert.ok(Math.abs(share(prompts, (p) => p.includes(' rival ')) - 0.5) < 0.04);
  assert.ok(examples.every((e) => e.problem.split === 'train'));
  const read = examples.filter((e) => /rival (?!none)/.test(e.prompt[0]!.content));
  assert.ok(Math.abs(share(read, (e) => e.completion.startsWith('<think> check')) - 0.85) < 0.05);
  const length = (text: string) => text.split(' ').length;
  assert.ok(share(examples, (e) => length(e.completion) >= 25 && length(e.completion) <= 150) > 0.9);
  assert.ok(prompts.every((p) => length(p) < 55));
  assert.ok(read.every((e) => length(e.prompt[0]!.content.split(' rival ')[1]!) < 30));
});

test('round trip through the tokenizer without [UNK]', () => {
  const tokenizer = loadTokenizer(folder);
  const unknown = tokenizer.encode('[UNK]')[0]!;
  const random = stream(5, 'round trip');
  assert.equal(tokenizer.vocabSize, 96);
  for (let i = 0; i < 500; i++) {
    const { prompt, completion } = listsExample(random);
    const ids = tokenizer.encode(completion);
    assert.ok(!ids.includes(unknown), completion);
    assert.equal(tokenizer.decode(ids), completion);
    assert.equal(ids.length, completion.split(' ').length);
    assert.ok(!tokenizer.encodePrompt(prompt).includes(unknown), prompt[0]!.content);
  }
});

test('counts of a written trace, by hand', () => {
  const think = [
    'check sort 1 2 3 then half 0 1 1 need 6 4 8 last dbl 0 2 2 dead', // true and new
    'try inc 4 2 3 then rev 3 2 4 need 6 4 8 last sort 2 3 4 dead', // true and new
    'then dbl 8 4 6 need 6 4 8 last rev 6 4 8 hit', // true and new
    'test inc 1 6 8 10 then dbl 2 12 16 20 need 20 16 12 2 last rev 20 16 12 2 dead', // true, on the other example
    'try half 1 0 1 then inc 2 1 2 need 6 4 8 last dbl 4 2 6 dead', // wrong: 4 2 4
    'try inc 4 2 3 then dbl 8 4 6 need 6 4 8 last rev 6 4 8 dead', // written before; inc was left for half
    'then tail 2 3 need 6 4 8 last dbl 4 6 dead', // new, under an operation that was left
    'try sort 1 2 3 then inc 2 3 4 need 6 4 9 last dbl 4 6 8 guess', // dead by the rival; the need is wrong
    'try rev then inc last dbl garbage', // not a run
  ].join(' ');
  const completion = { think, summary: '', answer: undefined, formatted: false };
  assert.deepEqual(lists.countTrace(problem, completion, 'dead sort path sort then half'), {
    steps: 8,
    useful: 5,
    repeated: 1,
    deadAgain: 2,
    wrong: 2,
  });
  const alone = lists.countTrace(problem, { ...completion, think: think.slice(think.indexOf('try')) });
  assert.deepEqual(alone, { steps: 7, useful: 4, repeated: 1, deadAgain: 1, wrong: 2 });
});

test('what a rival ruled out counts only where it hits', () => {
  const think =
    'try rev 2 1 3 then half 1 0 1 need 6 4 8 last dbl 2 0 2 dead then inc 3 2 4 need 6 4 8 last dbl 6 4 8 hit';
  const completion = { think, summary: '', answer: undefined, formatted: false };
  const counts = { steps: 2, useful: 1, repeated: 0, deadAgain: 1, wrong: 0 };
  assert.deepEqual(lists.countTrace(problem, completion, 'dead rev path sort then half'), counts);
  assert.deepEqual(lists.countTrace(problem, completion), { ...counts, useful: 2, deadAgain: 0 });
});

test('what a faithful trace writes is counted as true, each run once', () => {
  const random = stream(7, 'counts');
  for (let i = 0; i < 300; i++) {
    const drawn = drawLists(random, { split: 'train' });
    const trace = listsTrace(readQuestion(drawn.question), undefined, random, FAITHFUL);
    const counts = lists.countTrace(drawn, parseCompletion(trace, 'stop'));
    assert.equal(counts.wrong, 0, trace);
    assert.equal(counts.steps, trace.split(' need ').length - 1);
    assert.equal(counts.useful + counts.repeated, counts.steps);
  }
});

test('parts of a summary, and the proposal', () => {
  assert.deepEqual(lists.summaryParts('dead rev dead inc path sort then dbl'), {
    deadEnds: 'dead rev dead inc',
    path: 'path sort then dbl',
  });
  assert.deepEqual(lists.summaryParts('dead rev'), { deadEnds: 'dead rev', path: '' });
  const proposal = (text: string) => lists.proposal(parseCompletion(`<think> </think> ${text}`, 'stop'));
  assert.equal(proposal('dead rev path sort then dbl <answer> last inc </answer>'), 'sort then dbl then inc');
  assert.equal(proposal('path sort then dbl'), undefined);
  assert.equal(proposal('path sort <answer> last inc </answer>'), undefined);
});

test('a summary that names the last operation among dead ends or in the path is shown as it is', () => {
  const summary = 'dead rev dead dbl path rev then dbl';
  assert.equal(
    shownListsTrace(problem, `<think> a </think> ${summary} <answer> last rev </answer>`),
    summary,
  );
});

test('property: a last operation that is named elsewhere never survives, however it is planted', () => {
  const random = stream(6, 'plant');
  for (let i = 0; i < 2000; i++) {
    const program: Program = [random.pick(OPS), random.pick(OPS), random.pick(OPS)];
    const [a, b, last] = program;
    const dead = `dead ${random.pick(OPS)} `;
    const path = `path ${a} then ${b}`;
    const summary = random.pick([
      `${dead}${path} then ${last}`,
      `${dead}${path} last ${last}`,
      `${path} ${last}`,
      `${last} ${path}`,
      `${path}\n${last.toUpperCase()}.`,
      `dead ${last} ${last} ${path}`,
      `${path} <answer> last ${last} </answer>`,
      `path ${last}`,
      `${path} dead last ${last}`,
      `${path} (${last})`,
    ]);
    const trace = `<think> try ${last} need </think> ${summary} <answer> last ${last} </answer>`;
    const completion = { ...parseCompletion(trace, 'stop'), summary };
    assert.equal(readAnswer(completion.answer!), last);
    const seen = shownSummary({ problem, rollout: { finishReason: 'stop' }, completion }, lists)!;
    const rest = seen.replace(new RegExp(`dead ${last} |path ${a} then ${b}`, 'g'), ' ');
    assert.ok(!new RegExp(`\\b${last}\\b`, 'i').test(rest), `${last} survives in ${JSON.stringify(seen)}`);
    assert.ok(seen.includes(WITHHELD), seen);
    assert.doesNotMatch(seen, /try|need/);
  }
});

test('a cascade shows the path and the dead ends, never the last operation or the search', async () => {
  const search = 'try inc 4 2 3 then dbl 8 4 6 need 6 4 8 last rev 6 4 8 hit';
  const summaries = [
    'dead tail path inc then dbl',
    'dead tail path inc then dbl then rev',
    'dead tail path inc then dbl last rev',
  ];
  const { world, asked } = scriptedWorld(
    ({ row }) => `<think> ${search} </think> ${summaries[row % 3]} <answer> last rev </answer>`,
    lists,
    loadTokenizer(folder),
  );
  await deploy(world, {}, ['base', 'base'], 'summary', [problem, problem, problem], SAMPLING, [0]);
  const prompts = asked.filter(({ role }) => role === 'challenge');
  assert.equal(prompts.length, 3);
  for (const { prompt, row } of prompts) {
    assert.match(
      prompt,
      /user in 3 1 2 out 6 4 8 in 0 5 7 9 out 20 16 12 2 rival dead tail path inc then dbl/,
    );
    assert.doesNotMatch(prompt, /rev|try|need|hit|<think>|<answer>/, prompt);
    assert.equal(prompt.includes(WITHHELD), row > 0);
  }
});
