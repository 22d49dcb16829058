import { expect, inject, onTestFinished, test } from 'vitest';
import { asSubjectId, intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { matchFacts, readBatch } from '../../src/queues/deliveries/matches.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventOf } from '../../src/store/log-entry.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { logEntries } from '../support/log-entries.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const SENDER = asSubjectId('wallet:0x52908400098527886e0f7030069857d2e4169ee7');
const RECIPIENT = asSubjectId('wallet:0x8617e340b3d01fa5f11f306f4090fd50e238070d');
const INTENT = intentId(hashOf(1));
const HOUR_MS = 3_600_000;
const T0 = 1_800_000_000;

/** Subscriptions to the wallets of one transfer, and the answers that show it. */
function stage(graceSpanMs: number) {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  onTestFinished(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const deps = commitDeps(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
  const registry = new Registry(redis, keys, subjects);
  const subscribe = async (wallets: Record<string, SubjectId[]>): Promise<void> => {
    const subscriptions = Object.entries(wallets).map(([name, subjects]) => ({
      name,
      receivers: [`${name}-hook`],
      subjects,
      metadata: {},
      history: 'skip' as const,
      overdueAfterMs: null,
      warnBeforeMs: null,
      recipients: [],
    }));
    const receivers = ['desk', 'audit'].map((name) => ({
      name: `${name}-hook`,
      type: 'webhook' as const,
      events: ['intent.*'],
      filter: { wallets: null, chains: null, minAmount: null },
      ordering: 'none' as const,
    }));
    const digest = JSON.stringify(wallets);
    await syncConfig(registry, { digest, graceSpanMs, receivers, routes: [], subscriptions }, '0-0');
  };
  let nowSeconds = T0;
  /** Ingests a state from a page of a wallet, or from the poll of the transfer itself; `since` begins the claims of the page. */
  const show = async (status: string, page: SubjectId | null, since = 0): Promise<void> => {
    nowSeconds += 10;
    const asOf = (await redis.get(keys.commit)) ?? '0';
    const [entry] = await subjects.readEach([INTENT]);
    if (entry === undefined) throw new Error('nothing was found');
    const wanted = Object.entries(await redis.hgetall(keys.wanted));
    const pages = wanted.filter(([key]) => page !== null && key.endsWith(`|${page}`));
    const claims = pages.map(([key, at]) => ({ key, atMs: Number(at), historyBefore: since, served: false }));
    const raw = { id: INTENT, type: 'intent', status, updatedAt: nowSeconds };
    const record = { subject: INTENT, status, updatedAt: nowSeconds, names: [], raw, unreadable: [] };
    await commitRecord(deps, record, entry, {
      asOf,
      nowMs: nowSeconds * 1_000,
      price: 1,
      exact: page === null,
      claims,
    });
  };
  /** The statuses that a receiver gets, in the order of the log. */
  const received = async (receiver: string): Promise<string[]> => {
    const { facts } = await readBatch(await logEntries(redis, keys), new EventLog(redis, keys));
    const directory = COMMON_NAMES;
    const matchesFor = await matchFacts(facts, { registry, directory });
    const stored = (await registry.receivers()).find(({ name }) => name === receiver);
    if (stored === undefined) throw new Error(`no receiver ${receiver}`);
    const statuses = matchesFor(stored).map(({ event }) => `${event.data.sequence} ${event.data.status}`);
    return [...new Set(statuses)];
  };
  const entriesNamed = async (): Promise<[string, string | undefined][]> =>
    (await logEntries(redis, keys)).flatMap((entry) =>
      entry.kind === 'subscribers' ? [[entry.entry, entry.eventId]] : [],
    );
  const eventIds = async (): Promise<Map<string, string | undefined>> =>
    new Map((await logEntries(redis, keys)).map((entry) => [entry.id, eventOf(entry)?.id]));
  const release = () => registry.suspensions.settle({ spanMs: null, confirmedMs: 0, trimMs: 0 });
  return { subscribe, show, received, release, entriesNamed, eventIds };
}

test.each([
  ['makes another event', 'settled'],
  ['shows the last of them', 'refunding'],
])('events after one wallet has left wait for it, and reach its subscription with the page of another that %s', async (_, last) => {
  const { subscribe, show, received, release, entriesNamed, eventIds } = stage(HOUR_MS);
  await subscribe({ desk: [SENDER, RECIPIENT] });
  await show('pending', SENDER);
  await subscribe({ desk: [RECIPIENT] });
  await show('filled', null);
  await show('refunding', null);
  expect(await received('desk-hook')).toEqual(['1 pending']);

  await show(last, RECIPIENT);
  await show('settled', null);
  expect(await received('desk-hook')).toEqual(['1 pending', '2 filled', '3 refunding', '4 settled']);
  // Each names the event that is at its entry.
  const named = await entriesNamed();
  const ids = await eventIds();
  expect(named.length).toBe(2);
  for (const [entry, id] of named) expect(id).toBe(ids.get(entry));

  await subscribe({ desk: [SENDER, RECIPIENT] });
  await release();
  expect(await received('desk-hook')).toEqual(['1 pending', '2 filled', '3 refunding', '4 settled']);
});

test('an event that a poll under way made for nobody reaches the subscription with the page of another wallet', async () => {
  const { subscribe, show, received } = stage(0);
  await subscribe({ desk: [SENDER, RECIPIENT] });
  await show('pending', SENDER);
  await subscribe({ desk: [RECIPIENT] });
  await show('filled', null);
  await show('settled', RECIPIENT);
  expect(await received('desk-hook')).toEqual(['1 pending', '2 filled', '3 settled']);
});

test('another subscription, or a later one, gets none of them', async () => {
  const { subscribe, show, received } = stage(HOUR_MS);
  await subscribe({ desk: [SENDER], audit: [RECIPIENT] });
  await show('pending', SENDER);
  await subscribe({ desk: [RECIPIENT], audit: [RECIPIENT] });
  await show('filled', null);
  await show('refunding', null);
  await show('settled', RECIPIENT, T0 + 35);
  expect(await received('audit-hook')).toEqual(['4 settled']);
  expect(await received('desk-hook')).toEqual(['1 pending', '4 settled']);
});
