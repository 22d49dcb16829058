import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type OpenTransfer, orderOf, planWallet, sweepEveryMs } from '../../src/domain/cadence/wallet.ts';
import { intentId } from '../../src/domain/subject.ts';
import { EXPECTED_LAW } from '../support/law.ts';

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

const base = {
  open: [],
  looks: { head: HEAD },
  nowMs: NOW,
  price: 1,
  narrows: true,
  headFinds: true,
  arrivalsPerSecond: 1e-4,
  law: EXPECTED_LAW,
};

describe('what is asked for a wallet next', () => {
  test('is the head at once where nothing was asked yet', () => {
    expect(planWallet({ ...base, looks: {} })).toMatchObject({ listing: 'head', dueMs: NOW });
    const awaiting = { ...base, looks: {}, headFinds: false, open: open(60, { headAtMs: null }) };
    expect(planWallet(awaiting)).toMatchObject({ listing: 'head', dueMs: NOW });
  });

  test('is the head within its longest wait where nothing is under way, and sooner where transfers come often', () => {
    const cheap = { ...base, price: 0.1 };
    const quiet = planWallet(cheap);
    expect(quiet).toMatchObject({ listing: 'head', dueMs: HEAD + 30_000 });
    const busy = planWallet({ ...cheap, arrivalsPerSecond: 0.1 });
    expect(busy.dueMs).toBeLessThan(HEAD + 5_000);
    expect(busy.demand).toBeGreaterThan(quiet.demand);
  });

  test('is put off further where requests are dear, but only while new transfers are not likely', () => {
    const dear = { ...base, price: 8 };
    expect(planWallet(dear).dueMs).toBe(HEAD + 8 * 30_000);
    expect(planWallet({ ...dear, arrivalsPerSecond: 0.1 }).dueMs).toBeLessThan(HEAD + 30_000);
  });

  test('comes sooner the more of those born since may have been filled by then', () => {
    const law = { ...EXPECTED_LAW, filledShares: EXPECTED_LAW.filledShares.map(() => 0) };
    const awaiting = { ...base, arrivalsPerSecond: 0.01 };
    expect(planWallet(awaiting).dueMs).toBeLessThan(planWallet({ ...awaiting, law }).dueMs);
  });

  test('is the head while it shows all that is under way, sooner than for one of them', () => {
    const [one, forty] = [1, 40].map((count) => planWallet({ ...base, open: open(count) }));
    expect(one?.listing).toBe('head');
    expect(forty?.listing).toBe('head');
    expect(forty?.dueMs).toBeLessThan(one?.dueMs ?? 0);
  });

  test('is the listing of pending ones when the head does not show them all', () => {
    const hidden = open(60, { headAtMs: HEAD - 60_000 });
    expect(planWallet({ ...base, open: hidden }).listing).toBe('pending');
    const looks = { head: HEAD - 100_000, pending: NOW };
    expect(planWallet({ ...base, open: hidden, looks }).listing).toBe('head');
  });

  test('comes later where a listing has several pages, each of which is a request', () => {
    const looks = { head: NOW, pending: NOW - 1_000 };
    const [one, three] = [40, 130].map(
      (count) => planWallet({ ...base, looks, open: open(count, { headAtMs: null, seenAtMs: NOW }) }).dueMs,
    );
    expect((three ?? 0) - looks.pending).toBeGreaterThan(2 * ((one ?? 0) - looks.pending));
  });

  test('is no listing of a single transfer that may settle some day: its own look-up costs no more', () => {
    const looks = { head: NOW };
    const single = open(1, { status: 'filled', headAtMs: null });
    expect(planWallet({ ...base, looks, open: single }).demand).toBe(planWallet({ ...base, looks }).demand);
    const many = open(20, { status: 'filled', headAtMs: null, sinceMs: NOW - 900_000 });
    expect(planWallet({ ...base, looks, open: many })).toMatchObject({ listing: 'filled' });
  });

  test('is never a listing of an upstream that does not narrow', () => {
    const hidden = open(60, { headAtMs: null });
    expect(planWallet({ ...base, open: hidden, narrows: false }).listing).toBe('head');
    expect(planWallet({ ...base, open: hidden, narrows: false, headFinds: false }).listing).toBe('head');
  });

  test('are the listings in which new transfers appear, where the head need not show them', () => {
    const awaiting = {
      ...base,
      price: 0.1,
      headFinds: false,
      looks: { head: NOW, filled: NOW, pending: NOW },
    };
    expect(planWallet(awaiting)).toMatchObject({ listing: 'pending', dueMs: NOW + 30_000 });
    const looks = { head: NOW, pending: NOW };
    expect(planWallet({ ...awaiting, looks }).listing).toBe('filled');
    const later = { head: NOW - 160_000, filled: NOW, pending: NOW };
    expect(planWallet({ ...awaiting, looks: later })).toMatchObject({ listing: 'head', dueMs: NOW + 20_000 });
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
      'many, one out of place',
      Array.from({ length: 10 }, (_, i) => at(false, i === 4 ? 99 : 50 - i)),
      'unclear',
    ],
  ] as const)('%s', ([, page, order]) => {
    expect(orderOf(page)).toBe(order);
  });

  test('a page in the order of last changes never contradicts that order, whatever on it is new', () => {
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
