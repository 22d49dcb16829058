import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { HealthStore } from '../../src/store/health.ts';
import { Keys } from '../../src/store/keys.ts';
import { reportTruncation } from '../../src/store/operator-event.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const COMMANDS = join(import.meta.dirname, '../../src/store/commands');

async function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const health = new HealthStore(redis, keys);
  const reports = { redis, keys };
  const entries = async () => (await new EventLog(redis, keys).after('0-0', 100)).entries;
  return { health, reports, entries };
}

function cursorThatNeeds(neededRequestsPerSecond: number) {
  return {
    wallet: 'wallet:0x52908400098527886e0f7030069857d2e4169ee7',
    pages: 4,
    lifetimeSeconds: 0.5,
    requestsPerSecond: 5,
    neededRequestsPerSecond,
  };
}

test('a report of expired cursors can be read in the log, and comes again only for a larger rate', async () => {
  const { health, entries } = await stage();
  expect(await health.reportExpiredCursor('status', cursorThatNeeds(40))).toBe(true);
  expect(await health.reportExpiredCursor('status', cursorThatNeeds(40))).toBe(false);
  expect(await health.reportExpiredCursor('status', cursorThatNeeds(25))).toBe(false);
  expect(await health.reportExpiredCursor('status', cursorThatNeeds(60))).toBe(true);
  const found = await entries();
  expect(found).toMatchObject(
    [40, 60].map((needed, index) => ({
      kind: 'operator',
      event: {
        type: 'upstream.cursor_expired',
        data: {
          subject: { kind: 'upstream', id: 'upstream:status' },
          sequence: index + 1,
          epoch: 1,
          status: 'cursor_expired',
          previousStatus: 'ok',
          record: { endpointGroup: 'status', ...cursorThatNeeds(needed) },
        },
      },
    })),
  );
  expect(new Set(found.map((entry) => entry.kind === 'operator' && entry.event.id)).size).toBe(2);
});

test('a cut of the append-only file is reported once and under one id, from any process and after any other report', async () => {
  const cuts = [1, 2].map((number) => ({
    file: `appendonly.aof.${number}.incr.aof`,
    bytes: 100 * number,
    lastWriteMs: null,
    changedAtMs: 1_790_000_000_000 + number,
  }));
  const ids: unknown[] = [];
  for (const processes of [2, 1]) {
    const { reports, entries } = await stage();
    await Promise.all(
      Array.from({ length: processes }, async () => {
        for (const cut of cuts) await reportTruncation(reports, cut);
      }),
    );
    for (const cut of cuts) await reportTruncation(reports, cut);
    const found = await entries();
    expect(found).toMatchObject(
      cuts.map(({ file, bytes }) => ({
        kind: 'operator',
        event: { data: { record: { file, lostBytes: bytes } } },
      })),
    );
    ids.push(found.map((entry) => entry.kind === 'operator' && entry.event.id));
  }
  expect(ids[0]).toEqual(ids[1]);
});

test('scripts append events for the operator in one way, which fills in all of a template', async () => {
  const files = (await readdir(COMMANDS, { recursive: true })).filter((name) => name.endsWith('.lua'));
  const texts = await Promise.all(
    files.map(async (name) => [name, await readFile(join(COMMANDS, name), 'utf8')] as const),
  );
  const appending = texts.filter(([, text]) => text.includes("'kind', 'operator'")).map(([name]) => name);
  expect(appending).toEqual(['include/operator-event.lua']);
});
