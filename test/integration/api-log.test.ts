import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { type Answered, callApi } from '../support/api-stage.ts';
import { CLAIM_KEY, deliveryStage, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const open = opening();

const TOKEN = 'a-token-that-does-all';

/** A daemon with the API, on whose log only the test writes events of transfers. */
async function log() {
  const hook = await open.started(new Hook());
  const server = { host: '127.0.0.1', port: 0, token: TOKEN };
  const stage = await deliveryStage(open, { hook: { hook, more: { events: ['none.*'] } } }, { server });
  const { daemon } = await stage.start();
  const call = (path: string, more: object = {}): Promise<Answered> =>
    callApi(daemon.url, { path, token: TOKEN, ...more });
  return { ...stage, url: daemon.url, call };
}

function idsOf({ body }: Answered): string[] {
  return Array.isArray(body.events) ? body.events.map((event) => String(Object(event).id)) : [];
}

test('a cursor behind trimmed events is 410, never a silent gap; one that has missed none goes on', async () => {
  const { redis, keys, events, call } = await log();
  const nowMs = await redisTimeMs(redis);
  const made = hourOfEvents(10, { fromMs: nowMs + 1_000, transfers: 10 });
  await appendEvents(redis, keys, made);
  const five = await call('/events?type=intent.*&limit=5');
  const six = await call('/events?type=intent.*&limit=6');
  const [, , , , , sixth] = made;
  await events.trim((sixth?.atMs ?? 0) + 1);
  const lost = await call(`/events?after=${five.body.next}`);
  expect([lost.status, lost.body.detail]).toEqual([410, expect.stringContaining('have left the log')]);
  expect((await call(`/events/stream?after=${five.body.next}`)).status).toBe(410);
  const rest = await call(`/events?after=${six.body.next}`);
  expect(idsOf(rest)).toEqual(made.slice(6).map(madeEventId));
});

test('the log has its name before anything is read, so that no request that reads stores one', async () => {
  const { redis, keys, call } = await log();
  const name = await redis.get(keys.logName);
  expect(name).not.toBeNull();
  await call('/events');
  expect(await redis.get(keys.logName)).toBe(name);
});

test('a cursor of a log that was lost with its Redis is 410', async () => {
  const { redis, keys, call } = await log();
  await appendEvents(
    redis,
    keys,
    hourOfEvents(1, { fromMs: (await redisTimeMs(redis)) + 1_000, transfers: 1 }),
  );
  const { body } = await call('/events');
  await redis.del(keys.logName, keys.events);
  const lost = await call(`/events?after=${body.next}`);
  expect([lost.status, lost.body.detail]).toEqual([410, expect.stringContaining('was lost with its Redis')]);
});

test('a made-up cursor in the future is 400 and moves no consumer', async () => {
  const { redis, keys, events, call } = await log();
  await appendEvents(
    redis,
    keys,
    hourOfEvents(3, { fromMs: (await redisTimeMs(redis)) - 3_600_000, transfers: 3 }),
  );
  const placeAt = async (ms: number): Promise<string> => {
    const place = { log: await events.name(), after: `${Math.floor(ms)}-0` };
    return Buffer.from(JSON.stringify(place)).toString('base64url');
  };
  const forged = await placeAt((await redisTimeMs(redis)) + 60_000);
  const refusal = { status: 400, body: { detail: expect.stringContaining('expected one up to the newest') } };
  const acknowledge = (cursor: string) => call('/consumers/ledger/ack', { method: 'POST', body: { cursor } });
  expect(await acknowledge(forged)).toMatchObject(refusal);
  expect(await call(`/events?after=${forged}`)).toMatchObject(refusal);
  expect(await call(`/events/stream?after=${forged}`)).toMatchObject(refusal);
  expect(idsOf(await call('/events?type=intent.*&consumer=ledger'))).toHaveLength(3);
  // In an empty log, `since` gives a place between the newest entry and now.
  const { body } = await call(`/events?since=${new Date(await redisTimeMs(redis)).toISOString()}`);
  expect(await acknowledge(String(body.next))).toMatchObject({ status: 200 });
});

test('a cursor at the newest entry is accepted also where the clock of Redis was set back since', async () => {
  const { redis, keys, call } = await log();
  const made = hourOfEvents(1, { fromMs: (await redisTimeMs(redis)) + 3_600_000, transfers: 1 });
  await appendEvents(redis, keys, made);
  const { body } = await call('/events');
  expect(await call(`/events?after=${body.next}`)).toMatchObject({ status: 200, body: { events: [] } });
});

test('a pull that waits is answered when an event comes, and with none when its time is over', async () => {
  const { redis, keys, call } = await log();
  const before = await call('/events');
  const none = await call(`/events?wait=100ms&after=${before.body.next}`);
  expect([none.status, idsOf(none), none.body.more]).toEqual([200, [], false]);
  const waiting = call(`/events?wait=60s&after=${none.body.next}`);
  const made: MadeEvent = {
    subject: `intent:${hashOf(5)}`,
    sequence: 1,
    atMs: await redisTimeMs(redis),
    key: CLAIM_KEY,
  };
  await appendEvents(redis, keys, [made]);
  expect(idsOf(await waiting)).toEqual([madeEventId(made)]);
});

test('a consumer whose place is stored gets again all unacknowledged events, and nothing else', async () => {
  const { redis, keys, call } = await log();
  const made = hourOfEvents(6, { fromMs: (await redisTimeMs(redis)) + 1_000, transfers: 6 });
  await appendEvents(redis, keys, made);
  const ids = made.map(madeEventId);
  const pull = (more = ''): Promise<Answered> => call(`/events?type=intent.*&consumer=ledger&limit=2${more}`);
  const first = await pull();
  expect(idsOf(first)).toEqual(ids.slice(0, 2));
  expect(idsOf(await pull())).toEqual(ids.slice(0, 2));
  const stored = await redis.hgetall(keys.consumers);
  expect(await pull(`&after=${first.body.next}`)).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('POST /consumers/{name}/ack') },
  });
  expect(await redis.hgetall(keys.consumers)).toEqual(stored);
  expect(idsOf(await pull())).toEqual(ids.slice(0, 2));
  await call('/consumers/ledger/ack', { method: 'POST', body: { cursor: first.body.next } });
  const second = await pull();
  expect(idsOf(second)).toEqual(ids.slice(2, 4));
  expect(idsOf(await pull())).toEqual(ids.slice(2, 4));
  await call('/consumers/ledger/ack', { method: 'POST', body: { cursor: second.body.next } });
  // A late acknowledgement does not move the cursor back.
  await call('/consumers/ledger/ack', { method: 'POST', body: { cursor: first.body.next } });
  expect(idsOf(await pull())).toEqual(ids.slice(4));
});

