import { readFile } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { WebhookReceiver } from '../../src/config/config.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult, Notifier } from '../../src/notifiers/notifier.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RawServer } from '../support/raw-server.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { webhookReceiver } from '../support/webhook-receiver.ts';

const pem = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../fixtures/tls', `${name}.pem`), 'utf8');
const [ca, cert, key] = await Promise.all(['ca', 'server', 'server-key'].map(pem));

const { later, started } = opening();

function notifierFor(url: string, changes: Partial<WebhookReceiver> = {}): Notifier {
  const notifier = createNotifier(webhookReceiver(url, changes), {
    smtp: null,
    version: '0',
    eventUrl: null,
  });
  later(() => notifier.close());
  return notifier;
}

const deliver = (notifier: Notifier): Promise<AttemptResult> =>
  notifier.deliver(renderedEvent(), { signal: new AbortController().signal, nowMs: Date.now() });

/** Answers every request with these pieces, one after the other, until the connection ends. */
const endlessly = (start: string, piece: string, everyMs: number | null): RawServer =>
  new RawServer((socket) => {
    socket.once('data', async () => {
      socket.resume().write(start);
      while (!socket.destroyed) {
        await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
        if (everyMs !== null) await new Promise((resolve) => setTimeout(resolve, everyMs));
      }
    });
  });

describe('a first connection whose TLS handshake hangs', () => {
  test('costs its own attempt only: the others, under way at the same time, have connections of their own', async () => {
    const server = createHttpsServer({ ...(cert && key ? { cert, key } : {}) }, (_, response) =>
      response.end(),
    );
    const raw = await started(
      new RawServer((socket, index) => {
        if (index > 0) server.emit('connection', socket);
      }),
    );
    const notifier = notifierFor(`https://localhost:${raw.port}/`, {
      concurrency: 5,
      timeoutMs: 5_000,
      tls: { ca: ca ?? '', identity: null },
    });
    const results = await Promise.all([1, 2, 3, 4, 5].map(() => deliver(notifier)));
    expect(results.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(4);
    // What hung does not count against the next ones.
    const next = await Promise.all([1, 2, 3, 4, 5].map(() => deliver(notifier)));
    expect(next.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(5);
  });
});

describe('an answer that never ends', () => {
  test.each([
    ['of informational answers', '', 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n'.repeat(1_000)],
    ['of a reason', 'HTTP/1.1 200 ', 'fine '.repeat(10_000)],
    ['of one header', 'HTTP/1.1 200 OK\r\nx-long: ', 'a'.repeat(10_000)],
    ['of white space in a header', 'HTTP/1.1 200 OK\r\nx-white: ', ' '.repeat(10_000)],
    ['of headers', 'HTTP/1.1 200 OK\r\n', 'a:\r\n'.repeat(1_000)],
    ['of a chunk extension', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;', 'a'.repeat(10_000)],
    ['of trailers', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n', 'a:\r\n'.repeat(1_000)],
  ])('%s is given up long before the time is over', async (_, start, piece) => {
    const server = await started(endlessly(start, piece, null));
    const notifier = notifierFor(`http://127.0.0.1:${server.port}/`, { timeoutMs: 20_000 });
    const { outcome, reason } = await deliver(notifier);
    expect(outcome).toBe('failed');
    expect(reason).not.toContain('within 20000 ms');
    expect(reason).not.toContain('in time');
    const [socket] = server.sockets;
    await eventually('the connection is given up', () => socket?.destroyed ?? false);
    expect(socket?.bytesWritten).toBeLessThan(20_000_000);
  });

  test.each([
    ['informational answers', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'a: b\r\n'],
    ['a header', 'HTTP/1.1 200 OK\r\na: ', 'b'],
    ['a body', 'HTTP/1.1 200 OK\r\n\r\n', 'b'],
  ])('of %s that drip ends at the one timeout', async (_, start, piece) => {
    const server = await started(endlessly(start, piece, 20));
    const notifier = notifierFor(`http://127.0.0.1:${server.port}/`, { timeoutMs: 1_000 });
    const { outcome, reason, durationMs } = await deliver(notifier);
    expect(outcome).toBe('failed');
    expect(reason).toMatch(/no answer within 1000 ms|did not end in time/);
    expect(durationMs).toBeGreaterThanOrEqual(990);
  });
});

test('a few informational answers before the real one do no harm', async () => {
  const server = await started(
    new RawServer((socket) =>
      socket.once('data', () =>
        socket.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(5)}HTTP/1.1 204 No Content\r\n\r\n`),
      ),
    ),
  );
  const result = await deliver(notifierFor(`http://127.0.0.1:${server.port}/`));
  expect(result).toMatchObject({ outcome: 'delivered', httpStatus: 204 });
});

test('a large answer is a success, time after time over one connection where it ends', async () => {
  const body = 'x'.repeat(1_000);
  const server = await started(
    new RawServer((socket) =>
      socket.on('data', () =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
      ),
    ),
  );
  const notifier = notifierFor(`http://127.0.0.1:${server.port}/`, { concurrency: 1 });
  for (let index = 0; index < 400; index += 1) {
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
  }
  expect(server.sockets).toHaveLength(1);
});
