import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import type { CommitContext } from '../../src/queues/polls/poll-context.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const WALLET = walletId('0x1111111111111111111111111111111111111111');
const INTENT = intentId(hashOf(7));
const NOW_MS = Date.now();

let redis: RedisClient;
let keys: Keys;
let subjects: SubjectStore;
let registry: Registry;
let plan: PlanStore;
let deps: CommitContext;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  registry = new Registry(redis, keys, subjects);
  plan = new PlanStore(redis, keys);
  deps = commitDeps(redis, keys, { subjects, plan });
});

afterEach(() => redis.disconnect());

async function sync(named: Record<string, SubjectId[]>): Promise<void> {
  const rest = {
    receivers: ['r'],
    metadata: {},
    history: 'skip' as const,
    overdueAfterMs: null,
    warnBeforeMs: null,
    recipients: [],
  };
  const subscriptions = Object.entries(named).map(([name, list]) => ({ name, ...rest, subjects: list }));
  await syncConfig(registry, { digest: '', graceSpanMs: 0, receivers: [], routes: [], subscriptions }, '0-0');
}

/** Ingests the transfer from a page of the wallet. Returns the commit of its snapshot. */
async function show(status: string, updatedAt: number): Promise<number> {
  const asOf = (await redis.get(keys.commit)) ?? '0';
  const [wallet, entry] = await subjects.readEach([WALLET, INTENT]);
  if (wallet === undefined || entry === undefined) throw new Error('nothing was found');
  const raw = { id: INTENT, type: 'intent', status, updatedAt };
  const record = { subject: INTENT, status, updatedAt, names: [], raw, unreadable: [] };
  const { snapshot } = await commitRecord(deps, record, entry, {
    asOf,
    nowMs: NOW_MS,
    price: 1,
    exact: false,
    claims: wallet.claims,
  });
  if (snapshot === null) throw new Error('nothing was stored');
  return snapshot.commit;
}

/** Retires the transfer as of its snapshot's commit. Returns whether it was retired, and whether it is still polled. */
async function retire(commit: number): Promise<{ retired: boolean; polled: boolean }> {
  const retired = await plan.untrackFinished(INTENT, commit);
  return { retired, polled: await plan.isTracked(INTENT) };
}

async function claimed(): Promise<string[]> {
  const { polls } = await plan.claim('status', { process: 'p', most: 10, aheadMs: 10_000, sent: [] });
  return polls.map(({ member }) => member);
}

describe('a transfer that a page showed finished', () => {
  let commit: number;

  beforeEach(async () => {
    await sync({ treasury: [WALLET] });
    await show('pending', 100);
    commit = await show('settled', 101);
  });

  test('is polled no more, and stored for the retention', async () => {
    expect(await plan.isTracked(INTENT)).toBe(true);
    expect(await retire(commit)).toEqual({ retired: true, polled: false });
    expect(await claimed()).toEqual([WALLET]);
    expect(await redis.pttl(keys.subject(INTENT))).toBe(-1);
    expect(await redis.zscore(keys.ended, INTENT)).not.toBe(null);
    expect(await registry.counts()).toEqual([]);
  });

  test('is polled on for a subscription that has named it meanwhile', async () => {
    await sync({ treasury: [WALLET], order: [INTENT] });
    expect(await retire(commit)).toEqual({ retired: false, polled: true });
  });

  test('is polled on where its state has changed meanwhile', async () => {
    await show('filled', 102);
    expect(await retire(commit)).toEqual({ retired: false, polled: true });
  });

  test('is polled on where it was requested meanwhile, and while that poll is under way', async () => {
    await plan.pollSoon([INTENT]);
    expect(await retire(commit)).toEqual({ retired: false, polled: true });
    expect(await claimed()).toContain(INTENT);
    expect(await retire(commit)).toEqual({ retired: false, polled: true });
  });

  test('is polled again when it is requested afterwards', async () => {
    await retire(commit);
    await plan.recheck([INTENT]);
    expect(await claimed()).toContain(INTENT);
  });
});
