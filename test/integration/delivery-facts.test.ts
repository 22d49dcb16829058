import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import type { Attempt, ClaimOrder, EndedAttempt } from '../../src/store/deliveries.ts';
import { SenderStore } from '../../src/store/senders.ts';
import { CLAIM_KEY, deliveryStage, orderOf, recordOne } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';

const open = opening();

/** An instance of which nothing can be proven. */
const UNKNOWN = { connection: null, system: null };

const DELIVERED: Attempt = {
  atMs: 1,
  outcome: 'delivered',
  httpStatus: 204,
  smtpCode: null,
  durationMs: 1,
  reason: '204 No Content',
  answer: '',
  nextAtMs: null,
};

const FAILED: Attempt = {
  ...DELIVERED,
  outcome: 'failed',
  httpStatus: 503,
  reason: '503 Service Unavailable',
};

test('an attempt that ends after Redis was emptied does not block its event, reported anew, from the receiver', async () => {
  const { deliveries, lease } = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
  await recordOne(deliveries, 'hook', {
    ids: ['evt_1'],
    attempt: DELIVERED,
    outcome: 'delivered',
    nextAtMs: null,
    counts: true,
    answer: '',
    restMs: null,
    disableAfterMs: 1_000,
    process: 'p',
    nowMs: 2,
  });
  expect(await deliveries.fact('hook', 'evt_1')).toBeNull();
  expect(
    await deliveries.open((await lease.hold()) ?? '', {
      receiver: 'hook',
      deliveries: [{ id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null }],
      replay: null,
      cursor: null,
      process: 'p',
    }),
  ).toEqual({ isCurrent: true, entries: [], results: ['opened'], claims: null });
});

test('deliveries are claimed in the step that opens them, and again where the reply was lost', async () => {
  const { deliveries, lease } = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
  const token = (await lease.hold()) ?? '';
  const openedAndClaimed = async (ids: readonly string[], order: ClaimOrder | null) => {
    const opening = {
      receiver: 'hook',
      deliveries: ids.map((id) => ({ id, entry: `${id.slice(4)}-0`, claimKeys: [CLAIM_KEY], subject: null })),
      replay: null,
      cursor: null,
      process: 'p',
    };
    const found = await deliveries.open(token, opening, { order, memory: null });
    return found?.claims?.claimed.map(({ id }) => id) ?? null;
  };
  const next = async (held: readonly string[]) =>
    (await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 9, held }) })).claimed.map(
      ({ id }) => id,
    );
  expect(await openedAndClaimed(['evt_1'], null)).toBe(null);
  // The oldest goes first, also where the new ones were opened with the claim.
  expect(await openedAndClaimed(['evt_2', 'evt_3'], orderOf({ most: 2 }))).toEqual(['evt_1', 'evt_2']);
  expect(await openedAndClaimed(['evt_4'], orderOf({ most: 9, held: ['evt_1', 'evt_2'] }))).toEqual([
    'evt_3',
    'evt_4',
  ]);
  // The process never got the last reply.
  expect(await next(['evt_1', 'evt_2'])).toEqual(['evt_3', 'evt_4']);
  expect(await next(['evt_1', 'evt_2', 'evt_3', 'evt_4'])).toEqual([]);
});

