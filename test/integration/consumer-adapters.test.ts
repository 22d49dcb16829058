import { connect } from 'node:net';
import express from 'express';
import { describe, expect, test } from 'vitest';
import {
  type AnyEvent,
  type Consumer,
  type ConsumerOptions,
  type Context,
  createConsumer,
  nodeHandler,
  RetryLater,
} from '../../consumer/src/index.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult } from '../../src/notifiers/notifier.ts';
import { expressServer, listen, SERVERS, type Serve, serveNode } from '../support/consumer-servers.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { signedRequest } from '../support/signed-request.ts';
import { WEBHOOK_SECRET, webhookReceiver } from '../support/webhook-receiver.ts';
import { eventWithEveryMember } from '../support/whole-event.ts';

type Reported = { code: unknown; message: string };
type Deliver = (
  event: RenderedEvent,
  options?: { replay?: boolean; nowMs?: number },
) => Promise<AttemptResult>;
type Stage = { consumer: Consumer<Context>; deliver: Deliver; url: string; reported: Reported[] };

/** A consumer behind a server, a sender that delivers as the daemon does, and the consumer's reports of failures. */
async function withConsumer(
  serve: Serve,
  use: (stage: Stage) => Promise<void>,
  options: Partial<ConsumerOptions> = {},
): Promise<void> {
  const reported: Reported[] = [];
  const onError = (error: unknown): void => {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    reported.push({ code, message: String(error) });
  };
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET, onError, ...options });
  const server = await serve(consumer);
  const notifier = createNotifier(webhookReceiver(server.url), {
    smtp: null,
    version: '0.0.0',
    eventUrl: null,
  });
  const deliver: Deliver = (event, { replay = false, nowMs = Date.now() } = {}) =>
    notifier.deliver(event, { signal: new AbortController().signal, nowMs, replay });
  try {
    await use({ consumer, deliver, url: server.url, reported });
  } finally {
    await notifier.close();
    await server.close();
  }
}

describe.each(SERVERS)('behind %s', (_name, serve) => {
  test('every member of every type of event reaches its handler as the daemon sent it', () =>
    withConsumer(serve, async ({ consumer, deliver }) => {
      const seen: AnyEvent[] = [];
      consumer.on('*', (event) => void seen.push(event));
      const events = EVENT_TYPES.map(eventWithEveryMember);
      for (const event of events)
        expect(await deliver(event)).toMatchObject({ outcome: 'delivered', httpStatus: 204 });
      expect(seen).toEqual(events);
    }));

  test('it is answered 2xx only after the handler has ended', () =>
    withConsumer(serve, async ({ consumer, deliver }) => {
      const begun = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      consumer.on('intent.filled', async () => {
        begun.resolve();
        await end.promise;
      });
      let isAnswered = false;
      const answer = deliver(renderedEvent()).finally(() => {
        isAnswered = true;
      });
      await begun.promise;
      // A round trip on another connection: an answer that was sent too early would have come.
      await deliver({ ...renderedEvent(`evt_${'1'.repeat(40)}`), type: 'intent.pending' });
      expect(isAnswered).toBe(false);
      end.resolve();
      expect(await answer).toMatchObject({ httpStatus: 204 });
    }));

  test('a handler that fails is answered 500 without its message, and reported to onError', () =>
    withConsumer(serve, async ({ consumer, deliver, reported }) => {
      consumer.on('intent.filled', () => Promise.reject(new Error('the password is 1234')));
      const result = await deliver(renderedEvent());
      expect(result).toMatchObject({ outcome: 'failed', httpStatus: 500 });
      expect(result.answer).toContain('handler_failed');
      expect(result.answer).not.toContain('1234');
      expect(reported).toEqual([{ code: null, message: 'Error: the password is 1234' }]);
    }));

  test('a handler that requests a later time is answered 503, and the daemon waits as long', () =>
    withConsumer(serve, async ({ consumer, deliver }) => {
      consumer.on('intent.*', () => Promise.reject(new RetryLater(120)));
      expect(await deliver(renderedEvent())).toMatchObject({ httpStatus: 503, retryAfterMs: 120_000 });
    }));

  test('an event signed with another secret is answered 401 with the reason', () =>
    withConsumer(
      serve,
      async ({ consumer, deliver, reported }) => {
        consumer.on('*', () => expect.unreachable('a handler ran'));
        const result = await deliver(renderedEvent());
        expect(result).toMatchObject({ outcome: 'failed', httpStatus: 401 });
        expect(result.answer).toContain('signature_mismatch');
        expect(reported).toMatchObject([{ code: 'signature_mismatch' }]);
      },
      { secrets: `whsec_${Buffer.alloc(32, 9).toString('base64')}` },
    ));

  test('an event six minutes old is answered 401', () =>
    withConsumer(serve, async ({ deliver, reported }) => {
      expect(await deliver(renderedEvent(), { nowMs: Date.now() - 360_000 })).toMatchObject({
        httpStatus: 401,
      });
      expect(reported).toMatchObject([{ code: 'timestamp_too_old' }]);
    }));

  test('an event with the metadata of many subscriptions is accepted, and names its missing members', () =>
    withConsumer(serve, async ({ consumer, deliver }) => {
      const seen: AnyEvent[] = [];
      consumer.on('*', (event) => void seen.push(event));
      const event = renderedEvent();
      const metadata = Object.fromEntries(
        Array.from({ length: 50 }, (_, index) => [`m${index}`.padEnd(4, '-'), 'x'.repeat(2_000)]),
      );
      expect(await deliver({ ...event, data: { ...event.data, metadata } })).toMatchObject({
        httpStatus: 204,
      });
      const { truncated = [], metadata: rest } = seen[0]?.data ?? { metadata: {} };
      expect([...truncated, ...Object.keys(rest)].sort()).toEqual(Object.keys(metadata).sort());
      expect(truncated.length).toBeLessThan(50);
    }));

  test('a body that is larger than allowed is answered 413', () =>
    withConsumer(
      serve,
      async ({ deliver }) => {
        expect(await deliver(renderedEvent())).toMatchObject({ httpStatus: 413 });
      },
      { maxBodyBytes: 100 },
    ));

  test('the context states whether the operator sends it once more', () =>
    withConsumer(serve, async ({ consumer, deliver }) => {
      const seen: Context[] = [];
      consumer.on('intent.filled', (_event, context) => void seen.push(context));
      await deliver(renderedEvent(), { nowMs: Date.now() });
      await deliver(renderedEvent(), { replay: true });
      expect(seen.map(({ isReplay }) => isReplay)).toEqual([false, true]);
    }));
});

