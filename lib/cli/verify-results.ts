/**
 * `npm run verify-results`: recomputes every number of every shipped table from the raw lines of the runs beside it, and
 * checks the runs themselves. Trains and samples nothing, writes nothing, needs no backend.
 *
 *   npm run verify-results -- [--results DIR]
 *
 * DIR, or folders in it, hold runs/, tables/ and figures/; default results/reference.
 *
 * Ends with exit code 1 and a list where something does not trace. Runs that no table is made of are named; they are
 * no fault.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { verifyTables } from '../analysis/studies/verify.js';
import { CUT_OFF, type Finding, REFERENCE_FOLDER, runFolders, verifyRuns } from '../experiments/verify.js';
import { runCommand } from './command.js';

const { values } = parseArgs({
  options: {
    results: { type: 'string', default: REFERENCE_FOLDER },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** Findings shown in full; more of them are counted. */
const SHOWN = 100;

function main(): void {
  if (values.help) {
    console.log('npm run verify-results -- [--results DIR]');
    return;
  }
  const root = resolve(values.results);
  if (!existsSync(root)) throw new Error(`--results ${values.results}: there is no such folder`);
  const within = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const folders = [root, ...within.map((entry) => join(root, entry.name))].filter((folder) =>
    existsSync(join(folder, 'runs')),
  );
  if (folders.length === 0)
    throw new Error(`--results ${values.results}: neither it nor a folder in it holds a folder runs`);
  const findings = folders.flatMap(verifyFolder);
  if (findings.length === 0) {
    console.log('every number traces to its run');
    return;
  }
  console.error(`\n${findings.length} ${findings.length === 1 ? 'finding' : 'findings'}:`);
  for (const { where, what } of findings.slice(0, SHOWN)) console.error(`  ${where}: ${what}`);
  if (findings.length > SHOWN) console.error(`  and ${findings.length - SHOWN} more`);
  process.exitCode = 1;
}

/** Checks one results folder and says what was checked. */
function verifyFolder(folder: string): Finding[] {
  const name = relative(process.cwd(), folder) || '.';
  const runs = runFolders(folder);
  console.log(`${name}: ${runs.length} runs checked`);
  const findings = verifyRuns(folder);
  // Reading a file that ends in half a line would cut it, and this command changes nothing.
  if (findings.some((finding) => finding.what.startsWith(CUT_OFF)))
    console.log('  tables are not rebuilt: a file is cut off');
  else {
    const { checks, findings: inTables, used } = verifyTables(folder);
    findings.push(...inTables);
    for (const { study, tables, cells, arms, expected } of checks)
      console.log(
        `  ${study}: ${tables} tables, ${cells} cells, from ${arms} of ${expected} methods and seeds`,
      );
    const unused = runs.filter((id) => !used.has(id));
    if (unused.length > 0)
      console.log(
        `  in no table: ${unused.length} ${unused.length === 1 ? 'run' : 'runs'}: ${unused.join(', ')}`,
      );
  }
  return findings.map(({ where, what }) => ({ where: join(name, where), what }));
}

await runCommand(main);
