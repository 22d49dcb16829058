import { expect, test } from 'vitest';
import { judgeProcess } from '../../src/queues/heartbeat.ts';

const LONG_MS = 60_000;

test.each([
  { hasEnded: true, isConnected: true, cutOffMs: LONG_MS, state: 'alive' },
  { hasEnded: true, isConnected: false, cutOffMs: 0, state: 'gone' },
  { hasEnded: true, isConnected: null, cutOffMs: 0, state: 'gone' },
  { hasEnded: false, isConnected: true, cutOffMs: LONG_MS, state: 'alive' },
  { hasEnded: false, isConnected: false, cutOffMs: LONG_MS, state: 'alive' },
  { hasEnded: false, isConnected: null, cutOffMs: LONG_MS, state: 'alive' },
  { hasEnded: null, isConnected: true, cutOffMs: LONG_MS, state: 'alive' },
  { hasEnded: null, isConnected: false, cutOffMs: 3_999, state: 'cut-off' },
  { hasEnded: null, isConnected: false, cutOffMs: 4_000, state: 'gone' },
  { hasEnded: null, isConnected: null, cutOffMs: LONG_MS, state: 'alive' },
])('a process with hasEnded $hasEnded and isConnected $isConnected for $cutOffMs ms is $state', (row) => {
  const { state, ...evidence } = row;
  expect(judgeProcess(evidence)).toBe(state);
});
