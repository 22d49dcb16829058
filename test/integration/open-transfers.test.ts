import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import type { SubjectPlan } from '../../src/domain/cadence/subject-plan.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { commitDue } from '../../src/queues/polls/commit-flagged.ts';
import { type CommitParts, commitRecord, planOf } from '../../src/queues/polls/commit-record.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { type OpenTransfers, readOpenTransfers } from '../../src/store/open-transfers.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitParts } from '../support/commit-parts.ts';
import { testPrefix } from '../support/daemon.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const T0 = 1_800_000_000;
const T0_MS = T0 * 1_000;

/** As an upstream writes it, in mixed case, and as it is kept. */
const TOKEN = '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d';

let redis: RedisClient;
let keys: Keys;
let subjects: SubjectStore;
let parts: CommitParts;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  subjects = new SubjectStore(redis, keys, { retentionMs: 60_000 });
  parts = commitParts(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
});

afterEach(() => redis.disconnect());

function sent(amount: string, more: JsonObject = {}): JsonObject {
  return { sourceTx: { chainId: 56, token: TOKEN, amount, txHash: '0xab', ...more } };
}

function record(subject: SubjectId, status: string, updatedAt: number, more: JsonObject): UpstreamRecord {
  const raw = { id: subject, type: 'intent', status, updatedAt, ...more };
  return { subject, status, updatedAt, names: [], raw, unreadable: [] };
}

/** Takes an answer in as a page of a wallet would show it, which tracks the transfer; `nowMs` is when it comes. */
async function take(raw: UpstreamRecord, nowMs = T0_MS): Promise<void> {
  const asOf = (await redis.get(keys.commit)) ?? '0';
  const [known] = await subjects.look([raw.subject]);
  if (known === undefined) throw new Error('nothing was looked up');
  const claim = { root: 's|wallet:0x01', atMs: 1, historyBefore: null, served: false };
  await redis.hset(keys.wanted, claim.root, '1');
  const sighting = { asOf, nowMs, price: 1, exact: false, claims: [claim] };
  expect((await commitRecord(parts, raw, known, sighting)).outcome).not.toBe('superseded');
}

/** What there is of each state, route and token. */
async function sums(): Promise<string[]> {
  const open = await readOpenTransfers(redis, keys);
  return open.sums.map(({ state, route, chainId, token, count, amount }) =>
    [state, route, chainId, token === TOKEN.toLowerCase() ? 'token' : token, count, amount].join(' '),
  );
}

async function oldest(state: OpenTransfers['oldest'][number]['state']): Promise<number | null | undefined> {
  return (await readOpenTransfers(redis, keys)).oldest.find((one) => one.state === state)?.since;
}

/** All that is kept of open transfers: nothing but this may grow. */
async function isEmpty(): Promise<boolean> {
  const found = await redis.keys(`${keys.counts}:open*`);
  return found.length === 0;
}

const [ONE, TWO] = [intentId(hashOf(1)), intentId(hashOf(2))];

test('transfers under way are counted with what they sent, to the last unit, and leave nothing when they have come to an end', async () => {
  const million = '1234567890123456789012345';
  await take(record(ONE, 'pending', T0, sent(million)));
  await take(record(TWO, 'pending', T0 + 5, sent('1')));
  expect(await sums()).toEqual([`pending 56:* 56 token 2 ${BigInt(million) + 1n}`]);
  expect(await oldest('pending')).toBe(T0);
  await take(record(ONE, 'filled', T0 + 20, sent(million)));
  expect(await sums()).toEqual(['pending 56:* 56 token 1 1']);
  expect(await oldest('pending')).toBe(T0 + 5);
  await take(record(TWO, 'settled', T0 + 30, sent('1')));
  expect(await sums()).toEqual([]);
  expect(await isEmpty()).toBe(true);
});

