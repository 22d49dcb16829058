import { randomUUID } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { deliveryId } from '../../src/domain/events/event.ts';
import { asSubjectId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { ReplayStore } from '../../src/store/replays.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { callApi } from '../support/api-stage.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { Hook } from '../support/hook.ts';
import { logEntries } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { shownCommands } from '../support/redis-commands.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { snapshotOf } from '../support/snapshot.ts';

const { later, started } = opening();

const INTENT = asSubjectId(`intent:${hashOf(1)}`);

const TIMELINE = z.object({
  subject: z.string(),
  events: z.int(),
  timeline: z.array(z.object({ event: z.string(), sequence: z.int() })),
  next: z.string().nullable(),
});
const DELIVERIES = z.object({
  deliveries: z.array(
    z.object({ id: z.string(), event: z.string(), receiver: z.string(), state: z.string() }),
  ),
  next: z.string().nullable(),
});

/** A daemon with some receivers, and the means to store events of a subject and facts of deliveries. */
async function desk(receiverCount: number) {
  const hook = await started(new Hook());
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'unknown', null)],
    })),
  );
  const receivers = Array.from({ length: receiverCount }, (_, n) => `r-${String(n).padStart(2, '0')}`);
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: Object.fromEntries(receivers.map((name) => [name, { url: hook.url }])),
    subscriptions: [{ name: 'other', intents: [hashOf(9)], receivers: receivers.slice(0, 1) }],
  };
  const { daemon } = await reloadable(config, { later });
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(config.prefix);
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const get = async (path: string) => callApi(daemon.url, { path, token: null });
  return {
    keys,
    redis,
    receivers,
    get,
    /** Commits an event of the subject, which no receiver matches. Returns its id. */
    commit: async (sequence: number, subject: SubjectId = INTENT, note = ''): Promise<string> => {
      const id = eventId(sequence);
      const record = { id: subject, type: 'intent', status: 'pending', step: sequence, note };
      const {
        commit: _,
        reported: _reported,
        ...snapshot
      } = snapshotOf(Date.now())('pending', { sequence, record });
      const event = {
        id,
        type: 'intent.updated',
        timestamp: new Date().toISOString(),
        data: {
          subject: { kind: 'intent', id: subject },
          sequence,
          epoch: 1,
          status: 'pending',
          previousStatus: sequence === 1 ? null : 'pending',
          changes: ['step'],
          record,
          upstreamUpdatedAt: null,
          detectionDelaySeconds: null,
        },
      };
      const committed = await subjects.commit({
        subject,
        asOf: '999999999',
        token: id,
        claims: [],
        snapshot,
        event: { event, updatedAt: null, first: sequence === 1, claimKeys: [] },
      });
      expect(committed.outcome).toBe('committed');
      return id;
    },
    /** Stores deliveries of an event as they are after success: its own, and those of replays. */
    deliver: async (event: string, receiver: string, replays: readonly string[] = []): Promise<void> => {
      const fact = { outcome: 'delivered', entry: '1-0', claimKeys: '[]', tries: '1' };
      for (const replay of [null, ...replays]) {
        const more = replay === null ? {} : { replay };
        await redis.hset(keys.delivery(receiver, deliveryId(event, replay)), { ...fact, ...more });
        if (replay !== null) await redis.zadd(keys.replaysOf(event), 0, `${receiver} ${replay}`);
      }
    },
    timeline: async (query = '') => TIMELINE.parse((await get(`/subjects/${INTENT}?${query}`)).body),
    deliveries: async (query = '') =>
      DELIVERIES.parse((await get(`/subjects/${INTENT}/deliveries?${query}`)).body),
  };
}

type Desk = Awaited<ReturnType<typeof desk>>;

function eventId(sequence: number): string {
  return `evt_${String(sequence).padStart(40, '0')}`;
}

/**
 * The commands that Redis gets for a request: from the connection of the API, and in scripts about the subject. The
 * daemon uses that connection by itself too, at any time, so this is the shortest of several lists.
 */
