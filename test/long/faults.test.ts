import { describe, expect, inject, type TestContext, test } from 'vitest';
import { SERVICE_FAULT_TYPES } from '../../sandbox/faults/fault.ts';
import {
  type FaultOutcome,
  type FaultRun,
  type Reported,
  type Spell,
  underFaults,
} from '../support/fault-run.ts';

/** A fault, and its required effect on the daemon's events. */
type Case = Spell & { name: string; timeScale?: number; shows?: (reported: Reported) => boolean };

const reportsOf =
  (status: string) =>
  ({ received }: Reported): boolean =>
    received.some(({ data }) => data.status === status);
const ignoresStale = ({ account }: Reported): boolean => account.tolerated.stale > 0;

/** A fault of each type, and an error of each kind, as strong as still lets answers through. */
const CASES: Case[] = [
  { name: 'slow answers', fault: { type: 'latency', ms: 100, spreadMs: 600 }, strikes: 50 },
  {
    name: 'errors of the status endpoint',
    fault: { type: 'error', code: 'internal-error', rate: 0.25, path: '/v1/intents' },
    strikes: 5,
  },
  {
    name: 'errors of the deposit gateway',
    fault: { type: 'error', code: 'service-unavailable', rate: 0.4, path: '/deposit-gateway' },
    strikes: 2,
    early: true,
  },
  {
    name: '429 with Retry-After',
    fault: { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 1, rate: 0.05 },
    strikes: 3,
  },
  {
    name: '429 without Retry-After',
    fault: { type: 'error', code: 'rate-limit-exceeded', rate: 0.05 },
    strikes: 3,
  },
  { name: 'errors of a bare gateway', fault: { type: 'bare-error', status: 502, rate: 0.25 }, strikes: 5 },
  { name: 'answers that are lost', fault: { type: 'lost-answer', status: 504, rate: 0.25 }, strikes: 5 },
  { name: 'pages of HTML with 200', fault: { type: 'html', rate: 0.25 }, strikes: 5 },
  { name: 'bodies that are cut', fault: { type: 'truncated-body', rate: 0.25 }, strikes: 5 },
  { name: 'bodies that come slowly', fault: { type: 'slow-body', ms: 900, rate: 0.5 }, strikes: 20 },
  { name: 'a wrong content type', fault: { type: 'wrong-content-type', rate: 0.5 }, strikes: 20 },
  { name: 'a key that is revoked and restored', fault: { type: 'key-revoked' }, strikes: 2, brief: true },
  {
    name: 'clocks that are ahead',
    fault: { type: 'clock-skew', skewSeconds: 20, rate: 0.5 },
    // Each record of a page counts: enough that some transfers also move on meanwhile.
    strikes: 400,
    shows: ignoresStale,
  },
  { name: 'stale reads', fault: { type: 'stale-reads', rate: 0.4 }, strikes: 50, shows: ignoresStale },
  {
    name: 'ids that are not indexed yet',
    fault: { type: 'not-indexed', rate: 0.4 },
    strikes: 30,
    shows: ignoresStale,
  },
  {
    name: 'statuses that nobody knows',
    fault: { type: 'unknown-status', rate: 0.3 },
    strikes: 50,
    shows: reportsOf('awaiting_review'),
  },
  {
    name: 'members that nobody knows',
    fault: { type: 'unknown-fields', rate: 0.5 },
    strikes: 50,
    shows: ({ received }) => received.some(({ data }) => data.record.riskScore !== undefined),
  },
  { name: 'pages in another order', fault: { type: 'shuffled-pages' }, strikes: 20 },
  { name: 'pages with the oldest first', fault: { type: 'oldest-first' }, strikes: 20 },
  { name: 'items that move between pages', fault: { type: 'moving-items', rate: 0.5 }, strikes: 20 },
  { name: 'cursors that expire', fault: { type: 'expired-cursors', rate: 0.5 }, strikes: 4 },
  { name: 'cursors that live 5 s', fault: { type: 'cursor-lifetime', seconds: 5 }, strikes: 20 },
  { name: 'cursors that lead in a circle', fault: { type: 'repeated-cursors' }, strikes: 4 },
  {
    name: 'chains that are reorganised',
    fault: { type: 'regressions' },
    // Slow enough for polls to find transfers pending again.
    timeScale: 15,
    strikes: 12,
    shows: ({ received }) => received.some(({ data }) => data.regression === true),
  },
];

