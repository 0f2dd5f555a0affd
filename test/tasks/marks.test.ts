import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, stream } from '../../lib/random.js';
import {
  chain,
  chainExample,
  countdown,
  countdownExample,
  type Example,
  lists,
  listsExample,
  type Task,
} from '../../lib/tasks/index.js';
import { parseCompletion } from '../../lib/text/parse.js';

const puzzle = {
  ...{ id: 'p', question: 'numbers 3 5 7 11 target 24', gold: '24' },
  ...{ difficulty: 1, split: 'train' as const },
};

function marked(task: Task, problem: typeof puzzle, trace: string, shown?: string): [string, string][] {
  const steps = task.markTrace!(problem, parseCompletion(trace, 'stop'), shown);
  return steps.map(({ text, marks }) => [text, marks.join(', ')]);
}

const CHECK = 'check 11 + 5 = 16 then 7 + 3 = 10 left 16 10 : 26 6 big target 24';

test("countdown: a rival's path that is taken over is copied and settled", () => {
  const trace = `<think> ${CHECK} guess </think> path 11 + 5 = 16 then 7 + 3 = 10 <answer> 16 + 10 </answer>`;
  const shown = 'dead 7 - 3 path 5 + 11 = 16 then 3 + 7 = 10'; // the same two steps, operands turned round
  assert.deepEqual(marked(countdown, puzzle, trace, shown), [[`${CHECK} guess`, 'copied, settled']]);
  assert.deepEqual(marked(countdown, puzzle, trace), [[`${CHECK} guess`, 'settled']]);
});

test('countdown: a path that is redone and dropped is copied and abandoned, what was tried after it abandoned', () => {
  const dead = 'try 11 + 3 = 14 then 7 - 5 = 2 left 14 2 : 16 12 28 target 24 dead';
  const again = 'then 7 + 5 = 13 left 14 13 : 27 1 big target 24 dead';
  const back = 'try 11 + 5 = 16 then 7 - 3 = 4 left 16 4 : 20 12 big target 24 dead';
  const hit = 'try 11 - 5 = 6 then 7 - 3 = 4 left 6 4 : 10 2 24 target 24 hit';
  const think = `${CHECK} dead ${dead} ${again} ${back} ${back} ${hit}`;
  const trace = `<think> ${think} </think> path 11 - 5 = 6 then 7 - 3 = 4 <answer> 6 x 4 </answer>`;
  assert.deepEqual(marked(countdown, puzzle, trace, 'path 11 + 5 = 16 then 7 + 3 = 10'), [
    [`${CHECK} dead`, 'copied, abandoned'],
    [dead, 'abandoned'],
    [again, 'abandoned, wrong'],
    [back, 'abandoned, dead again'],
    [back, 'abandoned, repeated'],
    [hit, 'settled'],
  ]);
});

test("countdown: the rival's slip set right, and its dead end that is alive, are corrected", () => {
  const redone = 'check 11 + 5 = 16 dead';
  const hit = 'try 7 - 3 = 4 then 11 - 5 = 6 left 6 4 : 10 2 24 target 24 hit';
  const path = 'path 7 - 3 = 4 then 11 - 5 = 6 <answer> 6 x 4 </answer>';
  const shown = 'dead 7 - 3 path 11 + 5 = 17 then 7 - 3 = 4';
  assert.deepEqual(marked(countdown, puzzle, `<think> ${redone} ${hit} </think> ${path}`, shown), [
    [redone, 'corrected, abandoned'],
    [hit, 'corrected, settled'],
  ]);
  // Another result is no correction where it is false too.
  const slipped = 'check 11 + 5 = 18 dead';
  assert.equal(
    marked(countdown, puzzle, `<think> ${slipped} ${hit} </think> ${path}`, shown)[0]![1],
    'abandoned',
  );
});