async function commandsOf(one: Desk, path: string): Promise<string[]> {
  const lists: string[][] = [];
  for (let times = 0; times < 5; times += 1) lists.push(await commandsOnce(one, path));
  return lists.reduce((shortest, list) => (list.length < shortest.length ? list : shortest));
}

async function commandsOnce({ keys, redis, get }: Desk, path: string): Promise<string[]> {
  const { commands, until, close } = await shownCommands(inject('redisUrl'));
  try {
    expect((await get(path)).status).toBe(200);
    const mark = randomUUID();
    await redis.echo(mark);
    await until(mark);
    const entries = `"${keys.subjectEntries(INTENT)}"`;
    const source = commands.find(({ line }) => line.includes(entries))?.source;
    expect(source).toBeDefined();
    const ours = commands.filter((one) =>
      one.source === 'lua'
        ? one.line.includes(keys.prefix) && one.line.includes(INTENT)
        : one.source === source,
    );
    return ours.map(({ name }) => name);
  } finally {
    close();
  }
}

test('a page takes as many Redis commands for 400 events × 20 receivers as for 20 events × 2 receivers', async () => {
  const counts = [];
  for (const [events, receivers] of [
    [20, 2],
    [400, 20],
  ] as const) {
    const one = await desk(receivers);
    for (let sequence = 1; sequence <= events; sequence += 1) {
      const event = await one.commit(sequence);
      await Promise.all(one.receivers.map((receiver) => one.deliver(event, receiver)));
    }
    const { next } = await one.timeline('limit=5');
    const deliveries = await commandsOf(one, `/subjects/${INTENT}/deliveries?limit=10`);
    const most = 4 * 10 + 20;
    expect(deliveries.length).toBeLessThan(most);
    counts.push({
      first: await commandsOf(one, `/subjects/${INTENT}?limit=5`),
      second: await commandsOf(one, `/subjects/${INTENT}?limit=5&after=${next}`),
      // More receivers mean fewer reads of events for a page of deliveries.
      facts: deliveries.filter((command) => command !== 'xrange').length,
    });
  }
  expect(counts[1]).toEqual(counts[0]);
});

