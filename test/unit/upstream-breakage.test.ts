import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/domain/limits.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient, type UpstreamClientOptions } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import type { Outcome } from '../../src/upstream/client/send-request.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';

const KEY = 'sk-live-0123456789abcdef';
const PAGE = JSON.stringify({
  results: [{ id: 'intent:0x1', type: 'intent', status: 'pending', updatedAt: 1763638259 }],
  nextCursor: null,
});

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return `http://127.0.0.1:${address.port}`;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return listen(server);
}

function connect(baseUrl: string, options: Partial<UpstreamClientOptions> = {}): UpstreamClient {
  const client = new UpstreamClient({
    baseUrl,
    apiKey: new Secret(KEY),
    timeoutMs: 60_000,
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/deposit-gateway/v2/depositAddresses/{vaultAddress}',
      chainParam: 'sourceChainId',
      jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
    },
    ...options,
  });
  cleanups.push(() => client.close());
  return client;
}

const json = { 'content-type': 'application/json' };

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error = await promise.then(
    () => new Error('an answer came'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof UpstreamFailure)) throw error;
  return error;
}

describe('an answer that breaks off', () => {
  const cutShort = (status: number) => (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { ...json, 'content-length': String(PAGE.length + 10) });
    response.write(PAGE, () => response.socket?.destroy());
  };

  test('shorter than its length is malformed, even where the received part is JSON', async () => {
    const failure = await failureOf(connect(await serve(cutShort(200))).status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'malformed', httpStatus: 200 });
    expect(failure.message).toContain('a body truncated');
  });

  test('in the middle of an error retains the error', async () => {
    const failure = await failureOf(connect(await serve(cutShort(401))).status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'unauthorized', httpStatus: 401 });
  });

  test('because it is too large is malformed, and its connection ends', async () => {
    const closed = Promise.withResolvers<void>();
    const base = await serve((request, response) => {
      request.socket.once('close', () => closed.resolve());
      response.writeHead(200, json);
      const more = (): void => {
        if (!response.destroyed) response.write('x'.repeat(1000), () => setImmediate(more));
      };
      more();
    });
    const failure = await failureOf(connect(base).status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'malformed', httpStatus: 200 });
    expect(failure.message).toContain('a body too large');
    await closed.promise;
  });

  test.each([
    { list: 'status', bytes: LIMITS.upstream.bytes },
    { list: 'tokens', bytes: LIMITS.upstreamList.bytes },
  ] as const)('a body of exactly the largest size is accepted: $list', async ({ list, bytes }) => {
    let more = 0;
    const base = await serve((request, response) => {
      const start = request.url?.startsWith('/v1/tokens')
        ? '{"tokens":[],"x":"'
        : `${PAGE.slice(0, -1)},"x":"`;
      response.writeHead(200, json).end(`${start}${'x'.repeat(bytes + more - start.length - 2)}"}`);
    });
    const client = connect(base);
    const fetchList = () => (list === 'status' ? client.status({ quoteId: 'u' }) : client.tokens());
    expect((await fetchList()).httpStatus).toBe(200);
    more = 1;
    expect(await failureOf(fetchList())).toMatchObject({
      code: 'malformed',
      tooLarge: { found: `more than ${bytes} bytes` },
    });
  });

  test.each([
    { what: 'members', body: `[${'1,'.repeat(20_000)}1]`, found: 'JSON with too many members' },
    { what: 'levels', body: `${'['.repeat(101)}${']'.repeat(101)}`, found: 'JSON that is nested too deeply' },
  ])('of a page that has too many $what names the first record', async ({ body, found }) => {
    const page = `{"results":[{"id":"intent:0x1","x":${body}}]}`;
    const base = await serve((_request, response) => response.writeHead(200, json).end(page));
    expect(await failureOf(connect(base).status({ wallet: '0x1' }))).toMatchObject({
      tooLarge: { found, firstId: 'intent:0x1' },
    });
  });

  test('an answer of a form of its own that is too large names no record', async () => {
    const page = `{"nextCursor":null,"results":[{"id":"intent:0x1","x":"${'x'.repeat(LIMITS.upstream.bytes)}"}]}`;
    const base = await serve((_request, response) => response.writeHead(200, json).end(page));
    expect((await failureOf(connect(base).status({ wallet: '0x1' }))).tooLarge?.firstId).toBe(null);
  });
});

