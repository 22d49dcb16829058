import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient, type UpstreamClientOptions } from '../../src/upstream/client/client.ts';
import { carriesKey, endpointUrl } from '../../src/upstream/client/endpoint.ts';
import { refusalSentence, UpstreamFailure } from '../../src/upstream/client/failure.ts';
import type { Outcome } from '../../src/upstream/client/send-request.ts';

const KEY = 'sk-live-0123456789abcdef';
const PAGE = JSON.stringify({
  results: [{ id: 'intent:0x1', type: 'intent', status: 'pending', updatedAt: 1763638259 }],
  nextCursor: null,
});
const JOB = '{"data":{"id":"job-1","status":"PENDING"}}';
const VAULT = '{"data":{"vaultAddress":"0xAb","state":"PENDING"}}';

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

const GATEWAY = {
  prefix: 'deposit-gateway',
  vaultPath: '/deposit-gateway/v2/depositAddresses/{vaultAddress}',
  chainParam: 'sourceChainId',
  jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
};

function connect(baseUrl: string, options: Partial<UpstreamClientOptions> = {}): UpstreamClient {
  const client = new UpstreamClient({
    baseUrl,
    apiKey: new Secret(KEY),
    timeoutMs: 60_000,
    gateway: GATEWAY,
    ...options,
  });
  cleanups.push(() => client.close());
  return client;
}

type Canned = { status?: number; headers?: Record<string, string>; body?: string };

const json = { 'content-type': 'application/json' };

const answering =
  ({ status = 200, headers = json, body = '' }: Canned): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers).end(body);
  };

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error = await promise.then(
    () => new Error('an answer came'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof UpstreamFailure)) throw error;
  return error;
}

async function failureFor(
  canned: Canned,
  options: Partial<UpstreamClientOptions> = {},
): Promise<UpstreamFailure> {
  return failureOf(connect(await serve(answering(canned)), options).status({ intentHash: '0x1' }));
}

const problem = (status: number, code: string): Canned => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: JSON.stringify({
    type: `http://x/v1/errors/${code}`,
    title: 'T',
    status,
    code,
    detail: 'what is wrong',
  }),
});

