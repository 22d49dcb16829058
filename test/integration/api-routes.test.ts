import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { ROUTES } from '../../src/server/api/api.ts';
import { readDocument } from '../../src/server/api/openapi.ts';
import { acceptsIdempotencyKey, type RouteContext, SCOPES } from '../../src/server/api/route.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect as connectRedis, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import {
  ADMIN_TOKEN,
  type ApiStage,
  answered,
  apiStage,
  CONSUME_TOKEN,
  READ_TOKEN,
} from '../support/api-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const INTENT = `intent:${hashOf(1)}`;
const NO_EVENT = `evt_${'0'.repeat(40)}`;

const closers: (() => Promise<unknown>)[] = [];
const hooks = { backend: new Hook(), broken: new Hook(() => 500), operator: new Hook() };
let stage: ApiStage;
/** The event of the intent that was delivered to one receiver, and is a dead letter of another. */
let event = '';
let removed = 0;
let replay = '';
let cursor = '';
let count = 0;

function made(name: string): object {
  const secrets = [`whsec_${Buffer.alloc(32, 5).toString('base64')}`];
  return { name, type: 'webhook', url: 'https://example.com/hook', secrets };
}

/**
 * The requests of every route: `path` with an existing thing, `unknown` with a missing one (null: nothing can be unknown),
 * `bad` with an error in the query or body.
 */
type Case = {
  path: () => string;
  /** One of these; omitted: 200. */
  status?: number | number[];
  body?: () => unknown;
  unknown?: string;
  bad?: { path?: string; body?: unknown; place: string };
};

