import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test } from 'vitest';
import type { WebhookReceiver } from '../../src/config/config.ts';
import { CHAT_FORMATS } from '../../src/config/fields/receiver.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { Notifier } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';
import { WEBHOOK_SECRET, webhookReceiver } from '../support/webhook-receiver.ts';

const SECRET = WEBHOOK_SECRET;
const NEW_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;

const EVENT: RenderedEvent = {
  id: 'evt_0123456789abcdef',
  type: 'intent.filled',
  timestamp: '2026-11-20T11:31:00.123Z',
  data: {
    subject: { kind: 'intent', id: `intent:0x${'ab'.repeat(32)}` },
    sequence: 3,
    epoch: 1,
    status: 'filled',
    previousStatus: 'pending',
    changes: ['status', 'destinationTx'],
    record: {
      id: `intent:0x${'ab'.repeat(32)}`,
      type: 'intent',
      status: 'filled',
      note: 'naïve ✓ \u2028 "quoted"',
    },
    upstreamUpdatedAt: 1_763_638_259,
    detectionDelaySeconds: 0.9,
    wallets: ['0xabc'],
    subscriptions: ['treasury'],
    metadata: { order: '1042' },
  },
};

/** A self-signed certificate for localhost, used by these tests only. */
const CERTIFICATE = [
  '-----BEGIN CERTIFICATE-----',
  'MIIBnDCCAUGgAwIBAgIUISLQ0DQSgmkMBsCEibklAhkrtj8wCgYIKoZIzj0EAwIw',
  'FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMDEzNDMzMVoYDzIxMjYxMDI3',
  'MTM0MzMxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO',
  'PQMBBwNCAAT/6+/kjFZ7qjzh2kLaq2bq2OaW9X734f1iQ/0fg6pZM0kF2eP8RqDD',
  'Hf9g9xc8sRvy8TpmLTZeyZLTZkwmJxsuo28wbTAdBgNVHQ4EFgQU4FnU4mu6kwCN',
  '8Kcc3bbho2f0lvgwHwYDVR0jBBgwFoAU4FnU4mu6kwCN8Kcc3bbho2f0lvgwDwYD',
  'VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI',
  'zj0EAwIDSQAwRgIhAM2Lj2ZLblqRv6TRSfaZ3tGjjWAvxN8MSiIjSkLCANFDAiEA',
  'gGDuIEfVCJHX5KG3Dl1w5lyRwTMq1IxA5qBI7PncLUA=',
  '-----END CERTIFICATE-----',
].join('\n');
const PRIVATE_KEY = [
  '-----BEGIN PRIVATE KEY-----',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgmhc+fw4+29umHsMu',
  'dfO4JhItfzv7upj6mNs3WbXG0KChRANCAAT/6+/kjFZ7qjzh2kLaq2bq2OaW9X73',
  '4f1iQ/0fg6pZM0kF2eP8RqDDHf9g9xc8sRvy8TpmLTZeyZLTZkwmJxsu',
  '-----END PRIVATE KEY-----',
].join('\n');

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

type Request = {
  headers: IncomingMessage['headers'];
  method: string | undefined;
  url: string | undefined;
  body: string;
};
type Receiver = { url: string; port: number; requests: Request[]; sockets: Socket[] };

/** A real receiver; `answer` is called once a request has been read whole. */
async function startReceiver(
  answer: (response: ServerResponse, request: Request) => void,
): Promise<Receiver> {
  const requests: Request[] = [];
  const listener: RequestListener = (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const { headers, method, url } = incoming;
      const request = { headers, method, url, body: Buffer.concat(chunks).toString('utf8') };
      requests.push(request);
      answer(response, request);
    });
  };
  return { ...(await listen(createServer(listener))), requests };
}

async function listen(server: Server, host = '127.0.0.1'): Promise<Omit<Receiver, 'requests'>> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  const { port } = address;
  return { url: `http://127.0.0.1:${port}/hook`, port, sockets };
}