describe('failures of deliveries that are recorded together with successes', () => {
  const refused = ['evt_1', 'evt_3', 'evt_5', 'evt_7'];
  const accepted = ['evt_2', 'evt_4', 'evt_6', 'evt_8'];
  const ids = [...refused, ...accepted].toSorted();
  const endOf = (id: string) => ({ id, isAccepted: accepted.includes(id) });

  const recorder = async () => {
    const { redis, keys, deliveries, lease, states } = await deliveryStage(open, {
      hook: { hook: await open.started(new Hook()) },
    });
    await deliveries.open((await lease.hold()) ?? '', {
      receiver: 'hook',
      deliveries: ids.map((id) => ({ id, entry: `${id.slice(4)}-0`, claimKeys: [CLAIM_KEY], subject: null })),
      replay: null,
      cursor: null,
      process: 'p',
    });
    const noting = {
      counts: true,
      answer: '',
      restMs: null,
      disableAfterMs: 60_000,
      process: 'p',
      nextAtMs: null,
      nowMs: 2,
    } as const;
    /** Claims all that is due, and records in one step how each of `ends` ended. */
    const record = async (ends: readonly { id: string; isAccepted: boolean }[]) => {
      await redis.hdel(keys.receiver('hook'), 'notBefore');
      await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 50 }) });
      const all = ends.map(
        ({ id, isAccepted }): EndedAttempt => ({
          ...noting,
          ids: [id],
          attempt: isAccepted ? DELIVERED : FAILED,
          outcome: isAccepted ? 'delivered' : 'pending',
        }),
      );
      await deliveries.record('hook', all, { process: 'p', order: null });
      return (await states.condition('hook')).state;
    };
    const setAccepted = async (text: string | null) => {
      if (text === null) await redis.del(keys.receiver('hook'));
      else await redis.hset(keys.receiver('hook'), 'accepted', text);
    };
    return { record, setAccepted };
  };

  test('are of the deliveries where another one was accepted after the first failure', async () => {
    const { record } = await recorder();
    expect(await record(ids.map(endOf))).toBe('ok');
    for (const id of refused) expect(await record([endOf(id)])).toBe('ok');
  });

  test('are of the receiver where all that it accepted came before them', async () => {
    const { record } = await recorder();
    expect(await record([...accepted, ...refused].map(endOf))).toBe('failing');
  });

  test('are of the receiver where its count of successes is lost or foreign, and of the deliveries again later', async () => {
    for (const text of [null, 'nan', 'inf', '-1', 'x', '1e300', '9007199254740992', '']) {
      const { record, setAccepted } = await recorder();
      await record([endOf('evt_2'), ...refused.slice(0, 3).map(endOf)]);
      await setAccepted(text);
      for (let attempt = 0; attempt < 4; attempt += 1) await record([endOf('evt_1')]);
      expect([text, await record([endOf('evt_3')])]).toEqual([text, 'failing']);
      expect(await record([endOf('evt_4'), endOf('evt_6'), endOf('evt_8')])).toBe('ok');
      for (let attempt = 0; attempt < 5; attempt += 1)
        expect([text, await record([endOf('evt_3')])]).toEqual([text, 'ok']);
    }
  });
});

test('a clock of Redis that jumps ahead takes no work from live processes', async () => {
  const { redis, keys, deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  const senders = new SenderStore(redis, keys);
  for (const process of ['p', 'q']) await senders.heartbeat(process, { leaseMs: 60_000, instance: UNKNOWN });
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 'hook',
    deliveries: [{ id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null }],
    replay: null,
    cursor: null,
    process: 'p',
  });
  await deliveries.claim('hook', { process: 'q', order: orderOf({ most: 1 }) });
  // The effect of a clock that jumps an hour ahead.
  for (const process of ['p', 'q']) await redis.zincrby(keys.senders, -3_600_000, process);
  expect(await deliveries.takeOver('hook', 'p')).toBe(0);
  expect((await senders.heartbeat('p', { leaseMs: 60_000, instance: UNKNOWN })).gone).toEqual([]);
  await senders.heartbeat('q', { leaseMs: 60_000, instance: UNKNOWN });
  expect((await senders.heartbeat('p', { leaseMs: 60_000, instance: UNKNOWN })).gone).toEqual([]);
  // A sender without any sign of life is found out.
  await redis.zincrby(keys.senders, -3_600_000, 'q');
  const { gone } = await senders.heartbeat('p', { leaseMs: 60_000, instance: UNKNOWN });
  expect(gone).toEqual(['q']);
  expect(await deliveries.takeOver('hook', 'p')).toBe(1);
  // A sender with a new sign of life is not removed.
  await senders.heartbeat('q', { leaseMs: 60_000, instance: UNKNOWN });
  await senders.remove(gone);
  expect(await redis.zscore(keys.senders, 'q')).not.toBeNull();
});