test('a GET is answered 405 with the allowed method', () =>
  withConsumer(serveNode, async ({ url }) => {
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  }));

test('an Express whose parser has consumed the bytes is reported, with the remedy', () =>
  withConsumer(
    expressServer((app) => app.use(express.json())),
    async ({ deliver, reported }) => {
      const result = await deliver(renderedEvent());
      expect(result.httpStatus).toBe(500);
      expect(reported).toMatchObject([
        { code: 'body_parsed', message: expect.stringContaining('before express.json()') },
      ]);
    },
  ));

test('a request that is cut off does not end the program, and is not reported', async () => {
  let ended = Promise.withResolvers<void>();
  const serve: Serve = async (consumer) => {
    const handle = nodeHandler(consumer);
    return listen((request, response) => void handle(request, response).finally(() => ended.resolve()));
  };
  await withConsumer(serve, async ({ consumer, deliver, url, reported }) => {
    consumer.on('*', () => undefined);
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write('POST /hooks HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"a":', () =>
      socket.destroy(),
    );
    await ended.promise;
    expect(reported).toEqual([]);
    ended = Promise.withResolvers<void>();
    expect(await deliver(renderedEvent())).toMatchObject({ httpStatus: 204 });
  });
});

test('the same event twice at once runs its handler once where it is still under way', async () => {
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET });
  const end = Promise.withResolvers<void>();
  let runs = 0;
  consumer.on('intent.filled', () => {
    runs++;
    return end.promise;
  });
  const request = signedRequest(renderedEvent());
  const answers = [consumer.receive(request), consumer.receive(request)];
  end.resolve();
  expect(await Promise.all(answers)).toMatchObject([{ status: 204 }, { status: 204 }]);
  expect(runs).toBe(1);
  await consumer.receive(request);
  expect(runs).toBe(2);
});

test('of several handlers the closest runs, and an event without one is accepted', async () => {
  await withConsumer(serveNode, async ({ consumer, deliver }) => {
    const seen: string[] = [];
    consumer.on('intent.filled', ({ type }) => void seen.push(`type ${type}`));
    consumer.on('intent.*', ({ type }) => void seen.push(`kind ${type}`));
    const types = ['intent.filled', 'intent.frozen', 'vault.pending'];
    for (const [index, type] of types.entries()) {
      expect(await deliver({ ...renderedEvent(`evt_${String(index).repeat(40)}`), type })).toMatchObject({
        httpStatus: 204,
      });
    }
    expect(seen).toEqual(['type intent.filled', 'kind intent.frozen']);
  });
});
