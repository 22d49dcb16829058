import { expect, inject, test } from 'vitest';
import { readDeliveries } from '../../src/books/observations.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { Keys } from '../../src/store/keys.ts';
import { BooksStage, DAY_MS, FIRST_MS } from '../support/books-stage.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const MINUTE_MS = 60_000;

test('checks all due deliveries before a day can be closed, for any number of them', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const deliveries = new DeliveryStore(redis, new Keys(testPrefix()));
  const books = await BooksStage.open();
  later(() => books.discard());
  const common = { sequence: 1, status: 'pending', atMs: 1_000, seenMs: 1_000, amount: 1n };
  const many = Array.from({ length: 2_100 }, (_, transfer) => ({ ...common, transfer }));
  await books.ingestFor('backend', ...many);
  const closesMs = FIRST_MS + DAY_MS;
  const isNoted = (): Promise<boolean> =>
    readDeliveries(books.store, { place: books.place, deliveries, nowMs: closesMs, closesMs });
  expect(await isNoted()).toBe(false);
  expect(await isNoted()).toBe(true);
  expect(await books.store.dueDeliveries(closesMs, 10)).toEqual([]);
});

test('checks undelivered events at the close of the day, however rare the checks are by then', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const deliveries = new DeliveryStore(redis, new Keys(testPrefix()));
  const books = await BooksStage.open();
  later(() => books.discard());
  const seenMs = DAY_MS - MINUTE_MS;
  await books.ingestFor('backend', {
    transfer: 1,
    sequence: 1,
    status: 'pending',
    atMs: seenMs,
    seenMs,
    amount: 1_000_000n,
  });
  const closesMs = FIRST_MS + DAY_MS + 60 * MINUTE_MS;
  const nowMs = closesMs - MINUTE_MS / 2;
  await readDeliveries(books.store, { place: books.place, deliveries, nowMs, closesMs });
  expect(await books.store.dueDeliveries(closesMs - 1, 10)).toEqual([]);
  expect(await books.store.dueDeliveries(closesMs, 10)).toHaveLength(1);
  await readDeliveries(books.store, { place: books.place, deliveries, nowMs: closesMs, closesMs });
  expect(await books.store.dueDeliveries(closesMs + MINUTE_MS - 1, 10)).toEqual([]);
});
