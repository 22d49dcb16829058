import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { binOf } from '../../src/domain/cadence/hazard.ts';
import type { PlanContext, PlanInput } from '../../src/domain/cadence/subject-plan.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { routeRecord } from '../../src/domain/quotes/route.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { intentId, routeId, type SubjectId, vaultId } from '../../src/domain/subjects/subject.ts';
import type { Claim } from '../../src/domain/subjects/subscription.ts';
import { commitDue } from '../../src/queues/polls/commit-flagged.ts';
import { commitRecord, type IngestedRecord } from '../../src/queues/polls/commit-record.ts';
import { planOf } from '../../src/queues/polls/plan-subject.ts';
import type { CommitContext } from '../../src/queues/polls/poll-context.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { eventOf, type LogEntry } from '../../src/store/log-entry.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { type SubjectEntry, SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { logEntries } from '../support/log-entries.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const HASH = hashOf(7);
const INTENT = intentId(HASH);
const MINUTE_MS = 60_000;
const T0_MS = 1_800_000_000_000;
const T0 = T0_MS / 1_000;

let redis: RedisClient;
let keys: Keys;
let subjects: SubjectStore;
let registry: Registry;
let deps: CommitContext;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  registry = new Registry(redis, keys, subjects);
  deps = commitDeps(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
});

afterEach(() => redis.disconnect());

/** The known state of a subject before a request, and the commit counter then. */
async function readSubject(subject: SubjectId): Promise<SubjectEntry & { asOf: string }> {
  const asOf = (await redis.get(keys.commit)) ?? '0';
  const [stored] = await subjects.readEach([subject]);
  if (stored === undefined) throw new Error('nothing was found');
  return { ...stored, asOf };
}

function record(status: string, updatedAt: number | null, more: JsonObject = {}): UpstreamRecord {
  const raw = { id: INTENT, type: 'intent', status, updatedAt, ...more };
  return { subject: INTENT, status, updatedAt, names: [], raw, unreadable: [] };
}

async function want(subscription: string, subject: SubjectId): Promise<Claim> {
  const wanted = { digest: '', graceSpanMs: 0, receivers: [], routes: [], subscriptions: [] };
  const names = await redis.hkeys(keys.subscriptions);
  const existing = [...(await registry.subscriptions(names.map((name) => `${name}|`))).values()];
  const definition = {
    receivers: ['r'],
    metadata: {},
    history: 'skip' as const,
    overdueAfterMs: null,
    warnBeforeMs: null,
    recipients: [],
  };
  await syncConfig(
    registry,
    {
      ...wanted,
      subscriptions: [
        ...existing.map((one) => ({ ...one, subjects: [subject] })),
        { name: subscription, ...definition, subjects: [subject] },
      ],
    },
    '0-0',
  );
  const start = await readSubject(subject);
  const claim = start.claims.find((one) => one.key === `${subscription}|${subject}`);
  if (claim === undefined) throw new Error('the claim was not made');
  return claim;
}

/** Ingests a record as a poll does: an exact poll, or a page under some claims. */
async function take(
  raw: UpstreamRecord,
  how: { nowMs: number; claims?: readonly Claim[]; asOf?: string },
): Promise<IngestedRecord> {
  const start = await readSubject(raw.subject);
  return commitRecord(deps, raw, start, {
    asOf: how.asOf ?? start.asOf,
    nowMs: how.nowMs,
    price: 1,
    exact: how.claims === undefined,
    claims: how.claims ?? start.claims.filter((claim) => !claim.served),
  });
}

async function log(): Promise<LogEntry[]> {
  return logEntries(redis, keys);
}

async function eventTypes(): Promise<string[]> {
  return (await log()).map((entry) => eventOf(entry)?.type ?? entry.kind);
}

