import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { createCanvas, type Image, loadImage } from '@napi-rs/canvas';
import { DataFrame } from 'danfojs-node';
import { JSDOM } from 'jsdom';
import { exportFigure, save, toPdf, toPng, toSvg } from '../../lib/analysis/export.js';
import { mainFigure, rewardFigure } from '../../lib/analysis/figures.js';
import { textWidth } from '../../lib/analysis/font.js';
import { readPaper } from '../../lib/analysis/paper.js';
import type { Figure } from '../../lib/analysis/plotly-jsdom.js';
import { FIXTURE_RESULTS } from './fixtures.js';

const figure = mainFigure(FIXTURE_RESULTS, readPaper());

/** The share of pixels in a rectangle (in picture pixels) that are darker than mid-grey. */
function darkShare(image: Image, x: number, y: number, width: number, height: number): number {
  const context = createCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(x, y, width, height);
  let dark = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i]! + data[i + 1]! + data[i + 2]! < 3 * 128) dark++;
  return dark / (width * height);
}

test('text widths are advances: spaces count, pieces add up, bold is wider', () => {
  // DejaVu Sans: the digit 0 is 1303 units of 2048 wide, the space 651.
  assert.ok(Math.abs(textWidth('00', 20) - (2 * 1303 * 20) / 2048) < 0.1);
  assert.ok(Math.abs(textWidth('0 0 ', 20) - ((2 * 1303 + 2 * 651) * 20) / 2048) < 0.1);
  assert.ok(textWidth('agon', 12, true) > textWidth('agon', 12));
  assert.equal(textWidth('', 12), 0);
});

test('SVG is well formed, holds the texts, and is the same every time', async () => {
  const svg = await toSvg(figure);
  const document = new JSDOM(svg, { contentType: 'image/svg+xml' }).window.document;
  assert.equal(document.documentElement.tagName, 'svg');
  assert.equal(document.documentElement.getAttribute('width'), '1040');
  for (const text of ['Accuracy and what it costs', 'pass@1 (%)', 'self-refinement', 'agon-margin']) {
    assert.ok(svg.includes(text), `the SVG holds '${text}'`);
  }
  assert.equal(await toSvg(figure), svg);
});

test('drawing does not change the figure', async () => {
  const before = JSON.stringify(figure);
  await toSvg(figure);
  assert.equal(JSON.stringify(figure), before);
});

test('PNG has two pixels per CSS pixel, a white ground, and ink where the title and an axis title stand', async () => {
  const image = await loadImage(await toPng(figure));
  assert.deepEqual([image.width, image.height], [2080, 1040]);
  assert.ok(darkShare(image, 32, 24, 500, 40) > 0.08, 'the title is drawn');
  assert.ok(darkShare(image, 360, 980, 560, 50) > 0.03, 'the axis title is drawn');
  assert.equal(darkShare(image, 1400, 20, 600, 80), 0, 'the corner without text is empty');
});

test('a size that is asked for wins over the layout', async () => {
  const image = await loadImage(
    await toPng(rewardFigure([{ name: 'a1', correct: true, reward: 2, advantage: 1 }]), {
      width: 300,
      height: 200,
    }),
  );
  assert.deepEqual([image.width, image.height], [600, 400]);
});

test('a heatmap comes out in its colours', async () => {
  const heatmap: Figure = {
    data: [
      {
        type: 'heatmap',
        z: [[0, 1]],
        colorscale: [
          [0, '#ffffff'],
          [1, '#000000'],
        ],
        showscale: false,
      },
    ],
    layout: {
      width: 300,
      height: 200,
      margin: { l: 0, r: 0, t: 0, b: 0 },
      xaxis: { visible: false },
      yaxis: { visible: false },
    },
    config: {},
  };
  const image = await loadImage(await toPng(heatmap));
  assert.ok(darkShare(image, 0, 0, 290, 400) < 0.02);
  assert.ok(darkShare(image, 310, 0, 290, 400) > 0.98);
});

test('tick labels wider than the margin push the plot aside', async () => {
  const wide = (label: string): Figure => ({
    data: [{ type: 'bar', orientation: 'h', x: [1], y: [label] }],
    layout: { width: 500, height: 200, margin: { l: 10, r: 10, t: 10, b: 30 }, yaxis: { automargin: true } },
    config: {},
  });
  const plotWidth = async (label: string) =>
    Number(/class="plotclip"><rect width="([\d.]+)"/.exec(await toSvg(wide(label)))?.[1]);
  const [short, long] = [await plotWidth('a'), await plotWidth('a much longer name of a bar')];
  const wanted = textWidth('a much longer name of a bar', 12) - textWidth('a', 12);
  assert.ok(
    Math.abs(short - long - wanted) < 4,
    `plot is ${short} wide, and ${long} with a label ${wanted} longer`,
  );
});