describe('a timeline', () => {
  test('has each event once over its pages, the newest first, also while new ones are committed', async () => {
    const one = await desk(1);
    for (let sequence = 1; sequence <= 130; sequence += 1) await one.commit(sequence);
    const seen: number[] = [];
    let after = '';
    for (let made = 130; ; ) {
      const { timeline, next } = await one.timeline(`limit=7${after}`);
      seen.push(...timeline.map(({ sequence }) => sequence));
      if (next === null) break;
      after = `&after=${next}`;
      made += 1;
      await one.commit(made);
    }
    expect(seen).toEqual(Array.from({ length: 130 }, (_, n) => 130 - n));
  });

  test('ends with 2 MiB of events, and the next one has the rest', async () => {
    const one = await desk(1);
    const ids = [];
    for (let sequence = 1; sequence <= 7; sequence += 1) {
      const event = await one.commit(sequence, INTENT, 'x'.repeat(900_000));
      await one.deliver(event, one.receivers[0] ?? '');
      ids.unshift(event);
    }
    const pages: string[][] = [];
    for (let next: string | null = ''; next !== null; ) {
      const page = await one.timeline(`limit=100&after=${next}`.replace(/&after=$/, ''));
      pages.push(page.timeline.map(({ event }) => event));
      ({ next } = page);
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
    expect(pages.flat()).toEqual(ids);
    const delivered: string[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const page = await one.deliveries(`limit=100&after=${next}`.replace(/&after=$/, ''));
      delivered.push(...page.deliveries.map(({ event }) => event));
      ({ next } = page);
    }
    expect(delivered).toEqual(ids);
  });

  test('has only the events in the log, and so has the list behind it', async () => {
    const one = await desk(1);
    for (let sequence = 1; sequence <= 5; sequence += 1) await one.commit(sequence);
    const [, , third] = await logEntries(one.redis, one.keys);
    const thirdId = third?.id ?? '';
    await one.redis.set(one.keys.trimmed, thirdId);
    await one.redis.xtrim(one.keys.events, 'MINID', '=', thirdId);
    const { timeline, next, events } = await one.timeline('limit=2');
    expect([timeline.map(({ sequence }) => sequence), next, events]).toEqual([[5, 4], null, 5]);
    await one.commit(6);
    expect(await one.redis.zcard(one.keys.subjectEntries(INTENT))).toBe(3);
  });
});

describe('the deliveries of a subject', () => {
  test('come once over all pages, replays included, in the order of the timeline, and end with a page of it', async () => {
    const one = await desk(3);
    const replays = Array.from({ length: 5 }, (_, n) => `${n}`.repeat(16));
    const expected: string[] = [];
    for (let sequence = 1; sequence <= 4; sequence += 1) {
      const event = await one.commit(sequence);
      const of = one.receivers.flatMap((receiver, n) => {
        // The second receiver gets only the even ones, and those repeatedly.
        if (n === 1 && sequence % 2 === 1) return [];
        return [null, ...(n === 1 ? replays : [])].map(
          (replay) => `${receiver} ${deliveryId(event, replay)}`,
        );
      });
      for (const [n, receiver] of one.receivers.entries()) {
        if (n !== 1) await one.deliver(event, receiver);
        else if (sequence % 2 === 0) await one.deliver(event, receiver, replays);
      }
      expected.unshift(...of);
    }
    const page = await one.timeline('limit=2');
    for (const limit of [1, 2, 3, 4, 50]) {
      const all = await allDeliveries(one, `limit=${limit}`);
      expect(all, `limit ${limit}`).toEqual(expected);
      const first = await allDeliveries(one, `limit=${limit}&until=${page.next}`);
      expect(first).toEqual(expected.filter((text) => /0[34](~|$)/.test(text)));
      const second = await allDeliveries(one, `limit=${limit}`, `&after=${page.next}`);
      expect([...first, ...second]).toEqual(expected);
    }
  });

  test('are none where there are no events', async () => {
    const one = await desk(2);
    const other = `intent:${hashOf(9)}`;
    const { body } = await one.get(`/subjects/${other}/deliveries`);
    expect(body).toEqual({ deliveries: [], next: null });
  });
});

async function allDeliveries({ deliveries }: Desk, query: string, from = ''): Promise<string[]> {
  const all: string[] = [];
  for (let after = from; ; ) {
    const { deliveries: some, next } = await deliveries(`${query}${after}`);
    all.push(...some.map(({ receiver, id }) => `${receiver} ${id}`));
    if (next === null) return all;
    after = `&after=${next}`;
  }
}

test('a cursor that is none is refused, and the parameter is named', async () => {
  const one = await desk(1);
  await one.commit(1);
  const wrong = Buffer.from(JSON.stringify({ before: '-', after: '0-0' })).toString('base64url');
  for (const [path, place] of [
    [`?after=${wrong}`, 'query.after'],
    ['?after=nonsense', 'query.after'],
    ['?limit=101', 'query.limit'],
    ['/deliveries?after=nonsense', 'query.after'],
    [`/deliveries?until=${wrong}`, 'query.until'],
  ]) {
    const { status, body } = await one.get(`/subjects/${INTENT}${path}`);
    expect([path, status, body]).toEqual([
      path,
      400,
      expect.objectContaining({ errors: [expect.objectContaining({ place })] }),
    ]);
  }
});

test('the replays of an event to one receiver are read in parts', async () => {
  const one = await desk(1);
  const store = new ReplayStore(one.redis, one.keys);
  const ids = Array.from({ length: 30 }, (_, n) => n.toString(16).padStart(16, '0'));
  await one.deliver(eventId(1), 'r-0', ids);
  await one.deliver(eventId(1), 'r-00', ['f'.repeat(16)]);
  const first = await store.of(eventId(1), { receiver: 'r-0', after: '', count: 20 });
  const second = await store.of(eventId(1), { receiver: 'r-0', after: first.at(-1) ?? '', count: 20 });
  expect([...first, ...second]).toEqual(ids);
});
