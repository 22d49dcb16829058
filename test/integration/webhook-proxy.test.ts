import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { WebhookReceiver } from '../../src/config/config.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult, Notifier } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { cannedServer } from '../support/canned-server.ts';
import { ConnectProxy } from '../support/connect-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';

const pem = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../fixtures/tls', `${name}.pem`), 'utf8');
const [ca, cert, key] = await Promise.all(['ca', 'server', 'server-key'].map(pem));

const { later, started } = opening();

function through(proxyUrl: string, url: string, changes: Partial<WebhookReceiver> = {}): Notifier {
  const receiver = webhookReceiver(url, { proxy: new Secret(proxyUrl), ...changes });
  const notifier = createNotifier(receiver, { smtp: null, version: '0', eventUrl: null });
  later(() => notifier.close());
  return notifier;
}

const deliver = (notifier: Notifier): Promise<AttemptResult> =>
  notifier.deliver(renderedEvent(), { signal: new AbortController().signal, nowMs: Date.now() });

describe('a receiver behind a proxy', () => {
  test('is called through a tunnel, whose name only the proxy resolves, with the login of the config', async () => {
    const proxy = await started(new ConnectProxy());
    const hook = await started(new Hook());
    const url = hook.url.replace('127.0.0.1', 'resolved-by-the-proxy-only.invalid');
    const notifier = through(`http://user:p%40ss@127.0.0.1:${proxy.port}`, url, {
      allowPrivateNetwork: false,
    });
    for (let sent = 0; sent < 6; sent += 1) {
      expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
    }
    expect(hook.came).toHaveLength(6);
    const login = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    // Tunnels are reused; there are no more of them than deliveries at once (2).
    expect(proxy.requests.length).toBeLessThanOrEqual(2);
    expect(new Set(proxy.requests.map((requests) => JSON.stringify(requests)))).toEqual(
      new Set([JSON.stringify({ target: new URL(url).host, login })]),
    );
  });

  test('is verified by its own certificate', async () => {
    const server = createServer({ ...(cert && key ? { cert, key } : {}) }, (_, response) => response.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    later(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const proxy = await started(new ConnectProxy());
    const tls = { ca: ca ?? '', identity: null };
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    expect(await deliver(through(proxyUrl, `https://localhost:${port}/`, { tls }))).toMatchObject({
      outcome: 'delivered',
    });
    const other = await deliver(through(proxyUrl, `https://other-name.invalid:${port}/`, { tls }));
    expect(other).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(other.reason).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(other.reason).not.toContain('other-name');
  });

  test.each([
    [407, 'the proxy answered 407, it wants another login'],
    [403, 'the proxy answered 403'],
  ])('that is refused with %i is reported so, without the login', async (status, reason) => {
    const proxy = await started(new ConnectProxy(() => status));
    const notifier = through(`http://user:secret-word@127.0.0.1:${proxy.port}`, 'http://hooks.invalid/');
    expect(await deliver(notifier)).toMatchObject({ outcome: 'failed', httpStatus: null, reason });
  });

  test('that hangs costs its own attempt only', async () => {
    const hook = await started(new Hook());
    // Where this machine stalls for longer than the timeout, others fail too: repeated, with more time.
    let timeoutMs = 1_000;
    await eventually('the others are delivered', async () => {
      timeoutMs *= 2;
      const proxy: ConnectProxy = await started(
        new ConnectProxy(() => (proxy.requests.length === 1 ? 'nothing' : 'open')),
      );
      const notifier = through(`http://127.0.0.1:${proxy.port}`, hook.url, { concurrency: 3, timeoutMs });
      const delivered = async (): Promise<number> => {
        const results = await Promise.all([1, 2, 3].map(() => deliver(notifier)));
        return results.filter(({ outcome }) => outcome === 'delivered').length;
      };
      const first = await delivered();
      expect(first).toBeLessThan(3);
      return first === 2 && (await delivered()) === 3;
    });
  });

  test('that is not there is reported so', async () => {
    const notifier = through(`http://127.0.0.1:${await freePort()}`, 'http://hooks.invalid/');
    expect(await deliver(notifier)).toMatchObject({
      outcome: 'failed',
      reason: 'the proxy could not be reached (ECONNREFUSED)',
    });
  });

  test('is not requested a private address that the URL names', async () => {
    const proxy = await started(new ConnectProxy());
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const refused = through(proxyUrl, 'http://127.0.0.1:1/', { allowPrivateNetwork: false });
    expect((await deliver(refused)).reason).toMatch(/^not connected: private or reserved address/);
    expect(proxy.requests).toEqual([]);
  });
});

test('the upstream is requested through its proxy', async () => {
  const proxy = await started(new ConnectProxy());
  const server = await cannedServer(() => ({ status: 200, body: { results: [], nextCursor: null } }));
  later(() => server.close());
  const client = new UpstreamClient({
    baseUrl: server.url.replace('127.0.0.1', 'resolved-by-the-proxy-only.invalid'),
    apiKey: new Secret('key'),
    timeoutMs: 10_000,
    proxy: new Secret(`http://user:word@127.0.0.1:${proxy.port}`),
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/v/{vaultAddress}',
      chainParam: 'chain',
      jobPath: '/g/{id}',
    },
  });
  later(() => client.close());
  const { httpStatus } = await client.status({ intentHash: `0x${'0'.repeat(64)}` });
  expect(httpStatus).toBe(200);
  expect(proxy.requests).toHaveLength(1);
});