test('countdown: where reasoning is cut off its last leaf is left open', () => {
  const one = 'try 11 + 3 = 14 then 7 - 5 = 2 left 14 2 : 16 12 28 target 24 dead';
  const two = 'try 11 - 5 = 6 then 7 - 3 = 4 left';
  assert.deepEqual(marked(countdown, puzzle, `<think> ${one} ${two}`), [
    [one, 'abandoned'],
    [two, ''],
  ]);
});

test('chain: taken over, contradicted, given up for another result', () => {
  const problem = { ...puzzle, question: 'start 5 a x 7 b + 4 c x 12', gold: 'c 24' }; // 35, 2, 24
  const trace = (think: string) => `<think> ${think} </think> a 35 b 2 <answer> c 24 </answer>`;
  assert.deepEqual(marked(chain, problem, trace('take a 35 b 35 + 4 = 2 c 2 x 12 = 24'), 'a 35 b 3'), [
    ['take a 35', 'copied'],
    ['b 35 + 4 = 2', 'corrected'],
    ['c 2 x 12 = 24', 'settled'],
  ]);
  const over = 'c 2 x 12 = 20 split 2 x 3 = 6 6 x 4 = 24 so 24';
  assert.deepEqual(marked(chain, problem, trace(`a 5 x 7 = 34 b 34 + 4 = 1 ${over}`), 'a 34 b 1'), [
    ['a 5 x 7 = 34', 'wrong'],
    ['b 34 + 4 = 1', ''],
    [over, 'settled, abandoned'],
  ]);
});

test('lists: a path taken over, a dead end that is alive', () => {
  const problem = {
    ...puzzle,
    question: 'in 1 2 3 out 4 3 2 in 2 2 out 3 3',
    gold: 'rev then inc then uniq',
  };
  const run = 'rev 3 2 1 then inc 4 3 2 need 4 3 2 last uniq 4 3 2 hit';
  const shown = 'dead inc path rev then inc';
  const copy = `<think> check ${run} </think> path rev then inc <answer> last uniq </answer>`;
  assert.deepEqual(marked(lists, problem, copy, shown), [[`check ${run}`, 'copied, settled']]);
  const missed = `check rev 3 2 1 then inc 4 3 2 need 4 3 2 last dbl 8 6 4 dead`;
  const alive = 'try inc 2 3 4 then rev 4 3 2 need 4 3 2 last swap 2 3 4 dead';
  const found = 'then swap 4 3 2 need 4 3 2 last uniq 4 3 2 hit';
  const trace = `<think> ${missed} ${alive} ${found} </think> path inc then swap <answer> last uniq </answer>`;
  assert.deepEqual(marked(lists, problem, trace, shown), [
    [missed, 'copied, abandoned'],
    [alive, 'abandoned, dead again'],
    [found, 'corrected, settled'],
  ]);
});

const WRITERS = [
  [countdown, countdownExample],
  [chain, chainExample],
  [lists, listsExample],
] as const satisfies [Task, (random: Random) => Example][];

test('property: no word of the reasoning is lost or moved, whatever a policy makes of the grammar', () => {
  const random = stream('marks', 'property');
  for (const [task, draw] of WRITERS)
    for (let i = 0; i < 300; i++) {
      const { problem, prompt, completion } = draw(random);
      const words = completion.split(' ');
      for (let edits = 4 * random.int(3); edits > 0; edits--)
        words.splice(random.int(words.length), random.int(2), random.pick(words));
      const parsed = parseCompletion(words.join(' '), 'stop');
      const shown = / rival (?!none)(.*)$/.exec(prompt[0]!.content)?.[1];
      const steps = task.markTrace!(problem, parsed, shown);
      assert.deepEqual(
        steps.flatMap(({ text }) => text.split(' ')),
        parsed.think.split(/\s+/).filter((word) => word !== ''),
      );
      const counts = task.countTrace(problem, parsed, shown);
      const count = (mark: string) => steps.filter(({ marks }) => (marks as string[]).includes(mark)).length;
      if (task !== chain)
        assert.deepEqual([count('wrong'), count('repeated')], [counts.wrong, counts.repeated]);
    }
});