/**
 * The result of an attempt at a receiver whose answers never end; of another attempt where this machine stalled before the
 * head arrived.
 */
async function headInTime(url: string): ReturnType<typeof deliver> {
  const notifier = notifierFor(url, { timeoutMs: 1_000 });
  return eventually('the head came in time', async () => {
    const result = await deliver(notifier);
    return result.httpStatus === null || result.answer === '' ? null : result;
  });
}

function notifierFor(url: string, changes: Partial<WebhookReceiver> = {}): Notifier {
  const notifier = createNotifier(webhookReceiver(url, changes), {
    smtp: null,
    version: '1.2.3',
    eventUrl: null,
  });
  closers.push(() => notifier.close());
  return notifier;
}

function deliver(notifier: Notifier, signal: AbortSignal = new AbortController().signal) {
  return notifier.deliver(EVENT, { signal, nowMs: Date.now() });
}

function only<T>(items: T[]): T {
  const [item, ...others] = items;
  if (item === undefined || others.length > 0) throw new Error(`expected one item, found ${items.length}`);
  return item;
}

function verify({ body, headers }: Request, secret: string): unknown {
  const of = (name: string) => String(headers[name]);
  return new Webhook(secret).verify(body, {
    'webhook-id': of('webhook-id'),
    'webhook-timestamp': of('webhook-timestamp'),
    'webhook-signature': of('webhook-signature'),
  });
}

const ok = (response: ServerResponse) => response.end('thanks');

describe('a signed delivery', () => {
  test('is verified by the Standard Webhooks library and has the whole event', async () => {
    const receiver = await startReceiver(ok);
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 200, smtpCode: null, answer: 'thanks' });
    expect(result.durationMs).toBeGreaterThanOrEqual(0);
    const request = only(receiver.requests);
    expect(verify(request, SECRET)).toEqual(EVENT);
    expect(request).toMatchObject({ method: 'POST', url: '/hook' });
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Intentwatch/1.2.3',
      'webhook-id': EVENT.id,
    });
  });

  test('is not verified with another secret, nor with another body', async () => {
    const receiver = await startReceiver(ok);
    await deliver(notifierFor(receiver.url));
    const request = only(receiver.requests);
    expect(() => verify(request, NEW_SECRET)).toThrow('No matching signature');
    expect(() => verify({ ...request, body: `${request.body} ` }, SECRET)).toThrow('No matching signature');
  });

  test('is verified with either secret while secrets rotate', async () => {
    const receiver = await startReceiver(ok);
    await deliver(notifierFor(receiver.url, { secrets: [new Secret(NEW_SECRET), new Secret(SECRET)] }));
    const request = only(receiver.requests);
    expect(verify(request, SECRET)).toEqual(EVENT);
    expect(verify(request, NEW_SECRET)).toEqual(EVENT);
    expect(String(request.headers['webhook-signature']).split(' ')).toHaveLength(2);
  });

  test('has the same id and bytes at a later attempt, with the time of that attempt', async () => {
    const receiver = await startReceiver(ok);
    const notifier = notifierFor(receiver.url);
    const { signal } = new AbortController();
    await notifier.deliver(EVENT, { signal, nowMs: 1_800_000_000_999 });
    await notifier.deliver(EVENT, { signal, nowMs: 1_800_000_301_000 });
    const [first, second] = receiver.requests;
    expect(second?.body).toBe(first?.body);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    const timestamps = receiver.requests.map(({ headers }) => headers['webhook-timestamp']);
    expect(timestamps).toEqual(['1800000000', '1800000301']);
  });

  test('carries path and query of the URL as they are', async () => {
    const receiver = await startReceiver(ok);
    await deliver(notifierFor(receiver.url.replace('/hook', '/a/b?c=d%20e')));
    expect(only(receiver.requests).url).toBe('/a/b?c=d%20e');
  });

  test('uses its connection again, and none of another receiver', async () => {
    const receiver = await startReceiver(ok);
    const one = notifierFor(receiver.url, { concurrency: 1 });
    const other = notifierFor(receiver.url, { concurrency: 1 });
    await deliver(one);
    await deliver(one);
    expect(receiver.sockets).toHaveLength(1);
    await deliver(other);
    expect(receiver.sockets).toHaveLength(2);
  });

  test('closes every connection at close', async () => {
    const receiver = await startReceiver(ok);
    const notifier = notifierFor(receiver.url);
    await deliver(notifier);
    const closed = new Promise((resolve) => only(receiver.sockets).once('close', resolve));
    await notifier.close();
    await closed;
  });
});

