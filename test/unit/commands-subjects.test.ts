import { expect, test } from 'vitest';
import { subjectTable } from '../../src/commands/subjects.ts';
import type { Subject } from '../../src/operations/subjects.ts';

const SETTLED: Subject = {
  subject: `intent:0x${'9c'.repeat(32)}`,
  kind: 'intent',
  status: 'settled',
  underWay: false,
  overdue: false,
  proof: null,
  pendingSince: null,
  changedAt: '2026-11-20T11:30:24.900Z',
  polledAt: null,
  events: 4,
  upstreamUpdatedAt: 1_795_174_224,
  wallets: [],
  corridor: '8453:10',
  source: 'Base',
  destination: 'Optimism',
  amount: null,
  subscriptions: ['treasury'],
  metadata: { desk: 'treasury' },
};

test('a list states the reported proof of each transfer, and nothing where none was reported', () => {
  const [head, ...rows] = subjectTable([
    { ...SETTLED, proof: 'disputed' },
    { ...SETTLED, proof: 'verified' },
    SETTLED,
  ]).split('\n');
  expect(head).toMatch(/NOW +PROOF +CHANGED/);
  expect(rows.map((row) => /settled +ended +(\w*) +2026/.exec(row)?.[1])).toEqual([
    'disputed',
    'verified',
    '',
  ]);
});
