import pino from 'pino';
import { afterEach, expect, inject, test } from 'vitest';
import type { UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { gaslessId, intentId, walletId } from '../../src/domain/subjects/subject.ts';
import { ingestPage } from '../../src/queues/polls/ingest-page.ts';
import type { PollContext } from '../../src/queues/polls/poll-context.ts';
import type { PollStart } from '../../src/store/poll-start.ts';
import { OpenTransfersStage, record, sent, T0, T0_MS } from '../support/open-transfers-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const TRANSFER = intentId(hashOf(1));
const A = walletId('0x000000000000000000000000000000000000000a');
const B = walletId('0x000000000000000000000000000000000000000b');

const stages: OpenTransfersStage[] = [];
afterEach(() => {
  for (const stage of stages.splice(0)) stage.close();
});

/** A process whose pages of wallets are ingested as after their requests; `decided` are its decisions. */
function pages(before?: OpenTransfersStage) {
  const stage = new OpenTransfersStage(inject('redisUrl'), ...(before === undefined ? [] : [before.keys]));
  stages.push(stage);
  const { redis, keys } = stage;
  const rules = { ...stage.deps.rules, retentionMs: 86_400_000 };
  const deps = {
    ...stage.deps,
    redis,
    keys,
    rules,
    log: pino({ level: 'silent' }),
  } as unknown as PollContext;
  const decided: string[] = [];
  stage.deps.signals.on('record.decided', ({ outcome }) => decided.push(outcome));
  const show = async (
    records: readonly UpstreamRecord[],
    { wallet = A, historyBefore = null as number | null } = {},
  ) => {
    const key = `s|${wallet}`;
    await redis.hset(keys.wanted, key, '1');
    const history = historyBefore === null ? 'emit' : 'skip';
    const subscription = { history, overdueAfterMs: 60_000, warnBeforeMs: null };
    const start = {
      subject: wallet,
      claims: [{ key, atMs: 1, historyBefore: null, served: true }],
      asOf: (await redis.get(keys.commit)) ?? '0',
      nowMs: T0_MS,
      price: 1,
      route: null,
      unseenUntilMs: null,
      subscriptions: new Map([['s', subscription]]),
      subscribedAt: new Map(historyBefore === null ? [] : [[key, `1:${historyBefore}`]]),
      facts: { readAtMs: 0, polled: {} },
    } as unknown as PollStart;
    const results = records.map((one) => ({
      ...{ subject: one.subject, status: one.status, updatedAt: one.updatedAt },
      ...{ digest: '', record: one },
    }));
    const response = { records: [...records], results, nextCursor: null, dateMs: T0_MS, unreadable: [] };
    const page = { response: { ...response, digests: null, isSame: false }, answeredMs: T0_MS, start };
    const ingested = await ingestPage(deps, { ...page, sinceMs: 0, open: new Map(), polledMs: null });
    if (ingested === null) throw new Error('the page was not ingested');
    return ingested;
  };
  return { ...{ stage, redis, keys, decided, show } };
}

test('a page that shows a job again claims no transfer that it names', async () => {
  const { redis, keys, show } = pages();
  const id = gaslessId('11111111-2222-3333-4444-555555555555');
  const raw = { id, type: 'gasless', status: 'published', updatedAt: T0, intentHashes: [hashOf(1)] };
  const job = { subject: id, status: 'published', updatedAt: T0, names: [hashOf(1)], raw, unreadable: [] };
  await show([job]);
  // As after the retention of the transfer.
  await redis.del(keys.claims(TRANSFER));
  const again = await show([job]);
  expect(again.isSettled).toBe(true);
  expect(await redis.hgetall(keys.claims(TRANSFER))).toEqual({});
});

test('a page of history sets the alarms of its transfers, as the next page does', async () => {
  const { show } = pages();
  const past = record(TRANSFER, 'pending', T0 - 100, sent('7'));
  const first = await show([past], { historyBefore: T0 - 10 });
  const second = await show([past], { historyBefore: T0 - 10 });
  expect(first.covered).toMatchObject([{ subject: TRANSFER, alarmMs: expect.any(Number) }]);
  expect(first.covered).toEqual(second.covered);
});

test('pages of two wallets that show a new transfer at once both decide on it as new', async () => {
  const { stage, decided, show } = pages();
  const shown = [record(TRANSFER, 'pending', T0, sent('7'))];
  await Promise.all([show(shown), show(shown, { wallet: B })]);
  expect(decided).toEqual(['first', 'first']);
  const entry = await stage.subjects.peek(TRANSFER);
  expect(entry?.claims.map(({ key, served }) => [key, served]).sort()).toEqual([
    [`s|${A}`, true],
    [`s|${B}`, true],
  ]);
});

test('ended transfers that another process stored are read, and not committed', async () => {
  const shown = Array.from({ length: 10 }, (_, at) =>
    record(intentId(hashOf(100 + at)), 'expired', T0 - 86_400, sent('7')),
  );
  const first = pages();
  await first.show(shown);
  const { stage, decided, show } = pages(first.stage);
  let commits = 0;
  const commit = stage.subjects.commit.bind(stage.subjects);
  stage.subjects.commit = (wanted) => {
    commits += 1;
    return commit(wanted);
  };
  await show(shown);
  expect(decided).toEqual(shown.map(() => 'unchanged'));
  expect(commits).toBe(0);
});

test('a transfer that seems new is read where Redis went back', async () => {
  const [one, other] = [
    record(TRANSFER, 'pending', T0, sent('7')),
    record(intentId(hashOf(2)), 'pending', T0, sent('7')),
  ];
  const first = pages();
  await first.show([one]);
  const { redis, keys, decided, show } = pages(first.stage);
  await show([other]);
  await redis.set(keys.commit, '1');
  await show([one]);
  expect(decided).toEqual(['first', 'unchanged']);
});
