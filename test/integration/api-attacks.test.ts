import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, inject, test } from 'vitest';
import { connect as connectRedis, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import {
  ADMIN_TOKEN,
  type ApiStage,
  answered,
  apiStageOfFile,
  CONSUME_TOKEN,
  READ_TOKEN,
} from '../support/api-stage.ts';
import { eventually } from '../support/eventually.ts';
import { hashOf } from '../support/scripted-upstream.ts';

let stage: ApiStage;
const { hooks } = apiStageOfFile((ready) => {
  stage = ready;
});

/** The number of streams that one token may have at once from one address. */
const PLACES = 16;

describe('a consumer that follows and disconnects', () => {
  test('gives back the place of every request of its connection', async () => {
    const { hostname, port } = new URL(stage.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const follow = `GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`;
    socket.write(follow.repeat(PLACES));
    await eventually('all places are in use', async () => {
      const { status } = await stage.call({ path: '/events?limit=1&wait=0s' });
      return status === 429 ? status : null;
    });
    const others = await stage.call({ path: '/events?limit=1&wait=0s', token: READ_TOKEN });
    const elsewhere = await stage.call({ path: '/events?limit=1&wait=0s', from: '127.0.0.9' });
    expect([others.status, elsewhere.status]).toEqual([200, 200]);
    socket.destroy();
    await eventually('all places are there again', async () => {
      const requests = Array.from({ length: PLACES }, () => stage.call({ path: '/events?since=0s&wait=1s' }));
      const answers = await Promise.all(requests);
      return answers.every(({ status }) => status === 200) ? answers.length : null;
    });
  });

  test('can go on from where the stream began', async () => {
    const cut = new AbortController();
    const answer = await fetch(`${stage.url}/api/v1/events/stream`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      signal: cut.signal,
    });
    let output = '';
    for await (const part of answer.body ?? []) {
      output += Buffer.from(part).toString();
      if (output.includes('\n\n')) break;
    }
    cut.abort();
    const id = /^id: (\S+)$/m.exec(output)?.[1];
    expect(id).toEqual(expect.any(String));
    stage.setStatus(hashOf(1), 'filled');
    const type = 'intent.filled';
    await answered(stage, { path: `/events?type=${type}&since=1h` }, ({ events }) =>
      JSON.stringify(events).includes(type),
    );
    const { body } = await stage.call({ path: `/events?type=${type}&after=${id}` });
    expect(body.events).toHaveLength(1);
  });
});

describe('a pattern of many stars', () => {
  const longest = `${'*'.repeat(127)}x`;

  test.each([`${'*'.repeat(99)}x`, longest])('holds up no query: %s', async (pattern) => {
    stage.setStatus(hashOf(1), 'filled');
    await answered(stage, { path: '/events?since=1h' }, ({ events }) =>
      JSON.stringify(events).includes('filled'),
    );
    const { status, body } = await stage.call({ path: `/events?type=${pattern}` });
    expect([status, body.events]).toEqual([200, []]);
  });

  test('is refused beyond 128 characters', async () => {
    const { status, body } = await stage.call({ path: `/events?type=*${longest}` });
    expect([status, body.detail]).toEqual([400, expect.stringContaining('at most 128 characters')]);
  });
});

describe('a place in the log', () => {
  test('stays valid when all entries have been trimmed from the log', async () => {
    const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });
    stage.setStatus(hashOf(2), 'pending');
    await answered(
      stage,
      { path: '/events?type=intent.pending' },
      ({ events }) => Array.isArray(events) && events.length > 0,
    );
    await new EventLog(redis, new Keys(stage.config.prefix)).trim(Date.now() + 60_000);
    await disconnect(redis);
    const { next, events } = (await stage.call({ path: '/events' })).body;
    expect(events).toEqual([]);
    expect(await stage.call({ path: `/events?after=${next}` })).toMatchObject({ status: 200 });
  });

  test('is none in the future: later events would be skipped', async () => {
    const { next } = (await stage.call({ path: '/events?since=2099-01-01T00:00:00Z' })).body;
    stage.setStatus(hashOf(2), 'settled');
    const type = 'intent.settled';
    await answered(stage, { path: `/events?type=${type}` }, ({ events }) =>
      JSON.stringify(events).includes(type),
    );
    expect((await stage.call({ path: `/events?type=${type}&after=${next}` })).body.events).toHaveLength(1);
  });
});