test('exportFigure writes the spec, the SVG, the PNG and the PDF, or those that are asked for', async () => {
  const base = join(mkdtempSync(join(tmpdir(), 'figure-')), 'sub', 'main');
  const paths = await exportFigure(figure, base);
  assert.deepEqual(paths, [`${base}.json`, `${base}.svg`, `${base}.png`, `${base}.pdf`]);
  assert.deepEqual(JSON.parse(readFileSync(paths[0]!, 'utf8')), JSON.parse(JSON.stringify(figure)));
  assert.match(readFileSync(paths[1]!, 'utf8'), /^<svg/);
  assert.equal(readFileSync(paths[2]!).subarray(1, 4).toString(), 'PNG');
  assert.equal(readFileSync(paths[3]!).subarray(0, 5).toString(), '%PDF-');
  assert.deepEqual(await exportFigure(figure, join(base, 'spec'), ['json']), [join(base, 'spec.json')]);
  assert.deepEqual(readdirSync(base), ['spec.json']);
});

test('an SVG carries the glyphs of its own texts in both weights', async () => {
  const faces = [
    ...(await toSvg(figure)).matchAll(/font-weight:(\w+);src:url\(data:font\/woff2;base64,([\w+/=]+)\)/g),
  ];
  assert.deepEqual(
    faces.map(([, weight]) => weight),
    ['normal', 'bold'],
  );
  for (const [, , glyphs] of faces) {
    const font = Buffer.from(glyphs!, 'base64');
    assert.equal(font.subarray(0, 4).toString(), 'wOF2');
    assert.ok(font.length < 20_000, `${font.length} bytes: only what is written`);
  }
});

test('a PDF has one page of the size of the figure, embeds the typeface, holds text as text, and repeats itself', async () => {
  const pdf = await toPdf(figure);
  const source = pdf.toString('latin1');
  assert.match(source, /\/MediaBox \[0 0 780 390\]/);
  assert.match(source, /\/BaseFont \/\w+\+DejaVuSans\b/);
  assert.match(source, /\/BaseFont \/\w+\+DejaVuSans-Bold\b/);
  assert.equal(source.match(/\/FontFile2 /g)?.length, 2);
  const content = streamsOf(pdf).join('\n');
  // Each label is shown by a text operator: at least one for every method in both panels.
  assert.ok((content.match(/\bT[jJ]\b/g)?.length ?? 0) > 20);
  assert.ok(pdf.equals(await toPdf(figure)));
});

/** The streams of a PDF that are compressed text. */
function streamsOf(pdf: Buffer): string[] {
  const source = pdf.toString('latin1');
  return [...source.matchAll(/\/Filter \/FlateDecode\s*>>\s*stream\r?\n/g)].map((found) => {
    const start = found.index + found[0].length;
    return inflateSync(pdf.subarray(start, source.indexOf('endstream', start))).toString('latin1');
  });
}

test('save writes a figure or a table under its name, says so in one line, and refuses other things', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'save-'));
  const lines: string[] = [];
  t.mock.method(console, 'log', (line: string) => lines.push(line));
  const rows = [
    { method: 'agon', 'pass@1 %': 41.1, told: true },
    { method: 'a|b', 'pass@1 %': undefined, told: false },
  ];
  assert.deepEqual(
    await save(rows, 'my-table', folder),
    ['csv', 'md', 'tex'].map((extension) => join(folder, `my-table.${extension}`)),
  );
  assert.equal(
    readFileSync(join(folder, 'my-table.csv'), 'utf8'),
    'method,pass@1 %,told\nagon,41.1,true\na|b,,false\n',
  );
  assert.match(readFileSync(join(folder, 'my-table.tex'), 'utf8'), /\\toprule/);
  assert.match(readFileSync(join(folder, 'my-table.md'), 'utf8'), /a\\\|b/);
  await save(figure, 'my-figure', folder);
  await save(new DataFrame({ a: [1] }), 'frame', folder);
  assert.equal(lines.length, 3);
  assert.match(lines[1]!, /my-figure: \.json \.svg \.png \.pdf$/);
  assert.equal(readdirSync(folder).length, 3 + 4 + 3);
  await assert.rejects(save(rows, 'a/b.csv', folder), /name is 'a\/b\.csv'; allowed are letters/);
  await assert.rejects(save({} as never, 'a', folder), /a figure .* a DataFrame, or a list of rows/);
  await assert.rejects(save([{ a: [1] }], 'a', folder), /row 1, a: found \[1\]/);
});
