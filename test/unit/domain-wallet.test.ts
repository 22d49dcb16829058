import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LISTINGS, type Listing } from '../../src/domain/cadence/wait.ts';
import {
  type LastPolls,
  type OpenTransfer,
  orderOf,
  planWallet,
  sweepEveryMs,
  type WalletView,
} from '../../src/domain/cadence/wallet.ts';
import { arrivalRule } from '../../src/domain/cadence/watch-rules.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { EXPECTED_MODEL } from '../support/expected-model.ts';

const NOW = 1_000_000_000;
const HEAD = NOW - 2_000;

function open(count: number, more: Partial<OpenTransfer> = {}): OpenTransfer[] {
  return Array.from({ length: count }, (_, index) => ({
    subject: intentId(`0x${index.toString(16).padStart(64, '0')}`),
    status: 'pending',
    route: '8453:10',
    sinceMs: NOW - 10_000,
    seenAtMs: HEAD,
    headAtMs: HEAD,
    ...more,
  }));
}

/** The plan's virtual time in all tests, seconds; at a price of 1 it runs like the clock. */
const VIRTUAL = 500;

/** Last polls of listings, given as seconds before now, in both times. */
function ago(seconds: { readonly [listing in Listing]?: number }): LastPolls {
  const polled: { [listing in Listing]?: { atMs: number; virtual: number } } = {};
  for (const listing of LISTINGS) {
    const past = seconds[listing];
    if (past !== undefined) polled[listing] = { atMs: NOW - 1_000 * past, virtual: VIRTUAL - past };
  }
  return polled;
}

const base: WalletView = {
  open: [],
  polled: ago({ head: 2 }),
  headIngestedAtMs: HEAD,
  nowMs: NOW,
  fromMs: NOW,
  virtual: VIRTUAL,
  price: 1,
  roundSeconds: 12,
  narrows: true,
  headFinds: true,
  arrivalsPerSecond: 1e-4,
  model: EXPECTED_MODEL,
};

