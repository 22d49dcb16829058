import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { intentId, quoteId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { commitRecord, type IngestedRecord } from '../../src/queues/polls/commit-record.ts';
import type { CommitContext } from '../../src/queues/polls/poll-context.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { EndedSubjects } from '../../src/store/ended-subjects.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { incompressible } from '../support/incompressible.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const WALLET = walletId('0x1111111111111111111111111111111111111111');
const QUOTE = quoteId('00000000-0000-4000-8000-000000000001');
const INTENT = intentId(hashOf(7));
const DAY_MS = 86_400_000;
const RETENTION_MS = 30 * DAY_MS;
const NOW_MS = Date.now();

let redis: RedisClient;
let keys: Keys;
let subjects: SubjectStore;
let registry: Registry;
let plan: PlanStore;
let deps: CommitContext;
let ended: EndedSubjects;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  registry = new Registry(redis, keys, subjects);
  plan = new PlanStore(redis, keys);
  deps = commitDeps(redis, keys, { subjects, plan });
  ended = new EndedSubjects(redis, keys);
});

afterEach(() => redis.disconnect());

/** Makes the config's subscriptions name these subjects; `receivers` are those of some, the others have `r`. */
async function sync(
  named: Record<string, SubjectId[]>,
  receivers: Record<string, string[]> = {},
): Promise<void> {
  const rest = { metadata: {}, history: 'emit' as const, overdueAfterMs: null, warnBeforeMs: null };
  const subscriptions = Object.entries(named).map(([name, list]) => ({
    ...rest,
    name,
    receivers: receivers[name] ?? ['r'],
    recipients: [],
    subjects: list,
  }));
  await syncConfig(registry, { digest: '', graceSpanMs: 0, receivers: [], routes: [], subscriptions }, '0-0');
}

/** Ingests the transfer from a page, under the claims on another subject. */
async function show(status: string, updatedAt: number, named: SubjectId = WALLET): Promise<IngestedRecord> {
  const asOf = (await redis.get(keys.commit)) ?? '0';
  const [shown, entry] = await subjects.readEach([named, INTENT]);
  if (shown === undefined || entry === undefined) throw new Error('nothing was found');
  const raw = { id: INTENT, type: 'intent', status, updatedAt, more: incompressible(1_000) };
  const record = { subject: INTENT, status, updatedAt, names: [], raw, unreadable: [] };
  const claims = shown.claims.map((claim) => ({ ...claim, served: false }));
  return commitRecord(deps, record, entry, { asOf, nowMs: NOW_MS, price: 1, exact: false, claims });
}

/** Makes the moves that are due after so many days. */
async function settle(
  days: number,
  loggedFromMs = Number.POSITIVE_INFINITY,
): Promise<{ compacted: number; removed: number }> {
  return ended.compact({ confirmedMs: Date.now() + days * DAY_MS, retentionMs: RETENTION_MS, loggedFromMs });
}

/** Records that a sweep that began after so many days has read the whole wallet. */
async function read(days: number): Promise<void> {
  await redis.hset(keys.wallet(WALLET), 'readAtMs', String(Date.now() + days * DAY_MS));
}

async function state(): Promise<'whole' | 'compact' | 'removed'> {
  const entry = await subjects.peek(INTENT);
  if (entry?.snapshot === null || entry === undefined) return 'removed';
  return entry.snapshot.compact ? 'compact' : 'whole';
}

async function events(): Promise<{ id: string; sequence: number; type: string; claimKeys: string[] }[]> {
  const { entries } = await new EventLog(redis, keys).after('0-0', 100);
  return entries.flatMap((entry) =>
    entry.kind === 'event'
      ? [
          {
            id: entry.event.id,
            sequence: entry.event.data.sequence,
            type: entry.event.type,
            claimKeys: entry.claimKeys,
          },
        ]
      : [],
  );
}

