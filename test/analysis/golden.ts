/**
 * Snapshots under test/golden: a value must be what was committed. After a change that is meant, run the tests
 * once with UPDATE_GOLDEN=1 and look at the difference before committing it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure } from '../../lib/analysis/plotly-jsdom.js';
import { ROOT, writeFileAtomic } from '../../lib/files.js';

/** A figure's spec against test/golden/figures/NAME.json, with numbers to six digits: rounding differs by machine. */
export function matchesSpec(name: string, spec: Figure): void {
  const short = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value;
  matchesGolden(`figures/${name}.json`, `${JSON.stringify(spec, short, 1)}\n`);
}

export function matchesGolden(name: string, text: string): void {
  const path = join(ROOT, 'test/golden', name);
  if (process.env.UPDATE_GOLDEN === '1') writeFileAtomic(path, text);
  assert.equal(
    text,
    readFileSync(path, 'utf8'),
    `differs from test/golden/${name} (UPDATE_GOLDEN=1 rewrites it)`,
  );
}
