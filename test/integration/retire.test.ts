import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { intentId, type SubjectId, walletId } from '../../src/domain/subject.ts';
import { type CommitParts, commitRecord } from '../../src/queues/commit-record.ts';
import { pollJobId } from '../../src/queues/names.ts';
import { PollQueues } from '../../src/queues/poll-queues.ts';
import { Signals } from '../../src/signals.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { HealthStore } from '../../src/store/health.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { cadenceParts } from '../support/cadence-parts.ts';
import { testPrefix } from '../support/daemon.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const WALLET = walletId('0x1111111111111111111111111111111111111111');
const INTENT = intentId(hashOf(7));
const NOW_MS = Date.now();

let redis: RedisClient;
let subjects: SubjectStore;
let registry: Registry;
let queues: PollQueues;
let parts: CommitParts;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  const keys = new Keys(testPrefix());
  subjects = new SubjectStore(redis, keys, { retentionMs: 60_000 });
  registry = new Registry(redis, keys, subjects);
  queues = new PollQueues({ redis, keys, subjects, health: new HealthStore(redis, keys) });
  const rules = { confirmAfterMs: 600_000, finished: {}, ...cadenceParts(redis, keys) };
  parts = { subjects, queues, signals: new Signals(), ...rules };
});

afterEach(async () => {
  await queues.close();
  redis.disconnect();
});

/** Makes the subscriptions of the config the ones that name these subjects. */
async function sync(named: Record<string, SubjectId[]>): Promise<void> {
  const rest = { receivers: ['r'], metadata: {}, history: 'skip' as const, overdueAfterMs: null };
  const subscriptions = Object.entries(named).map(([name, list]) => ({ name, ...rest, subjects: list }));
  await registry.sync({ digest: '', receivers: [], routes: [], subscriptions }, '0-0');
}

/** Has a page of the wallet show the transfer. Returns the commit of its snapshot. */
async function show(status: string, updatedAt: number): Promise<number> {
  const { claims, asOf } = await subjects.beginPoll(WALLET, { counted: false });
  const [known] = await subjects.look([INTENT]);
  if (known === undefined) throw new Error('nothing was looked up');
  const said = { id: INTENT, type: 'intent', status, updatedAt };
  const record = { subject: INTENT, status, updatedAt, names: [], said, unreadable: [] };
  const { snapshot } = await commitRecord(parts, record, known, {
    asOf,
    nowMs: NOW_MS,
    exact: false,
    claims,
  });
  if (snapshot === null) throw new Error('nothing was stored');
  return snapshot.commit;
}

async function hasJob(): Promise<boolean> {
  return (await queues.missing([INTENT])).length === 0;
}

describe('a transfer that a page showed finished', () => {
  let commit: number;

  beforeEach(async () => {
    await sync({ treasury: [WALLET] });
    await show('pending', 100);
    commit = await show('settled', 101);
  });

  test('is polled no more', async () => {
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([true, true]);
    await queues.retire(INTENT, commit);
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([false, false]);
  });

  test('keeps its poll for a subscription that has named it meanwhile', async () => {
    await sync({ treasury: [WALLET], order: [INTENT] });
    await queues.retire(INTENT, commit);
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([true, true]);
  });

  test('keeps its poll where its state has changed meanwhile', async () => {
    await show('filled', 102);
    await queues.retire(INTENT, commit);
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([true, true]);
  });

  test('has a poll where it is asked for while its job is being removed', async () => {
    const retire = subjects.retire.bind(subjects);
    subjects.retire = async (...subject) => {
      const isRetired = await retire(...subject);
      await queues.soon(INTENT);
      return isRetired;
    };
    await queues.retire(INTENT, commit);
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([true, true]);
  });

  test('leaves no look-up behind that would keep the next one away', async () => {
    await queues.lookAgain(INTENT);
    await queues.retire(INTENT, commit);
    await queues.lookAgain(INTENT);
    expect([await subjects.isPolled(INTENT), await hasJob()]).toEqual([true, true]);
  });
});

describe('a poll that a page puts off', () => {
  test('may have ended since', async () => {
    await sync({ treasury: [WALLET] });
    await show('pending', 100);
    const queue = queues.queue('status');
    const getJob = queue.getJob.bind(queue);
    queue.getJob = async (id) => {
      const job = await getJob(id);
      await queue.remove(pollJobId(INTENT));
      return job;
    };
    await expect(queues.postpone(INTENT, 5_000)).resolves.toBeUndefined();
  });
});
