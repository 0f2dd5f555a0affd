/**
 * A book as one HTML file that needs nothing else: figures inline as SVG, tables, and the glyphs of the typeface inside
 * it; no script, nothing is fetched. Left out: interactive figures; their specs lie beside the tables as JSON.
 */
import { textOf } from '../export.js';
import { FONT_FAMILY, fontFaces } from '../font.js';
import { textColumns } from '../formats.js';
import { GREY } from '../look.js';
import type { ReportTable } from '../studies/report.js';
import type { Book, BookFigure, Chapter } from './book.js';

const STYLE = `
body{font:15px/1.5 ${FONT_FAMILY};color:#222;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.8rem}h2{margin-top:3rem;border-top:1px solid #ccc;padding-top:1.2rem}
h1,h2,h3{line-height:1.25}.grey,figcaption,caption{color:${GREY}}
figure{margin:1.5rem 0}svg{max-width:100%;height:auto}
.scroll{overflow-x:auto;margin:1.2rem 0}table{border-collapse:collapse;font-size:12px;line-height:1.35}
caption{text-align:left;padding-bottom:.4rem;font-size:13px;min-width:30rem}
thead{border-top:1.5px solid #222;border-bottom:.75px solid #222}tbody{border-bottom:1.5px solid #222}
th,td{padding:.15rem .6rem .15rem 0;text-align:left;vertical-align:bottom;font-variant-numeric:tabular-nums}
td{white-space:nowrap}.number{text-align:right}code{font-family:inherit;background:#f3f3f3}
@media print{.scroll{overflow:visible}details{display:block}h2{break-before:page}}`;

/** The book's file. */
export async function bookHtml(book: Book): Promise<string> {
  const { title, facts, chapters, missing } = book;
  const body = [
    `<h1>${escaped(title)}</h1>`,
    `<dl>${facts.map(([name, value]) => `<dt class="grey">${escaped(name)}</dt><dd>${escaped(value)}</dd>`).join('')}</dl>`,
    `<nav><ol>${chapters.map((c) => `<li><a href="#${c.name}">${escaped(c.title)}</a> <span class="grey">${escaped(c.coverage)}</span></li>`).join('')}</ol></nav>`,
    missing.length > 0
      ? `<p>Not run yet: ${missing.map((study) => `${escaped(study.title)} (<code>${study.name}</code>)`).join('; ')}.</p>`
      : '',
    ...chapters.map((chapter, c) => chapterHtml(chapter, c)),
  ].join('\n');
  const faces = await fontFaces(textOf(body));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(title)}</title><style>${faces}${STYLE}</style></head>
<body>
${body}
</body></html>
`;
}

function chapterHtml(chapter: Chapter, c: number): string {
  const { name, title, question, coverage, notes, tables, figures, settings, varied, runs } = chapter;
  return [
    `<h2 id="${name}">${escaped(title)}</h2>`,
    `<p>${escaped(question)} <span class="grey">(study <code>${name}</code>: ${escaped(coverage)})</span></p>`,
    `<ul>${notes.map((note) => `<li>${escaped(note)}</li>`).join('')}</ul>`,
    ...figures.map((figure, f) => figureHtml(figure, `c${c}f${f}`)),
    ...tables.map(tableHtml),
    '<details><summary>Settings and runs</summary>',
    ...varied.map(tableHtml),
    `<p>What all its experiments share: ${settings.map(([key, value]) => `<code>${escaped(key)}</code> ${escaped(value)}`).join('; ')}.</p>`,
    `<p>Runs: ${runs.map((run) => `<code>${escaped(run)}</code>`).join(', ')}</p></details>`,
  ].join('\n');
}

function figureHtml({ name, svg }: BookFigure, id: string): string {
  return `<figure role="img" aria-label="${escaped(name)}">${withOwnIds(svg, id)}<figcaption><code>${escaped(name)}</code></figcaption></figure>`;
}

/** Plotly names its clip paths alike in every figure that is drawn alone; on one page the names must differ. */
function withOwnIds(svg: string, id: string): string {
  const uid = /id="defs-([0-9a-f]+)"/.exec(svg)?.[1];
  return uid === undefined ? svg : svg.replaceAll(uid, `${uid}${id}`);
}

function tableHtml({ frame, caption, name }: ReportTable): string {
  const columns = textColumns(frame);
  const cell = (tag: 'th' | 'td', text: string, numeric: boolean) =>
    `<${tag}${numeric ? ' class="number"' : ''}>${escaped(text)}</${tag}>`;
  const head = columns.map((column) => cell('th', column.name, column.numeric)).join('');
  const rows = (columns[0]?.cells ?? []).map(
    (_, r) => `<tr>${columns.map((column) => cell('td', column.cells[r]!, column.numeric)).join('')}</tr>`,
  );
  return (
    `<div class="scroll"><table><caption>${escaped(caption)} <code>${escaped(name)}</code></caption>` +
    `<thead><tr>${head}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table></div>`
  );
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