describe('a receiver that refuses', () => {
  test('a redirect is a failure and is not followed', async () => {
    const target = await startReceiver(ok);
    const receiver = await startReceiver((response) =>
      response.writeHead(307, { location: target.url }).end(),
    );
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: 307 });
    expect(result.reason).toBe('307 Temporary Redirect, and redirects are not followed');
    expect(target.requests).toHaveLength(0);
  });

  test('410 requests no more attempts', async () => {
    const receiver = await startReceiver((response) => response.writeHead(410).end('go away'));
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({
      outcome: 'rejected',
      httpStatus: 410,
      reason: '410 Gone',
      answer: 'go away',
    });
  });

  test('410 counts although its answer never ends', async () => {
    const receiver = await startReceiver((response) => response.writeHead(410).write('go'));
    expect(await headInTime(receiver.url)).toMatchObject({
      outcome: 'rejected',
      httpStatus: 410,
      answer: 'go',
    });
  });

  test('429 states the time to wait', async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(429, { 'retry-after': '42' }).end(),
    );
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: 429, retryAfterMs: 42_000 });
  });

  test('503 without Retry-After has the built-in wait', async () => {
    const receiver = await startReceiver((response) => response.writeHead(503).end('busy'));
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: 503, retryAfterMs: null, answer: 'busy' });
  });

  test('only the first KiB of the answer is stored, without control characters', async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(500).end(`\u001b[2J${'é'.repeat(50_000)}`),
    );
    const { outcome, answer } = await deliver(notifierFor(receiver.url));
    expect(outcome).toBe('failed');
    expect(answer.startsWith('[2Jéé')).toBe(true);
    expect(Buffer.byteLength(answer)).toBeLessThanOrEqual(1_024);
  });

  test('secrets that it repeats do not come back', async () => {
    const token = 'T0123456789/B0123456789';
    const receiver = await startReceiver((response, { url }) => {
      response.writeHead(404).end(`no ${url} signed with ${SECRET}`);
    });
    const result = await deliver(notifierFor(receiver.url.replace('/hook', `/hooks/${token}`)));
    expect(result.answer).toBe('no [secret] signed with [secret]');
  });
});

