import { expect, test } from 'vitest';
import { judge } from '../../src/queues/deliveries/attempts.ts';

const NOW_MS = 1_000_000;

const RETRIES = { delaysMs: [5_000, 60_000], jitter: 0 };

/** What follows from an answer to a delivery that was tried so often already, and is due. */
function judged(httpStatus: number, tried: { tries: number; earlierTries: number; nextAt?: number | null }) {
  const fact = { nextAt: null, ...tried };
  const result = { outcome: 'failed', httpStatus, retryAfterMs: null } as const;
  return judge({ result, facts: [fact], retries: RETRIES, claimedMs: NOW_MS, nowMs: NOW_MS });
}

test('an answer that asks for time uses up no attempt', () => {
  expect(judged(429, { tries: 3, earlierTries: 3 })).toMatchObject({ counts: false, restMs: 5_000 });
});

test('an event that is always answered so becomes a dead letter in the end', () => {
  const tried = { tries: 0, earlierTries: 0 };
  let verdict = judged(429, tried);
  for (let attempt = 0; attempt < 100 && verdict.outcome === 'pending'; attempt++) {
    tried.tries++;
    if (!verdict.counts) tried.earlierTries++;
    verdict = judged(429, tried);
  }
  expect(verdict.outcome).toBe('dead');
  expect(tried).toEqual({ tries: 32, earlierTries: 30 });
});

test('what was tried before its own time, to find out whether the receiver is back, never counts', () => {
  const verdict = judged(500, { tries: 500, earlierTries: 499, nextAt: NOW_MS + 1_000 });
  expect(verdict).toMatchObject({ outcome: 'pending', counts: false });
});
