import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { resume } from '../../src/queues/deliveries/relay.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { deliveryStage, hourOfEvents } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';

const open = opening();

/** The receiver's first failure makes dead letters; a 410 then disables it with many deliveries open. */
const EARLY = 40;
const HELD = 720;

/** A receiver that was disabled with dead letters, open deliveries and events behind its cursor. */
async function disabledReceiver() {
  // All of the first are under way when the first of them fails.
  const came = Promise.withResolvers<void>();
  const hook: Hook = await open.started(
    new Hook(async () => {
      if (hook.came.length === EARLY) came.resolve();
      await came.promise;
      return 500;
    }),
  );
  const more = { concurrency: EARLY, retries: { delays: [] } };
  const other = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook, more }, other: { hook: other } });
  const { daemon } = await stage.start();
  const fromMs = (await redisTimeMs(stage.redis)) + 1_000;
  const made = hourOfEvents(EARLY + HELD, { fromMs, transfers: 100 });
  await appendEvents(stage.redis, stage.keys, made.slice(0, EARLY));
  await stage.drained('hook');
  expect(await stage.backlog.counts('hook')).toEqual({ pending: 0, dead: EARLY });

  // The first of the next is delayed until the relay has opened some behind it.
  const opened = Promise.withResolvers<void>();
  hook.answer = async () => {
    await opened.promise;
    return 410;
  };
  await appendEvents(stage.redis, stage.keys, made.slice(EARLY, EARLY + 700));
  await eventually('700 are open', async () => (await stage.backlog.counts('hook')).pending === 700);
  opened.resolve();
  await eventually('it is disabled', async () => (await stage.states.condition('hook')).state === 'disabled');
  await appendEvents(stage.redis, stage.keys, made.slice(EARLY + 700));
  await daemon.close();
  expect((await stage.backlog.counts('hook')).pending).toBe(700);
  hook.answer = () => 204;
  stage.config.receivers.hook = { url: hook.url, more: { ...more, concurrency: 1 } };
  return { hook, stage, made, before: hook.came.length };
}

describe('enabling that a crash cuts off', () => {
  // 1 ends when the dead letters are open again, 2 when all is queued and attempts may be made.
  test.each([
    0, 1, 2,
  ])('after %i steps of the relay goes on with the next one: in order, once', async (steps) => {
    const { hook, stage, made, before } = await disabledReceiver();
    await stage.states.enable('hook');
    const log = pino({ level: 'silent' });
    const stores = { receivers: stage.states, deliveries: stage.deliveries, backlog: stage.backlog };
    const token = await eventually('the lease is free', () => stage.lease.hold());
    for (let step = 0; step < steps; step += 1) await resume(token, 'hook', { stores, log });
    await stage.lease.release();

    await stage.start();
    await stage.drained('hook');
    expect(hook.ids.slice(before)).toEqual(made.map(madeEventId));
    expect(await stage.backlog.counts('hook')).toEqual({ pending: 0, dead: 0 });
    expect(await stage.states.condition('hook')).toMatchObject({ state: 'ok' });
  });

  test('by a kill -9 of the daemon amid the deliveries loses nothing, and repeats only the events in flight', async () => {
    const { hook, stage, made, before } = await disabledReceiver();
    const daemon = open.child(stage.config);
    const reached = Promise.withResolvers<void>();
    // The 300th is never answered: the daemon dies with it in flight.
    hook.answer = () => {
      if (hook.came.length - before < 300) return 204;
      reached.resolve();
      return null;
    };
    await stage.states.enable('hook');
    await daemon.start();
    await reached.promise;
    await daemon.kill();
    hook.answer = () => 204;

    await open.child(stage.config).start();
    await stage.drained('hook');
    const ids = hook.ids.slice(before);
    expect(ids.slice(0, 300)).toEqual(made.slice(0, 300).map(madeEventId));
    expect(ids.slice(300).toSorted()).toEqual(made.slice(299).map(madeEventId).toSorted());
  });
});