describe('a receiver that hangs or breaks', () => {
  test('in the TLS handshake: the attempt ends at its timeout', async () => {
    const { port } = await listen(createTcpServer());
    const result = await deliver(notifierFor(`https://127.0.0.1:${port}/`, { timeoutMs: 200 }));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null, reason: 'no answer within 200 ms' });
  });

  test('before its headers: the attempt ends at its timeout and its connection is given up', async () => {
    const closed = Promise.withResolvers<void>();
    const receiver = await startReceiver((response) => response.once('close', closed.resolve));
    const result = await deliver(notifierFor(receiver.url, { timeoutMs: 200 }));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null, reason: 'no answer within 200 ms' });
    // It may still be at work on this one: the next attempt comes no sooner than this one took.
    expect(result.retryAfterMs).toBe(200);
    await closed.promise;
  });

  test('in a body below the cap: not a success', async () => {
    const receiver = await startReceiver((response) => response.writeHead(200).write('almost'));
    const result = await headInTime(receiver.url);
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: 200, answer: 'almost' });
    expect(result.reason).toBe('200 OK, but the answer did not end in time');
  });

  test('in a body that never ends: a success as soon as the cap is reached, and the rest is not read', async () => {
    const closed = Promise.withResolvers<void>();
    const receiver = await startReceiver((response) => {
      response.once('close', closed.resolve);
      const flood = () => {
        while (!response.closed && response.write('x'.repeat(4_096)));
      };
      response.on('drain', flood).writeHead(200);
      flood();
    });
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 200, answer: 'x'.repeat(1_024) });
    await closed.promise;
  });

  test('with a reset before an answer: a failure', async () => {
    const receiver = await startReceiver((response) => response.socket?.resetAndDestroy());
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toBe('the connection broke before an answer came');
  });

  test('with a reset within its body: not a success', async () => {
    const receiver = await startReceiver((response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.socket?.destroy());
    });
    const result = await deliver(notifierFor(receiver.url));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: 200 });
    expect(result.reason).toBe('200 OK, but the answer broke off');
  });

  test('with something that is not HTTP: a failure', async () => {
    const { url } = await listen(createTcpServer((socket) => socket.end('220 mail.example.com ESMTP\r\n')));
    expect(await deliver(notifierFor(url))).toMatchObject({ outcome: 'failed', httpStatus: null });
  });

  test('with no listener: a failure', async () => {
    const result = await deliver(notifierFor(`http://127.0.0.1:${await freePort()}/`));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null, reason: 'connection refused' });
  });

  test('one that hangs does not delay another delivery of the same receiver', async () => {
    const hanging = Promise.withResolvers<ServerResponse>();
    const receiver = await startReceiver((response) => {
      if (receiver.requests.length === 1) hanging.resolve(response);
      else response.end();
    });
    const notifier = notifierFor(receiver.url);
    const first = deliver(notifier);
    const response = await hanging.promise;
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
    response.end();
    expect(await first).toMatchObject({ outcome: 'delivered' });
  });
});

describe("headers of the user's own", () => {
  const headers = { Authorization: new Secret('Bearer abcdefghijklmnop'), 'X-Team': new Secret('payments') };

  test('are sent beside ours', async () => {
    const receiver = await startReceiver(ok);
    await deliver(notifierFor(receiver.url, { headers }));
    const request = only(receiver.requests);
    expect(request.headers).toMatchObject({
      authorization: 'Bearer abcdefghijklmnop',
      'x-team': 'payments',
      'content-type': 'application/json',
      'webhook-id': EVENT.id,
    });
    expect(verify(request, SECRET)).toEqual(EVENT);
  });

  test('are not in the stored answer that echoes them', async () => {
    const receiver = await startReceiver((response, request) => {
      response.writeHead(401).end(`bad ${request.headers.authorization}, ${request.headers['x-team']}`);
    });
    const { answer, reason } = await deliver(notifierFor(receiver.url, { headers }));
    expect(answer).toBe('bad [secret], [secret]');
    expect(reason).toBe('401 Unauthorized');
    const half = await startReceiver((response) => response.writeHead(401).end('token abcdefghijklmnop'));
    expect((await deliver(notifierFor(half.url, { headers }))).answer).toBe('token[secret]');
  });
});

describe('the channel of a chat', () => {
  test.each(CHAT_FORMATS)('%s gets a message for people, unsigned', async (format) => {
    const receiver = await startReceiver((response) => response.writeHead(204).end());
    const result = await deliver(notifierFor(receiver.url, { format, secrets: [] }));
    expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 204 });
    const { headers, body } = only(receiver.requests);
    expect(headers).not.toHaveProperty('webhook-signature');
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).not.toHaveProperty('data');
    expect(body).toContain('Filled');
  });
});