describe('a request', () => {
  test.each([
    [{ intentHash: '0xA' }, '/v1/intents/status?intentHash=0xA'],
    [{ sourceTxHash: '0xA' }, '/v1/intents/status?sourceTxHash=0xA'],
    [{ destinationTxHash: '0xA' }, '/v1/intents/status?destinationTxHash=0xA'],
    [{ quoteId: 'u' }, '/v1/intents/status?quoteId=u'],
    [{ jobId: 'u' }, '/v1/intents/status?jobId=u'],
    [
      { wallet: '0xW', status: 'pending', cursor: 'a+/=&b', limit: 50 },
      '/v1/intents/status?wallet=0xW&status=pending&cursor=a%2B%2F%3D%26b&limit=50',
    ],
  ] as const)('%j goes to the status endpoint', async (query, path) => {
    const urls: (string | undefined)[] = [];
    const base = await serve((request, response) => {
      urls.push(request.url);
      answering({ body: PAGE })(request, response);
    });
    const answer = await connect(base).status(query);
    expect(urls).toEqual([path]);
    expect(answer.value.records[0]?.id).toBe('intent:0x1');
  });

  test('the key goes to v1 only and never to the deposit gateway', async () => {
    const seen: [string, unknown][] = [];
    const base = await serve((request, response) => {
      const url = request.url ?? '';
      seen.push([url, request.headers['x-api-key']]);
      const body = url.includes('/status')
        ? PAGE
        : url.includes('/jobs/')
          ? JOB
          : url.includes('/va')
            ? VAULT
            : '[]';
      answering({ body })(request, response);
    });
    const old = connect(base, { gateway: { ...GATEWAY, vaultPath: '/vaults/{vaultAddress}' } });
    await old.status({ quoteId: 'u' });
    await old.chains();
    await old.tokens();
    await old.gaslessJob('job/1');
    await old.vault({ address: '0xAb', chainId: 8453 });
    const current = connect(`${base}/api/`, {
      gateway: {
        prefix: 'deposit-gateway',
        vaultPath: '/v1/deposit-gateway/vault/{vaultAddress}?full=1',
        chainParam: 'chain',
        jobPath: '/v1/x/../Deposit%2Dgateway/jobs/{id}',
      },
    });
    await current.vault({ address: '0xAb', chainId: 10 });
    await current.gaslessJob('1');
    await current.chains();
    expect(seen).toEqual([
      ['/v1/intents/status?quoteId=u', KEY],
      ['/v1/chains', KEY],
      ['/v1/tokens', KEY],
      ['/deposit-gateway/v1/gasless/jobs/job%2F1', undefined],
      ['/vaults/0xAb?sourceChainId=8453', undefined],
      ['/api/v1/deposit-gateway/vault/0xAb?full=1&chain=10', undefined],
      ['/api/v1/Deposit%2Dgateway/jobs/1', undefined],
      ['/api/v1/chains', KEY],
    ]);
  });

  test.each([
    '/v1',
    '//v1/status',
    '/V1/chains',
    '/v1//chains',
    '/v1/acme/0xAb',
    '/v1/ACME',
    '/v1/%61cme/0xAb',
    '/v1/%2561cme/0xAb',
    '/v1/x/..%2facme/0xAb',
    '/v1/..%2facme/0xAb',
    '/v1/%5cacme/0xAb',
    '/v1/acme;v=1/0xAb',
    '/v1/;a/acme',
    '/v1%2facme',
    '/v2/chains',
  ])('the key is not for %s', (path) => {
    for (const base of ['https://x.example', 'https://x.example/base']) {
      expect(carriesKey(new URL(base), endpointUrl(new URL(base), path), 'acme')).toBe(false);
    }
  });

  test.each([
    '/v1/chains',
    '/v1/intents/status?wallet=0x1%2F',
    '/v1/gasless/submit/erc-3009',
    '/v1/acme2/x',
  ])('the key is for %s', (path) => {
    expect(
      carriesKey(new URL('https://x.example/v1'), endpointUrl(new URL('https://x.example/v1'), path), 'acme'),
    ).toBe(true);
  });

  test('a client without a key sends none, and names the setting where that is refused', async () => {
    const seen: unknown[] = [];
    const base = await serve((request, response) => {
      seen.push([request.url, request.headers['x-api-key']]);
      answering({ status: 401, body: '{"code":"invalid-api-key"}' })(request, response);
    });
    const client = connect(base, { apiKey: null });
    const failure = await client.chains().catch((error: unknown) => error);
    if (!(failure instanceof UpstreamFailure)) throw new Error('expected a refusal');
    expect(seen).toEqual([['/v1/chains', undefined]]);
    expect(refusalSentence(failure)).toMatch(/without a key .*set upstream\.apiKey$/);
  });

  test('the key goes to no path under the prefix of the deposit gateway, and to `deposit-gateway` where that is another', async () => {
    const seen: unknown[] = [];
    const base = await serve((request, response) => {
      seen.push([request.url, request.headers['x-api-key']]);
      answering({ body: request.url?.includes('jobs') ? JOB : VAULT })(request, response);
    });
    const paths = { vaultPath: '/v1//Acme-Vaults/{vaultAddress}', jobPath: '/v1/deposit-gateway/jobs/{id}' };
    const client = connect(base, { gateway: { ...GATEWAY, prefix: 'acme-vaults', ...paths } });
    await client.vault({ address: '0xAb', chainId: 10 });
    await client.gaslessJob('1');
    expect(seen).toEqual([
      ['/v1//Acme-Vaults/0xAb?sourceChainId=10', undefined],
      ['/v1/deposit-gateway/jobs/1', KEY],
    ]);
  });

  test('an answer carries its date, its duration and a count', async () => {
    const outcomes: Outcome[] = [];
    const headers = { ...json, date: 'Thu, 20 Nov 2026 11:31:00 GMT' };
    const base = await serve(answering({ headers, body: PAGE }));
    const answer = await connect(base, { onAnswer: (outcome) => outcomes.push(outcome) }).status({
      quoteId: 'u',
    });
    expect(answer.dateMs).toBe(Date.UTC(2026, 10, 20, 11, 31));
    expect(answer.durationMs).toBeGreaterThan(0);
    expect(outcomes).toEqual([
      {
        endpoint: 'status',
        outcome: 'ok',
        durationSeconds: answer.durationMs / 1000,
        dateMs: answer.dateMs,
      },
    ]);
  });

  test('connections are stored and used again', async () => {
    const sockets = new Set<unknown>();
    const base = await serve((request, response) => {
      sockets.add(request.socket);
      answering({ body: PAGE })(request, response);
    });
    const client = connect(base);
    for (let i = 0; i < 10; i++) await client.status({ quoteId: 'u' });
    // A socket is free again shortly after its answer, so the next request may open a second one.
    expect(sockets.size).toBeLessThan(10);
  });

  test('valid JSON of another content type, with a byte order mark, is accepted', async () => {
    const base = await serve(answering({ headers: { 'content-type': 'text/html' }, body: `\ufeff${PAGE}` }));
    expect((await connect(base).status({ quoteId: 'u' })).value.records).toHaveLength(1);
  });

  test.each([
    [{ baseUrl: 'ftp://x' }, /baseUrl.*ftp/],
    [{ baseUrl: 'nonsense' }, /baseUrl.*nonsense/],
    [{ baseUrl: 'http://user:pw@x' }, /^baseUrl: found more than origin and path on http:\/\/x,/],
    [{ gateway: { ...GATEWAY, vaultPath: '/vaults' } }, /\{vaultAddress\}/],
    [{ gateway: { ...GATEWAY, jobPath: 'jobs/{id}' } }, /\{id\}/],
    [{ apiKey: new Secret('a\nb') }, /^apiKey: found characters that a header cannot carry/],
  ])('a client is not made with %j', (options, message) => {
    expect(() => connect('http://127.0.0.1:1', options)).toThrow(message);
  });

  test.each(['', '.', '..'])('a job id of %j is refused before anything is sent', async (id) => {
    await expect(connect('http://127.0.0.1:1').gaslessJob(id)).rejects.toThrow(RangeError);
  });
});

