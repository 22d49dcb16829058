import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { WebhookReceiver } from '../../src/config/config.ts';
import { CACHES } from '../../src/domain/caches.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult, Notifier } from '../../src/notifiers/notifier.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RawServer } from '../support/raw-server.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';

const pem = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../fixtures/tls', `${name}.pem`), 'utf8');
const [ca = '', cert = '', key = ''] = await Promise.all(['ca', 'server', 'server-key'].map(pem));
const TLS = { ca, identity: null };

const { later, started } = opening();
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const DONE = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const doneFor = (seconds: number): string => DONE.replace('\r\n', `\r\nkeep-alive: timeout=${seconds}\r\n`);
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';

function notifierFor(url: string, changes: Partial<WebhookReceiver> = {}): Notifier {
  const notifier = createNotifier(webhookReceiver(url, { concurrency: 1, ...changes }), {
    smtp: null,
    version: '0',
    eventUrl: null,
  });
  later(() => notifier.close());
  return notifier;
}

function deliver(notifier: Notifier, signal = new AbortController().signal): Promise<AttemptResult> {
  return notifier.deliver(renderedEvent(), { signal, nowMs: Date.now() });
}

type Came = { connection: number; text: string };

/** A receiver that reads whole requests. `reply` answers request number `nth`, from 0, of a connection. */
async function receiver(
  reply: (socket: Socket, at: { connection: number; nth: number }) => void,
): Promise<{ url: string; came: Came[]; sockets: Socket[] }> {
  const came: Came[] = [];
  const server = await started(
    new RawServer((socket, connection) => readRequests(socket, { connection, came, reply })),
  );
  return { url: `http://127.0.0.1:${server.port}/`, came, sockets: server.sockets };
}

function readRequests(
  socket: Socket,
  { connection, came, reply }: { connection: number; came: Came[]; reply: Parameters<typeof receiver>[0] },
): void {
  let [text, nth] = ['', 0];
  socket.on('data', (chunk) => {
    text += String(chunk);
    const bodyAt = text.indexOf('\r\n\r\n') + 4;
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
    if (bodyAt < 4 || Buffer.byteLength(text.slice(bodyAt)) < length) return;
    came.push({ connection, text });
    text = '';
    reply(socket, { connection, nth });
    nth += 1;
  });
}

