import { expect, inject, test } from 'vitest';
import { CACHES } from '../../src/domain/caches.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog, type LogPiece } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { testPrefix } from '../support/daemon.ts';

function entryOf(number: number, bytes: number): { id: string; fields: string[] } {
  return { id: `${number}-0`, fields: ['text', 'é'.repeat((bytes - 4) / 2)] };
}

/** The number of entries, from the newest back, that a log still holds as they were read. */
function held(log: EventLog, read: readonly { id: string; fields: string[]; entry: unknown }[]): number {
  const missing = read.toReversed().findIndex(({ id, fields, entry }) => log.read(id, fields) !== entry);
  return missing === -1 ? read.length : missing;
}

test('entries of the log are held up to 8 MiB, and up to 1,500', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  try {
    const readAll = (log: EventLog, { count, bytes }: { count: number; bytes: number }) =>
      Array.from({ length: count }, (_, number) => entryOf(number + 1, bytes)).map((one) => ({
        ...one,
        entry: log.read(one.id, one.fields),
      }));
    const create = () => new EventLog(redis, new Keys(testPrefix()));
    const large = create();
    expect(held(large, readAll(large, { count: 40, bytes: 1_048_576 }))).toBe(8);
    const small = create();
    expect(held(small, readAll(small, { count: 1_600, bytes: 1_000 }))).toBe(1_500);
    const huge = create();
    expect(held(huge, readAll(huge, { count: 1, bytes: CACHES.logEntries.bytes + 2 }))).toBe(0);
    // The entries before it are removed, and those after it are held as before.
    expect(held(huge, readAll(huge, { count: 3, bytes: 1_000 }))).toBe(3);
  } finally {
    await disconnect(redis);
  }
});

test('a piece of the log ends once it has 2 MiB, in either order; small entries come by their number', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  try {
    const keys = new Keys(testPrefix());
    const log = new EventLog(redis, keys);
    // The second of three pieces is the one with large entries.
    const sizes = [...Array(10).fill(100), ...Array(10).fill(900_000), ...Array(10).fill(100)];
    for (const [index, size] of sizes.entries()) {
      await redis.xadd(keys.events, `${index + 1}-0`, 'text', 'x'.repeat(size));
    }
    const all = sizes.map((_, index) => `${index + 1}-0`);
    const read = async (next: (last: string | null) => Promise<LogPiece>): Promise<string[][]> => {
      const pieces: string[][] = [];
      for (let more = true; more; ) {
        const piece = await next(pieces.at(-1)?.at(-1) ?? null);
        pieces.push(piece.entries.map(({ id }) => id));
        ({ more } = piece);
      }
      return pieces;
    };
    const forward = await read((last) => log.after(last ?? '0-0', 200));
    expect(forward.flat()).toEqual(all);
    expect(forward.map(({ length }) => length)).toEqual([16, 4, 10]);
    const backward = await read((last) => log.before(last ?? '+', 200));
    expect(backward.flat()).toEqual(all.toReversed());
    const between = await read((last) => log.between(last ?? '5-0', { before: '12-0', count: 4 }));
    expect(between).toEqual([all.slice(5, 9), all.slice(9, 11)]);
    expect((await log.after('20-0', 10)).more).toBe(true);
    expect((await log.after('20-0', 11)).more).toBe(false);
    expect(await log.after('30-0', 11)).toEqual({ entries: [], more: false });
    expect(await log.before('0-0', 11)).toEqual({ entries: [], more: false });
    const places = ['31-0', ...all];
    const ids = (entries: readonly (LogEntry | null)[]) => entries.map((entry) => entry?.id ?? null);
    expect(ids(await log.readSomeAt(places))).toEqual([null, ...all.slice(0, 13)]);
    expect(ids(await log.readSomeAt(all.slice(12)))).toEqual(all.slice(12, 15));
    expect(ids(await log.readAllAt(places))).toEqual([null, ...all]);
  } finally {
    await disconnect(redis);
  }
});
