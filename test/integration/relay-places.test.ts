import { expect, inject, test } from 'vitest';
import { PLACES_AT_ONCE } from '../../src/queues/deliveries/follow.ts';
import { Relay } from '../../src/queues/deliveries/relay.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { OwnEntries } from '../../src/store/own-entries.ts';
import { appendEvents } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { shownCommands } from '../support/redis-commands.ts';
import { ONE, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later } = opening();

const NAMES = Array.from({ length: PLACES_AT_ONCE + 1 }, (_, index) => `r${index}`);

/** A relay with an event for each receiver, all of which are at different places of the log. */
async function staged() {
  const stage = relayStage(later);
  const { redis, keys, registry, deps } = stage;
  const blocking = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(blocking));
  const relay = new Relay(deps, { blocking, own: new OwnEntries(), opening: deps.stores.deliveries });
  later(() => relay.close());
  const wanted = wantedOf({ a: { subject: ONE, receivers: NAMES } });
  const receivers = NAMES.flatMap((name) => wanted.receivers.slice(0, 1).map((one) => ({ ...one, name })));
  await syncConfig(registry, { ...wanted, receivers }, '0-0');
  const fromMs = await redisTimeMs(redis);
  const made = NAMES.map((_, index) => ({
    ...{ subject: ONE, key: `a|${ONE}` },
    sequence: index + 1,
    atMs: fromMs + index,
  }));
  const entries = await appendEvents(redis, keys, made);
  const before = Object.fromEntries(NAMES.map((name, index) => [name, entries[index - 1] ?? '0-0']));
  await redis.hset(keys.cursors, before);
  return { ...stage, relay, places: Object.values(before), newest: entries.at(-1) ?? '' };
}

test('receivers at several places are followed side by side', async () => {
  const { relay, redis, keys, cursors, places, newest } = await staged();
  const shown = await shownCommands(inject('redisUrl'));
  later(async () => shown.close());
  await relay.round();
  await redis.echo(`${keys.prefix} end`);
  await shown.until(`${keys.prefix} end`);
  const commands = shown.commands.filter(({ source }) => source === 'lua');
  const firstOpened = commands.findIndex(
    ({ name, line }) => name === 'hset' && line.includes(`"${keys.cursors}"`),
  );
  const read = commands
    .slice(0, firstOpened)
    .filter(({ name, line }) => name === 'xrange' && line.includes(`"${keys.events}"`));
  const placesRead = places.filter((place) => read.some(({ line }) => line.includes(`"(${place}"`)));
  expect(placesRead.length).toBeGreaterThanOrEqual(PLACES_AT_ONCE);
  expect(await cursors()).toMatchObject(Object.fromEntries(NAMES.map((name) => [name, newest])));
});