describe('an event that is larger than 20 kB', () => {
  test('comes cut, signed as it is sent, with the link that the notifier was given', async () => {
    const receiver = await startReceiver(ok);
    const notifier = createNotifier(webhookReceiver(receiver.url, { name: 'backend' }), {
      smtp: null,
      version: '1.2.3',
      eventUrl: ({ id, receiver: name }) => `https://watch.example.com/api/v1/events/${id}?receiver=${name}`,
    });
    closers.push(() => notifier.close());
    const large = { ...EVENT, data: { ...EVENT.data, record: { id: 'x', note: 'y'.repeat(30_000) } } };
    const { signal } = new AbortController();
    expect(await notifier.deliver(large, { signal, nowMs: Date.now() })).toMatchObject({
      outcome: 'delivered',
    });
    const request = only(receiver.requests);
    expect(Buffer.byteLength(request.body)).toBeLessThan(20_000);
    expect(verify(request, SECRET)).toMatchObject({
      id: EVENT.id,
      data: {
        record: { id: 'x' },
        recordTruncated: true,
        recordUrl: `https://watch.example.com/api/v1/events/${EVENT.id}?receiver=backend`,
      },
    });
  });
});

describe('addresses', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['localhost', 'localhost'],
    ['a decimal number', '2130706433'],
    ['IPv4-mapped IPv6', '[::ffff:127.0.0.1]'],
    ['the unspecified address', '0.0.0.0'],
  ])('no connection is made to a private address given as %s', async (_, host) => {
    const receiver = await startReceiver(ok);
    const notifier = notifierFor(`http://${host}:${receiver.port}/`, { allowPrivateNetwork: false });
    const result = await deliver(notifier);
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toMatch(
      /^not connected: private or reserved address \(.+\); only allowNetworks or allowPrivateNetwork/,
    );
    expect(receiver.sockets).toHaveLength(0);
  });

  test('a name that leads to a private address works where the receiver allows it', async () => {
    const receiver = await startReceiver(ok);
    const result = await deliver(notifierFor(`http://localhost:${receiver.port}/`));
    expect(result).toMatchObject({ outcome: 'delivered' });
  });
});

describe('TLS', () => {
  const startTls = async () => {
    const server = createHttpsServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (_, response) =>
      response.end(),
    );
    return `https://localhost:${(await listen(server)).port}/`;
  };

  test('an untrusted certificate is refused', async () => {
    const result = await deliver(notifierFor(await startTls()));
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  test('a trusted certificate is accepted', async () => {
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, CERTIFICATE]);
    try {
      expect(await deliver(notifierFor(await startTls()))).toMatchObject({ outcome: 'delivered' });
    } finally {
      setDefaultCACertificates(before);
    }
  });
});

describe('an attempt that is cut off at shutdown', () => {
  test('throws an AbortError while the receiver hangs, and gives up the connection', async () => {
    const controller = new AbortController();
    const closed = Promise.withResolvers<void>();
    const receiver = await startReceiver((response) => {
      response.once('close', closed.resolve);
      controller.abort();
    });
    await expect(deliver(notifierFor(receiver.url), controller.signal)).rejects.toMatchObject({
      name: 'AbortError',
    });
    await closed.promise;
  });

  test('throws an AbortError while a body hangs, for any given reason', async () => {
    const controller = new AbortController();
    const receiver = await startReceiver((response) => {
      response.writeHead(200);
      response.write('half', () => controller.abort('shutdown'));
    });
    await expect(deliver(notifierFor(receiver.url), controller.signal)).rejects.toMatchObject({
      name: 'AbortError',
    });
  });

  test('throws an AbortError while the connection is being made', async () => {
    const controller = new AbortController();
    const { port } = await listen(createTcpServer(() => controller.abort()));
    // A timeout beyond the test's own, so that only the signal can end the attempt.
    const notifier = notifierFor(`https://127.0.0.1:${port}/`, { timeoutMs: 600_000 });
    const attempt = deliver(notifier, controller.signal);
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('sends nothing when it was cut off before it began', async () => {
    const receiver = await startReceiver(ok);
    const attempt = deliver(notifierFor(receiver.url), AbortSignal.abort());
    await expect(attempt).rejects.toMatchObject({ name: 'AbortError' });
    await deliver(notifierFor(receiver.url));
    expect(receiver.requests).toHaveLength(1);
  });
});