describe('an answer that does not come', () => {
  const drip: RequestListener = (_request, response) => {
    response.writeHead(200, json);
    const timer = setInterval(() => response.write(' '), 10);
    response.once('close', () => clearInterval(timer));
  };

  test('because the headers hang is a timeout', async () => {
    const base = await serve(() => {});
    const failure = await failureOf(connect(base, { timeoutMs: 80 }).status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'timeout', retryable: true, httpStatus: null });
  });

  test('because the body drips without end is a timeout', async () => {
    const client = connect(await serve(drip), { timeoutMs: 1_000 });
    // Once more where the head came late on a busy machine.
    const failure = await eventually('the head came in time', async () => {
      const failed = await failureOf(client.status({ quoteId: 'u' }));
      return failed.httpStatus === null ? null : failed;
    });
    expect(failure).toMatchObject({ code: 'timeout', retryable: true, httpStatus: 200 });
  });

  test('because nothing listens is unavailable', async () => {
    const client = connect(`http://127.0.0.1:${await freePort()}`);
    const failure = await failureOf(client.status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'unavailable', retryable: true, httpStatus: null });
    expect(failure.message).toContain('ECONNREFUSED');
  });

  test('because the connection ends without one is unavailable', async () => {
    const base = await serve((request) => request.socket.destroy());
    expect(await failureOf(connect(base).status({ quoteId: 'u' }))).toMatchObject({ code: 'unavailable' });
  });

  test('because the other side does not speak HTTP is malformed', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(`SSH-2.0-${KEY}\r\n`));
    });
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const failure = await failureOf(connect(await listen(server)).status({ quoteId: 'u' }));
    expect(failure).toMatchObject({ code: 'malformed', httpStatus: null });
    expect(JSON.stringify([failure.message, failure.cause ?? null])).not.toContain(KEY);
  });

  async function abortedWhen(arrival: Promise<unknown>, listener: RequestListener): Promise<void> {
    const outcomes: Outcome[] = [];
    const client = connect(await serve(listener), { onAnswer: (outcome) => outcomes.push(outcome) });
    const caller = new AbortController();
    const requested = client.status({ quoteId: 'u' }, { signal: caller.signal });
    const caught = requested.catch((reason: unknown) => reason);
    await arrival;
    const reason = new DOMException('shutting down', 'AbortError');
    caller.abort(reason);
    expect(await caught).toBe(reason);
    expect(outcomes).toEqual([]);
  }

  test('because the caller aborts before the headers throws the reason and counts nothing', async () => {
    const arrived = Promise.withResolvers<void>();
    await abortedWhen(arrived.promise, () => arrived.resolve());
  });

  test('because the caller aborts during the body throws the reason and counts nothing', async () => {
    const headers = Promise.withResolvers<void>();
    // The library notifies of headers before it passes them on: a turn of the loop later the body is being read.
    const onHeaders = (): unknown => setImmediate(headers.resolve);
    subscribe('undici:request:headers', onHeaders);
    cleanups.push(async () => unsubscribe('undici:request:headers', onHeaders));
    await abortedWhen(headers.promise, drip);
  });

  test('because the caller had aborted before is never requested', async () => {
    let requests = 0;
    const base = await serve(() => {
      requests++;
    });
    const requested = connect(base).status({ quoteId: 'u' }, { signal: AbortSignal.abort() });
    await expect(requested).rejects.toMatchObject({ name: 'AbortError' });
    expect(requests).toBe(0);
  });
});
