import { expect, expectTypeOf, test } from 'vitest';
import {
  type AnyEvent,
  type Context,
  createConsumer,
  type EventOf,
  type EventType,
  type Handlers,
  isKnownEvent,
  EVENT_TYPES as PACKAGE_TYPES,
} from '../../consumer/src/index.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { signedRequest } from '../support/signed-request.ts';
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts';
import { eventWithEveryMember } from '../support/whole-event.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

test('the types of the package are those of the daemon', () => {
  expectTypeOf<AnyEvent>().toEqualTypeOf<RenderedEvent>();
  expect(PACKAGE_TYPES).toEqual(EVENT_TYPES);
});

test('a handler gets the event of its type', () => {
  createConsumer({ secrets: WEBHOOK_SECRET })
    .on('vault.expiring', (event) => {
      expectTypeOf(event.type).toEqualTypeOf<'vault.expiring'>();
      expectTypeOf(event.data.subject.kind).toEqualTypeOf<'vault'>();
    })
    .on('deposit-address.*', (event, context) => {
      expectTypeOf(event.data.subject.kind).toEqualTypeOf<'deposit-address'>();
      expectTypeOf(context).toEqualTypeOf<Context>();
    })
    .on({ 'intent.filled': ({ data }) => expectTypeOf(data.subject.kind).toEqualTypeOf<'intent'>() })
    .on('*', (event) => {
      if (isKnownEvent(event)) expectTypeOf(event.type).toEqualTypeOf<EventType>();
    });
});

test('an unknown type of event is a mistake that the compiler finds', () => {
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET });
  // @ts-expect-error: a slip of the pen
  consumer.on('intent.fillled', () => undefined);
  // @ts-expect-error: nor of the kind
  consumer.on('intents.*', () => undefined);
  // @ts-expect-error: one type of event is not handled
  const handlers: Handlers<Context> = { 'intent.filled': () => undefined };
  expect(Object.keys(handlers)).toHaveLength(1);
  // @ts-expect-error: without an inbox there is no transaction
  consumer.on('intent.filled', (_event, { tx }) => tx);
});

test('a switch over the type of a known event can be complete', () => {
  const kindOf = (event: EventOf<'intent.filled' | 'vault.failed'>): string => {
    switch (event.type) {
      case 'intent.filled':
        return event.data.subject.kind;
      case 'vault.failed':
        return event.data.subject.kind;
      default:
        return event satisfies never;
    }
  };
  expect(kindOf).toBeTypeOf('function');
});

test('the handlers of every type run, each for its own', async () => {
  const seen: string[] = [];
  const entries = PACKAGE_TYPES.map(
    (type) => [type, (event: AnyEvent) => void seen.push(event.type)] as const,
  );
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET }).on(Object.fromEntries(entries));
  for (const [index, type] of PACKAGE_TYPES.entries())
    expect(await consumer.receive(signedRequest(eventWithEveryMember(type, index)))).toMatchObject({
      status: 204,
    });
  expect(seen).toEqual(EVENT_TYPES);
});

test('a second handler for the same events is refused, and one for a type that is none', () => {
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET }).on('intent.filled', () => undefined);
  expect(() => consumer.on('intent.filled', () => undefined)).toThrow('a second handler for intent.filled');
  const slip: object = { 'intent.fillled': () => undefined };
  expect(() => consumer.on(slip)).toThrow('a handler for intent.fillled');
});

test.each([
  ['', 'is empty'],
  ['secret', 'starts with neither'],
  [`${WEBHOOK_SECRET}\n`, 'is not base64'],
  ['whsec_AAAA', 'has 3 bytes'],
  ['whpk_AAAA', 'has 3 bytes'],
  [`whsk_${Buffer.alloc(32).toString('base64')}`, 'is a private key'],
])('a secret that is none is refused at the start: %j', (secret, reason) => {
  const make = () => createConsumer({ secrets: [WEBHOOK_SECRET, secret] });
  expect(make).toThrow(`secret 2 ${reason}`);
  if (secret.length > 10) expect(make).not.toThrow(secret.trim());
});

test('no secret at all is refused at the start', () => {
  expect(() => createConsumer({ secrets: [] })).toThrow('found no webhook secret');
});

test('secrets that a function gives are replaced while it runs', async () => {
  let secrets = [OTHER_SECRET];
  const errors: unknown[] = [];
  const consumer = createConsumer({ secrets: () => secrets, onError: (error) => void errors.push(error) });
  const request = signedRequest(renderedEvent());
  expect(await consumer.receive(request)).toMatchObject({ status: 401 });
  secrets = [OTHER_SECRET, WEBHOOK_SECRET];
  expect(await consumer.receive(request)).toMatchObject({ status: 204 });
  secrets = [];
  expect(await consumer.receive(request)).toMatchObject({ status: 500 });
  expect(errors).toHaveLength(2);
});

test('a body that was parsed before is reported as parsed', async () => {
  const errors: unknown[] = [];
  const consumer = createConsumer({ secrets: WEBHOOK_SECRET, onError: (error) => void errors.push(error) });
  const { headers } = signedRequest(renderedEvent());
  for (const body of [renderedEvent(), JSON.stringify(renderedEvent()), null]) {
    // @ts-expect-error: programs in JavaScript do so
    expect(await consumer.receive({ headers, body })).toMatchObject({ status: 500 });
  }
  expect(errors).toMatchObject([{ code: 'body_parsed' }, { code: 'body_parsed' }, { code: 'body_parsed' }]);
});