describe('a transfer that has ended', () => {
  beforeEach(async () => {
    await sync({ treasury: [WALLET] });
    await show('settled', 101);
  });

  test('is whole for the retention, then compact, and removed a retention after a sweep did not show it', async () => {
    expect(await settle(29)).toEqual({ compacted: 0, removed: 0 });
    expect(await state()).toBe('whole');
    expect(await settle(31)).toEqual({ compacted: 1, removed: 0 });
    expect(await state()).toBe('compact');
    // No sweep has read the wallet since: a page may still have it.
    await settle(200);
    expect(await state()).toBe('compact');
    await read(201);
    await settle(202);
    expect(await state()).toBe('compact');
    // The time of that finding is Redis time, which has not moved here.
    await redis.zadd(keys.ended, Date.now() + 202 * DAY_MS, INTENT);
    expect(await settle(231)).toEqual({ compacted: 0, removed: 0 });
    expect(await settle(233)).toEqual({ compacted: 0, removed: 1 });
    expect(await state()).toBe('removed');
    expect(await redis.keys(`${keys.prefix}:*${INTENT}`)).toEqual([]);
  });

  test('is whole as long as the log has its events', async () => {
    const log = new EventLog(redis, keys);
    const loggedFromMs = await log.loggedFromMs();
    expect(loggedFromMs).toBe(Number.parseInt(await log.newest(), 10));
    expect(await settle(31, loggedFromMs)).toEqual({ compacted: 0, removed: 0 });
    await log.trim(Date.now() + DAY_MS);
    expect(await settle(31, await log.loggedFromMs())).toEqual({ compacted: 1, removed: 0 });
    expect(await redis.exists(keys.subjectEntries(INTENT))).toBe(0);
  });

  test('is not compact yet where it is shown now that it would be', async () => {
    await redis.zadd(keys.ended, Date.now() - 31 * DAY_MS, INTENT);
    await Promise.all([subjects.readEach([INTENT]), settle(0), subjects.readEach([INTENT]), settle(0)]);
    const { outcome } = await show('settled', 101);
    expect(outcome).toBe('unchanged');
    expect(await events()).toHaveLength(1);
  });

  test('is recognised where it is shown again, and whole', async () => {
    await settle(31);
    expect((await show('settled', 101)).outcome).toBe('unchanged');
    expect(await state()).toBe('whole');
    expect(await events()).toHaveLength(1);
    expect(await settle(29)).toEqual({ compacted: 0, removed: 0 });
  });

  test.each([
    ['refunded', 'intent.refunded'],
    ['settled', 'intent.updated'],
  ])('goes on with its sequence where it is shown as %s at a later time', async (status, type) => {
    await settle(31);
    expect((await show(status, 102)).outcome).toBe('changed');
    const [first, second] = await events();
    expect([first?.sequence, second?.sequence, second?.type]).toEqual([1, 2, type]);
  });

  test('is stale where a page shows it at an earlier time', async () => {
    await settle(31);
    expect((await show('pending', 100)).outcome).toBe('stale');
    expect(await state()).toBe('compact');
  });

  test('is reported under its id to a receiver that is new, and to no other', async () => {
    const [first] = await events();
    await settle(31);
    await sync({ treasury: [WALLET], desk: [INTENT] });
    await show('settled', 101, INTENT);
    expect(await events()).toHaveLength(1);
    await redis.zadd(keys.ended, 0, INTENT);
    await sync({ treasury: [WALLET] });
    await redis.del(`${keys.plan('status')}:items`);
    expect(await settle(62)).toEqual({ compacted: 1, removed: 0 });
    await sync({ treasury: [WALLET], more: [INTENT] }, { more: ['r', 'late'] });
    await show('settled', 101, INTENT);
    const again = (await events()).at(-1);
    expect(again).toMatchObject({ id: first?.id, sequence: 1 });
    expect(again?.claimKeys).toEqual([`more>late|${INTENT}`]);
  });

  test('is found again where the list of ended subjects was lost', async () => {
    await redis.del(keys.ended);
    expect(await ended.repair()).toBe(1);
    expect(await redis.zscore(keys.ended, INTENT)).not.toBe(null);
    expect(await ended.repair()).toBe(0);
  });

  // By its bytes: MEMORY USAGE counts what the allocator gives, which varies by kilobytes.
  test('takes less than a third of the bytes when it is compact', async () => {
    const bytes = async (): Promise<number> => {
      const of = await redis.keys(`${keys.prefix}:*${INTENT}`);
      const dumps = await Promise.all(of.map((key) => redis.dumpBuffer(key)));
      return [...of, ...dumps].reduce((sum, part) => sum + (part?.length ?? 0), 0);
    };
    const whole = await bytes();
    await redis.set(keys.trimmed, `${Date.now() + DAY_MS}-0`);
    await settle(31);
    const compact = await bytes();
    expect(compact).toBeLessThan(whole / 3);
  });

  test('is one member of a hash while it is compact, however its pages are read', async () => {
    await redis.set(keys.trimmed, `${Date.now() + DAY_MS}-0`);
    await settle(31);
    expect(await redis.hlen(keys.compact)).toBe(1);
    expect(await redis.keys(`${keys.prefix}:*${INTENT}`)).toEqual([]);
    expect(await redis.zcard(keys.ended)).toBe(0);
    const entry = await subjects.peek(INTENT);
    expect(entry?.claims).toMatchObject([{ key: `treasury|${WALLET}`, served: true }]);
    expect(await redis.hlen(keys.compact)).toBe(1);
  });

  test('is reported under its id to a receiver that joins its wallet while it is compact, and to no other', async () => {
    const [first] = await events();
    await settle(31);
    await sync({ treasury: [WALLET], desk: [WALLET] }, { desk: ['late'] });
    await show('settled', 101);
    const again = (await events()).at(-1);
    expect(again).toMatchObject({ id: first?.id, sequence: 1, claimKeys: [`desk|${WALLET}`] });
    await settle(62);
    await show('settled', 101);
    expect(await events()).toHaveLength(2);
  });

  test('is not reported again where its subscription was renamed while it was compact', async () => {
    await settle(31);
    await sync({ savings: [WALLET] });
    expect((await show('settled', 101)).outcome).toBe('unchanged');
    expect((await show('refunded', 102)).outcome).toBe('changed');
    expect(await events()).toHaveLength(2);
    expect((await events()).at(-1)?.claimKeys).toContain(`savings|${WALLET}`);
  });

  test('is found by a poll of its own while it is compact', async () => {
    await settle(31);
    await plan.pollSoon([INTENT]);
    expect(await settle(62)).toEqual({ compacted: 0, removed: 0 });
    expect(await redis.hget(keys.subject(INTENT), 'status')).toBe('settled');
    expect(await redis.hgetall(keys.claims(INTENT))).not.toEqual({});
  });

  test('counts as reported where its compact state cannot be read', async () => {
    await settle(31);
    const [name = ''] = await redis.hkeysBuffer(keys.compact);
    await redis.hset(keys.compact, name, 'foreign');
    const [entry] = await subjects.readEach([INTENT]);
    expect(entry?.snapshot).toMatchObject({ compact: true, reported: true });
  });

  test('has its only event among its entries until that is trimmed, also when it is compact', async () => {
    const [[entry = ''] = []] = await redis.xrange(keys.events, '-', '+');
    const list = async (range: { before?: string; from?: string } = {}): Promise<string[]> =>
      subjects.entries.list([INTENT], { before: null, from: null, count: 5, ...range });
    for (const days of [0, 31]) {
      await settle(days);
      expect(await list()).toEqual([entry]);
      expect(await list({ from: entry })).toEqual([entry]);
      expect(await list({ before: entry })).toEqual([]);
      expect(await list({ from: entry.replace(/\d$/, '9') })).toEqual([]);
    }
    await show('refunded', 102);
    expect(await list()).toHaveLength(2);
    await redis.set(keys.trimmed, entry);
    expect(await list()).toHaveLength(1);
  });

  test('is checked in its turn where many are compact', async () => {
    const hashes = Array.from({ length: 1_500 }, (_, number) => intentId(hashOf(100 + number)));
    const state = { compact: '1', shownAtMs: NOW_MS, status: 'settled', sequence: 1 };
    const batch = redis.pipeline();
    for (const hash of hashes) batch.hset(keys.subject(hash), state).zadd(keys.ended, NOW_MS, hash);
    await batch.exec();
    let removed = 0;
    for (let round = 0; round < 40; round += 1) removed += (await settle(31)).removed;
    // The other one is claimed by its wallet.
    expect(removed).toBe(1_500);
    expect(await redis.hlen(keys.compact)).toBe(1);
  });
});

test('a transfer that a quote has found stays known as long as the quote is named', async () => {
  await sync({ orders: [QUOTE] });
  await show('settled', 101, QUOTE);
  await settle(31);
  await settle(400);
  await settle(4_000);
  expect(await state()).toBe('compact');
  await sync({});
  await settle(4_031);
  await redis.zadd(keys.ended, Date.now(), INTENT);
  await settle(4_062);
  expect(await state()).toBe('removed');
});

test('a transfer that a config names is known whole, however long it has ended', async () => {
  await sync({ order: [INTENT] });
  await show('settled', 101, INTENT);
  await redis.del(`${keys.plan('status')}:items`);
  await redis.zadd(keys.ended, 0, INTENT);
  await settle(4_000);
  expect(await state()).toBe('whole');
  expect(await redis.zscore(keys.ended, INTENT)).toBe(null);
});