const CASES: Record<string, Case> = {
  listSubjects: {
    path: () => '/subjects?kind=intent&metadata=order%3D1042&status=filled&underWay=true',
    bad: { path: '/subjects?limit=0', place: 'query.limit' },
  },
  readSubject: {
    path: () => `/subjects/${INTENT}?limit=1`,
    unknown: `/subjects/intent:${hashOf(99)}`,
    bad: { path: `/subjects/${INTENT}?after=nonsense`, place: 'query.after' },
  },
  listSubjectDeliveries: {
    path: () => `/subjects/${INTENT}/deliveries?limit=3`,
    unknown: `/subjects/intent:${hashOf(99)}/deliveries`,
    bad: { path: `/subjects/${INTENT}/deliveries?until=nonsense`, place: 'query.until' },
  },
  addReceiver: {
    path: () => '/receivers',
    status: 201,
    body: () => {
      count += 1;
      return made(`made-${count}`);
    },
    bad: { body: [], place: 'body' },
  },
  replaceReceiver: {
    path: () => '/receivers/made',
    body: () => ({ ...made('made'), name: undefined }),
    unknown: '/receivers/nobody',
  },
  changeReceiver: {
    path: () => '/receivers/made',
    body: () => ({ events: ['intent.*'] }),
    unknown: '/receivers/nobody',
    bad: { body: { name: 'other' }, place: 'body' },
  },
  rotateSecret: {
    path: () => '/receivers/made/rotate',
    body: () => ({ overlap: '1h' }),
    unknown: '/receivers/nobody/rotate',
    bad: { body: { overlap: 'soon' }, place: 'body.overlap' },
  },
  removeReceiver: { path: () => '/receivers/gone', unknown: '/receivers/nobody' },
  recheckSubject: {
    path: () => `/subjects/${INTENT}/recheck`,
    status: 202,
    unknown: `/subjects/intent:${hashOf(99)}/recheck`,
  },
  resendSubject: {
    path: () => `/subjects/${INTENT}/resend`,
    status: 202,
    body: () => ({ receivers: ['backend'] }),
    unknown: `/subjects/intent:${hashOf(99)}/resend`,
    bad: { body: { receivers: [] }, place: 'body.receivers' },
  },
  trackSubject: {
    path: () => '/subjects',
    status: [201, 200],
    body: () => ({ kind: 'intent', id: hashOf(7), receivers: ['backend'], metadata: { order: '1043' } }),
    bad: { body: { kind: 'intent', id: hashOf(7), receivers: 'backend' }, place: 'body.receivers' },
  },
  untrackSubject: {
    path: () => `/subjects/intent:${hashOf(7)}`,
    unknown: `/subjects/intent:${hashOf(99)}`,
    bad: { path: '/subjects/nonsense', place: 'params.subject' },
  },
  listCorridors: { path: () => '/corridors' },
  readLearned: { path: () => '/learned' },
  removeLearned: {
    path: () => '/learned',
    unknown: '/learned?route=1:2',
    bad: { path: '/learned?route=', place: 'query.route' },
  },
  listQuarantined: { path: () => '/quarantine' },
  replayQuarantined: { path: () => '/quarantine/replay' },
  listEvents: {
    path: () => `/events?type=intent.*&subject=${INTENT}&since=1h&limit=2`,
    bad: { path: '/events?after=nonsense', place: 'query.after' },
  },
  streamEvents: {
    path: () => `/events/stream?after=${cursor}`,
    bad: { path: '/events/stream?since=yesterday', place: 'query.since' },
  },
  readEvent: {
    path: () => `/events/${event}?receiver=backend`,
    unknown: `/events/${NO_EVENT}?receiver=backend`,
    bad: { path: '/events/evt_1?receiver=backend', place: 'params.id' },
  },
  acknowledgeEvents: {
    path: () => '/consumers/ledger/ack',
    body: () => ({ cursor }),
    bad: { body: { cursor: 'nonsense' }, place: 'body.cursor' },
  },
  removeConsumer: { path: () => '/consumers/ledger', unknown: '/consumers/nobody' },
  listUndelivered: {
    path: () => '/undelivered?state=dead&receiver=broken&type=intent.*',
    bad: { path: '/undelivered?state=lost', place: 'query.state' },
  },
  listUnmatched: {
    path: () => '/unmatched?limit=10',
    bad: { path: '/unmatched?limit=0', place: 'query.limit' },
  },
  listSuspended: {
    path: () => '/suspended?limit=10',
    bad: { path: '/suspended?limit=0', place: 'query.limit' },
  },
  listDropped: {
    path: () => '/suspended/dropped?limit=10',
    bad: { path: '/suspended/dropped?cursor=nonsense', place: 'query.cursor' },
  },
  removeSuspended: {
    path: () => '/suspended/remove',
    body: () => {
      removed += 1;
      return { id: `left-${removed}` };
    },
    bad: { body: { id: '' }, place: 'body.id' },
  },
  resendEvent: {
    path: () => `/events/${event}/resend`,
    status: 202,
    body: () => ({ receivers: ['backend'] }),
    unknown: `/events/${NO_EVENT}/resend`,
    bad: { body: { receivers: 'backend' }, place: 'body.receivers' },
  },
  resendToReceiver: {
    path: () => '/receivers/backend/resend',
    status: 202,
    body: () => ({ since: '1h', types: ['intent.*'] }),
    unknown: '/receivers/nobody/resend',
    bad: { body: { since: 'yesterday' }, place: 'body.since' },
  },
  retryDeadLetters: {
    path: () => '/receivers/broken/retry',
    status: 202,
    body: () => ({}),
    unknown: '/receivers/nobody/retry',
    bad: { body: { all: true }, place: 'body.all' },
  },
  readReplay: {
    path: () => `/replays/${replay}`,
    unknown: '/replays/0123456789abcdef',
    bad: { path: '/replays/1', place: 'params.id' },
  },
  listReceivers: { path: () => '/receivers', bad: { path: '/receivers?all=1', place: 'query.all' } },
  readReceiver: { path: () => '/receivers/backend', unknown: '/receivers/nobody' },
  pauseReceiver: { path: () => '/receivers/operator/pause', unknown: '/receivers/nobody/pause' },
  resumeReceiver: { path: () => '/receivers/operator/resume', unknown: '/receivers/nobody/resume' },
  disableReceiver: { path: () => '/receivers/operator/disable', unknown: '/receivers/nobody/disable' },
  enableReceiver: { path: () => '/receivers/operator/enable', unknown: '/receivers/nobody/enable' },
  testReceiver: { path: () => '/receivers/backend/test', unknown: '/receivers/nobody/test' },
  readBooks: {
    path: () => `/books/${new Date().toISOString().slice(0, 10)}`,
    unknown: '/books/1999-12-31',
    bad: { path: '/books/monday', place: 'params.day' },
  },
  readConfig: { path: () => '/config' },
  reloadConfig: { path: () => '/reload' },
  readDocument: { path: () => '/openapi.json' },
};

