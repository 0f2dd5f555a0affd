import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { JSDOM } from 'jsdom';
import { type Book, bookHtml, bookPdf, gatherBook } from '../../lib/analysis/book/index.js';
import { frameOf } from '../../lib/analysis/cells.js';
import { rewardFigure } from '../../lib/analysis/figures.js';
import { drawSvg } from '../../lib/analysis/plotly-jsdom.js';
import { studyByName } from '../../lib/experiments/studies.js';
import { REFERENCE_FOLDER } from '../../lib/experiments/verify.js';

const size = { width: 480, height: 480 };
const svg = await drawSvg(
  rewardFigure([{ name: 'a1', correct: true, reward: 2, advantage: 1 }], 'A & B < C'),
  size,
);
const wide = Object.fromEntries(
  Array.from({ length: 40 }, (_, c) => [`a column of many words ${c}`, 1000.5 + c]),
);
const chapter = {
  name: 'one',
  title: 'A study <of> two figures',
  question: 'Does it hold?',
  coverage: '2 of 3 methods and seeds',
  notes: ['Agon \u2212 cooperative: 1.1 points.'],
  tables: [
    { name: 'one', caption: 'Rows & columns', frame: frameOf([{ method: 'agon', 'pass@1 %': 41.1 }]) },
    { name: 'one-long', caption: 'Long', frame: frameOf(Array.from({ length: 90 }, (_, i) => ({ i }))) },
    { name: 'one-wide', caption: 'Wide', frame: frameOf([{ method: 'agon', ...wide }]) },
  ],
  figures: ['first', 'second'].map((name) => ({ name, svg, size })),
  settings: [['run.maxSteps', '80']] as const,
  varied: [],
  runs: ['agon-s0-0123456789'],
};
const book: Book = {
  title: 'A book',
  facts: [['Software', 'agon-notebooks']],
  chapters: [chapter, { ...chapter, name: 'two' }],
  missing: [studyByName('beyond')],
};

test('the HTML is one file: nothing is fetched, ids differ, what is missing is named, text is escaped', async () => {
  const html = await bookHtml(book);
  const { document } = new JSDOM(html).window;
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id).filter((id) => id !== '');
  assert.equal(new Set(ids).size, ids.length);
  for (const [, id] of html.matchAll(/url\('?"?#([^'")]+)/g)) assert.ok(ids.includes(id!), `#${id} is there`);
  assert.doesNotMatch(html, /<script|<link|<img|src="|href="http|url\((?!['"]?#|data:)/);
  assert.equal(document.querySelectorAll('svg.main-svg').length >= 4, true);
  assert.match(document.body.textContent, /Not run yet: .*\(beyond\)/);
  assert.match(document.body.textContent, /A study <of> two figures/);
  assert.match(document.body.textContent, /agon-s0-0123456789/);
  assert.equal(document.querySelector('td.number')!.textContent, '41.1');
});

test('the PDF has bookmarks and embedded fonts, cuts what is too long or too wide, and repeats itself', async () => {
  const pdf = await bookPdf(book);
  const source = pdf.toString('latin1');
  assert.equal(source.match(/\/FontFile2 /g)?.length, 2);
  // Contents, and for each chapter text and figures, the long table twice over, the wide one in parts.
  const pages = source.match(/\/Type \/Page\b/g)!.length;
  assert.ok(pages >= 7 && pages <= 17, `${pages} pages`);
  assert.match(source, /\/Outlines/);
  assert.ok(pdf.equals(await bookPdf(book)));
});

test('what is shipped is gathered study by study, and studies without runs are named', async () => {
  const scaling = studyByName('scaling');
  const unseen = (experiment: (typeof scaling.experiments)[number]) => ({ ...experiment, seeds: [999] });
  const found: string[] = [];
  const gathered = await gatherBook(REFERENCE_FOLDER, {
    studies: [studyByName('tuning'), { ...scaling, experiments: scaling.experiments.map(unseen) }],
    onProgress: (done, total, what) => found.push(`${done}/${total} ${what}`),
  });
  assert.deepEqual(
    gathered.chapters.map(({ name, coverage }) => [name, coverage]),
    [['tuning', '15 of 15 methods and seeds']],
  );
  assert.deepEqual(
    gathered.missing.map(({ name }) => name),
    ['scaling'],
  );
  const [tuning] = gathered.chapters;
  assert.deepEqual(tuning!.varied[0]!.frame.columns.map(String), ['experiment', 'run.grpo.learningRate']);
  assert.ok(tuning!.settings.some(([key, value]) => key === 'run.maxSteps' && value === '40'));
  assert.equal(tuning!.runs.length, 15);
  assert.deepEqual(found, ['0/2 tuning', '1/2 scaling', '2/2 done']);
});

test('a folder without runs is refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'book-'));
  await assert.rejects(gatherBook(folder, { studies: [studyByName('tuning')] }), /holds no run of a study/);
});
