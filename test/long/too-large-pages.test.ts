import { expect, onTestFinished, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import {
  hashOf,
  intentRecord,
  type Scripted,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../support/scripted-upstream.ts';
import { ShippedDaemon } from '../support/shipped-daemon.ts';

const WALLET = '0x1111111111111111111111111111111111111111';
const STATUSES = ['pending', 'filled', 'settled', 'refunded', 'expired', 'refundable'];
const COUNT = 40;
const BORN_AT = 1_763_638_259;

/** Index of the record of 2 MB, newest first. No other has its status. */
const LARGE_AT = 4;

/** The transfers of a wallet, newest first, each of 30 kB: fifty of them exceed the limit of a page. */
const RECORDS: readonly JsonObject[] = Array.from({ length: COUNT }, (_, at) => {
  const isLarge = at === LARGE_AT;
  const status = isLarge ? 'failed' : (STATUSES[at % STATUSES.length] ?? '');
  return intentRecord(hashOf(at + 1), status, BORN_AT - at, {
    memo: 'x'.repeat(isLarge ? 2_000_000 : 30_000),
  });
});
const LARGE_ID = `intent:${hashOf(LARGE_AT + 1)}`;

type Refusal = { status: number; body: string };

/** A page of the wallet. A cursor is refused with any limit but its own. */
function page({ query }: ScriptedRequest): { records: JsonObject[]; nextCursor: string | null } | Refusal {
  const [from = '0', boundTo = query.limit] = query.cursor?.split(':') ?? [];
  if (boundTo !== query.limit) {
    const code = 'invalid-parameter';
    return {
      status: 400,
      body: JSON.stringify({ title: 'cursor', status: 400, code, detail: 'limit changed' }),
    };
  }
  const listed = RECORDS.filter(({ status }) => query.status === undefined || status === query.status);
  const end = Number(from) + Number(query.limit);
  return {
    records: listed.slice(Number(from), end),
    nextCursor: end < listed.length ? `${end}:${query.limit}` : null,
  };
}

test('all transfers of a wallet are reported beside one that is too large, which is reported once', async () => {
  const tooLarge: string[] = [];
  const upstream = new ScriptedUpstream((request): Scripted => {
    if (request.query.intentHash !== undefined) {
      return { records: RECORDS.filter(({ id }) => id === `intent:${request.query.intentHash}`) };
    }
    const answer = page(request);
    if (!('body' in answer) && JSON.stringify(answer.records).length > LIMITS.upstream.bytes) {
      tooLarge.push(`${request.query.status ?? 'all'} ${request.query.limit}`);
    }
    return answer;
  });
  await upstream.start();
  onTestFinished(() => upstream.close());
  const hook = new Hook();
  await hook.start();
  onTestFinished(() => hook.close());
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      receiver: { url: hook.url, events: ['*', 'upstream.*'] },
      subscription: { wallets: [WALLET], history: 'emit' },
    },
    onTestFinished,
  );
  const url = await daemon.start();
  await hook.until((came) => new Set(came.map(({ event }) => event.data.subject.id)).size >= COUNT);

  // The listing of its status finds it too, where it is the first and only one.
  await eventually('its own listing is requested', () => tooLarge.includes('failed 1'));
  const ids = hook.came
    .filter(({ event }) => event.type.startsWith('intent.'))
    .map(({ event }) => event.data.subject.id);
  expect(new Set(ids)).toEqual(new Set(RECORDS.map(({ id }) => id).filter((id) => id !== LARGE_ID)));
  // A webhook may come twice, and a request that timed out is repeated.
  const events = new Map(hook.came.map(({ event }) => [event.id, event]));
  const ofUpstream = [...events.values()].filter(({ type }) => type.startsWith('upstream.'));
  expect(ofUpstream.map(({ type }) => type)).toEqual(['upstream.record_too_large']);
  expect(ofUpstream[0]?.data).toMatchObject({
    subject: { kind: 'upstream', id: 'upstream:status' },
    record: { wallet: `wallet:${WALLET}`, id: LARGE_ID, reason: expect.stringContaining('1048576 bytes') },
  });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toContain('intentwatch_records_too_large_total 1\n');

  // Each listing shrinks to a fitting page once, and is not read up to the record again and again.
  const isOfAll = (line: string): boolean => line.startsWith('all ');
  expect([...new Set(tooLarge.filter(isOfAll))]).toEqual([
    ...['all 50', 'all 25', 'all 12', 'all 6', 'all 3', 'all 1'],
  ]);
  const before = tooLarge.length;
  for (let polls = 0; polls < 5; polls += 1) {
    await upstream.awaitRequest(({ query }) => query.wallet !== undefined && query.status === undefined);
  }
  expect(tooLarge.slice(before).filter(isOfAll)).toEqual([]);
});