describe('ids', () => {
  test('are the same in any case', async () => {
    const hash = `0x${'ab'.repeat(32)}`;
    const odd = `0x${'aB'.repeat(32)}`;
    const tracked = { kind: 'intent', id: odd, receivers: ['backend'], metadata: { order: '7' } };
    expect((await stage.call({ method: 'POST', path: '/subjects', body: tracked })).body).toMatchObject({
      subject: `intent:${hash}`,
    });
    expect((await stage.call({ path: `/subjects/intent:${odd}` })).body.subject).toBe(`intent:${hash}`);
    stage.setStatus(hash, 'filled');
    await answered(stage, { path: `/events?subject=intent:${hash}` }, ({ events }) =>
      JSON.stringify(events).includes('intent.filled'),
    );
    const { body } = await stage.call({ path: `/events?subject=intent:${odd}` });
    expect(JSON.stringify(body.events)).toContain('intent.filled');
    const shown = await stage.call({ path: `/subjects?metadata=order%3D7` });
    expect(shown.body.subjects).toMatchObject([
      { subject: `intent:${hash}`, subscriptions: [], metadata: { order: '7' } },
    ]);
    expect((await stage.call({ method: 'DELETE', path: `/subjects/intent:${odd}` })).status).toBe(200);
  });
});

describe('lists', () => {
  test('have no more than was requested, and each once', async () => {
    const wallets = Array.from({ length: 40 }, (_, index) => `0x${String(index + 1).padStart(40, '0')}`);
    for (const id of wallets) {
      const body = { kind: 'wallet', id, receivers: ['backend'] };
      expect((await stage.call({ method: 'POST', path: '/subjects', body })).status).toBe(201);
    }
    const found: string[] = [];
    let cursor = '';
    do {
      const { body } = await stage.call({ path: `/subjects?kind=wallet&limit=7${cursor}` });
      const { subjects, next } = body;
      if (!Array.isArray(subjects)) throw new Error('found no list');
      expect(subjects.length).toBeLessThanOrEqual(7);
      found.push(
        ...subjects.map((one) =>
          typeof one === 'object' && one !== null && 'subject' in one ? String(one.subject) : '',
        ),
      );
      cursor = next === null ? '' : `&cursor=${next}`;
    } while (cursor !== '');
    expect(found.sort()).toEqual(wallets.map((id) => `wallet:${id}`));
  });
});