test('an attempt is noted with any value in place of its numbers', async () => {
  const { redis, keys, deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 'hook',
    deliveries: [{ id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null }],
    replay: null,
    cursor: null,
    process: 'p',
  });
  const foreign = ['failures', 'refusals', 'probes', 'probed', 'probedNewest'];
  await redis.hset(keys.receiver('hook'), Object.fromEntries(foreign.map((field) => [field, 'x'])));
  await redis.hset(keys.receiver('hook'), { state: 'failing', notBefore: '1' });
  const claims = await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 1 }) });
  expect(claims.claimed.map(({ id }) => id)).toEqual(['evt_1']);
  await redis.hset(keys.delivery('hook', 'evt_1'), { tries: 'x', earlierTries: 'x', acceptedBefore: 'x' });
  const noting = {
    ids: ['evt_1'],
    counts: false,
    answer: '',
    restMs: null,
    disableAfterMs: 1_000,
    process: 'p',
    nextAtMs: null,
    nowMs: 2,
  } as const;
  const failed = await recordOne(deliveries, 'hook', { ...noting, attempt: FAILED, outcome: 'pending' });
  expect(failed.outcome).toBe('pending');
  await redis.hset(keys.receiver('hook'), { successes: 'x', sequence: 'x', reported: 'failing' });
  const ended = await recordOne(deliveries, 'hook', { ...noting, attempt: DELIVERED, outcome: 'delivered' });
  expect(ended).toMatchObject({ outcome: 'delivered', moved: 'recovered' });
});

test('a delivered delivery has its attempts and the claims that its entry lacks, and is not opened or failed again', async () => {
  const { redis, keys, deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  const opening = {
    receiver: 'hook',
    deliveries: ['evt_1', 'evt_2', 'evt_3'].map((id) => {
      return { id, entry: `${id.slice(4)}-0`, claimKeys: [CLAIM_KEY], subject: null };
    }),
    replay: null,
    cursor: null,
    process: 'p',
  };
  const short = CLAIM_KEY.slice(0, CLAIM_KEY.indexOf('|') + 1);
  await redis.xadd(keys.events, '1-0', 'claimKeys', JSON.stringify([CLAIM_KEY]));
  await redis.xadd(keys.events, '2-0', 'claimKeys', JSON.stringify([CLAIM_KEY, 'other|intent:x']));
  await redis.xadd(keys.events, '3-0', 'claimKeys', JSON.stringify([short]));
  await deliveries.open((await lease.hold()) ?? '', opening);
  await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 3 }) });
  const noting = {
    counts: true,
    answer: 'no',
    restMs: null,
    disableAfterMs: null,
    process: 'p',
    nextAtMs: null,
    nowMs: 2,
  } as const;
  const end = async (id: string, outcome: 'delivered' | 'pending') => {
    const attempt = outcome === 'delivered' ? DELIVERED : FAILED;
    return (await recordOne(deliveries, 'hook', { ...noting, ids: [id], attempt, outcome })).outcome;
  };
  expect(await end('evt_2', 'pending')).toBe('pending');
  await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 1, held: ['evt_1', 'evt_3'] }) });
  for (const id of ['evt_1', 'evt_2', 'evt_3']) expect(await end(id, 'delivered')).toBe('delivered');
  const delivered = { outcome: 'delivered', turn: null, replay: null, deliveredAt: expect.any(Number) };
  const first = { ...delivered, entry: '1-0', tries: 1, attempts: [], isAsLogged: true };
  expect(await deliveries.fact('hook', 'evt_1')).toMatchObject(first);
  expect(await deliveries.fact('hook', 'evt_3')).toMatchObject({ ...first, entry: '3-0' });
  expect(await deliveries.fact('hook', 'evt_2')).toMatchObject({
    ...delivered,
    tries: 2,
    attempts: [FAILED, DELIVERED],
    isAsLogged: false,
    claimKeys: [CLAIM_KEY],
  });
  expect(await end('evt_1', 'pending')).toBe('delivered');
  expect((await deliveries.open((await lease.hold()) ?? '', opening))?.results).toEqual([
    'done',
    'done',
    'done',
  ]);
  expect(await redis.keys(`${keys.delivery('hook', '')}*`)).toEqual([keys.delivery('hook', '')]);
});

