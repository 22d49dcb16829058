import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { type DeliveryStage, deliveryStage, happen, happening } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { holdTimers } from '../support/held-timers.ts';
import { type Came, Hook } from '../support/hook.ts';
import { madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

/** Ends the wait of a receiver that rests or fails, as if its time had passed. */
async function passWait(stage: DeliveryStage, receiver: string): Promise<void> {
  const { redis, keys, backlog } = stage;
  await eventually('nothing is under way', async () => (await backlog.depth(receiver)).active === 0);
  await redis.hdel(keys.receiver(receiver), 'notBefore');
  await redis.xadd(keys.wakes, '*', 'receiver', receiver, 'process', '');
}

function word({ event }: Came): string {
  return event.type;
}

describe('a receiver that answers 429 with Retry-After', () => {
  test('is requested once per rest, and no delivery uses up an attempt by it', async () => {
    let requests = 0;
    let accepts = false;
    const server = createServer((request, response) => {
      requests += 1;
      request.resume();
      if (accepts) response.writeHead(204).end();
      else response.writeHead(429, { 'retry-after': '600' }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.later(async () => void server.close());
    open.later(async () => server.closeAllConnections());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const stage = await deliveryStage(open, {
      // As many attempts as there are below would make every delivery a dead letter.
      busy: { hook: { url } as Hook, more: { concurrency: 5, retries: { delays: ['1ms'], jitter: 0 } } },
    });
    await stage.start();
    await happen(stage, 100);
    await eventually('all are open', async () => (await stage.backlog.counts('busy')).pending === 100);
    await eventually('it rests', async () => (await stage.states.condition('busy')).state === 'resting');
    await eventually('none is under way', async () => (await stage.backlog.depth('busy')).active === 0);
    const atOnce = requests;
    expect(atOnce).toBeLessThanOrEqual(5);
    for (let rest = 1; rest <= 4; rest += 1) {
      await passWait(stage, 'busy');
      await eventually(`it was requested after rest ${rest}`, () => requests === atOnce + rest);
      await eventually('it rests', async () => (await stage.states.condition('busy')).notBefore !== null);
    }
    const { notBefore } = await stage.states.condition('busy');
    expect((notBefore ?? 0) - (await redisTimeMs(stage.redis))).toBeGreaterThan(20_000);
    expect(requests).toBe(atOnce + 4);
    expect(await stage.backlog.counts('busy')).toEqual({ pending: 100, dead: 0 });

    accepts = true;
    await passWait(stage, 'busy');
    await stage.drained('busy');
    expect(requests).toBe(atOnce + 4 + 100);
    expect(await stage.backlog.counts('busy')).toEqual({ pending: 0, dead: 0 });
  });
});

describe('a receiver that refuses one event in ten', () => {
  test('is not failing, and no operator is notified so', async () => {
    const number = ({ event }: Came): number => Number(BigInt(event.data.subject.id.slice('intent:'.length)));
    const picky = await open.started(new Hook((came) => (number(came) % 10 === 0 ? 500 : 204)));
    const operator = await open.started(new Hook());
    const retries = { delays: ['20ms', '20ms', '20ms', '20ms', '20ms'], jitter: 0 };
    const stage = await deliveryStage(open, {
      picky: { hook: picky, more: { retries } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    await stage.start();
    await happen(stage, 300);
    await stage.drained('picky');
    await stage.drained('operator');
    expect(await stage.backlog.counts('picky')).toEqual({ pending: 0, dead: 30 });
    expect(operator.came.map(word)).toEqual([]);
  });
});

describe('a receiver that refuses all events of one kind', () => {
  const retries = { delays: ['1h', '1h'], jitter: 0 };

  test('gets the others soon, however many of the refused ones are older', async () => {
    const strict = await open.started(new Hook(() => 500));
    const stage = await deliveryStage(open, { strict: { hook: strict, more: { retries } } });
    const happens = happening(stage, 200);
    await stage.start();
    const refused = new Set((await happens(100)).map(madeEventId));
    await eventually('it fails', async () => (await stage.states.condition('strict')).state === 'failing');
    await eventually('all are open', async () => (await stage.backlog.counts('strict')).pending === 100);
    await eventually('none is under way', async () => (await stage.backlog.depth('strict')).active === 0);
    strict.answer = ({ event }) => (refused.has(event.id) ? 500 : 204);
    const before = strict.came.length;
    await happens(20);
    await eventually('only the refused are open', async () => {
      return (await stage.backlog.counts('strict')).pending === 100 && strict.came.length >= before + 20;
    });
    // An older one may be tried before the newest.
    const first = strict.ids.slice(before).findIndex((id) => !refused.has(id));
    expect(first).toBeLessThanOrEqual(2);
    expect((await stage.states.condition('strict')).state).toBe('ok');
  });

  test('gets the older ones too, where all new ones are refused', async () => {
    const accepted = new Set<string>();
    const strict = await open.started(new Hook(({ event }) => (accepted.has(event.id) ? 204 : 500)));
    const stage = await deliveryStage(open, { strict: { hook: strict, more: { retries } } });
    const happens = happening(stage, 200);
    await stage.start();
    const made = (await happens(20)).map(madeEventId);
    await eventually('it fails', async () => (await stage.states.condition('strict')).state === 'failing');
    await eventually('all are open', async () => (await stage.backlog.counts('strict')).pending === 20);
    for (const id of made.slice(10)) accepted.add(id);
    await eventually('the older ones are delivered', async () => {
      const [newer = ''] = (await happens(1)).map(madeEventId);
      // There is a newer one at each probe.
      await eventually('it is open', async () => (await stage.deliveries.fact('strict', newer)) !== null);
      await passWait(stage, 'strict');
      return [...accepted].every((id) => strict.ids.includes(id)) && (await isOver(stage, [...accepted]));
    });
  });
});

async function isOver({ deliveries }: DeliveryStage, ids: readonly string[]): Promise<boolean> {
  const facts = await Promise.all(ids.map((id) => deliveries.fact('strict', id)));
  return facts.every((fact) => fact?.outcome === 'delivered');
}

describe('a receiver that was away', () => {
  test('is probed by one delivery at a time, by different ones, and gets all that waits at its first success, in order', async () => {
    const away = await open.started(new Hook(() => 503));
    const operator = await open.started(new Hook());
    // By its own times no delivery would be tried again within this test.
    const retries = { delays: ['1h', '1h'], jitter: 0 };
    const stage = await deliveryStage(open, {
      away: { hook: away, more: { retries, ordering: 'subject' } },
      operator: { hook: operator, more: { events: ['receiver.*'] } },
    });
    await stage.start();
    const made = await happen(stage, 200, 40);
    await eventually('it fails', async () => (await stage.states.condition('away')).state === 'failing');
    await eventually('all are open', async () => (await stage.backlog.counts('away')).pending === 200);
    await eventually('none is under way', async () => (await stage.backlog.depth('away')).active === 0);
    const before = away.came.length;
    for (let probe = 1; probe <= 3; probe += 1) {
      await passWait(stage, 'away');
      await away.until((came) => came.length >= before + probe);
    }
    expect(new Set(away.ids.slice(before, before + 3)).size).toBe(3);
    expect(await stage.backlog.counts('away')).toEqual({ pending: 200, dead: 0 });

    away.answer = () => 204;
    const from = away.came.length;
    // The next probe is at most 10 s away; by their own times they would come after an hour.
    await away.until((came) => came.length >= from + 200);
    await stage.drained('away');
    const came = away.came.slice(from);
    expect(came.map(({ event }) => event.id).toSorted()).toEqual(made.map(madeEventId).toSorted());
    for (const some of Map.groupBy(came, ({ event }) => event.data.subject.id).values()) {
      expect(some.map(({ event }) => event.data.sequence)).toEqual([1, 2, 3, 4, 5]);
    }
    await stage.drained('operator');
    expect(operator.came.map(word)).toEqual(['receiver.failing', 'receiver.recovered']);
  });
});

describe('while a receiver is away', () => {
  test('probes before a delivery is due use up none of its attempts', async () => {
    const away = await open.started(new Hook(() => 500));
    const more = { concurrency: 5, retries: { delays: ['1h'], jitter: 0 } };
    const stage = await deliveryStage(open, { away: { hook: away, more } });
    await stage.start();
    const made = await happen(stage, 5);
    await eventually('it fails', async () => (await stage.states.condition('away')).state === 'failing');
    for (let probe = 0; probe < 15; probe += 1) {
      const requests = away.came.length;
      await passWait(stage, 'away');
      await away.until((came) => came.length > requests);
    }
    expect(await stage.backlog.counts('away')).toEqual({ pending: 5, dead: 0 });
    for (const id of made.map(madeEventId)) {
      expect((await stage.deliveries.fact('away', id))?.tries).toBeGreaterThanOrEqual(3);
    }
  });
});

describe('a receiver that accepts nothing', () => {
  test('has a bounded number of open deliveries; the rest waits in the log and follows in order', async () => {
    const held = Promise.withResolvers<void>();
    const slow = await open.started(
      new Hook(async () => {
        await held.promise;
        return 204;
      }),
    );
    const other = await open.started(new Hook());
    const stage = await deliveryStage(open, {
      slow: { hook: slow, more: { concurrency: 1, timeout: '4m' } },
      other: { hook: other, more: { concurrency: 50 } },
    });
    await stage.start();
    const made = await happen(stage, 1_300);
    await other.until((came) => came.length === made.length);
    await stage.drained('other');
    const { pending } = await stage.backlog.counts('slow');
    expect(pending).toBeGreaterThan(900);
    expect(pending).toBeLessThanOrEqual(1_000);
    expect(await stage.lease.cursor('slow')).not.toBe(await stage.events.newest());
    held.resolve();
    await stage.drained('slow');
    expect(slow.ids).toEqual(made.map(madeEventId));
  });
});

test('a delivery that waits for a retry is sent in time by another process when the first has ended', async () => {
  const hook: Hook = await open.started(new Hook(() => (hook.came.length === 1 ? 500 : 204)));
  const more = { retries: { delays: ['3s', '1m'], jitter: 0 } };
  const stage = await deliveryStage(open, { hook: { hook, more } });
  // The receiver must not wait for the poll after 30 s without a notification.
  holdTimers(30_000);
  const daemons = [await stage.start(), await stage.start()];
  const tried = Promise.withResolvers<(typeof daemons)[number]>();
  for (const one of daemons) one.signals.on('delivery.attempted', () => tried.resolve(one));
  const _made = await happen(stage, 1);
  await (await tried.promise).daemon.close();
  await hook.until((came) => came.length === 2);
});

test.each([
  ['the last one', 4, ['failing', 'paused', 'recovered', 'resumed']],
  ['the first one of several', 1, ['failing', 'paused', 'resumed', 'recovered']],
])('a receiver that is paused while it accepts %s recovers, once', async (_, count, moves) => {
  const away = await open.started(new Hook(() => 503));
  const operator = await open.started(new Hook());
  const stage = await deliveryStage(open, {
    away: { hook: away, more: { concurrency: 1, retries: { delays: ['1h', '1h'], jitter: 0 } } },
    operator: { hook: operator, more: { events: ['receiver.*'], ordering: 'subject' } },
  });
  await stage.start();
  await happen(stage, 4);
  await operator.until((came) => came.length === 1);
  await eventually('all are open', async () => (await stage.backlog.counts('away')).pending === 4);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let accepted = 0;
  away.answer = async () => {
    accepted += 1;
    if (accepted === count) await held;
    return 204;
  };
  await passWait(stage, 'away');
  await away.until(() => accepted === count);
  expect(await stage.states.pause('away')).not.toBe('paused');
  release();
  await eventually('its success is recorded', async () => {
    return (await stage.backlog.counts('away')).pending === 4 - count;
  });
  expect(await stage.states.unpause('away')).toBe('paused');
  await stage.drained('away');
  await stage.drained('operator');
  expect(operator.came.map(word)).toEqual(moves.map((move) => `receiver.${move}`));
  expect(await stage.states.condition('away')).toMatchObject({ state: 'ok', since: null });
});