test('money that went astray is counted until it is back', async () => {
  await take(record(ONE, 'pending', T0, sent('7')));
  await take(record(ONE, 'expired', T0 + 60, sent('7')));
  expect(await sums()).toEqual(['expired 56:* 56 token 1 7']);
  await take(record(ONE, 'REFUNDABLE', T0 + 90, sent('7')));
  expect(await sums()).toEqual(['refundable 56:* 56 token 1 7']);
  expect(await oldest('refundable')).toBe(T0 + 90);
  await take(record(ONE, 'refunded', T0 + 120, sent('7')));
  expect(await isEmpty()).toBe(true);
});

test('a transfer that was told as overdue counts as that, since its funding, and as nothing else', async () => {
  await take(record(ONE, 'pending', T0, sent('7')));
  const [known] = await subjects.look([ONE]);
  if (known?.snapshot == null) throw new Error('nothing was stored');
  const { snapshot, claims } = known;
  const nowMs = T0_MS + 3_600_000;
  const context = { nowMs, price: 1, subscriptions: new Map(), handed: null, route: null };
  const plan: SubjectPlan = planOf(parts, { subject: ONE, snapshot, claims }, context);
  expect(plan.due).toEqual([]);
  const event = {
    flag: 'overdue:60000',
    transition: {
      type: 'intent.overdue',
      status: 'pending',
      previousStatus: 'pending',
      changes: [],
      skipped: false,
      regression: false,
    },
    raw: {},
    overdueAfter: 60_000,
    warnBeforeMs: null,
    untilMs: null,
  };
  const due = [{ atMs: nowMs, event, roots: null }];
  await commitDue(parts, { subject: ONE, snapshot, claims, promised: null }, { due, nowMs });
  expect(await sums()).toEqual(['overdue 56:* 56 token 1 7']);
  expect(await oldest('overdue')).toBe(T0);
  expect(await oldest('pending')).toBe(null);
  await take(record(ONE, 'filled', T0 + 4_000, sent('7')), nowMs + 1_000);
  expect(await isEmpty()).toBe(true);
});

test('an amount that becomes known, or another, takes the place of the one before', async () => {
  await take(record(ONE, 'pending', T0, {}));
  expect(await sums()).toEqual(['pending *   1 0']);
  await take(record(ONE, 'pending', T0 + 1, sent('7')));
  await take(record(ONE, 'pending', T0 + 2, sent('9')));
  expect(await sums()).toEqual(['pending 56:* 56 token 1 9']);
  expect(await oldest('pending')).toBe(T0);
});

test.each([
  ['-5'],
  ['1e9'],
  ['9'.repeat(28)],
  ['|7|'],
])('what is no amount (%s) is counted without one', async (amount) => {
  await take(record(ONE, 'pending', T0, sent(amount, { token: 'a|b' })));
  expect(await sums()).toEqual(['pending 56:*   1 0']);
  await take(record(ONE, 'filled', T0 + 1, {}));
  expect(await isEmpty()).toBe(true);
});

test('a transfer that nobody tracks any more is counted no more', async () => {
  await take(record(ONE, 'pending', T0, sent('7')));
  const plan = new PlanStore(redis, keys);
  const [known] = await subjects.look([ONE]);
  expect(await plan.retire(ONE, known?.snapshot?.commit ?? 0, 60_000)).toBe(true);
  expect(await isEmpty()).toBe(true);
});

test('however many tokens and chains an upstream names, a bounded number of sums is kept, and it comes to nothing', async () => {
  const key = `${keys.counts}:open`;
  const others = Array.from({ length: 3_000 }, (_, index) => [`pending|1:${index}|1:0x01`, '1']).flat();
  await redis.hset(key, ...others);
  await take(record(ONE, 'pending', T0, sent('7')));
  await take(record(TWO, 'refundable', T0, sent('7')));
  expect(await redis.hlen(key)).toBe(3_002);
  expect(await redis.hmget(key, 'pending|*|', 'refundable|*|')).toEqual(['1', '1']);
  await take(record(ONE, 'pending', T0 + 5, sent('7', { chainId: 10 })));
  expect(await redis.hget(key, 'pending|*|')).toBe('1');
  await take(record(ONE, 'filled', T0 + 9, sent('7')));
  await take(record(TWO, 'refunded', T0 + 9, sent('7')));
  expect(await redis.hlen(key)).toBe(3_000);
});