const TOGETHER: Spell[] = [
  { fault: { type: 'latency', ms: 20, spreadMs: 300, rate: 0.3 }, strikes: 1 },
  { fault: { type: 'error', code: 'internal-error', rate: 0.03 }, strikes: 1 },
  {
    fault: { type: 'error', code: 'service-unavailable', rate: 0.4, path: '/deposit-gateway' },
    strikes: 1,
    early: true,
  },
  { fault: { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 1, rate: 0.01 }, strikes: 1 },
  { fault: { type: 'error', code: 'rate-limit-exceeded', rate: 0.01 }, strikes: 1 },
  { fault: { type: 'bare-error', status: 502, rate: 0.03 }, strikes: 1 },
  { fault: { type: 'lost-answer', status: 504, rate: 0.03 }, strikes: 1 },
  { fault: { type: 'html', rate: 0.03 }, strikes: 1 },
  { fault: { type: 'truncated-body', rate: 0.03 }, strikes: 1 },
  { fault: { type: 'slow-body', ms: 400, rate: 0.1 }, strikes: 1 },
  { fault: { type: 'wrong-content-type', rate: 0.2 }, strikes: 1 },
  { fault: { type: 'key-revoked' }, strikes: 1, brief: true },
  { fault: { type: 'clock-skew', skewSeconds: 20, rate: 0.1 }, strikes: 1 },
  { fault: { type: 'stale-reads', rate: 0.1 }, strikes: 1 },
  { fault: { type: 'not-indexed', rate: 0.1 }, strikes: 1 },
  { fault: { type: 'unknown-status', rate: 0.1 }, strikes: 1 },
  { fault: { type: 'unknown-fields', rate: 0.2 }, strikes: 1 },
  { fault: { type: 'shuffled-pages', rate: 0.5 }, strikes: 1 },
  { fault: { type: 'oldest-first', rate: 0.2 }, strikes: 1 },
  { fault: { type: 'moving-items', rate: 0.2 }, strikes: 1 },
  // After the first sweeps, requests with a cursor are rare: without these from the start, the others would wait for minutes.
  { fault: { type: 'expired-cursors', rate: 0.5 }, strikes: 1, early: true },
  { fault: { type: 'cursor-lifetime', seconds: 5, rate: 0.5 }, strikes: 1, early: true },
  // Struck by the first request with a cursor that is not expired.
  { fault: { type: 'repeated-cursors' }, strikes: 1, early: true, brief: true },
  { fault: { type: 'regressions', rate: 0.2 }, strikes: 1 },
];
const TOGETHER_MS = 60_000;
const TOGETHER_SEED = 2_026;
const TOGETHER_BIRTHS = 100;

const RUN = {
  pace: 6,
  timeScale: 60,
  births: 15,
  lastsMs: 0,
  confirmAfterMs: 2_000,
} satisfies Partial<FaultRun>;

function expectWhole({ account, received, records }: FaultOutcome): void {
  expect(account.problems).toEqual([]);
  expect(account.unsettled).toEqual([]);
  expect(account.made).toBe(account.merged + account.shown);
  expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
  // The last record is complete; it may also contain additions of a fault that no answer took back.
  for (const record of records) expect(record.reported, record.subject).toMatchObject(record.true);
}

describe.concurrent('the events equal the answers, and end in the final states', () => {
  test.for(CASES.map((one, index) => ({ ...one, seed: 100 + index })))(
    'under $name',
    {
      timeout: 1_500_000,
    },
    async (one, { onTestFinished }: TestContext) => {
      const { shows, seed, timeScale = RUN.timeScale, ...spell } = one;
      const redisUrl = inject('redisUrl');
      const outcome = await underFaults({
        ...RUN,
        timeScale,
        onTestFinished,
        redisUrl,
        seed,
        spells: [spell],
        shows,
      });
      expectWhole(outcome);
      if (shows !== undefined) expect(shows(outcome)).toBe(true);
    },
  );

  test('under all faults together for 60 s, and as without any', async ({ onTestFinished }) => {
    const run = { ...RUN, onTestFinished, redisUrl: inject('redisUrl'), seed: TOGETHER_SEED };
    const births = TOGETHER_BIRTHS;
    const faulty = await underFaults({ ...run, pace: 3, births, lastsMs: TOGETHER_MS, spells: TOGETHER });
    expectWhole(faulty);
    const clean = await underFaults({ ...run, pace: 20, births, spells: [] });
    expectWhole(clean);
    const both = [...faulty.ends].filter(([subject]) => clean.ends.has(subject));
    expect(both.length).toBeGreaterThanOrEqual(births);
    expect(both.filter(([subject, status]) => clean.ends.get(subject) !== status)).toEqual([]);
  }, 1_800_000);
});

/** No transfer of this world has several intents: `further-transfers.test.ts` has them. */
const ELSEWHERE = 'partly-indexed';

test('each type of fault occurs alone and among all', () => {
  const types = SERVICE_FAULT_TYPES.filter((type) => type !== ELSEWHERE).toSorted();
  for (const spells of [CASES, TOGETHER]) {
    expect([...new Set(spells.map(({ fault }) => fault.type))].toSorted()).toEqual(types);
  }
});
