import { expect, test } from 'vitest';
import { accountFacts, type Shown } from '../chaos/facts-account.ts';

const SUBJECT = 'quote:4227b32a-aae9-418d-ba83-664fe4dfdf56';
const INTENT = 'intent:0x6005f0e5430a4b092ee0866749b3daa3b52fde1ea078dd8a6d6ecc167bfa142a';
const FIRST_MS = Date.parse('2026-11-25T14:27:20Z');

/** An answer about the quote, a number of ms after the first one. */
function shownAfter(ms: number, steps: Shown['steps']): Shown {
  return {
    id: SUBJECT,
    status: 'submitted',
    steps,
    isPage: false,
    atMs: FIRST_MS + ms,
    doneAtMs: FIRST_MS + ms,
  };
}

/** The problems of a funded quote whose step failed, by the answers about it; the daemon was away from 7 to 14 s. */
function problemsOf(shown: readonly Shown[]): string[] {
  const ordered = {
    subject: SUBJECT,
    intent: INTENT,
    expiresAtMs: FIRST_MS + 60_000,
    fundedAtMs: FIRST_MS - 1_000,
    minimum: null,
    delivers: null,
    stepFails: true,
    isRefunded: false,
  };
  const away = [{ fromMs: FIRST_MS + 7_000, toMs: FIRST_MS + 14_000 }];
  return accountFacts([ordered], shown, [], { warnBeforeMs: 6_000, away, committedMs: 2_000 }).problems;
}

test('a failed step that was refunded when the daemon came back may stay untold: no answer shows it any more', () => {
  const shown = [
    shownAfter(0, { failed: 0, refunded: 0 }),
    shownAfter(1_000, { failed: 0, refunded: 0 }),
    shownAfter(6_950, { failed: 1, refunded: 0 }),
    shownAfter(20_000, { failed: 0, refunded: 1 }),
    shownAfter(25_000, { failed: 0, refunded: 1 }),
  ];
  expect(problemsOf(shown)).toEqual([]);
});

test('a failed step that is still shown when the daemon is back must be reported', () => {
  const shown = [
    shownAfter(0, { failed: 0, refunded: 0 }),
    shownAfter(1_000, { failed: 0, refunded: 0 }),
    shownAfter(6_950, { failed: 1, refunded: 0 }),
    shownAfter(20_000, { failed: 1, refunded: 0 }),
    shownAfter(25_000, { failed: 0, refunded: 1 }),
  ];
  expect(problemsOf(shown)).toEqual([`quote.step_failed ${SUBJECT} was not reported`]);
});