describe('the next request for a wallet', () => {
  test('is the head at once where nothing was requested yet', () => {
    const first = { listing: 'head', virtualSeconds: 0, restMs: 0 };
    expect(planWallet({ ...base, polled: {} })).toMatchObject(first);
    const awaiting = { ...base, polled: {}, headFinds: false, open: open(60, { headAtMs: null }) };
    expect(planWallet(awaiting)).toMatchObject(first);
  });

  test('is the head within its longest wait where nothing is under way, and sooner where transfers come often', () => {
    const quiet = planWallet(base);
    expect(quiet).toMatchObject({ listing: 'head', restMs: 0, latestMs: 28_000 });
    const busy = planWallet({ ...base, arrivalsPerSecond: 0.1 });
    expect(busy.virtualSeconds).toBeLessThan(quiet.virtualSeconds / 5);
    expect(busy.latestMs).toBe(28_000);
  });

  test('rests for the shortest wait after a poll, however much is under way', () => {
    const polled = ago({ head: 0.4 });
    expect(planWallet({ ...base, polled, headIngestedAtMs: NOW - 400 }).restMs).toBe(600);
    const many = open(40, { headAtMs: NOW - 400 });
    expect(planWallet({ ...base, polled, headIngestedAtMs: NOW - 400, open: many }).restMs).toBe(600);
  });

  test('rests for five shortest waits where all that is awaited is that something settles', () => {
    const many = open(20, { status: 'filled', headAtMs: null, sinceMs: NOW - 900_000 });
    const view = { ...base, open: many, price: 0.01 };
    // The settled listing is worth a request by now, but only the head is allowed.
    expect(planWallet({ ...view, polled: ago({ head: 1, filled: 1 }) })).toMatchObject({ listing: 'head' });
    expect(planWallet({ ...view, polled: ago({ head: 1, filled: 5 }) })).toMatchObject({ listing: 'filled' });
    expect(planWallet({ ...view, polled: ago({ head: -9, filled: 1 }) })).toMatchObject({ restMs: 4_000 });
  });

  test.each([
    [150, 15],
    [600, 20],
  ])('reads the pages of %i filled transfers no sooner than %i s after it began to', (count, seconds) => {
    const many = open(count, { status: 'filled', headAtMs: null, sinceMs: NOW - 900_000 });
    const view = { ...base, open: many, price: 1e-4 };
    const at = (filled: number) => planWallet({ ...view, polled: ago({ head: -99, filled }) });
    expect(at(1)).toMatchObject({ listing: 'filled', restMs: 1_000 * (seconds - 1) });
    expect(at(seconds)).toMatchObject({ listing: 'filled', restMs: 0 });
  });

  test('goes by a shortest and a longest wait of the config', () => {
    const arrivals = arrivalRule({ shortestSeconds: 5, longestSeconds: 120 });
    const view = { ...base, roundSeconds: 100, model: { ...EXPECTED_MODEL, arrivals } };
    expect(planWallet(view)).toMatchObject({ restMs: 3_000, latestMs: 118_000 });
  });

  test('waits no longer than three rounds over all wallets, less where a round takes long', () => {
    const latest = (roundSeconds: number) => planWallet({ ...base, roundSeconds }).latestMs;
    expect(latest(4)).toBe(10_000);
    expect(latest(14)).toBe(28_000);
    expect(latest(100)).toBe(118_000);
  });

  test('comes sooner the more of those born since may have been filled by then', () => {
    const model = { ...EXPECTED_MODEL, filledShares: EXPECTED_MODEL.filledShares.map(() => 0) };
    const awaiting = { ...base, arrivalsPerSecond: 0.01 };
    expect(planWallet(awaiting).virtualSeconds).toBeLessThan(
      planWallet({ ...awaiting, model }).virtualSeconds,
    );
  });

  test('is the head while it shows all that is under way, sooner than for one of them', () => {
    const [one, forty] = [1, 40].map((count) => planWallet({ ...base, open: open(count) }));
    expect(one?.listing).toBe('head');
    expect(forty?.listing).toBe('head');
    expect(forty?.virtualSeconds).toBeLessThan(one?.virtualSeconds ?? 0);
  });

  test('is the listing of pending ones when the head does not show them all', () => {
    const hidden = open(60, { headAtMs: HEAD - 60_000 });
    expect(planWallet({ ...base, open: hidden }).listing).toBe('pending');
    const polled = ago({ head: 100, pending: 0 });
    expect(planWallet({ ...base, open: hidden, polled }).listing).toBe('head');
  });

  test('comes later than for one page where a listing has several, each of which is a request', () => {
    const polled = ago({ head: 0, pending: 1 });
    const [one, three] = [40, 130].map((count) => {
      const { listing, virtualSeconds, latestMs } = planWallet({
        ...base,
        polled,
        open: open(count, { headAtMs: null, seenAtMs: NOW }),
      });
      expect(listing).toBe('pending');
      return { waited: virtualSeconds + 1, latestMs };
    });
    // On one page, so many more transfers would wait less by the root of their number.
    const onOnePage = (one?.waited ?? 0) / Math.sqrt(130 / 40);
    expect(three?.waited).toBeGreaterThan(1.5 * onOnePage);
    expect(three?.waited).toBeLessThan(2 * onOnePage);
  });

  test('is no listing of a single transfer that may settle some day: its own poll costs no more', () => {
    const polled = ago({ head: 0 });
    const single = open(1, { status: 'filled', headAtMs: null });
    expect(planWallet({ ...base, polled, open: single })).toEqual(planWallet({ ...base, polled }));
    const long = { headAtMs: null, sinceMs: NOW - 900_000, seenAtMs: NOW - 10_000 };
    const many = open(20, { status: 'filled', ...long });
    expect(planWallet({ ...base, polled, open: many })).toMatchObject({ listing: 'filled' });
  });

  test('is never a listing of an upstream that does not narrow', () => {
    const hidden = open(60, { headAtMs: null });
    expect(planWallet({ ...base, open: hidden, narrows: false }).listing).toBe('head');
    expect(planWallet({ ...base, open: hidden, narrows: false, headFinds: false }).listing).toBe('head');
  });

  test('are the listings in which new transfers appear, where the head need not show them', () => {
    const view = { ...base, headFinds: false };
    const all = { head: 20, filled: 20, pending: 20 };
    expect(planWallet({ ...view, polled: ago(all) })).toMatchObject({ listing: 'pending', latestMs: 10_000 });
    expect(planWallet({ ...view, polled: ago({ head: 20, pending: 20 }) }).listing).toBe('filled');
    // Stray transfers are polled six times more rarely: they are overdue after 180 s.
    const later = planWallet({ ...view, polled: ago({ head: 160, filled: 0, pending: 0 }) });
    expect(later).toMatchObject({ listing: 'head', latestMs: 20_000 });
  });

  test('is the listing that is overdue longest where several are, so that each has its turn under any budget', () => {
    const view = { ...base, headFinds: false };
    const turns = new Set<Listing>();
    let polled: LastPolls = ago({ head: 1_000, filled: 1_000, pending: 1_000 });
    let nowMs = NOW;
    // One poll in five minutes: by then all listings are overdue.
    for (let poll = 0; poll < 12; poll++) {
      nowMs += 300_000;
      const plan = planWallet({ ...view, polled, nowMs });
      expect(plan.latestMs).toBe(0);
      turns.add(plan.listing);
      polled = { ...polled, [plan.listing]: { atMs: nowMs, virtual: VIRTUAL } };
    }
    expect(turns).toEqual(new Set(['pending', 'filled', 'head']));
  });

  test('is not put off by a listing that is allowed sooner, but worth its request much later', () => {
    const view = { ...base, headFinds: false, arrivalsPerSecond: 0.05 };
    const often = planWallet({ ...view, polled: ago({ head: 8, filled: 8, pending: 0 }) });
    const alone = planWallet({ ...base, arrivalsPerSecond: 0.05, polled: ago({ head: 0 }) });
    expect(often.virtualSeconds).toBeLessThan(2 * alone.virtualSeconds);
    expect(often.latestMs).toBe(30_000);
  });

  test('is another listing while one that failed waits for its backoff', () => {
    const view = { ...base, headFinds: false };
    const failed = planWallet({ ...view, polled: ago({ head: 20, filled: 20, pending: -60 }) });
    expect(failed.listing).not.toBe('pending');
    expect(failed.restMs).toBe(0);
    const alone = planWallet({ ...base, polled: ago({ head: -60 }) });
    expect(alone).toMatchObject({ listing: 'head', restMs: 61_000, latestMs: 90_000 });
  });

  test('waits for nothing that a clock has noted which was ahead', () => {
    const ahead = ago({ head: -3_600, filled: -3_600, pending: -3_600 });
    const now = ago({ head: 0, filled: 0, pending: 0 });
    for (const headFinds of [true, false]) {
      const view = { ...base, headFinds };
      expect(planWallet({ ...view, polled: ahead })).toEqual(planWallet({ ...view, polled: now }));
    }
  });
});

