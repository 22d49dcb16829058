import { expect, inject, test } from 'vitest';
import { connect, disconnect, redisTimeMs } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { ReceiverStore } from '../../src/store/receivers.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** The upstream knows nothing: all events of these tests are written into the log as a commit writes them. */
async function silentUpstream(): Promise<ScriptedUpstream> {
  return started(new ScriptedUpstream(() => ({ records: [] })));
}

const NAMED = hashOf(77);
const ROOT = `s|intent:${NAMED}`;
const HOUR_MS = 3_600_000;

/** A daemon with one or two receivers on a prefix of its own, and a look at its Redis. */
async function stage(receivers: Record<string, { hook: Hook; more?: object }>) {
  const prefix = testPrefix();
  const upstream = await silentUpstream();
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: Object.fromEntries(
      Object.entries(receivers).map(([name, { hook, more }]) => [name, { url: hook.url, more: more ?? {} }]),
    ),
    subscriptions: [{ name: 's', intents: [NAMED], receivers: Object.keys(receivers) }],
  };
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(prefix);
  const { daemon, signals } = await startDaemon(config);
  later(() => daemon.close());
  return {
    redis,
    keys,
    signals,
    config,
    states: new ReceiverStore(redis, keys),
    deliveries: new DeliveryStore(redis, keys, { retentionMs: HOUR_MS }),
    events: new EventLog(redis, keys),
  };
}

/** So many events of several transfers, spread over an hour that begins at a moment. */
function hourOfEvents(
  count: number,
  { fromMs, transfers }: { fromMs: number; transfers: number },
): MadeEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    subject: `intent:${hashOf(1_000 + (index % transfers))}`,
    sequence: Math.floor(index / transfers) + 1,
    atMs: fromMs + Math.floor((index * HOUR_MS) / count),
    root: ROOT,
  }));
}

test('500 events of an hour in which a receiver is disabled are delivered when it is enabled: in order, once', async () => {
  const hook = await started(new Hook());
  const { redis, keys, states, deliveries } = await stage({ hook: { hook, more: { concurrency: 1 } } });
  expect(await states.disable('hook')).toBe('ok');
  const fromMs = (await redisTimeMs(redis)) + 1_000;
  const made = hourOfEvents(500, { fromMs, transfers: 50 });
  await appendEvents(redis, keys, made);
  // Whoever is not disabled would be some way into them by now: the relay has gone round since.
  await eventually('the relay has gone round', async () => (await redis.get(keys.relayLease)) !== null);
  expect(hook.came).toEqual([]);
  expect(await deliveries.counts('hook')).toEqual({ pending: 0, dead: 0 });

  expect(await states.enable('hook')).toBe('disabled');
  await hook.until((came) => came.length >= made.length);
  expect(hook.ids).toEqual(made.map(madeEventId));
  await eventually('all are noted', async () => (await deliveries.counts('hook')).pending === 0);
  expect(hook.came.length).toBe(500);
  expect(await states.condition('hook')).toMatchObject({ state: 'ok', resuming: false });
});