test('a delivery whose fact was lost is opened anew and waits neither for itself nor for one behind it', async () => {
  const { redis, keys, deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  const token = (await lease.hold()) ?? '';
  const subject = 'intent:x';
  const opened = async (ids: readonly string[]) => {
    const found = await deliveries.open(token, {
      receiver: 'hook',
      deliveries: ids.map((id) => ({ id, entry: `${id.slice(4)}-0`, claimKeys: [CLAIM_KEY], subject })),
      replay: null,
      cursor: null,
      process: 'p',
    });
    return found?.results;
  };
  const claimed = async () => {
    const claims = await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 5 }) });
    return claims.claimed.map(({ id }) => id);
  };
  expect(await opened(['evt_1', 'evt_2'])).toEqual(['opened', 'opened-waiting']);
  // Its cursor was lost as well: the log is read from its beginning.
  await redis.del(keys.delivery('hook', 'evt_1'));
  expect(await opened(['evt_1', 'evt_2'])).toEqual(['opened', 'waiting']);
  expect(await claimed()).toEqual(['evt_1']);
  await redis.del(keys.delivery('hook', 'evt_1'), keys.delivery('hook', 'evt_2'));
  expect(await opened(['evt_2'])).toEqual(['opened']);
  expect(await claimed()).toEqual(['evt_2']);
});

test('the order in one message follows the log, for any order of waiting', async () => {
  const { deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  const order = ['a1', 'a2', 'b1', 'a3', 'b2', 'c1'];
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 'hook',
    deliveries: order.map((id, index) => ({
      id: `evt_${id}`,
      entry: `${index + 1}-0`,
      claimKeys: [CLAIM_KEY],
      subject: id.slice(0, 1),
    })),
    replay: null,
    cursor: null,
    process: 'p',
  });
  const claimed = async (isTogether: boolean, most: number) => {
    const wanted = orderOf({ most, isTogether });
    return (await deliveries.claim('hook', { process: 'p', order: wanted })).claimed.map(({ id }) =>
      id.slice(4),
    );
  };
  // Nothing is held, and so each claim begins anew.
  expect(await claimed(false, 10)).toEqual(['a1', 'b1', 'c1']);
  expect(await claimed(true, 10)).toEqual(order);
  expect(await claimed(true, 4)).toEqual(order.slice(0, 4));
  expect(await claimed(false, 10)).toEqual(['a1', 'b1', 'c1']);
  await deliveries.release('hook', { process: 'p', ids: ['evt_c1', 'evt_b1'], afterMs: null });
  const noting = { outcome: 'delivered', nextAtMs: null, counts: true, answer: '', restMs: null } as const;
  const more = { disableAfterMs: 1_000, process: 'p', nowMs: 2, attempt: DELIVERED };
  await recordOne(deliveries, 'hook', { ...noting, ...more, ids: ['evt_a1', 'evt_a2'] });
  expect(await claimed(true, 10)).toEqual(order.slice(2));
});

