import { describe, expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { newReplayId, type Replay } from '../../src/store/replays.ts';
import { CLAIM_KEY, type DeliveryStage, deliveryStage, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

async function replay(
  { replays, events }: DeliveryStage,
  { fromMs, untilMs, types = null }: { fromMs: number; untilMs: number; types?: string[] | null },
): Promise<string> {
  const since = `${fromMs - 1}-${Number.MAX_SAFE_INTEGER}`;
  const id = newReplayId();
  await replays.request(id, {
    receiver: 'hook',
    since,
    until: `${untilMs}-0`,
    end: await events.newest(),
    types,
  });
  return id;
}

async function ended({ replays }: DeliveryStage, id: string): Promise<Replay> {
  return eventually('the replay has ended', async () => {
    const now = await replays.read(id);
    return now?.state === 'opened' && now.delivered + now.dead === now.opened ? now : null;
  });
}

async function happened(stage: DeliveryStage, made: MadeEvent[]): Promise<void> {
  await appendEvents(stage.redis, stage.keys, made);
  await stage.drained('hook');
}

describe('a replay', () => {
  test('sends exactly the events of its time and types that the receiver matches, under their ids, marked', async () => {
    const hook = await open.started(new Hook());
    const more = { concurrency: 1, events: ['*', '!intent.failed'] };
    const stage = await deliveryStage(open, { hook: { hook, more } });
    await stage.start();
    const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
    const made = hourOfEvents(600, { fromMs, transfers: 60 }).map((event, index): MadeEvent => {
      if (index % 10 === 7) return { ...event, type: 'intent.failed' };
      if (index % 10 === 8) return { ...event, type: 'intent.updated' };
      return index % 10 === 9 ? { ...event, key: 'elsewhere|intent:0x1' } : event;
    });
    await happened(stage, made);
    const before = hook.came.length;
    expect(before).toBe(480);
    expect(hook.came.some(({ headers }) => 'intentwatch-replay' in headers)).toBe(false);

    const [first, last] = [made[100], made[400]];
    if (first === undefined || last === undefined) throw new Error('no events were made');
    const range = { fromMs: first.atMs, untilMs: last.atMs, types: ['*', '!*.updated'] };
    const { opened, delivered } = await ended(stage, await replay(stage, range));
    const due = made
      .slice(100, 400)
      .filter(({ type, key }) => key === CLAIM_KEY && type === undefined)
      .map(madeEventId);
    expect(due.length).toBe(210);
    expect([opened, delivered]).toEqual([210, 210]);
    expect(hook.ids.slice(before)).toEqual(due);
    for (const { event, headers } of hook.came.slice(before)) {
      expect(headers['intentwatch-replay']).toBe('true');
      expect(headers['webhook-id']).toBe(event.id);
    }
    // The first delivery is known unchanged.
    const fact = await stage.deliveries.fact('hook', madeEventId(first));
    expect(fact).toMatchObject({ outcome: 'delivered', tries: 1, replay: null });
  });

  test('of events replayed before sends them again', async () => {
    const hook = await open.started(new Hook());
    const stage = await deliveryStage(open, { hook: { hook } });
    await stage.start();
    const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
    const made = hourOfEvents(3, { fromMs, transfers: 1 });
    await happened(stage, made);
    const range = { fromMs, untilMs: fromMs + 4_000_000 };
    for (let time = 0; time < 2; time += 1) await ended(stage, await replay(stage, range));
    expect(hook.ids.toSorted()).toEqual([...made, ...made, ...made].map(madeEventId).toSorted());
  });

  test('retains the order of each transfer for a receiver with ordering: subject, through retries', async () => {
    let failed = 0;
    const hook = await open.started(new Hook());
    const more = { ordering: 'subject', retries: { delays: ['300ms', '1ms'], jitter: 0 } };
    const stage = await deliveryStage(open, { hook: { hook, more } });
    await stage.start();
    const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
    await happened(stage, hourOfEvents(40, { fromMs, transfers: 4 }));
    hook.came.length = 0;
    hook.answer = ({ event }) => {
      if (event.data.sequence !== 3 || failed === 4) return 204;
      failed += 1;
      return 500;
    };
    await ended(stage, await replay(stage, { fromMs, untilMs: fromMs + 4_000_000 }));
    const bySubject = Map.groupBy(hook.came, ({ event }) => event.data.subject.id);
    expect(bySubject.size).toBe(4);
    for (const came of bySubject.values()) {
      const sequences = came.map(({ event }) => event.data.sequence);
      expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
      expect([...new Set(sequences)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
  });

  test('goes on after a kill -9 of the daemon amid it, and repeats only the events in flight', async () => {
    const hook = await open.started(new Hook());
    const stage = await deliveryStage(open, { hook: { hook, more: { concurrency: 1 } } });
    const { daemon } = await stage.start();
    const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
    // More than the relay opens in one round: the replay is cut off in the middle of the log.
    const made = hourOfEvents(1_500, { fromMs, transfers: 100 });
    await happened(stage, made);
    await daemon.close();
    const before = hook.came.length;
    const reached = Promise.withResolvers<void>();
    hook.answer = () => {
      if (hook.came.length - before < 100) return 204;
      reached.resolve();
      return null;
    };
    const child = open.child(stage.config);
    await child.start();
    const id = await replay(stage, { fromMs, untilMs: fromMs + 4_000_000 });
    await reached.promise;
    await child.kill();
    expect(await stage.replays.read(id)).toMatchObject({ state: 'open' });
    hook.answer = () => 204;
    await open.child(stage.config).start();
    expect(await ended(stage, id)).toMatchObject({ opened: 1_500, delivered: 1_500, dead: 0 });
    const ids = hook.ids.slice(before);
    const inFlight = ids[99];
    expect(ids.toSorted()).toEqual([...made.map(madeEventId), inFlight].toSorted());
  });

  test('waits while its receiver is disabled', async () => {
    const hook = await open.started(new Hook());
    const other = await open.started(new Hook());
    const stage = await deliveryStage(open, { hook: { hook }, other: { hook: other } });
    await stage.start();
    const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
    const made = hourOfEvents(5, { fromMs, transfers: 1 });
    await happened(stage, made);
    await stage.states.disable('hook');
    const id = await replay(stage, { fromMs, untilMs: fromMs + 4_000_000 });
    await appendEvents(
      stage.redis,
      stage.keys,
      made.map((event) => ({ ...event, sequence: event.sequence + 5, atMs: event.atMs + 4_000_000 })),
    );
    await other.until((came) => came.length === 10);
    expect(await stage.replays.read(id)).toMatchObject({ state: 'open', opened: 0 });
    await stage.states.enable('hook');
    expect(await ended(stage, id)).toMatchObject({ opened: 5, delivered: 5 });
    await stage.drained('hook');
    expect(hook.came.length).toBe(15);
  });
});