describe('the order of a page', () => {
  const at = (isNew: boolean, updatedAt: number | null) => ({ isNew, updatedAt });

  test.for([
    ['a new transfer before known ones', [at(true, 20), at(false, 10)], 'newest-first'],
    ['a new transfer behind an older known one', [at(false, 10), at(true, 20)], 'other'],
    ['a new transfer behind one that changed since', [at(false, 30), at(true, 20), at(false, 10)], 'unclear'],
    ['nothing but new transfers', [at(true, 20), at(true, 10)], 'unclear'],
    ['no times', [at(false, null), at(true, null)], 'unclear'],
    ['no transfers', [], 'unclear'],
    ['many in descending order', Array.from({ length: 10 }, (_, i) => at(false, 50 - i)), 'newest-first'],
    ['many of one second', Array.from({ length: 10 }, () => at(false, 50)), 'unclear'],
    [
      'many of one second behind a later one',
      [at(false, 99), ...Array.from({ length: 60 }, () => at(false, 50))],
      'unclear',
    ],
    [
      'many in descending order with equal ones',
      Array.from({ length: 20 }, (_, i) => at(false, 50 - (i >> 1))),
      'newest-first',
    ],
    [
      'many in descending order of nine different times',
      Array.from({ length: 60 }, (_, i) => at(false, 50 - Math.min(i, 8))),
      'unclear',
    ],
    [
      'many, one out of place',
      Array.from({ length: 10 }, (_, i) => at(false, i === 4 ? 99 : 50 - i)),
      'unclear',
    ],
  ] as const)('%s', ([, page, order]) => {
    expect(orderOf(page)).toBe(order);
  });

  test('a page in the order of last changes never contradicts that order, with any new records on it', () => {
    const page = fc
      .array(fc.record({ isNew: fc.boolean(), updatedAt: fc.integer({ min: 1, max: 1_000 }) }))
      .map((list) => list.toSorted((a, b) => b.updatedAt - a.updatedAt));
    fc.assert(fc.property(page, (list) => orderOf(list) !== 'other'));
  });
});

test('a sweep of many pages comes rarely while new transfers come first, and never before its least time', () => {
  const least = { leastMs: 300_000, newestFirst: true };
  expect(sweepEveryMs({ ...least, pages: 1 })).toBe(300_000);
  expect(sweepEveryMs({ ...least, pages: 200 })).toBe(12_000_000);
  expect(sweepEveryMs({ ...least, pages: 200, newestFirst: false })).toBe(2_000_000);
});