test('times that a clock of Redis noted that was an hour ahead hold up nothing', async () => {
  const { redis, keys, deliveries, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  const receiver = keys.receiver('hook');
  const ids = ['evt_1', 'evt_2', 'evt_3'];
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 'hook',
    deliveries: ids.map((id) => ({ id, entry: '1-0', claimKeys: [CLAIM_KEY], subject: null })),
    replay: null,
    cursor: null,
    process: 'p',
  });
  const aheadMs = (await redisTimeMs(redis)) + 3_600_000;
  const claimed = async (intervalMs: number | null) => {
    const claims = await deliveries.claim('hook', { process: 'p', order: orderOf({ most: 1, intervalMs }) });
    return claims.claimed[0]?.id;
  };
  await redis.hset(receiver, { slot: aheadMs });
  expect(await claimed(1_000)).toBe('evt_1');
  const noting = {
    counts: false,
    answer: '',
    disableAfterMs: 60_000,
    process: 'p',
    nextAtMs: null,
    nowMs: 2,
  } as const;
  const fail = (id: string, restMs: number | null) =>
    recordOne(deliveries, 'hook', {
      ...noting,
      ids: [id],
      attempt: FAILED,
      outcome: 'pending',
      restMs,
    });
  // The attempt counts against it, for any time of its last success.
  await redis.hset(receiver, { lastSuccessAt: aheadMs, since: aheadMs, recoveredAt: aheadMs });
  await fail('evt_1', null);
  const fields = await redis.hmget(receiver, 'failures', 'since');
  expect(fields[0]).toBe('1');
  expect(Number(fields[1])).toBeLessThan(aheadMs);

  for (const state of ['failing', 'resting']) {
    const id = (await claimed(null)) ?? '';
    await redis.hset(receiver, { state, notBefore: aheadMs, restedAt: aheadMs, span: 10_000 });
    await fail(id, 600_000);
    // A wait that the receiver requested holds.
    expect(await claimed(null)).toBe(undefined);
    expect(Number(await redis.hget(receiver, 'notBefore'))).toBeLessThan(aheadMs);
    await redis.hset(receiver, { notBefore: aheadMs });
  }
  await redis.hset(receiver, { restedAt: aheadMs });
  await recordOne(deliveries, 'hook', {
    ...noting,
    ids: [(await claimed(null)) ?? ''],
    attempt: DELIVERED,
    outcome: 'delivered',
    restMs: null,
  });
  expect(await redis.hget(receiver, 'state')).toBe('ok');

  // A process that ended while the clock was ahead is found out.
  const senders = new SenderStore(redis, keys);
  for (const process of ['p', 'q']) await senders.heartbeat(process, { leaseMs: 9_000, instance: UNKNOWN });
  await redis.zincrby(keys.senders, 3_600_000, 'q');
  await senders.heartbeat('p', { leaseMs: 9_000, instance: UNKNOWN });
  expect(Number(await redis.zscore(keys.senders, 'q'))).toBeLessThan(aheadMs);
});

test('a clock of Redis that jumps over disableAfter does not disable a receiver; the confirmed time does', async () => {
  const { redis, keys, deliveries, states, lease } = await deliveryStage(open, {
    hook: { hook: await open.started(new Hook()) },
  });
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 'hook',
    deliveries: [{ id: 'evt_1', entry: '1-0', claimKeys: [CLAIM_KEY], subject: null }],
    replay: null,
    cursor: null,
    process: 'p',
  });
  const fail = async (): Promise<string | null> => {
    const rest = {
      nextAtMs: null,
      counts: false,
      answer: '',
      restMs: null,
      process: null,
      nowMs: 2,
    } as const;
    const noting = { ...rest, attempt: FAILED, disableAfterMs: 3_600_000 };
    return (await recordOne(deliveries, 'hook', { ...noting, ids: ['evt_1'], outcome: 'pending' })).moved;
  };
  const jumpMs = 7_200_000;
  const confirmedMs = (await redisTimeMs(redis)) - jumpMs;
  // Two failures before the jump, by the time of Redis then, and the others after it.
  await redis.hset(keys.clock, { confirmedMs });
  for (let failure = 0; failure < 2; failure += 1) await fail();
  await redis.hset(keys.receiver('hook'), { since: confirmedMs });
  for (let failure = 0; failure < 4; failure += 1) expect(await fail()).not.toBe('disabled');
  expect((await states.condition('hook')).state).toBe('failing');
  await redis.hset(keys.clock, { confirmedMs: confirmedMs + jumpMs });
  expect(await fail()).toBe('disabled');
});
