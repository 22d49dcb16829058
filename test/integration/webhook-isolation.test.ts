import { readFile } from 'node:fs/promises';
import { createServer as createHttpsServer } from 'node:https';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, test } from 'vitest';
import type { WebhookReceiver } from '../../src/config/config.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult, Notifier } from '../../src/notifiers/notifier.ts';
import { MAX_INFORMATIONAL_ANSWERS } from '../../src/notifiers/webhook/connector.ts';
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
    // Where this machine stalls for longer than the timeout, others fail too: repeated, with more time.
    let timeoutMs = 1_000;
    await eventually('the others are delivered', async () => {
      timeoutMs *= 2;
      const raw = await started(
        new RawServer((socket, index) => {
          if (index > 0) server.emit('connection', socket);
        }),
      );
      const notifier = notifierFor(`https://localhost:${raw.port}/`, {
        concurrency: 5,
        timeoutMs,
        tls: { ca: ca ?? '', identity: null },
      });
      const results = await Promise.all([1, 2, 3, 4, 5].map(() => deliver(notifier)));
      const delivered = results.filter(({ outcome }) => outcome === 'delivered');
      expect(delivered.length).toBeLessThan(5);
      // An attempt that hung does not count against the next ones.
      const next = await Promise.all([1, 2, 3, 4, 5].map(() => deliver(notifier)));
      return delivered.length === 4 && next.every(({ outcome }) => outcome === 'delivered');
    });
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
    ['an informational answer', 'HTTP/1.1 103 Early Hints\r\n', 'a: b\r\n'],
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

describe('informational answers before the real one', () => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
  const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';
  const DONE = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

  /** Answers every request in pieces that are sent one by one, whatever the network makes of them. */
  const inPieces = (pieces: readonly string[]): RawServer =>
    new RawServer((socket) => {
      socket.setNoDelay(true);
      socket.on('data', async () => {
        for (const piece of pieces) {
          await new Promise<void>((resolve) => socket.write(piece, () => setImmediate(resolve)));
        }
      });
    });

  test.each([
    ['one 100', [CONTINUE + DONE]],
    ['one 100 in a packet of its own', [CONTINUE, DONE]],
    ['one 100, byte by byte', [...CONTINUE, DONE]],
    ['a 100 and the answer, byte by byte', [...(CONTINUE + DONE)]],
    ['as many as there may be', [(CONTINUE + HINTS).repeat(MAX_INFORMATIONAL_ANSWERS / 2) + DONE]],
  ])('are skipped over one connection: %s', async (_, pieces) => {
    const server = await started(inPieces(pieces));
    const notifier = notifierFor(`http://127.0.0.1:${server.port}/`, { concurrency: 1 });
    for (let index = 0; index < 3; index += 1) {
      expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered', httpStatus: 200, answer: 'ok' });
    }
    expect(server.sockets).toHaveLength(1);
  });

  test.each([
    [
      'one too many',
      CONTINUE.repeat(MAX_INFORMATIONAL_ANSWERS + 1) + DONE,
      'more than 10 informational answers',
    ],
    [
      'one whose header is too long',
      `HTTP/1.1 100 Continue\r\na: ${'b'.repeat(20_000)}\r\n\r\n${DONE}`,
      'an informational answer of more than 16 KiB',
    ],
  ])('fail the attempt: %s', async (_, answer, problem) => {
    const server = await started(inPieces([answer]));
    const result = await deliver(notifierFor(`http://127.0.0.1:${server.port}/`));
    expect(result).toMatchObject({ outcome: 'failed', reason: `given up: ${problem}` });
  });

  test('are skipped over TLS', async () => {
    const server = createTlsServer({ ...(cert && key ? { cert, key } : {}) }, (socket) =>
      socket.on('error', () => undefined).on('data', () => socket.write(CONTINUE + DONE)),
    );
    const raw = await started(new RawServer((socket) => server.emit('connection', socket)));
    const notifier = notifierFor(`https://localhost:${raw.port}/`, { tls: { ca: ca ?? '', identity: null } });
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
    expect(await deliver(notifier)).toMatchObject({ outcome: 'delivered' });
  });

  test('are no answer where the connection ends after them', async () => {
    const server = await started(new RawServer((socket) => socket.once('data', () => socket.end(CONTINUE))));
    const { outcome, reason } = await deliver(notifierFor(`http://127.0.0.1:${server.port}/`));
    expect({ outcome, reason }).toEqual({
      outcome: 'failed',
      reason: 'the connection broke before an answer came',
    });
  });

  test('are no switch of protocols', async () => {
    const server = await started(
      inPieces([`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n${DONE}`]),
    );
    const { outcome } = await deliver(notifierFor(`http://127.0.0.1:${server.port}/`));
    expect(outcome).toBe('failed');
  });
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