describe('an answer that fails', () => {
  test.each([
    [400, 'invalid-request', 'invalid-request', false],
    [401, 'invalid-api-key', 'unauthorized', false],
    [403, 'permission-denied', 'forbidden', false],
    [404, 'endpoint-not-found', 'not-found', false],
    [408, 'whatever', 'unavailable', true],
    [409, 'nonce-used', 'invalid-request', false],
    [410, 'quote-expired', 'invalid-request', false],
    [418, 'teapot', 'invalid-request', false],
    [420, 'rate-limit-exceeded', 'rate-limited', true],
    [422, 'no-route-found', 'invalid-request', false],
    [429, 'rate-limit-exceeded', 'rate-limited', true],
    [500, 'internal-error', 'unavailable', true],
    [502, 'solver-error', 'unavailable', true],
    [503, 'rate-limit-exceeded', 'unavailable', true],
  ])('with %i and code %s is %s', async (status, problemCode, code, retryable) => {
    const failure = await failureFor(problem(status, problemCode));
    expect(failure).toMatchObject({ code, retryable, httpStatus: status, problemCode, retryAfterMs: null });
    expect(failure.message).toContain(`upstream status: found HTTP ${status} application/problem+json`);
    expect(failure.message).toContain(`(${problemCode}; what is wrong)`);
    expect(failure.message).toContain('expected HTTP 200 with a JSON object');
  });

  test.each([
    [
      'the bare gateway 403',
      403,
      '{"Message":"User is not authorized"}',
      'forbidden',
      'User is not authorized',
    ],
    [
      'an HTML 502',
      502,
      '<html>\u001b[31mBad\r\nGateway</html>',
      'unavailable',
      '"<html> [31mBad Gateway</html>"',
    ],
    ['an empty 503', 503, '', 'unavailable', 'without text'],
    ['a 500 whose JSON is cut', 500, '{"code":"inter', 'unavailable', '{"code":"inter'],
    ['a 400 whose code is no code', 400, '{"code":{"a":1}}', 'invalid-request', 'HTTP 400'],
    ['a 400 of null', 400, 'null', 'invalid-request', '"null"'],
  ])('as %s is reported by its status', async (_name, status, body, code, text) => {
    const failure = await failureFor({ status, body });
    expect(failure).toMatchObject({ code, httpStatus: status, problemCode: null });
    expect(failure.message).toContain(text);
  });

  test.each([
    ['7', 7000],
    ['0', 0],
    ['1.5', 1500],
    ['999999999', 3_600_000],
    ['Thu, 20 Nov 2026 11:31:30 GMT', 30_000],
    ['Thu, 20 Nov 2025 11:31:30 GMT', 0],
    ['-5', null],
    ['soon', null],
    [null, null],
  ])('with 429 and Retry-After %j requests %j ms', async (retryAfter, retryAfterMs) => {
    const headers = {
      date: 'Thu, 20 Nov 2026 11:31:00 GMT',
      ...(retryAfter && { 'retry-after': retryAfter }),
    };
    const failure = await failureFor({ status: 429, headers });
    expect(failure).toMatchObject({ code: 'rate-limited', retryable: true, retryAfterMs });
  });

  test.each([
    ['HTML', '<!doctype html><title>Sign in</title>', 'not JSON'],
    ['nothing', '', 'an empty body'],
    ['broken JSON', '{"results":[', 'not JSON'],
    ['lists without end', `[${'[],'.repeat(300_000)}[]]`, 'JSON with too many members'],
    ['a body without end', `[${'[],'.repeat(1_300_000)}[]]`, 'a body too large'],
    ['JSON nested without end', '['.repeat(50_000) + ']'.repeat(50_000), 'too deep'],
    ['results that are no array', '{"results":{},"nextCursor":null}', 'an object as results'],
    ['a problem', '{"code":"internal-error","status":500}', 'nothing as results'],
  ])('with 200 and %s is malformed', async (_name, body, found) => {
    const failure = await failureFor({ body });
    expect(failure).toMatchObject({ code: 'malformed', retryable: true, httpStatus: 200 });
    expect(failure.message).toContain(found);
  });

  test('with 204 is malformed', async () => {
    expect(await failureFor({ status: 204 })).toMatchObject({ code: 'malformed', httpStatus: 204 });
  });

  test('by a redirect is malformed, names the target without its query, and is not followed', async () => {
    const urls: (string | undefined)[] = [];
    const base = await serve((request, response) => {
      urls.push(request.url);
      response.writeHead(302, { location: 'http://127.0.0.1:1/login?token=abc' }).end();
    });
    const failure = await failureOf(connect(base).chains());
    expect(failure).toMatchObject({
      code: 'malformed',
      retryable: true,
      httpStatus: 302,
      endpoint: 'chains',
    });
    expect(failure.message).toContain('(location http://127.0.0.1:1/login)');
    expect(urls).toEqual(['/v1/chains']);
  });

  test('of a missing vault or job is not-found', async () => {
    const client = connect(await serve(answering({ status: 404, body: '{"message":"no such"}' })));
    expect(await failureOf(client.gaslessJob('1'))).toMatchObject({
      code: 'not-found',
      endpoint: 'gasless-job',
    });
    const vault = await failureOf(client.vault({ address: '0xAb', chainId: 1 }));
    expect(vault).toMatchObject({ code: 'not-found', endpoint: 'vault' });
  });

  test('is counted under its code', async () => {
    const outcomes: Outcome[] = [];
    await failureFor({ status: 503 }, { onAnswer: (outcome) => outcomes.push(outcome) });
    expect(outcomes).toMatchObject([{ endpoint: 'status', outcome: 'unavailable' }]);
  });
});

