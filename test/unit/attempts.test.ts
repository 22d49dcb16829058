import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../src/notifiers/webhook/exchange.ts';
import { judge } from '../../src/queues/deliveries/attempts.ts';

const NOW_MS = 1_000_000;

const RETRIES = { delaysMs: [5_000, 60_000], jitter: 0 };

/** The decision on an answer to a due delivery after a number of attempts. */
function judged(
  httpStatus: number,
  tried: { tries: number; earlierTries: number; nextAt?: number | null },
  retryAfterMs: number | null = null,
) {
  const fact = { nextAt: null, ...tried };
  const result = { outcome: 'failed', httpStatus, retryAfterMs } as const;
  return judge({ result, facts: [fact], retries: RETRIES, claimedMs: NOW_MS, nowMs: NOW_MS });
}

test('an answer that requests time uses up no attempt', () => {
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

test('an early attempt, to find out whether the receiver is back, never counts', () => {
  const verdict = judged(500, { tries: 500, earlierTries: 499, nextAt: NOW_MS + 1_000 });
  expect(verdict).toMatchObject({ outcome: 'pending', counts: false });
});

describe.each([429, 502, 503, 504])('an answer of %i', (httpStatus) => {
  const fresh = { tries: 0, earlierTries: 0 };

  test.each([
    ['0', 5_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 5_000],
    [new Date(NOW_MS + 1_000).toUTCString(), 1_000],
    ['1', 1_000],
    ['7', 7_000],
  ])('with Retry-After: %s requests a rest of %i ms', (retryAfter, restMs) => {
    const named = parseRetryAfter(retryAfter, NOW_MS);
    expect(judged(httpStatus, fresh, named)).toMatchObject({ counts: false, restMs });
  });

  test('before the own time of a delivery requests as long a rest', () => {
    expect(judged(httpStatus, { ...fresh, nextAt: NOW_MS + 1_000 }, 0)).toMatchObject({ restMs: 5_000 });
  });

  test('with Retry-After: 0 and delays of a second ends a delivery after 150 s at the earliest', () => {
    const retries = { delaysMs: [1_000, 1_000, 1_000], jitter: 0 };
    const result = { outcome: 'failed', httpStatus, retryAfterMs: 0 } as const;
    const fact: { tries: number; earlierTries: number; nextAt: number | null } = { ...fresh, nextAt: null };
    let nowMs = NOW_MS;
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const { outcome, counts, nextAtMs, restMs } = judge({
        result,
        facts: [fact],
        retries,
        claimedMs: nowMs,
        nowMs,
      });
      fact.tries += 1;
      if (!counts) fact.earlierTries += 1;
      if (outcome === 'dead') break;
      fact.nextAt = nextAtMs ?? fact.nextAt;
      nowMs = Math.max(nowMs + (restMs ?? 0), fact.nextAt ?? 0);
    }
    expect(fact).toMatchObject({ tries: 34, earlierTries: 30 });
    expect(nowMs - NOW_MS).toBeGreaterThanOrEqual(150_000);
  });
});
