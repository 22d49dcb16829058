import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { isLoopbackHost } from '../../src/config/sections/server.ts';
import { apiOptionsOf } from '../../src/daemon/server-options.ts';
import { Secret } from '../../src/secret.ts';
import { Server } from '../../src/server/server.ts';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

type Tokens = { read: Secret | null; consume: Secret | null; admin: Secret[] };

const NONE: Tokens = { read: null, consume: null, admin: [] };

async function serve(host: string, tokens: Tokens): Promise<number> {
  const server = new Server({
    host,
    port: 0,
    metrics: { expose: async () => ({ contentType: 'text/plain', body: '' }) },
    readiness: async () => [],
    health: () => [],
    api: apiOptionsOf(
      {
        host,
        port: 0,
        tokens,
        publicUrl: null,
        secretsKey: null,
        apiReceivers: { allowNetworks: [], allowInsecure: false, proxies: [], types: ['webhook', 'email'] },
        console: true,
        trustProxy: [],
      },
      () => null,
    ),
  });
  const { url } = await server.start();
  closers.push(() => server.close());
  return Number(new URL(url).port);
}

/** Requests the document; sends headers that a browser's fetch would not allow. */
async function send(
  port: number,
  headers: Record<string, string>,
  method = 'GET',
  path = '/openapi.json',
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: `/api/v1${path}`, method, headers }, (answer) => {
      void text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }));
    });
    sent.once('error', reject);
    sent.end();
  });
}

describe('without a token, on a loopback address', () => {
  test.each([
    ['the address', (port: number) => ({ host: `127.0.0.1:${port}` })],
    ['its name', (port: number) => ({ host: `LocalHost:${port}` })],
    ['the address of IPv6', (port: number) => ({ host: `[::1]:${port}` })],
    [
      'a page of its own',
      (port: number) => ({ host: `localhost:${port}`, origin: `http://localhost:${port}` }),
    ],
    [
      'a page of its own, as browsers state',
      (port: number) => ({ host: `localhost:${port}`, 'sec-fetch-site': 'same-origin' }),
    ],
  ])('a request for %s is answered', async (_, headersOf) => {
    const port = await serve('127.0.0.1', NONE);
    expect((await send(port, headersOf(port))).status).toBe(200);
  });

  test.each([
    ['another name that points here', (port: number) => ({ host: `rebound.example.com:${port}` })],
    ['a name that begins like the address', (port: number) => ({ host: `127.0.0.1.example.com:${port}` })],
    ['the address without the port', () => ({ host: '127.0.0.1' })],
    ['another port', (port: number) => ({ host: `127.0.0.1:${port + 1}` })],
    [
      'a page of another site',
      (port: number) => ({ host: `127.0.0.1:${port}`, origin: 'https://example.com' }),
    ],
    [
      'a page of another port',
      (port: number) => ({ host: `127.0.0.1:${port}`, origin: 'http://127.0.0.1:3000' }),
    ],
    ['a page without origin', (port: number) => ({ host: `127.0.0.1:${port}`, origin: 'null' })],
    [
      'another site, as browsers state',
      (port: number) => ({ host: `127.0.0.1:${port}`, 'sec-fetch-site': 'cross-site' }),
    ],
    [
      'another port, as browsers state',
      (port: number) => ({ host: `127.0.0.1:${port}`, 'sec-fetch-site': 'same-site' }),
    ],
  ])('a request for or of %s is refused', async (_, headersOf) => {
    const port = await serve('127.0.0.1', NONE);
    expect((await send(port, headersOf(port))).status).toBe(403);
    const acting = await send(port, headersOf(port), 'POST', '/receivers/backend/pause');
    expect(acting.status).toBe(403);
  });

  test('routes that need the daemon are 503 until that has started', async () => {
    const port = await serve('127.0.0.1', NONE);
    const { status, body } = await send(port, { host: `127.0.0.1:${port}` }, 'GET', '/receivers');
    expect([status, body.includes('has not started')]).toEqual([503, true]);
  });
});

test('without a token, where others can reach it, there is no API', async () => {
  const port = await serve('0.0.0.0', NONE);
  expect((await send(port, { host: `127.0.0.1:${port}` })).status).toBe(404);
});

test('with a token, loopback or not, a request needs it', async () => {
  const port = await serve('127.0.0.1', { ...NONE, read: new Secret('a-token-that-only-reads') });
  expect((await send(port, { host: `127.0.0.1:${port}` })).status).toBe(401);
  const authorization = 'Bearer a-token-that-only-reads';
  expect((await send(port, { host: 'watch.example.com', authorization })).status).toBe(200);
});

test.each([
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['::1', true],
  ['localhost', true],
  ['0.0.0.0', false],
  ['::', false],
  ['192.168.0.1', false],
  ['127.0.0.1.example.com', false],
])('%s is a loopback address: %s', (host, expected) => {
  expect(isLoopbackHost(host)).toBe(expected);
});
