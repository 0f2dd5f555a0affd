/** What is made of a bench's numbers: claims, tables, the curve. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curveFigure } from '../../lib/bench/figure.js';
import { type BenchResult, benchMarkdown, judgeClaims, straightness } from '../../lib/bench/report.js';
import type { CurvePoint, Measured, ModelResult } from '../../lib/bench/run.js';
import { ARENA_PLAN } from '../../lib/bench/workload.js';

function measured(participant: string, measure: Measured['measure'], ...seconds: number[]): Measured {
  const side = participant === 'wasm' || participant.startsWith('tfjs') ? 'ours' : 'peer';
  const timings = seconds.map((s) => ({ seconds: s, tokens: 1200 }));
  return { participant, side, measure, timings, peakBytes: 5e8 };
}

const curve: CurvePoint[] = [
  [12, 1],
  [24, 2],
  [48, 4],
].flatMap(([rows, seconds]) =>
  (['sample', 'train'] as const).map((measure) => ({
    participant: 'wasm',
    measure,
    vary: 'rows' as const,
    rows: rows!,
    completion: 64,
    seconds: measure === 'sample' ? seconds! : seconds! ** 2,
    tokens: rows! * 64,
  })),
);

const model: ModelResult = {
  plan: ARENA_PLAN,
  parameters: 5e5,
  participants: [{ name: 'wasm', side: 'ours', device: 'CPU', versions: { node: '20.1.0' } }],
  measured: [
    measured('tfjs-node', 'sample', 1, 1, 1),
    measured('wasm', 'sample', 4, 4, 4),
    measured('transformers', 'sample', 5, 6, 4),
    measured('wasm', 'grpo', 10),
    measured('trl', 'grpo', 12.5),
    measured('pytorch', 'grpo'), // it failed before its first repetition
  ],
  floors: [{ measure: 'sample', flops: 2e9, own: { 'tfjs-node': 0.5, wasm: 1 }, machine: 0.25 }],
  curve,
  profiles: [],
  failures: ['pytorch ended at grpo:\nsome trace'],
};

test('a claim holds by the median ratio, and is not judged where somebody is missing', () => {
  const judged = judgeClaims(model).map(({ measure, ours, theirs, speedup, holds }) => [
    [measure, ours, theirs].join(' '),
    speedup?.median,
    holds,
  ]);
  assert.deepEqual(judged, [
    ['sample native transformers', 5, true],
    ['sample native pytorch', undefined, undefined],
    ['sample wasm transformers', 1.25, false],
    ['grpo native trl', undefined, undefined],
    ['grpo native pytorch', undefined, undefined],
    ['grpo wasm trl', 1.25, true],
  ]);
});

test('the report names machine, versions, date, who is missing, the share of the floor and the failures', () => {
  const result: BenchResult = {
    date: '2026-11-29T12:00:00.000Z',
    machine: { cpu: 'A CPU', cores: 2, memoryGB: 25, system: 'Linux 6' },
    threads: 2,
    models: [model],
    absent: ['no peers here'],
  };
  const text = benchMarkdown(result);
  for (const part of [
    '2026-11-29 12:00 UTC',
    'A CPU',
    '2 threads',
    'node 20.1.0',
    'no peers here',
    'curve.png',
  ])
    assert.ok(text.includes(part), `${part} is not in\n${text}`);
  // 1200 tokens in 1 s; its own floor 0.5 s of 1 s, the machine's 0.25 s; 500 MB.
  assert.match(text, /\| tfjs-node \| 1200 \| 1200\.\.1200 \| 3 \| 1200 \| 50\.0 \| 25\.0 \| 500 \|/);
  assert.match(text, /pytorch ended at grpo/);
  // 4 s against 5, 6 and 4 s; 10 s against 12.5 s.
  assert.match(text, /sampling \| wasm \| 1\.25 \| – \| – \|/);
  assert.match(text, /GRPO step \| wasm \| – \| 1\.25 \| – \|/);
});

test('a straight cost is told from one that grows faster', () => {
  const [sample, train] = straightness(curve);
  assert.equal(sample!.explained, 1);
  assert.equal(sample!.lastOverMiddle, 1);
  assert.equal(train!.lastOverMiddle, 2);
});

test('the figure draws every participant once per panel that has points', () => {
  const { data } = curveFigure(curve, 'here');
  const drawn = data as { name: string; x: number[]; y: number[] }[];
  assert.deepEqual(drawn.find((trace) => trace.x.length > 0)?.y, [1, 2, 4]);
  assert.throws(() => curveFigure([], ''), /no points/);
});
