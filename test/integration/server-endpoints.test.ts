import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { type MetricSources, Metrics } from '../../src/metrics/metrics.ts';
import { Secret } from '../../src/secret.ts';
import type { ApiOptions } from '../../src/server/api/api.ts';
import { EventLinks } from '../../src/server/event-links.ts';
import { type ReadinessCheck, Server } from '../../src/server/server.ts';
import { Signals } from '../../src/signals.ts';
import { HEALTH, NO_TRANSFERS } from '../support/health.ts';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(
  options: {
    host?: string;
    sources?: Partial<MetricSources>;
    readiness?: () => Promise<ReadinessCheck[]>;
    health?: () => ReadinessCheck[];
    api?: ApiOptions;
  } = {},
): Promise<{ url: string; server: Server }> {
  const metrics = new Metrics({
    signals: new Signals(),
    sources: {
      transfers: async () => NO_TRANSFERS,
      subjects: async () => [],
      queues: async () => [],
      deliveries: async () => [],
      receivers: async () => [],
      suspensions: async () => ({ claimKeys: 0, waiting: 0 }),
      endpointGroups: async () => [],
      waits: async () => [],
      sweeps: async () => [],
      learned: async () => ({ stages: [], newTransfersPerSecond: 0 }),
      routes: async () => [],
      checks: async () => ({ chains: [], unreadSeconds: null }),
      ...options.sources,
    },
    tokens: { directory: COMMON_NAMES, listed: COMMON_NAMES },
    health: HEALTH,
    receivers: [],
    routes: [],
    version: '1.2.3',
    nodeVersion: 'v26.0.0',
  });
  const server = new Server({
    host: options.host ?? '127.0.0.1',
    port: 0,
    metrics,
    readiness: options.readiness ?? (async () => [{ name: 'redis', ok: true, detail: 'reachable' }]),
    health: options.health ?? (() => []),
    api: options.api ?? null,
  });
  const { url } = await server.start();
  closers.push(async () => {
    metrics.close();
    await server.close();
  });
  return { url, server };
}

describe('/metrics', () => {
  test('gives the text format of Prometheus without a token', async () => {
    const { url } = await serve();
    const answer = await fetch(`${url}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const body = await answer.text();
    expect(body).toContain('\nintentwatch_learned_new_transfers_per_second 0\n');
    expect(body).toMatch(/^process_start_time_seconds \d+$/m);
  });

  test('answers while a source hangs, without its gauges', async () => {
    const { url } = await serve({ sources: { waits: () => new Promise(() => undefined) } });
    const body = await (await fetch(`${url}/metrics`)).text();
    expect(body).toContain('\nintentwatch_scrape_errors_total{source="waits"} 1\n');
    expect(body).not.toMatch(/^intentwatch_longest_wait_seconds/m);
    expect(body).toMatch(/^intentwatch_build_info/m);
  });
});

test('/healthz reports that the process lives, also when nothing is ready', async () => {
  const { url } = await serve({
    readiness: async () => {
      throw new Error('nothing works');
    },
  });
  const answer = await fetch(`${url}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([200, { status: 'ok' }]);
});

test('/healthz is 503 with the reason when only a restart would help', async () => {
  const stuck = { name: 'event-loop', ok: false, detail: 'stood still for 34 s of the last minute' };
  const { url } = await serve({ health: () => [stuck, { name: 'redis-connections', ok: true, detail: '' }] });
  const answer = await fetch(`${url}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([503, { status: 'stuck', checks: [stuck] }]);
});

describe('/readyz', () => {
  test('is 200 with every check when all are ok', async () => {
    const checks = [
      { name: 'config', ok: true, detail: 'loaded' },
      { name: 'redis', ok: true, detail: 'reachable' },
    ];
    const { url } = await serve({ readiness: async () => checks });
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ready', notReady: [], checks }]);
  });

  test('is 503 and names the failed check', async () => {
    const checks = [
      { name: 'config', ok: true, detail: 'loaded' },
      { name: 'redis', ok: false, detail: 'the connection is reconnecting' },
      { name: 'workers', ok: false, detail: '2 of 3 do not run' },
    ];
    const { url } = await serve({ readiness: async () => checks });
    const answer = await fetch(`${url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { status: 'not ready', notReady: ['redis', 'workers'], checks },
    ]);
  });

  test('is 503 when the checks hang', async () => {
    const { url } = await serve({ readiness: () => new Promise(() => undefined) });
    const answer = await fetch(`${url}/readyz`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({
      notReady: ['readiness'],
      checks: [{ detail: 'the checks gave no answer within 2 s' }],
    });
  });

  test('is 503 when the checks fail, without the message of the error', async () => {
    const { url } = await serve({
      readiness: async () => {
        throw new TypeError('redis://:secret@example.com');
      },
    });
    const answer = await fetch(`${url}/readyz`);
    const body = await answer.text();
    expect([answer.status, body.includes('secret'), body.includes('TypeError')]).toEqual([503, false, true]);
  });
});

describe('an unknown path', () => {
  test('is 404 with a problem that names the valid paths, and repeats no query', async () => {
    const { url } = await serve();
    const answer = await fetch(`${url}/metric?token=secret`);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await answer.json()).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: 'found GET /metric, expected GET /metrics, /healthz or /readyz',
    });
  });
});