beforeAll(async () => {
  for (const hook of Object.values(hooks)) {
    await hook.start();
    closers.push(() => hook.close());
  }
  const postgres = PARTS.postgres.place === null ? null : await PostgresProcess.start();
  closers.push(async () => postgres?.close());
  const more = postgres === null ? {} : { books: { url: postgres.url } };
  stage = await apiStage(hooks, { later: (close) => void closers.push(close), more });
  stage.setStatus(hashOf(1), 'pending');
  await hooks.backend.until((came) => came.some(({ event }) => event.type === 'intent.pending'));
  stage.setStatus(hashOf(1), 'filled');
  const came = await hooks.backend.until((came) => came.some(({ event }) => event.type === 'intent.filled'));
  event = came.find(({ event }) => event.type === 'intent.filled')?.event.id ?? '';
  await answered(stage, { path: '/undelivered?state=dead' }, ({ undelivered }) =>
    JSON.stringify(undelivered).includes(event),
  );
  const page = await stage.call({ path: '/events' });
  cursor = String(page.body.next);
  const resent = await stage.call({
    method: 'POST',
    path: `/events/${event}/resend`,
    body: { receivers: ['backend'] },
  });
  await suspendSome(stage.config.prefix);
  for (const name of ['made', 'gone'])
    await stage.call({ method: 'POST', path: '/receivers', body: made(name) });
  replay = /[0-9a-f]{16}/.exec(JSON.stringify(resent.body))?.[0] ?? '';
});

/** Adds subscriptions `left-1`, `left-2` … in the state of removal from the config. */
async function suspendSome(prefix: string): Promise<void> {
  const [redis, keys] = [connectRedis({ kind: 'server', url: inject('redisUrl') }), new Keys(prefix)];
  const claimKeys = Array.from({ length: 100 }, (_, index) => `left-${index + 1}|intent:${hashOf(1_000)}`);
  await redis.hset(keys.wanted, ...claimKeys.flatMap((claimKey) => [claimKey, '1']));
  await redis.zadd(keys.suspensions, Date.now(), 'out:1');
  await redis.hset(keys.suspended, ...claimKeys.flatMap((claimKey) => [claimKey, 'out:1']));
  await disconnect(redis);
}

afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

test('the document is made once: that takes as long as hundreds of other requests', async () => {
  const call = readDocument.read({ params: {}, query: {}, body: undefined });
  if (typeof call !== 'function') throw new Error('the request was refused');
  const context: RouteContext = {
    deps: () => {
      throw new Error('the document needs no daemon');
    },
    findEvent: async () => null,
    signal: new AbortController().signal,
    key: null,
    lastEventId: null,
    routes: ROUTES,
  };
  const [one, other] = [await call(context), await call(context)];
  if (!('body' in one) || !('body' in other)) throw new Error('found no body');
  expect(one.body).toBe(other.body);
});

test('the tests request every route', () => {
  expect(Object.keys(CASES).sort()).toEqual(ROUTES.map(({ operation }) => operation).sort());
});

