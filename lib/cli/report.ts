/**
 * `npm run report`: everything that is in a results folder as one HTML file that needs nothing else, and as a PDF: study by
 * study the sentences, figures, tables, settings and run ids. Trains nothing; the same runs give the same files.
 *
 *   npm run report -- [--results DIR] [--out DIR]
 *
 * DIR of `--results` holds runs/; default results/reference, what is shipped. Written are agon.html and agon.pdf, by default
 * in results/report.
 */
import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bookHtml, bookPdf, gatherBook } from '../analysis/book/index.js';
import { RESULTS_FOLDER } from '../experiments/store.js';
import { REFERENCE_FOLDER } from '../experiments/verify.js';
import { writeFileAtomic } from '../files.js';
import { type Progress, progressBar } from '../notebook/progress.js';
import { runCommand } from './command.js';

const { values } = parseArgs({
  options: {
    results: { type: 'string', default: REFERENCE_FOLDER },
    out: { type: 'string', default: join(RESULTS_FOLDER, 'report') },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** What takes less shows no bar. */
const PATIENCE_MS = 2000;

async function main(): Promise<void> {
  if (values.help) {
    console.log('npm run report -- [--results DIR] [--out DIR]');
    return;
  }
  const folder = resolve(values.results);
  if (!existsSync(join(folder, 'runs')))
    throw new Error(`--results ${values.results}: there is no folder runs in it`);
  const startedAt = performance.now();
  let bar: Progress | undefined;
  const book = await gatherBook(folder, {
    onProgress(done, total, what) {
      // The total grows as figures are found, so the bar counts in shares.
      if (performance.now() - startedAt > PATIENCE_MS) bar ??= progressBar(100, 'report');
      bar?.update(Math.round((100 * done) / total), what);
    },
  });
  bar?.stop();
  for (const { title, coverage, tables, figures } of book.chapters)
    console.log(`${title}: ${coverage}; ${tables.length} tables, ${figures.length} figures`);
  if (book.missing.length > 0)
    console.log(`not run yet: ${book.missing.map((study) => study.name).join(', ')}`);
  const files = { 'agon.html': await bookHtml(book), 'agon.pdf': await bookPdf(book) };
  for (const [name, content] of Object.entries(files)) {
    const path = join(resolve(values.out), name);
    writeFileAtomic(path, content);
    console.log(relative(process.cwd(), path));
  }
}

await runCommand(main);
