import { readFile } from 'node:fs/promises';
import { createServer, type ServerOptions } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import type { ReceiverTls } from '../../src/config/config.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';

const pem = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../fixtures/tls', `${name}.pem`), 'utf8');
const [ca, serverCert, serverKey, clientCert, clientKey] = await Promise.all(
  ['ca', 'server', 'server-key', 'client', 'client-key'].map(pem),
);
const IDENTITY = { cert: clientCert ?? '', key: new Secret(clientKey ?? '') };
const CA = ca ?? '';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A receiver with the test CA's certificate; `clients` are the names of the certificates that it was shown. */
async function startReceiver(
  options: ServerOptions = {},
  host = '127.0.0.1',
): Promise<{ port: number; clients: string[] }> {
  const clients: string[] = [];
  const server = createServer({ cert: serverCert, key: serverKey, ...options }, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    clients.push(String(subject?.CN ?? 'nobody'));
    response.end();
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return { port: address.port, clients };
}

async function deliver(url: string, tls: ReceiverTls | null): Promise<AttemptResult> {
  const notifier = createNotifier(webhookReceiver(url, { tls }), {
    smtp: null,
    version: '0.0.0',
    eventUrl: null,
  });
  closers.push(() => notifier.close());
  return notifier.deliver(EVENT, { signal: new AbortController().signal, nowMs: Date.now() });
}

const EVENT: RenderedEvent = {
  id: `evt_${'0123456789'.repeat(4)}`,
  type: 'intent.filled',
  timestamp: '2026-11-20T11:31:00.123Z',
  data: {
    subject: { kind: 'intent', id: 'intent:0xab' },
    sequence: 1,
    epoch: 1,
    status: 'filled',
    previousStatus: null,
    changes: [],
    record: {},
    upstreamUpdatedAt: null,
    detectionDelaySeconds: null,
    wallets: [],
    subscriptions: [],
    metadata: {},
  },
};

describe('a certificate of a CA that is not one of the usual ones', () => {
  test('is refused without a CA file', async () => {
    const { port, clients } = await startReceiver();
    const result = await deliver(`https://localhost:${port}/`, null);
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toMatch(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED|UNABLE_TO_GET_ISSUER/);
    expect(clients).toEqual([]);
  });

  test.each(['localhost', '127.0.0.1'])('is accepted with the CA file, for the name %s', async (host) => {
    const { port, clients } = await startReceiver();
    const result = await deliver(`https://${host}:${port}/`, { ca: CA, identity: null });
    expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 200 });
    expect(clients).toEqual(['nobody']);
  });

  test('is refused for a name that it does not have', async () => {
    const { port } = await startReceiver({}, '127.0.0.2');
    const result = await deliver(`https://127.0.0.2:${port}/`, { ca: CA, identity: null });
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
  });

  test('is refused when the CA file holds another CA', async () => {
    const { port } = await startReceiver();
    const result = await deliver(`https://localhost:${port}/`, { ca: clientCert ?? '', identity: null });
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
  });
});

describe('a receiver that requests a client certificate', () => {
  const options: ServerOptions = { ca: CA, requestCert: true, rejectUnauthorized: true };

  test('is shown the one of the config', async () => {
    const { port, clients } = await startReceiver(options);
    const result = await deliver(`https://localhost:${port}/`, { ca: CA, identity: IDENTITY });
    expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 200 });
    expect(clients).toEqual(['intentwatch']);
  });

  test('turns us away without one', async () => {
    const { port, clients } = await startReceiver(options);
    const result = await deliver(`https://localhost:${port}/`, { ca: CA, identity: null });
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(clients).toEqual([]);
  });
});