/** The whole answer to raw bytes. */
async function answerTo(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.setEncoding('utf8');
  let answer = '';
  socket.on('data', (part: string) => {
    answer += part;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return answer;
}

describe('a request that reaches no route', () => {
  test.each([
    ['is no HTTP', 400, 'nonsense\r\n\r\n'],
    [
      'has a larger head than there may be',
      431,
      `GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(17_000)}`,
    ],
    ['comes too slowly', 408, 'GET /healthz HTTP/1.1\r\nHost: a\r\n'],
    ['has a path that cannot be decoded', 400, 'GET /%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
  ])('because it %s is %s, with a problem', async (_what, status, bytes) => {
    const { url } = await serve();
    const answer = await answerTo(url, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/^content-type: application\/problem\+json/im);
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
    expect(problem).toMatchObject({ type: 'about:blank', status });
    expect(problem.detail).toMatch(/^found .*, expected /);
  });
});

describe('/api/v1/events/{id}', () => {
  const ID = `evt_${'0123456789'.repeat(4)}`;
  const TOKEN = 'token-4711';
  const event: RenderedEvent = {
    id: ID,
    type: 'intent.filled',
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'intent', id: 'intent:0xab' },
      sequence: 1,
      epoch: 1,
      status: 'filled',
      previousStatus: null,
      changes: [],
      record: { note: 'x'.repeat(30_000) },
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
      wallets: [],
      subscriptions: ['treasury'],
      metadata: {},
    },
  };
  const api: ApiOptions = {
    tokens: { read: null, consume: null, admin: [new Secret(TOKEN)] },
    console: true,
    publicUrl: null,
    trustProxy: [],
    linkToken: new Secret(TOKEN),
    deps: () => null,
    findEvent: async ({ id, receiver }) => (id === ID && receiver === 'backend' ? event : null),
  };
  const authorization = `Bearer ${TOKEN}`;

  test('is 414 where the id is longer than any is, with a problem', async () => {
    const { url } = await serve({ api });
    const answer = await fetch(`${url}/api/v1/events/${'x'.repeat(501)}`);
    expect(answer.status).toBe(414);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await answer.json()).toMatchObject({ status: 414, detail: expect.stringMatching(/at most 500/) });
  });

  test('gives the whole event of a receiver to each holder of the token', async () => {
    const { url } = await serve({ api });
    const answer = await fetch(`${url}/api/v1/events/${ID}?receiver=backend`, { headers: { authorization } });
    expect([answer.status, await answer.json()]).toEqual([200, event]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test.each([
    ['no token', {}],
    ['another token', { authorization: 'Bearer token-4712' }],
    ['the beginning of the token', { authorization: 'Bearer token' }],
    ['an empty token', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: `Basic ${TOKEN}` }],
  ])('is 401 with %s, for any request', async (_, headers) => {
    const { url } = await serve({ api });
    for (const path of [`/api/v1/events/${ID}?receiver=backend`, '/api/v1/events/evt_1']) {
      const answer = await fetch(`${url}${path}`, { headers });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(await answer.text()).not.toContain(TOKEN);
    }
  });

  test.each([
    ['another event', `evt_${'1'.repeat(40)}?receiver=backend`, 404],
    ['another receiver', `${ID}?receiver=other`, 404],
    ['an invalid event id', 'evt_1?receiver=backend', 400],
    ['no receiver', ID, 400],
    ['an invalid name of a receiver', `${ID}?receiver=${encodeURIComponent('a b')}`, 400],
    ['two receivers', `${ID}?receiver=backend&receiver=other`, 400],
  ])('is a problem for %s', async (_, path, status) => {
    const { url } = await serve({ api });
    const answer = await fetch(`${url}/api/v1/events/${path}`, { headers: { authorization } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  test.each([
    ['fails', () => Promise.reject(new Error('redis://:secret@example.com'))],
    ['hangs', () => new Promise<never>(() => undefined)],
  ])('is 503 when the search %s, without the message of an error', async (_, findEvent) => {
    const { url } = await serve({ api: { ...api, findEvent } });
    const answer = await fetch(`${url}/api/v1/events/${ID}?receiver=backend`, { headers: { authorization } });
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain('secret');
  });

  describe('a link', async () => {
    const DAY_MS = 86_400_000;
    const links = await EventLinks.create(new Secret(TOKEN));
    const linkTo = (receiver: string, nowMs = Date.now()): URLSearchParams =>
      new URLSearchParams(links.query({ id: ID, receiver }, nowMs));
    const follow = async (query: URLSearchParams, id = ID): Promise<{ status: number; text: string }> => {
      const { url } = await serve({ api });
      const answer = await fetch(`${url}/api/v1/events/${id}?${query}`);
      if (answer.status !== 200)
        expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      return { status: answer.status, text: await answer.text() };
    };

    test('shows its event as its receiver gets it, for 7 days, to each holder of it', async () => {
      for (const nowMs of [Date.now(), Date.now() - 6.99 * DAY_MS]) {
        const { status, text } = await follow(linkTo('backend', nowMs));
        expect([status, JSON.parse(text)]).toEqual([200, event]);
      }
    });

    test('is the same all day, so that attempts have the same bytes', () => {
      const nowMs = 1_800_000_000_000;
      expect(links.query({ id: ID, receiver: 'backend' }, nowMs)).toBe(
        links.query({ id: ID, receiver: 'backend' }, nowMs + 1_000),
      );
    });

    test('that has expired is refused', async () => {
      const { status, text } = await follow(linkTo('backend', Date.now() - 8.01 * DAY_MS));
      expect([status, text]).toEqual([403, expect.stringContaining('expired')]);
    });

    test.each<[string, (query: URLSearchParams) => void, string?]>([
      ['another receiver', (query) => query.set('receiver', 'other')],
      ['another event', () => undefined, `evt_${'1'.repeat(40)}`],
      ['a later end', (query) => query.set('expires', '99999999999')],
      ['no end', (query) => query.delete('expires')],
      ['two ends', (query) => query.append('expires', '99999999999')],
      ['another signature', (query) => query.set('signature', `${'A'.repeat(43)}`)],
      ['half a signature', (query) => query.set('signature', query.get('signature')?.slice(0, 20) ?? '')],
      ['no signature in it', (query) => query.set('signature', '')],
    ])('with %s is refused', async (_, change, id) => {
      const query = linkTo('backend');
      change(query);
      const { status, text } = await follow(query, id);
      expect(status).toBe(403);
      expect(text).not.toContain('x'.repeat(100));
    });

    test('made with another token is refused', async () => {
      const others = await EventLinks.create(new Secret('another token, of another daemon'));
      const query = new URLSearchParams(others.query({ id: ID, receiver: 'backend' }, Date.now()));
      expect(await follow(query)).toMatchObject({ status: 403 });
    });
  });

  test('does not exist where there is no token', async () => {
    const { url } = await serve();
    const answer = await fetch(`${url}/api/v1/events/${ID}?receiver=backend`, { headers: { authorization } });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ detail: expect.stringContaining('expected GET /metrics') });
  });
});

describe('starting', () => {
  test('on a port that is in use fails with the config key, the port and the host', async () => {
    const { url } = await serve();
    const port = Number(new URL(url).port);
    const second = new Server({
      host: '127.0.0.1',
      port,
      metrics: { expose: async () => ({ contentType: 'text/plain', body: '' }) },
      readiness: async () => [],
      health: () => [],
      api: null,
    });
    await expect(second.start()).rejects.toThrow(`server.port ${port} on 127.0.0.1 is in use`);
    await second.close();
  });

  test('on localhost listens at one of its addresses, which has the limits, and answers by that name', async () => {
    const { url } = await serve({ host: 'localhost' });
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
    const { port } = new URL(url);
    const answers = await Promise.allSettled(
      ['127.0.0.1', '[::1]'].map((host) => fetch(`http://${host}:${port}/metrics`)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('on a host that is no address of this machine fails with the config key and the host', async () => {
    const server = new Server({
      host: '192.0.2.1',
      port: 0,
      metrics: { expose: async () => ({ contentType: 'text/plain', body: '' }) },
      readiness: async () => [],
      health: () => [],
      api: null,
    });
    await expect(server.start()).rejects.toThrow('server.host 192.0.2.1 is no address of this machine');
    await server.close();
  });
});

describe('closing', () => {
  test('waits neither for keep-alive connections nor for a request under way', async () => {
    let requests: () => void = () => undefined;
    const underWay = new Promise<void>((resolve) => {
      requests = resolve;
    });
    const { url, server } = await serve({
      readiness: () => {
        requests();
        return new Promise(() => undefined);
      },
    });
    const agent = new Agent({ keepAlive: true });
    const ended = (path: string) =>
      new Promise<string>((resolve) => {
        const request = httpRequest(`${url}${path}`, { agent }, (response) => {
          response.resume();
          response.once('end', () => resolve('answered'));
        });
        request.once('error', () => resolve('cut off'));
        request.end();
      });
    expect(await Promise.all([ended('/healthz'), ended('/healthz')])).toEqual(['answered', 'answered']);
    const ready = ended('/readyz');
    await underWay;
    await server.close();
    // A waiting close would have let the request be answered after 2 s.
    expect(await ready).toBe('cut off');
    agent.destroy();
  });
});