test('events are listed by type, subject and time, the newest first as well, a page at a time', async () => {
  const { redis, keys, call } = await log();
  const fromMs = (await redisTimeMs(redis)) + 1_000;
  const hour = hourOfEvents(20, { fromMs, transfers: 4 });
  const made = hour.map((event, index) => ({ ...event, atMs: fromMs + index }));
  await appendEvents(redis, keys, made);
  await eventually('all of them are past', async () => (await redisTimeMs(redis)) > fromMs + made.length);
  const ids = made.map(madeEventId);
  const newest = await call('/events?order=newest&type=intent.*&limit=12');
  const rest = await call(`/events?order=newest&type=intent.*&limit=12&after=${newest.body.next}`);
  expect([...idsOf(newest), ...idsOf(rest)]).toEqual(ids.toReversed());
  expect(rest.body.next).toBe(null);
  const [first] = made;
  const own = await call(`/events?subject=${first?.subject}`);
  expect(idsOf(own)).toEqual(made.filter(({ subject }) => subject === first?.subject).map(madeEventId));
  const [, bare] = first?.subject.split(':') ?? [];
  for (const nothing of [`subject=${bare}`, 'type=!*.updated']) {
    expect((await call(`/events?${nothing}`)).status, nothing).toBe(400);
  }
  const until = new Date(made[9]?.atMs ?? 0).toISOString();
  const since = new Date(made[5]?.atMs ?? 0).toISOString();
  expect(idsOf(await call(`/events?type=intent.*&since=${since}&until=${until}`))).toEqual(ids.slice(5, 9));
  expect((await call(`/events?after=${newest.body.next}`)).status).toBe(400);
  const before = await call('/events?order=newest&until=1970-01-01T00:00:00Z');
  expect(before).toMatchObject({ status: 200, body: { events: [], next: null } });
});

test('no more than 64 follow at once, and a place is free again when one is gone', async () => {
  const { url, call } = await log();
  const headers = { authorization: `Bearer ${TOKEN}` };
  // One address may have 16 streams.
  const agents = [2, 3, 4, 5].map((last) => new Agent({ localAddress: `127.0.0.${last}`, pipelining: 0 }));
  onTestFinished(async () => {
    await Promise.all(agents.map((agent) => agent.destroy()));
  });
  const cuts = Array.from({ length: 64 }, () => new AbortController());
  const streams = await Promise.all(
    agents.flatMap((dispatcher, at) =>
      cuts
        .slice(16 * at, 16 * (at + 1))
        .map(({ signal }) => request(`${url}/api/v1/events/stream`, { headers, signal, dispatcher })),
    ),
  );
  for (const { body } of streams) body.on('error', () => undefined);
  expect(new Set(streams.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  const refused = await call('/events?wait=1s');
  expect((await call('/events')).status).toBe(200);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
  cuts[0]?.abort();
  await eventually('a place is free', async () => (await call('/events?wait=0s')).status === 200);
  for (const cut of cuts) cut.abort();
});
