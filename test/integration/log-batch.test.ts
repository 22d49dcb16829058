import { expect, inject, test } from 'vitest';
import { readBatch } from '../../src/queues/deliveries/matches.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';
import { appendEvents } from '../support/log-entries.ts';

test('a batch of subscribers ends once their events have 2 MiB, and the next one goes on behind it', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  try {
    const keys = new Keys(testPrefix());
    const log = new EventLog(redis, keys);
    const subjects = Array.from({ length: 10 }, (_, index) => `intent:0x0${index}`);
    // Subscription keys are stored beside the event, and count like it.
    const key = `s|wallet:${'x'.repeat(900_000)}`;
    const places = await appendEvents(
      redis,
      keys,
      subjects.map((subject, index) => ({ subject, sequence: 1, atMs: 1_000 + index, key })),
    );
    for (const entry of places) {
      const fields = {
        kind: 'subscribers',
        event: 'evt_1',
        entry,
        claimKeys: JSON.stringify(['s|wallet:0x01']),
      };
      await redis.xadd(keys.events, '*', ...Object.entries(fields).flat());
    }
    const { entries, more } = await log.after(places.at(-1) ?? '', 200);
    expect([entries.length, more]).toEqual([10, false]);
    const pieces: string[][] = [];
    for (let rest = entries, isCut = true; isCut; ) {
      const batch = await readBatch(rest, log);
      expect(batch.last).toBe(rest[batch.read - 1]?.id);
      pieces.push(batch.facts.map(({ event }) => event.data.subject.id));
      rest = rest.slice(batch.read);
      isCut = batch.isCut;
    }
    expect(pieces.flat()).toEqual(subjects);
    expect(pieces.map(({ length }) => length)).toEqual([3, 3, 3, 1]);
  } finally {
    await disconnect(redis);
  }
});
