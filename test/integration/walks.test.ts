import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { walletId } from '../../src/domain/subject.ts';
import { pageJobId } from '../../src/queues/names.ts';
import { PollQueues } from '../../src/queues/poll-queues.ts';
import { Walks } from '../../src/queues/walks.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { HealthStore } from '../../src/store/health.ts';
import { Keys } from '../../src/store/keys.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { testPrefix } from '../support/daemon.ts';

const WHERE = { wallet: walletId('0x1111111111111111111111111111111111111111'), route: 'all' };
const T0_MS = 1_800_000_000_000;
const WALK = { ...WHERE, id: String(T0_MS) };

let redis: RedisClient;
let queues: PollQueues;
let walks: Walks;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { retentionMs: 60_000 });
  queues = new PollQueues({ redis, keys, subjects, health: new HealthStore(redis, keys) });
  walks = new Walks({ redis, keys, queues });
});

afterEach(async () => {
  await queues.close();
  redis.disconnect();
});

/** The page was read, and its job is gone. */
async function done(page: number): Promise<void> {
  await queues.queue('status').remove(pageJobId({ ...WHERE, walk: WALK.id, page }));
}

describe('a walk over the pages of a wallet', () => {
  beforeEach(() => walks.begin(WHERE, { cursor: 'a', nowMs: T0_MS }));

  test('is not begun a second time while it is under way', async () => {
    expect(await walks.mayBegin(WHERE, T0_MS + 60_000)).toBe(false);
    await walks.next(WALK, { page: 2, cursor: 'b', nowMs: T0_MS + 1 });
    await done(2);
    expect(await walks.mayBegin(WHERE, T0_MS + 60_000)).toBe(false);
  });

  test('is under way while a page is followed by the next', async () => {
    const addPage = queues.addPage.bind(queues);
    queues.addPage = async (page) => {
      expect(await walks.mayBegin(WHERE, T0_MS + 60_000)).toBe(false);
      await addPage(page);
    };
    await walks.next(WALK, { page: 2, cursor: 'b', nowMs: T0_MS + 1 });
    expect.assertions(1);
  });

  test('may begin anew where its process died before a page was queued', async () => {
    await done(2);
    expect(await walks.mayBegin(WHERE, T0_MS + 60_000)).toBe(true);
  });
});
