import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import {
  claimEventInSqlite,
  createConsumer,
  createVerifier,
  EVENT_TYPES,
  factOf,
  SQLITE_TABLES,
  WebhookError,
} from '../../consumer/src/index.ts';
import { VECTORS } from '../support/consumer-vectors.ts';

type Pairs = readonly (readonly [string, string])[];

const HEADERS: readonly [form: string, of: (pairs: Pairs) => Record<string, string | string[]> | Headers][] =
  [
    ['lists where they repeat', listed],
    [
      'of the Fetch API',
      (pairs) => new Headers(pairs.map(([name, value]): [string, string] => [name, value])),
    ],
    ['of node:http', joined],
  ];

function listed(pairs: Pairs): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (const [name, value] of pairs) lists[name] = [...(lists[name] ?? []), value];
  return lists;
}

function joined(pairs: Pairs): Record<string, string> {
  const lists = Object.entries(listed(pairs.map(([name, value]) => [name.toLowerCase(), value])));
  return Object.fromEntries(lists.map(([name, values]) => [name, values.join(', ')]));
}

describe.each(HEADERS)('with headers %s', (_form, headersOf) => {
  test.each(VECTORS.verification)('$name: $verdict', ({ verdict, secrets, now, headers, body }) => {
    const verify = createVerifier({ secrets, now: () => now * 1_000 });
    const verdictOf = (): string => {
      try {
        verify({ headers: headersOf(headers), body: Buffer.from(body, 'base64') });
        return 'accepted';
      } catch (error) {
        if (error instanceof WebhookError) return error.code;
        throw error;
      }
    };
    expect(verdictOf()).toBe(verdict);
  });
});

test.each(VECTORS.handling)('the inbox of SQLite: $name', ({ deliveries }) => {
  const database = new DatabaseSync(':memory:');
  database.exec(SQLITE_TABLES);
  for (const { event, verdict } of deliveries) {
    const claim = claimEventInSqlite(database, event);
    expect(claim === null ? 'handled' : claim.isStale ? 'stale' : 'new').toBe(verdict);
  }
});

test.each(VECTORS.facts)('$name is about $fact', ({ event, fact }) => {
  expect(factOf(event).name).toBe(fact);
});

test('every event type of the catalogue has a vector of its fact', () => {
  const named = VECTORS.facts.map(({ event }) => event.type);
  expect(EVENT_TYPES.filter((type) => !named.includes(type))).toEqual([]);
});

test.each([
  0,
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
])('a tolerance of %s seconds is refused when the verifier is made', (toleranceSeconds) => {
  const secrets = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const message = `toleranceSeconds: found ${toleranceSeconds}, expected a finite positive number of seconds`;
  expect(() => createVerifier({ secrets, toleranceSeconds })).toThrow(message);
  expect(() => createConsumer({ secrets, toleranceSeconds })).toThrow(message);
});

test('every reason to refuse that a sender can cause has a vector', () => {
  const codes = new Set(VECTORS.verification.map(({ verdict }) => verdict));
  expect([...codes].sort()).toEqual([
    'accepted',
    'body_changed',
    'event_invalid',
    'header_missing',
    'header_repeated',
    'signature_kind',
    'signature_mismatch',
    'timestamp_invalid',
    'timestamp_too_new',
    'timestamp_too_old',
  ]);
});
