/** The hand-written attempts are what they say of themselves, and a reward that cannot be trained on is named by them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adversarial, margin, outcome } from '../../lib/agon/rewards.js';
import { payments, writtenAttempts } from '../../lib/agon/written.js';
import type { Reward } from '../../lib/records.js';
import { countdown } from '../../lib/tasks/index.js';

test('the verifier agrees with every verdict, own and rival, and groups are of one problem', () => {
  for (const stream of ['challenge', 'draft'] as const) {
    const all = writtenAttempts(stream);
    assert.equal(all.length, 8);
    for (const { own, rival, attempt } of all) {
      for (const one of [attempt, ...(attempt.rival ? [attempt.rival] : [])]) {
        assert.equal(countdown.verify(one.problem, one.completion), one.correct, `${own} beside ${rival}`);
        assert.equal(one.rollout.completionIds.length, one.rollout.logProbs.length);
        assert.equal(one.problem.id, all[0]!.attempt.problem.id);
      }
      assert.equal(attempt.rival === undefined, stream === 'draft');
      assert.equal(attempt.correct, own.startsWith('right'));
      assert.equal(attempt.rollout.finishReason === 'length', own === 'cut off');
    }
  }
});

test('what the rewards of METHOD pay, by hand', () => {
  assert.deepEqual(payments(outcome), [2.5, 2.5, 2.5, 0.5, 0.5, 0.5, 2, 0]);
  assert.deepEqual(payments(adversarial), [3.5, 2.5, 3.5, 0.5, 0.5, 0.5, 3, 0]);
  assert.deepEqual(payments(margin), [1.5, 0.5, 1.5, 0.5, -0.5, 0.5, 1, -1]);
  assert.deepEqual(payments(outcome, 'draft'), payments(outcome));
  assert.deepEqual(
    payments((own) => (own.correct ? 1 : undefined)),
    [1, 1, 1, ...Array(3), 1, undefined],
  );
});

test('what is no reward is refused, naming the attempt and what came back', () => {
  const bad = (value: unknown) => payments((() => value) as unknown as Reward);
  assert.throws(() => bad('2'), /attempt 1 \(own: right; rival: wrong; 90 tokens\) is the text '2'.*finite/);
  assert.throws(() => bad(null), /is null/);
  assert.throws(() => bad({ reward: 1 }), /is \{"reward":1\}/);
  assert.throws(() => bad(Promise.resolve(1)), /a promise \(the function is async\)/);
  const late: Reward = (own, rival) => (own.correct && rival!.correct ? Number.NaN : 1);
  assert.throws(() => payments(late), /attempt 2 \(own: right; rival: right; 80 tokens\) is NaN/);
  const cutOff: Reward = (own) => own.completion.answer!.length;
  assert.throws(() => payments(cutOff), /fails on written attempt 8 \(own: cut off.*'length'/);
  assert.throws(
    () => payments(adversarial, 'draft'),
    /fails on written attempt 1.*rival: none.*there is none/,
  );
  let asked = 0;
  assert.throws(() => payments(() => asked++), /attempt 1 is 0 and, asked again, 8/);
});