describe.each(ROUTES.map((route) => ({ route, name: `${route.method} ${route.path}` })))('$name', ({
  route,
}) => {
  const { method, operation, scope } = route;
  const one = CASES[operation] ?? { path: () => '' };
  const statuses = [one.status ?? 200].flat();
  // The books of this stage are in Postgres, because its Redis is not embedded.
  const needed = operation === 'readBooks' ? needs(PARTS.postgres) : needs();
  const sent = (): { method: string; path: string; body?: unknown } => ({
    method,
    path: one.path(),
    ...(one.body === undefined ? {} : { body: one.body() }),
  });

  test.skipIf(needed.skip)(`is answered as the document states${needed.note}`, async () => {
    const { status, body } = await stage.call({
      ...sent(),
      token: { read: READ_TOKEN, consume: CONSUME_TOKEN, admin: ADMIN_TOKEN }[scope],
    });
    expect([status, body]).toEqual([expect.toBeOneOf(statuses), expect.anything()]);
    if (operation === 'streamEvents') return;
    const schema = route.answers[status]?.schema;
    expect(schema?.parse(body)).toEqual(body);
  });

  test.each([
    ['no token', null],
    ['the beginning of a token', ADMIN_TOKEN.slice(0, -1)],
  ])('is 401 with %s', async (_, token) => {
    // Each route from an address of its own: answers to failed logins of one address get slower.
    const from = `127.0.1.${ROUTES.indexOf(route) + 1}`;
    const { status, body, headers } = await stage.call({ ...sent(), token, from });
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(body.detail).toContain('expected the header Authorization');
  });

  test('is 403 with a token that lacks its right, and names the tokens that have it', async () => {
    const admin = 'an admin token (server.token or server.tokens.admin)';
    const expected = scope === 'admin' ? admin : `server.tokens.consume or ${admin}`;
    const lesser = Object.entries({ read: READ_TOKEN, consume: CONSUME_TOKEN });
    for (const [held, token] of lesser.slice(0, SCOPES.indexOf(scope))) {
      const { status, body } = await stage.call({ ...sent(), token });
      expect([status, body.detail]).toEqual([403, `found server.tokens.${held}, expected ${expected}`]);
    }
  });

  test('names the wrong part of a request', async () => {
    const { bad } = one;
    if (bad !== undefined) {
      const { status, body } = await stage.call({ ...sent(), ...bad });
      expect([status, placesOf(body)]).toEqual([400, [bad.place]]);
    }
    const { status, body } = await stage.call({ ...sent(), path: withQuery(one.path()) });
    expect([status, placesOf(body)]).toEqual([400, ['query.surprise']]);
    if (!route.takesBody) {
      const refused = await stage.call({ ...sent(), method: method === 'GET' ? 'DELETE' : method, body: {} });
      expect([404, 413]).toContain(refused.status);
      return;
    }
    for (const [wrong, expected] of [
      ['{"a":', 400],
      [undefined, 400],
      ['"text"', 400],
    ] as const) {
      expect((await stage.call({ ...sent(), body: wrong })).status).toBe(expected);
    }
    const plain = await stage.call({ ...sent(), headers: { 'content-type': 'text/plain' } });
    expect(plain.status).toBe(415);
    const long = JSON.stringify({ long: 'x'.repeat(300 * 1_024) });
    expect((await stage.call({ ...sent(), body: long })).status).toBe(413);
  });

  test.skipIf(needed.skip)(`is 404 for a missing item${needed.note}`, async () => {
    if (one.unknown === undefined) return;
    const { status, body, headers } = await stage.call({ ...sent(), path: one.unknown });
    expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json; charset=utf-8']);
    expect(body.detail).toMatch(/found|has no|not tracked/);
  });

  test('is done once with one idempotency key', async () => {
    if (!acceptsIdempotencyKey(route)) return;
    const headers = { 'idempotency-key': `key-of-${operation}` };
    const requests = sent();
    const first = await stage.call({ ...requests, headers });
    const second = await stage.call({ ...requests, headers });
    expect(first.status).toBeOneOf(statuses);
    expect(second.status).toBe(first.status);
    expect(second.body).toEqual(first.body);
    expect([first, second].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    const other = await stage.call({ ...sent(), path: `${one.path()}?`, headers });
    expect(other.status).toBe(422);
  });
});

describe('rights, where polling has ended', () => {
  const redis = connectRedis({ kind: 'server', url: inject('redisUrl') });

  beforeAll(async () => {
    await stage.stopPolling();
    // Deliveries under way still arrive.
    await eventually('Redis is at rest', async () => {
      const before = await storedIn(redis, stage.config.prefix);
      await stage.call({ path: '/receivers' });
      const after = await storedIn(redis, stage.config.prefix);
      return isDeepStrictEqual(before, after) ? true : null;
    });
  });
  afterAll(() => disconnect(redis));

  test('a route needs more than the right to read where it is no GET, and only there', () => {
    for (const { method, scope } of ROUTES) expect(scope === 'read').toBe(method === 'GET');
  });

  test.each(
    ROUTES.map((route, index) => ({ route, index, name: `${route.method} ${route.path}` })),
  )('$name stores nothing, but for a token with the right to change', async ({
    route: { method, operation, scope },
    index,
  }) => {
    const one = CASES[operation];
    if (one === undefined) throw new Error(`found no case of ${operation}`);
    const body = one.body === undefined ? {} : { body: one.body() };
    const needed = SCOPES.indexOf(scope);
    const kinds = [
      // Each from an address of its own: answers to failed logins of one address get slower.
      { token: null, from: `127.0.2.${index + 1}`, isRefusedBy: 401 },
      { token: 'a-token-that-is-none', from: `127.0.3.${index + 1}`, isRefusedBy: 401 },
      ...[READ_TOKEN, CONSUME_TOKEN, ADMIN_TOKEN].map((token, held) => ({
        token,
        isRefusedBy: held < needed ? 403 : null,
      })),
    ];
    const before = await storedIn(redis, stage.config.prefix);
    for (const { isRefusedBy, ...sent } of kinds) {
      if (isRefusedBy === null && method !== 'GET') continue;
      const { status } = await stage.call({ method, path: one.path(), ...body, ...sent });
      // Without Postgres this stage has no books.
      const answered = operation === 'readBooks' && PARTS.postgres.place === null ? 404 : (one.status ?? 200);
      const expected = isRefusedBy === null ? [answered].flat() : [isRefusedBy];
      expect([sent.token, status]).toEqual([sent.token, expect.toBeOneOf(expected)]);
    }
    const after = await storedIn(redis, stage.config.prefix);
    const names = new Set([...before.keys(), ...after.keys()]);
    expect([...names].filter((name) => before.get(name) !== after.get(name))).toEqual([]);
  });
});

/** Matches the keys that an idle daemon changes by itself: its signs of life, its polls, its queues and its learning. */
const OWN_KEYS =
  /^:(senders$|instances$|clock$|events:epoch$|q:|learned:|plan:[^:]+:processes$|([^:]+:)*(lease|fence)$)/;

/** The contents under a prefix, by the rest of each key; without the changes of an idle daemon. */
async function storedIn(redis: RedisClient, prefix: string): Promise<Map<string, string>> {
  const { prefix: tagged } = new Keys(prefix);
  const names = (await redis.keys(`${tagged}*`)).map((key) => key.slice(tagged.length));
  const wanted = names.filter((name) => !OWN_KEYS.test(name));
  const values = await Promise.all(wanted.map((name) => redis.dumpBuffer(`${tagged}${name}`)));
  return new Map(wanted.map((name, index) => [name, values[index]?.toString('base64') ?? '']));
}

function placesOf({ errors }: JsonObject): string[] {
  return Array.isArray(errors) ? errors.map((error) => String(Object(error).place)) : [];
}

function withQuery(path: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}surprise=1`;
}