describe('a request', () => {
  test('is refused with a cursor that no log can have', async () => {
    const log = JSON.parse(
      Buffer.from(String((await stage.call({ path: '/events?limit=1' })).body.next), 'base64url').toString(),
    ).log;
    for (const after of ['1-99999999999999999999', '1-18446744073709551616']) {
      const cursor = Buffer.from(JSON.stringify({ log, after })).toString('base64url');
      expect(await stage.call({ path: `/events?after=${cursor}` })).toMatchObject({ status: 400 });
    }
  });

  test('is refused with a cursor of a list that no answer has given', async () => {
    const cursor = Buffer.from(JSON.stringify({ list: 0, scan: '99999999999999999999' })).toString(
      'base64url',
    );
    expect(await stage.call({ path: `/subjects?cursor=${cursor}` })).toMatchObject({ status: 400 });
  });

  test('is answered for a consumer whose place cannot be read: it begins anew', async () => {
    const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });
    await redis.hset(new Keys(stage.config.prefix).consumers, 'odd', 'log|nowhere');
    await disconnect(redis);
    expect(await stage.call({ path: '/events?consumer=odd' })).toMatchObject({ status: 200 });
  });

  test('is refused where a whole quote and an id name two things', async () => {
    const body = { quote: {}, id: hashOf(5), receivers: ['backend'] };
    expect((await stage.call({ method: 'POST', path: '/subjects', body })).body).toMatchObject({
      status: 400,
      detail: expect.stringContaining('body.id'),
    });
  });

  test('uses up no idempotency keys with a token that consumes', async () => {
    const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });
    const stored = async () => redis.zcard(new Keys(stage.config.prefix).answers);
    const before = await stored();
    const { next } = (await stage.call({ path: '/events' })).body;
    const requests = { method: 'POST', path: '/consumers/ledger/ack', token: CONSUME_TOKEN };
    for (const key of ['one', 'two', 'three']) {
      const call = { ...requests, body: { cursor: next }, headers: { 'idempotency-key': key } };
      expect((await stage.call(call)).status).toBe(200);
    }
    expect(await stored()).toBe(before);
    await disconnect(redis);
  });

  test('counts as under way for as long as it may take', async () => {
    const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });
    const requests = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<number>();
    hooks.backend.answer = ({ event }) => {
      if (event.type !== 'intentwatch.test') return 204;
      requests.resolve();
      return answer.promise;
    };
    const headers = { 'idempotency-key': 'slow-test' };
    const tested = stage.call({ method: 'POST', path: '/receivers/backend/test', headers });
    await requests.promise;
    const key = createHash('sha256').update('slow-test').digest('hex');
    // A receiver may take 60 s to answer.
    expect(await redis.pttl(new Keys(stage.config.prefix).answer(key))).toBeGreaterThan(65_000);
    answer.resolve(204);
    expect((await tested).status).toBe(200);
    await disconnect(redis);
  });

  test('is done once under one key, also where the first time ended in a crash', async () => {
    const requests = {
      method: 'POST',
      path: '/receivers/backend/resend',
      body: { since: '2026-01-01T00:00:00Z' },
      headers: { 'idempotency-key': 'resend-after-crash' },
    };
    const first = await stage.call(requests);
    expect(first.status).toBe(202);
    // The state after a crash, once the request no longer counts as under way: the effects, and no answer.
    const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });
    const key = createHash('sha256').update('resend-after-crash').digest('hex');
    await redis.del(new Keys(stage.config.prefix).answer(key));
    await disconnect(redis);
    const again = await stage.call(requests);
    expect(again.body).toEqual(first.body);
  });

  test('of a time before all events sends none', async () => {
    const body = { since: '1950-01-01T00:00:00Z', until: '1960-01-01T00:00:00Z' };
    const requests = await stage.call({ method: 'POST', path: '/receivers/backend/resend', body });
    expect(requests.status).toBe(202);
    const replay = await stage.call({ path: `/replays/${requests.body.replay}` });
    expect([replay.status, replay.body]).toEqual([200, expect.objectContaining({ opened: 0, dead: 0 })]);
  });
});

describe('a number of many digits', () => {
  // Finite, with zeros before its last digit: the shape whose zeros took quadratic time to trim.
  const digits = (count: number): string => `1.${'0'.repeat(count - 3)}1`;
  const refusal = 'found JSON with a number that is too long, expected at most 1000 characters';

  test('is refused at the sign-in, without a token', async () => {
    const answer = await fetch(`${stage.url}/console/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: stage.url },
      body: `{"token":${digits(16_000)}}`,
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(refusal);
  });

  test('is refused as the place of a consumer', async () => {
    const answer = await fetch(`${stage.url}/api/v1/consumers/x/ack`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_TOKEN}` },
      body: `{"after":${digits(200_000)}}`,
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ detail: refusal });
  });
});
