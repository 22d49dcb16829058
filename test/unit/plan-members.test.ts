import { describe, expect, test } from 'vitest';
import {
  ENDPOINT_GROUPS,
  endpointGroupKinds,
  endpointGroupOf,
  STATUS_SOURCES,
} from '../../src/domain/subjects/kinds.ts';
import {
  asSubjectId,
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  routeId,
  SUBJECT_KINDS,
  type SubjectId,
  subjectKind,
  vaultId,
  walletId,
} from '../../src/domain/subjects/subject.ts';
import { backoffMs } from '../../src/queues/polls/poll-failures.ts';
import { parseSweep } from '../../src/queues/polls/sweeps.ts';
import { Keys } from '../../src/store/keys.ts';
import { groupOfMember, openStatusMember, pageMember, parseMember } from '../../src/store/plan-members.ts';
import { priceOf } from '../../src/store/plan-state.ts';

const WALLET = walletId('0xAA');

const POLLED: SubjectId[] = [
  intentId('0x01'),
  WALLET,
  walletId('4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T'),
  quoteId('q'),
  gaslessId('j'),
  gatewayJobId('job:1'),
  vaultId({ chainId: 1, address: '0xbb' }),
  routeId({ name: 'base-to-optimism', service: 'open' }),
  routeId({ name: 'base-to-optimism', service: 'v1' }),
];

describe('a member of a plan', () => {
  test.each(POLLED)('%s is the subject itself', (subject) => {
    expect(parseMember(subject)).toEqual({ subject, route: null });
  });

  test.each(['all', 'new', 'pending'])('the next page of the sweep %s belongs to its wallet', (route) => {
    expect(parseMember(pageMember(WALLET, route))).toEqual({ subject: WALLET, route });
  });

  test('a transfer at its second source has an entry of its own, in the plan of that source', () => {
    const transfer = intentId('0x01');
    const member = openStatusMember(transfer);
    expect(parseMember(member)).toEqual({ subject: transfer, route: null });
    const keys = new Keys('p', 'both');
    expect([transfer, member].map((one) => groupOfMember(one, keys))).toEqual(['status', 'open-status']);
    expect(groupOfMember(transfer, new Keys('p', 'open'))).toBe('open-status');
  });

  test('an invalid subject is refused, and not polled under another name', () => {
    expect(() => parseMember('nonsense')).toThrow('not a subject id');
    expect(() => parseMember('page:all:nonsense')).toThrow('not a subject id');
  });
});

describe('an endpoint group', () => {
  test.each(
    STATUS_SOURCES.flatMap((source) => POLLED.map((subject) => [subject, source] as const)),
  )('of %s counts and probes subjects of its kind, with the source %s', (subject, source) => {
    expect(endpointGroupKinds(endpointGroupOf(subject, source))).toContain(subjectKind(subject));
  });

  test('together they have every kind that can be requested by itself', () => {
    const kinds = new Set(ENDPOINT_GROUPS.flatMap(endpointGroupKinds));
    const alone = SUBJECT_KINDS.filter((kind) => kind !== 'deposit-address' && kind !== 'other');
    expect([...kinds].toSorted()).toEqual(alone.toSorted());
  });
});

describe('the price of a request', () => {
  test('is the square of how much slower virtual time runs than the clock', () => {
    expect(priceOf(10, 10)).toBe(1);
    expect(priceOf(5, 10)).toBe(4);
    expect(priceOf(100, 10)).toBeCloseTo(0.01, 12);
  });

  test('is 1 before anything was served, and where the stored value is no number', () => {
    for (const [dv, dt] of [
      [0, 0],
      [0, 10],
      [10, 0],
      [-1, 1],
      [Number.NaN, 1],
      [1, Number.NaN],
    ] as const) {
      expect(priceOf(dv, dt)).toBe(1);
    }
  });

  test('is bounded: a plan is made at any of them', () => {
    expect(priceOf(1e12, 1)).toBe(1e-4);
    expect(priceOf(1e-12, 1)).toBe(1e9);
    expect(priceOf(Number.POSITIVE_INFINITY, 1)).toBe(1e-4);
  });
});

describe('a subject that fails', () => {
  test('is tried again after about 2.5 s, and after twice as long each time in a row, up to 5 min', () => {
    for (const [failures, seconds] of [2.5, 5, 10, 20, 40, 80, 160].entries()) {
      const waits = Array.from({ length: 200 }, () => backoffMs(failures) / 1_000);
      for (const wait of waits) expect(Math.abs(wait - seconds)).toBeLessThanOrEqual(seconds / 2);
      expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(seconds / 4);
    }
    expect(backoffMs(1_000_000)).toBe(300_000);
  });

  test('is not polled for as long as its answer requests, up to 5 min', () => {
    expect(backoffMs(0, 60_000)).toBe(60_000);
    expect(backoffMs(6, 60_000)).toBeGreaterThanOrEqual(80_000);
    expect(backoffMs(0, 3_600_000)).toBe(300_000);
  });
});

describe('a stored sweep', () => {
  const stored = { id: '1763638260000', state: 'running', page: '3', cursor: 'c3', tries: '2' };

  test('goes on with its next page', () => {
    expect(parseSweep(WALLET, 'all', stored)).toEqual({
      wallet: WALLET,
      scope: 'all',
      id: '1763638260000',
      page: 3,
      cursor: 'c3',
      tries: 2,
      sinceMs: 0,
      limit: 50,
      cursorLimit: 50,
      isHurried: false,
      isPartial: false,
      movedAtMs: 1763638260000,
      acceptedMs: 0,
    });
    const { tries: _, ...untried } = stored;
    expect(parseSweep(WALLET, 'all', untried)).toMatchObject({ tries: 0 });
  });

  test.each([
    ['has ended', { ...stored, state: 'ended' }],
    ['was cut short', { ...stored, state: 'broken' }],
    ['has no cursor', { ...stored, cursor: '' }],
    ['has no beginning', { ...stored, id: '' }],
    ['began at no time', { ...stored, id: 'yesterday' }],
    ['has no page', { id: stored.id, state: stored.state, cursor: stored.cursor }],
    ['has an empty page', { ...stored, page: '' }],
    ['has a page that is no number', { ...stored, page: '3.5' }],
    ['is gone', {}],
  ])('that %s goes on no more', (_, sweep) => {
    expect(parseSweep(WALLET, 'all', sweep)).toBeNull();
  });

  test('of which the tries cannot be read begins to count anew, so that it is given up some day', () => {
    expect(parseSweep(WALLET, 'all', { ...stored, tries: 'many' })).toMatchObject({ tries: 0 });
  });
});

test('every subject in a plan can be written and read', () => {
  for (const subject of POLLED) expect(asSubjectId(subject)).toBe(subject);
});