describe('the API key', () => {
  const shown = (failure: UpstreamFailure): string => `${failure.message}${failure.stack}${failure.cause}`;

  test.each([
    [
      'in an error body',
      { status: 401, body: `{"code":"invalid-api-key","detail":"no ${KEY}","k":"${KEY}"}` },
    ],
    ['as the code', { status: 400, body: `{"code":"${KEY}"}` }],
    ['in other letters', { status: 403, body: `key ${KEY.toUpperCase()} unknown` }],
    ['in a body that is not JSON', { status: 200, body: `<p>${KEY}</p>` }],
    ['as the whole body', { status: 200, body: KEY }],
    ['in the content type', { status: 500, headers: { 'content-type': `x/${KEY}` } }],
    ['in a redirect', { status: 307, headers: { location: `/${KEY}` } }],
    ['at the edge of the excerpt', { status: 500, body: `${'.'.repeat(110)}${KEY}` }],
  ])('echoed %s does not appear in the error', async (_name, canned) => {
    const failure = await failureFor(canned);
    expect(shown(failure).toLowerCase()).not.toContain(KEY.slice(0, 8));
    expect(failure.problemCode).not.toBe(KEY);
  });

  test('cut off at the end of a body does not appear either', async () => {
    const base = await serve((_request, response) => {
      response.writeHead(200, { ...json, 'content-length': '500' });
      response.write(`you sent ${KEY.slice(0, 12)}`, () => response.socket?.destroy());
    });
    const failure = await failureOf(connect(base).status({ quoteId: 'u' }));
    expect(failure.message).toContain('you sent [secret]');
    expect(failure.message).not.toContain(KEY.slice(0, 8));
  });
});