function headerOf({ text }: Came, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r$`, 'm').exec(text)?.[1];
}

const connectionsOf = (came: readonly Came[]): number[] => came.map(({ connection }) => connection);

/** Answers the first request of the first connection, and does something else with the second one. */
const onReuse =
  (second: (socket: Socket) => void) =>
  (socket: Socket, { connection, nth }: { connection: number; nth: number }): void => {
    if (connection === 0 && nth === 1) second(socket);
    else socket.write(DONE);
  };

describe('a connection that the receiver closed', () => {
  test('between two events is replaced without a second request', async () => {
    const { url, came, sockets } = await receiver((socket) => socket.write(DONE));
    const notifier = notifierFor(url);
    await deliver(notifier);
    const closed = sockets[0] && once(sockets[0], 'close');
    sockets[0]?.end();
    await closed;
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
    expect(connectionsOf(came)).toEqual([0, 1]);
  });

  test.each([
    ['with a reset', (socket: Socket) => void socket.resetAndDestroy()],
    ['with an end', (socket: Socket) => void socket.end()],
  ])('as the next event arrived %s costs one repetition of the same request, and no attempt', async (_, end) => {
    const { url, came } = await receiver(onReuse(end));
    const notifier = notifierFor(url);
    await deliver(notifier);
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered', httpStatus: 200, answer: 'ok' });
    expect(connectionsOf(came)).toEqual([0, 0, 1]);
    const [, lost, repeated] = came;
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      expect(repeated && headerOf(repeated, name)).toBe(lost && headerOf(lost, name));
    }
    expect(repeated?.text.split('\r\n\r\n')[1]).toBe(lost?.text.split('\r\n\r\n')[1]);
  });

  test('amid the next request costs one repetition, and no attempt', async () => {
    const large = renderedEvent();
    large.data.record = { id: large.data.subject.id, note: 'x'.repeat(15_000) };
    const came: number[] = [];
    const server = await started(
      new RawServer((socket, connection) => {
        // The whole request is longer than what is read of it.
        socket.once('readable', () => {
          came.push(socket.read(200)?.length ?? 0);
          if (connection > 0) return void socket.on('data', () => undefined).write(DONE);
          socket.write(DONE);
          socket.read();
          socket.once('readable', () => {
            came.push(socket.read(200)?.length ?? 0);
            socket.resetAndDestroy();
          });
        });
      }),
    );
    const notifier = notifierFor(`http://127.0.0.1:${server.port}/`);
    await deliver(notifier);
    const { signal } = new AbortController();
    const result = await notifier.deliver(large, { signal, nowMs: Date.now() });
    expect(result).toMatchObject({ outcome: 'delivered' });
    expect(came).toEqual([200, 200, 200]);
  });

  test('over TLS costs one repetition, and no attempt', async () => {
    const came: Came[] = [];
    let connections = 0;
    const secured = createTlsServer({ cert, key }, (socket) => {
      const connection = connections++;
      socket.on('error', () => undefined);
      readRequests(socket, { connection, came, reply: onReuse((used) => used.destroy()) });
    });
    const server = await started(new RawServer((socket) => secured.emit('connection', socket)));
    const notifier = notifierFor(`https://localhost:${server.port}/`, { tls: TLS });
    for (let count = 0; count < 3; count += 1) {
      expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
    }
    // The repetition requests the end of its connection; the third event opens the next one.
    expect(connectionsOf(came)).toEqual([0, 0, 1, 2]);
    expect(came.map((one) => headerOf(one, 'connection') === 'close')).toEqual([false, false, true, false]);
  });

  test('is not used for the repetition where several are open and as stale', async () => {
    const waiting: Socket[] = [];
    const { url, came } = await receiver((socket, { connection, nth }) => {
      if (nth > 0) return void socket.resetAndDestroy();
      if (connection >= 3) return void socket.write(DONE);
      // Each of the three events has a connection of its own.
      if (waiting.push(socket) === 3) for (const one of waiting) one.write(DONE);
    });
    const notifier = notifierFor(url, { concurrency: 3 });
    const three = (): Promise<AttemptResult[]> => Promise.all([1, 2, 3].map(() => deliver(notifier)));
    await three();
    for (const result of await three()) expect(result).toMatchObject({ outcome: 'delivered' });
    expect(connectionsOf(came).sort()).toEqual([0, 0, 1, 1, 2, 2, 3, 4, 5]);
  });

  test('fails the attempt where the fresh connection ends as well: two requests, and not a third', async () => {
    const { url, came } = await receiver((socket, { connection, nth }) => {
      if (connection === 0 && nth === 0) socket.write(DONE);
      else socket.resetAndDestroy();
    });
    const notifier = notifierFor(url);
    await deliver(notifier);
    const result = await deliver(notifier);
    expect(result).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(result.reason).toBe('the connection broke before an answer came');
    expect(connectionsOf(came)).toEqual([0, 0, 1]);
  });

  test('was new fails the attempt, without a repetition', async () => {
    const { url, came } = await receiver((socket) => socket.resetAndDestroy());
    expect(await deliver(notifierFor(url))).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(came).toHaveLength(1);
  });

  test.each([
    ['half a status line', 'HTTP/1.1 2'],
    ['an informational answer', HINTS],
    ['half an informational answer', 'HTTP/1.1 10'],
  ])('after %s to the next event fails the attempt: the receiver has the request', async (_, bytes) => {
    const { url, came } = await receiver(onReuse((socket) => socket.end(bytes)));
    const notifier = notifierFor(url);
    await deliver(notifier);
    expect(await deliver(notifier)).toMatchObject({ outcome: 'failed', httpStatus: null });
    expect(connectionsOf(came)).toEqual([0, 0]);
  });

  test('amid the answer to the next event fails the attempt with its status', async () => {
    const { url, came } = await receiver(onReuse((socket) => socket.end(DONE.slice(0, -1))));
    const notifier = notifierFor(url);
    await deliver(notifier);
    expect(await deliver(notifier)).toMatchObject({ outcome: 'failed', httpStatus: 200 });
    expect(connectionsOf(came)).toEqual([0, 0]);
  });

  test('is not repeated once the attempt is cut off', async () => {
    const cut = new AbortController();
    const { url, came, sockets } = await receiver(onReuse(() => cut.abort()));
    const notifier = notifierFor(url);
    await deliver(notifier);
    await expect(deliver(notifier, cut.signal)).rejects.toThrow(/abort/i);
    await eventually('the connection is given up', () => sockets[0]?.destroyed ?? false);
    expect(connectionsOf(came)).toEqual([0, 0]);
  });
});