describe('answers of a page and of an exact poll about one state', () => {
  test('makes no event for an hour, however different the members they show', async () => {
    await want('s', INTENT);
    const sourceTx = { chainId: 1, txHash: '0xAB', token: '0x01', amount: '100' };
    const exact = record('pending', T0, { sourceTx, steps: [{ type: 'BRIDGE', status: 'CREATED' }] });
    const page = record('pending', T0, { steps: [], txHash: null, intentHashes: [HASH] });
    for (let at = 0; at < 60; at += 1) {
      await take(exact, { nowMs: T0_MS + at * MINUTE_MS });
      await take(page, { nowMs: T0_MS + at * MINUTE_MS + 30_000, claims: [] });
    }
    // The page adds members to the first record, which is one change; from then on both have the same.
    expect(await eventTypes()).toEqual(['intent.pending', 'intent.updated']);
    const [, updated] = await log();
    expect(updated?.kind === 'event' && updated.event.data.changes).toEqual(['intentHashes']);
  });

  test('passes over an older page silently while exact polls see the newer state', async () => {
    await want('s', INTENT);
    await take(record('filled', T0 + 10), { nowMs: T0_MS });
    for (let minute = 0; minute < 60; minute += 1) {
      const stale = await take(record('pending', T0), { nowMs: T0_MS + minute * MINUTE_MS, claims: [] });
      expect(stale.outcome).toBe('stale');
      await take(record('filled', T0 + 10), { nowMs: T0_MS + minute * MINUTE_MS + 1 });
    }
    expect(await eventTypes()).toEqual(['intent.filled']);
  });
});

describe('one change that two polls saw', () => {
  test('is committed by one of them, and reported of once', async () => {
    await want('s', INTENT);
    const committed: string[] = [];
    deps.signals.on('event.committed', ({ event }) => void committed.push(event.type));
    await take(record('pending', T0), { nowMs: T0_MS });
    const [one, other] = [await readSubject(INTENT), await readSubject(INTENT)];
    for (const { asOf, ...stored } of [one, other]) {
      const how = { asOf, nowMs: T0_MS + 1, price: 1, exact: true, claims: [] };
      const ingested = await commitRecord(deps, record('filled', T0 + 10), stored, how);
      expect(ingested).toMatchObject({ stored: true, snapshot: { status: 'filled' } });
    }
    expect(await eventTypes()).toEqual(['intent.pending', 'intent.filled']);
    expect(committed).toEqual(['intent.pending', 'intent.filled']);
  });
});

describe('a stale answer', () => {
  test('is accepted as a regression once exact polls have confirmed it for ten minutes', async () => {
    await want('s', INTENT);
    await take(record('filled', T0 + 10), { nowMs: T0_MS });
    for (let minute = 0; minute < 10; minute += 1) {
      await take(record('pending', T0), { nowMs: T0_MS + minute * MINUTE_MS });
    }
    expect(await eventTypes()).toEqual(['intent.filled']);
    await take(record('pending', T0), { nowMs: T0_MS + 10 * MINUTE_MS });
    expect(await eventTypes()).toEqual(['intent.filled', 'intent.pending']);
    const [, last] = await log();
    expect(last?.kind === 'event' && last.event.data).toMatchObject({ regression: true, sequence: 2 });
  });

  test('that a fresh answer interrupts has to be confirmed from the start', async () => {
    await want('s', INTENT);
    await take(record('filled', T0 + 10), { nowMs: T0_MS });
    await take(record('unknown', null), { nowMs: T0_MS });
    await take(record('filled', T0 + 10), { nowMs: T0_MS + 9 * MINUTE_MS });
    const again = await take(record('unknown', null), { nowMs: T0_MS + 11 * MINUTE_MS });
    expect(again.outcome).toBe('stale');
    expect(await eventTypes()).toEqual(['intent.filled']);
  });
});

