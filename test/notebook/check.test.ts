/** The table of a reward of the user's own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toCsv } from '../../lib/analysis/formats.js';
import { rewardTable } from '../../lib/notebook/check.js';
import type { Reward } from '../../lib/records.js';

test('rewards and group advantages of the eight attempts, beside outcome and agon', () => {
  // Right beside a right rival does not apply: seven are left, 3 3 0 0 0 3 0, mean 9/7, std (ddof 1) 1.6036.
  const conversionsOnly: Reward = (own, rival) =>
    own.correct && rival!.correct ? undefined : 3 * Number(own.correct);
  assert.equal(
    toCsv(rewardTable(conversionsOnly)),
    `own,rival,tokens,conversionsOnly,"conversionsOnly, advantage",outcome,"outcome, advantage",agon,"agon, advantage"
right,wrong,90,3,1.07,2.5,1.03,3.5,1.16
right,right,80,,,2.5,1.03,2.5,0.5
right,left nothing,120,3,1.07,2.5,1.03,3.5,1.16
wrong,wrong,70,0,-0.8,0.5,-0.8,0.5,-0.83
wrong,right,60,0,-0.8,0.5,-0.8,0.5,-0.83
wrong,left nothing,100,0,-0.8,0.5,-0.8,0.5,-0.83
"right, no format",wrong,90,3,1.07,2,0.57,3,0.83
cut off,right,200,0,-0.8,0,-1.26,0,-1.16
`,
  );
});

test('a draft has no rival: only rewards that need none stand in its table', () => {
  const table = rewardTable((own) => Number(own.formatted), 'draft');
  assert.deepEqual(table.columns, [
    ...['own', 'rival', 'tokens', 'yours', 'yours, advantage', 'outcome', 'outcome, advantage'],
  ]);
});