describe('an unused connection', () => {
  const SECOND_MS = 1_000;

  test('stays open for a minute, and not longer', async () => {
    const timerOf = fakeTimers();
    const { url, came, sockets } = await receiver((socket) => socket.write(DONE));
    const notifier = notifierFor(url);
    await deliver(notifier);
    await timerOf(60 * SECOND_MS);
    vi.advanceTimersByTime(59 * SECOND_MS);
    await deliver(notifier);
    expect(connectionsOf(came)).toEqual([0, 0]);
    await closedAfter(sockets[0], { ms: 60 * SECOND_MS, timerOf });
  });

  test('is closed before the time that the receiver states', async () => {
    const timerOf = fakeTimers();
    const { url, sockets } = await receiver((socket) => socket.write(doneFor(5)));
    await deliver(notifierFor(url));
    await closedAfter(sockets[0], { ms: 3 * SECOND_MS, timerOf });
  });

  test('stays open for a minute where the receiver states a longer time', async () => {
    const timerOf = fakeTimers();
    const { url, sockets } = await receiver((socket) => socket.write(doneFor(3_600)));
    await deliver(notifierFor(url));
    await closedAfter(sockets[0], { ms: 60 * SECOND_MS, timerOf });
  });

  test.each([
    ['requests it', DONE.replace('\r\n', '\r\nconnection: close\r\n')],
    ['leaves no time for another request', doneFor(1)],
    ['speaks HTTP/1.0', DONE.replace('1.1', '1.0')],
  ])('is closed at once where the receiver %s', async (_, answer) => {
    const { url, sockets } = await receiver((socket) => socket.write(answer));
    expect(await deliver(notifierFor(url))).toMatchObject({ outcome: 'delivered' });
    await eventually('the connection is closed', () => sockets[0]?.destroyed ?? false);
  });

  test('is replaced at its next use once it is five minutes old', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { url, came, sockets } = await receiver((socket) => socket.write(DONE));
    const notifier = notifierFor(url);
    const startMs = Date.now();
    for (const seconds of [0, 100, 200, 299, 301, 400]) {
      vi.setSystemTime(startMs + seconds * SECOND_MS);
      await deliver(notifier);
    }
    expect(connectionsOf(came)).toEqual([0, 0, 0, 0, 1, 1]);
    await eventually('the old connection is closed', () => sockets[0]?.destroyed ?? false);
  });

  test('is closed where another attempt at the receiver gets no answer', async () => {
    const { url, came, sockets } = await receiver((socket, { connection }) => {
      if (connection === 0) socket.write(DONE);
    });
    const notifier = notifierFor(url, { concurrency: 2, timeoutMs: 2_000 });
    await deliver(notifier);
    await Promise.all([deliver(notifier), deliver(notifier)]);
    expect(new Set(connectionsOf(came))).toEqual(new Set([0, 1]));
    await eventually('both are closed', () => sockets.every(({ destroyed }) => destroyed));
  });
});

/** Fakes timers. Returns a function that resolves once a timer of `ms` has been set since its last call. */
function fakeTimers(): (ms: number) => Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const set = vi.spyOn(globalThis, 'setTimeout');
  return async (ms) => {
    // The number of timers does not show it: undici has one of its own for the timeouts of requests.
    while (!set.mock.calls.some(([, delay]) => delay === ms)) await turn();
    set.mockClear();
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Awaits the end of a connection, `ms` after it is unused. */
async function closedAfter(
  socket: Socket | TLSSocket | undefined,
  { ms, timerOf }: { ms: number; timerOf: (ms: number) => Promise<void> },
): Promise<void> {
  if (socket === undefined) throw new Error('no connection was made');
  await timerOf(ms);
  vi.advanceTimersByTime(ms - 2_000);
  await turn();
  expect(socket.readableEnded).toBe(false);
  const closed = once(socket, 'close');
  vi.advanceTimersByTime(2_000);
  await closed;
}

test('the longest unused receivers have no connection beyond the limit of all, and open another when needed', async () => {
  const { url, came, sockets } = await receiver((socket) => socket.write(DONE));
  const notifiers = Array.from({ length: CACHES.unusedConnections.entries + 20 }, () => notifierFor(url));
  for (const notifier of notifiers) await deliver(notifier);
  const open = (): number => sockets.filter(({ destroyed }) => !destroyed).length;
  await eventually('the limit holds', () => open() <= CACHES.unusedConnections.entries);
  expect(open()).toBeGreaterThan(CACHES.unusedConnections.entries / 2);
  const [first, last] = [notifiers[0], notifiers.at(-1)];
  if (first === undefined || last === undefined) throw new Error('there are no notifiers');
  const before = sockets.length;
  expect(await deliver(last)).toMatchObject({ outcome: 'delivered' });
  expect(sockets).toHaveLength(before);
  expect(await deliver(first)).toMatchObject({ outcome: 'delivered' });
  expect(sockets).toHaveLength(before + 1);
  expect(came).toHaveLength(notifiers.length + 2);
});