describe('the receivers of an event', () => {
  const history = (claim: Claim): Claim => ({ ...claim, historyBefore: T0 });

  test('history is stored without an event, and its next change is one that knows the status before', async () => {
    const claim = history(await want('s', INTENT));
    const first = await take(record('pending', T0 - 1), { nowMs: T0_MS, claims: [claim] });
    expect(first.outcome).toBe('history');
    await take(record('filled', T0 + 5), { nowMs: T0_MS + 1, claims: [claim] });
    const [entry] = await log();
    expect(entry?.kind === 'event' && entry.event).toMatchObject({
      type: 'intent.filled',
      data: { sequence: 1, previousStatus: 'pending' },
    });
  });

  test('a later claim gets the latest event by a subscribers entry, unless that is history for it', async () => {
    const early = await want('early', INTENT);
    await take(record('filled', T0 - 5), { nowMs: T0_MS, claims: [early] });
    const late = await want('late', INTENT);
    await take(record('filled', T0 - 5), { nowMs: T0_MS, claims: [history(late)] });
    expect(await eventTypes()).toEqual(['intent.filled']);
    const named = await want('named', INTENT);
    await take(record('filled', T0 - 5), { nowMs: T0_MS, claims: [named] });
    await take(record('filled', T0 - 5), { nowMs: T0_MS, claims: [named] });
    const [event, subscribers, ...rest] = await log();
    expect(rest).toEqual([]);
    expect(subscribers).toMatchObject({
      kind: 'subscribers',
      entry: event?.id,
      claimKeys: [`named|${INTENT}`],
    });
  });

  test('a new claim on a subject that is history for all others gets the first event alone', async () => {
    const watcher = history(await want('watcher', INTENT));
    await take(record('settled', T0 - 50), { nowMs: T0_MS, claims: [watcher] });
    await want('named', INTENT);
    await take(record('settled', T0 - 50), { nowMs: T0_MS });
    const [entry, ...rest] = await log();
    expect(rest).toEqual([]);
    expect(entry).toMatchObject({ kind: 'event', claimKeys: [`named|${INTENT}`] });
    expect(entry?.kind === 'event' && entry.event.data).toMatchObject({ sequence: 1, previousStatus: null });
  });

  test('an answer from before the snapshot is dropped, but the claim that came with it is served', async () => {
    await want('s', INTENT);
    const { asOf } = await readSubject(INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    const other = await want('other', INTENT);
    const late = await take(record('filled', T0 + 1), { nowMs: T0_MS, claims: [other], asOf });
    expect(late.outcome).toBe('superseded');
    expect(await eventTypes()).toEqual(['intent.pending', 'subscribers']);
  });
});

describe('a Redis that went back', () => {
  test('is refused all, claims included, until its next epoch is synchronised', async () => {
    const { epoch } = subjects;
    await epoch.check();
    const claim = await want('s', INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    const before = await Promise.all(
      [keys.subject(INTENT), keys.claims(INTENT), keys.epoch].map((key) => redis.dumpBuffer(key)),
    );
    await take(record('filled', T0 + 1), { nowMs: T0_MS });
    const [snapshot, claims, counted] = before;
    await redis.set(keys.commit, '1');
    for (const [key, dump] of [
      [keys.subject(INTENT), snapshot],
      [keys.claims(INTENT), claims],
      [keys.epoch, counted],
    ] as const)
      await redis.restore(key, 0, dump ?? '', 'REPLACE');
    await redis.xdel(keys.events, (await log()).at(-1)?.id ?? '');
    const due = new Promise<void>((resolve) => epoch.onCheckDue(resolve));
    const other = { ...claim, key: `other|${INTENT}` };
    expect((await take(record('settled', T0 + 2), { nowMs: T0_MS, claims: [other] })).outcome).toBe(
      'superseded',
    );
    await due;
    expect(await redis.hexists(keys.claims(INTENT), other.key)).toBe(0);

    expect((await epoch.check()).behind).toMatchObject({ epoch: 2 });
    expect((await take(record('filled', T0 + 1), { nowMs: T0_MS })).outcome).toBe('superseded');
    await epoch.synchronised();
    expect((await take(record('filled', T0 + 1), { nowMs: T0_MS })).outcome).toBe('changed');
    const filled = (await log()).flatMap((entry) => (entry.kind === 'event' ? [entry.event] : [])).at(-1);
    expect(filled?.data).toMatchObject({ epoch: 2, sequence: 2, status: 'filled' });
  });

  test('an answer that was requested before it went back is superseded in the new epoch', async () => {
    const { epoch } = subjects;
    await epoch.check();
    await want('s', INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    const { asOf } = await readSubject(INTENT);
    epoch.noteTruncated();
    await epoch.check();
    await epoch.synchronised();
    await take(record('filled', T0 + 2), { nowMs: T0_MS });
    expect((await take(record('pending', T0 + 3), { nowMs: T0_MS, asOf })).outcome).toBe('superseded');
  });
});

describe('a first sight that the first answer could not give', () => {
  test.each([
    ['was dropped, for a page was faster', record('settled', T0 - 50), '0'],
    ['is stale', record('unknown', null), undefined],
  ])('comes with the next answer when the first one %s', async (_, answer, asOf) => {
    const watcher = { ...(await want('watcher', INTENT)), historyBefore: T0 };
    await take(record('settled', T0 - 50), { nowMs: T0_MS, claims: [watcher] });
    await want('named', INTENT);
    await take(answer, { nowMs: T0_MS, ...(asOf ? { asOf } : {}) });
    expect(await eventTypes()).toEqual([]);
    await take(record('settled', T0 - 50), { nowMs: T0_MS + 1 });
    await take(record('settled', T0 - 50), { nowMs: T0_MS + 2 });
    const [entry, ...rest] = await log();
    expect(rest).toEqual([]);
    expect(entry).toMatchObject({ kind: 'event', claimKeys: [`named|${INTENT}`] });
  });
});

describe('two processes that make the very same first sight', () => {
  test('make one event, and the second one leads its own claims to it', async () => {
    const [one, two] = [await want('one', INTENT), await want('two', INTENT)];
    const { asOf } = await readSubject(INTENT);
    const before = { snapshot: null, seenAtMs: null, promised: null, claims: [one, two] };
    const observation = { asOf, nowMs: T0_MS, price: 1, exact: false };
    await commitRecord(deps, record('settled', T0), before, { ...observation, claims: [one] });
    await commitRecord(deps, record('settled', T0), before, { ...observation, claims: [two] });
    const [event, subscribers, ...rest] = await log();
    expect(rest).toEqual([]);
    expect(event).toMatchObject({ kind: 'event', claimKeys: [one.key] });
    expect(subscribers).toMatchObject({ kind: 'subscribers', entry: event?.id, claimKeys: [two.key] });
    const { claims } = await readSubject(INTENT);
    expect(claims.every((claim) => claim.served)).toBe(true);
  });
});

describe('a first sight after an event that was made for others alone', () => {
  test('comes all the same', async () => {
    const watcher = { ...(await want('watcher', INTENT)), historyBefore: T0 };
    const { snapshot } = await take(record('pending', T0 - 50), { nowMs: T0_MS, claims: [watcher] });
    if (snapshot === null) throw new Error('no snapshot');
    const overdue = new Map([
      [
        'watcher',
        {
          name: 'watcher',
          order: 0,
          receivers: ['r'],
          metadata: {},
          history: 'skip' as const,
          overdueAfterMs: 1_000,
          warnBeforeMs: null,
          recipients: [],
          removedAtMs: null,
        },
      ],
    ]);
    await pass({ subject: INTENT, snapshot, claims: [watcher] }, { nowMs: T0_MS, subscriptions: overdue });
    await want('named', INTENT);
    await take(record('pending', T0 - 50), { nowMs: T0_MS + 1 });
    const [, first, ...rest] = await log();
    expect(rest).toEqual([]);
    expect(first).toMatchObject({ kind: 'event', claimKeys: [`named|${INTENT}`] });
    expect(first?.kind === 'event' && first.event.data).toMatchObject({ sequence: 2, previousStatus: null });
  });
});

/** Emits the events that the passage of time has caused. */
async function pass(
  stored: PlanInput & { snapshot: Snapshot },
  context: Pick<PlanContext, 'nowMs' | 'subscriptions'>,
): Promise<void> {
  const { due } = planOf(deps, stored, {
    ...context,
    price: 1,
    imported: null,
    unseenUntilMs: null,
    route: null,
  });
  await commitDue(deps, { ...stored, promised: null }, { due, nowMs: context.nowMs });
}

describe('an event of a transfer under way', () => {
  const legs = { sourceTx: { chainId: 1, amount: '1' }, destinationTx: { chainId: 10, amount: '1' } };

  /** Makes it learn that stages end after about 10 s on a pair of chains. */
  async function teach(): Promise<void> {
    const learned = new LearnedStore(redis, keys);
    const increments = [{ bin: binOf(10), ended: 500, watchedSeconds: 500 }];
    await learned.add({ route: '1:10', statistic: 'pending', increments });
    await deps.learning.start();
    onTestFinished(() => deps.learning.close());
  }

  test('states its expected time, from the learned times of its chains and for its age', async () => {
    await want('s', INTENT);
    await teach();
    await take(record('pending', T0, legs), { nowMs: T0_MS + 1_000 });
    await take(record('pending', T0, { ...legs, note: 'x' }), { nowMs: T0_MS + 9_000 });
    await take(record('filled', T0 + 12, legs), { nowMs: T0_MS + 12_000 });
    const [first, second, filled] = (await log()).map((entry) => eventOf(entry)?.data.expectedBy);
    if (first === undefined || second === undefined) throw new Error('found no expected time, expected two');
    expect(first.status).toBe('filled');
    expect(first.probability).toBeGreaterThan(0.8);
    expect(Date.parse(first.at)).toBeGreaterThan(T0_MS + 8_000);
    expect(Date.parse(first.at)).toBeLessThan(T0_MS + 60_000);
    expect(Date.parse(second.at)).toBeGreaterThanOrEqual(Date.parse(first.at));
    // Nothing was learned of how long it stays filled.
    expect(filled).toBe(undefined);
  });

  test('has the same expectation where two processes make it at different times', async () => {
    const claim = await want('s', INTENT);
    await teach();
    const { asOf } = await readSubject(INTENT);
    const before = { snapshot: null, seenAtMs: null, promised: null, claims: [claim] };
    const observation = { asOf, price: 1, exact: true, claims: [claim] };
    await commitRecord(deps, record('pending', T0, legs), before, { ...observation, nowMs: T0_MS });
    const [made] = await log();
    await commitRecord(deps, record('pending', T0, legs), before, { ...observation, nowMs: T0_MS + 20_000 });
    expect(await log()).toEqual([made]);
    expect(eventOf(made ?? null)?.data.expectedBy?.status).toBe('filled');
  });

  test('of the clock states it for its age then, and is counted as overdue once', async () => {
    const claim = await want('s', INTENT);
    await teach();
    const { snapshot } = await take(record('pending', T0, legs), { nowMs: T0_MS });
    const [stored] = (await registry.subscriptions([claim.key])).values();
    if (snapshot === null || stored === undefined) throw new Error('nothing was stored');
    let input = { subject: INTENT, snapshot, claims: [{ ...claim, served: true }] };
    for (const overdueAfterMs of [5_000, 6_000]) {
      const subscriptions = new Map([['s', { ...stored, overdueAfterMs }]]);
      await pass(input, { nowMs: T0_MS + 8_000, subscriptions });
      const { snapshot: after } = await readSubject(INTENT);
      if (after !== null) input = { ...input, snapshot: after };
    }
    const reported = (await log()).map((entry) => eventOf(entry));
    expect(reported.map((event) => event?.type)).toEqual([
      'intent.pending',
      'intent.overdue',
      'intent.overdue',
    ]);
    const [pending, overdue] = reported.map((event) => Date.parse(event?.data.expectedBy?.at ?? ''));
    expect(overdue).toBeGreaterThanOrEqual(pending ?? 0);
    await deps.learning.close();
    const learned = await new LearnedStore(redis, keys).all();
    const overdues = learned.filter(({ statistic }) => statistic === 'overdue');
    expect(overdues.map(({ route, tally }) => [route, tally.ended[0]]).sort()).toEqual([
      ['*', 1],
      ['1:10', 1],
    ]);
  });
});

describe('an event of time', () => {
  test('is overdue by the learned times, after enough observations, for the subscriptions that want it so', async () => {
    const claim = await want('s', INTENT);
    const { snapshot } = await take(record('pending', T0 - 1_000), { nowMs: T0_MS });
    const [stored] = (await registry.subscriptions([claim.key])).values();
    if (snapshot === null || stored === undefined) throw new Error('nothing was stored');
    const subscriptions = new Map([['s', { ...stored, overdueAfterMs: 'learned' as const }]]);
    const entry = { subject: INTENT, snapshot, claims: [{ ...claim, served: true }] };
    const context = { nowMs: T0_MS, subscriptions };
    await pass(entry, context);
    expect(await eventTypes()).toEqual(['intent.pending']);

    const learned = new LearnedStore(redis, keys);
    const increments = [{ bin: 10, ended: 5_000, watchedSeconds: 5_000 }];
    await learned.add({ route: '*', statistic: 'pending', increments });
    await deps.learning.start();
    await pass(entry, context);
    await deps.learning.close();
    expect(await eventTypes()).toEqual(['intent.pending', 'intent.overdue']);
  });

  test('comes once, also when two processes see the time pass together', async () => {
    const vault = vaultId({ chainId: 8453, address: '0x3333333333333333333333333333333333333333' });
    await want('s', vault);
    const raw = { vaultAddress: '0x33', state: 'PENDING', deadline: T0 };
    const seen = { subject: vault, status: 'PENDING', updatedAt: null, names: [], raw, unreadable: [] };
    const { snapshot } = await take(seen, { nowMs: T0_MS });
    if (snapshot === null) throw new Error('no snapshot');
    const { claims } = await readSubject(vault);
    const subscriptions = await registry.subscriptions([`s|${vault}`]);
    const context = { nowMs: T0_MS + 1, subscriptions };
    await Promise.all([
      pass({ subject: vault, snapshot, claims }, context),
      pass({ subject: vault, snapshot, claims }, context),
    ]);
    const start = await readSubject(vault);
    if (start.snapshot === null) throw new Error('no snapshot');
    await pass({ subject: vault, snapshot: start.snapshot, claims }, context);
    expect(await eventTypes()).toEqual(['vault.pending', 'vault.expired']);
  });
});

test('the numbers of known subjects follow their statuses', async () => {
  await want('s', INTENT);
  await take(record('pending', T0), { nowMs: T0_MS });
  expect(await registry.counts()).toEqual([{ kind: 'intent', status: 'pending', count: 1 }]);
  await take(record('filled', T0 + 1), { nowMs: T0_MS });
  expect(await registry.counts()).toEqual([{ kind: 'intent', status: 'filled', count: 1 }]);
  expect(await redis.get(keys.commit)).toBe('2');
});

describe('a snapshot that cannot be read', () => {
  test.each([
    'record',
    'version',
    'commit',
    'changedAtMs',
  ])('(%s) is replaced by the next answer without an event, and the count goes on', async (field) => {
    await want('s', INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    await take(record('filled', T0 + 10), { nowMs: T0_MS + 1 });
    await redis.hset(keys.subject(INTENT), field, 'of another shape');
    const again = await take(record('filled', T0 + 10), { nowMs: T0_MS + 2 });
    expect(again.outcome).toBe('unchanged');
    await take(record('settled', T0 + 20), { nowMs: T0_MS + 3 });
    expect(await eventTypes()).toEqual(['intent.pending', 'intent.filled', 'intent.settled']);
    const last = (await log()).at(-1) ?? null;
    expect(eventOf(last)?.data).toMatchObject({ sequence: 3, previousStatus: 'filled', changes: ['status'] });
  });

  test('lets a move be reported that came meanwhile', async () => {
    await want('s', INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    await redis.hset(keys.subject(INTENT), 'record', '[]');
    await take(record('filled', T0 + 10), { nowMs: T0_MS + 1 });
    expect(await eventTypes()).toEqual(['intent.pending', 'intent.filled']);
  });

  test('never gives a number of an event twice', async () => {
    await want('s', INTENT);
    await take(record('pending', T0), { nowMs: T0_MS });
    await take(record('filled', T0 + 10), { nowMs: T0_MS + 1 });
    await redis.hset(keys.subject(INTENT), { sequence: '?', version: '?', status: '?' });
    await take(record('filled', T0 + 10), { nowMs: T0_MS + 2 });
    await take(record('settled', T0 + 20), { nowMs: T0_MS + 3 });
    const sequences = (await log()).map((entry) => eventOf(entry)?.data.sequence ?? 0);
    expect(new Set(sequences).size).toBe(sequences.length);
    expect(sequences).toEqual(sequences.toSorted((one, other) => one - other));
  });
});

test('the stated duration of a priced route applies to transfers between its chains', async () => {
  const token = `0x${'44'.repeat(20)}`;
  const definition = {
    name: 'r',
    source: { chainId: 8453, token },
    destination: { chainId: 10, token },
    amount: '100',
    funder: token,
    recipient: token,
    movedBy: 0.01,
    service: 'open' as const,
    executions: ['SELF_PUBLISH'],
    everyMs: 30_000,
  };
  const quote = {
    solver: token,
    output: '99',
    minimumOutput: '98',
    fees: [],
    fillEstimateSeconds: 25,
    raw: {},
  };
  await want('s', routeId({ name: 'r', service: 'open' }));
  await take(routeRecord(definition, [quote]), { nowMs: T0_MS });
  await deps.learning.close();
  const learned = new LearnedStore(redis, keys);
  expect(await learned.estimates()).toEqual(new Map([['8453:10', 25]]));
});
