import { expect, inject, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { type Desired, syncConfig } from '../../src/store/sync-config.ts';
import { cutClient } from '../support/cut-client.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { later } = opening();

function wantedOf(receivers: string[]): Desired {
  return {
    digest: receivers.join(),
    graceSpanMs: 0,
    receivers: receivers.map((name) => ({
      name,
      type: 'webhook',
      events: [],
      filter: { wallets: null, chains: null, minAmount: null },
      ordering: 'none',
    })),
    routes: [],
    subscriptions: [
      {
        name: 'orders',
        receivers,
        subjects: [asSubjectId(`intent:${hashOf(1)}`)],
        metadata: {},
        history: 'skip',
        overdueAfterMs: null,
        warnBeforeMs: null,
        recipients: [],
      },
    ],
  };
}

test('a receiver that comes back is never there before the subscriptions that name it', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const seen = new Set<string>();
  let calls = Number.POSITIVE_INFINITY;
  for (let cutAt = 0; cutAt <= calls; cutAt += 1) {
    const keys = new Keys(testPrefix());
    const { client, sent } = cutClient(redis, cutAt);
    const registryOn = (one: typeof redis) =>
      new Registry(one, keys, new SubjectStore(one, keys, { epoch: firstEpoch(one, keys) }));
    const registry = registryOn(redis);
    await syncConfig(registry, wantedOf(['backend']), '0-0');
    await syncConfig(registry, wantedOf([]), '0-0');
    await syncConfig(registryOn(client), wantedOf(['backend']), '9-0').catch(() => undefined);
    if (cutAt === 0) calls = sent();
    const [receiver] = await registry.receivers();
    const named = (await registry.subscriptions(['orders|'])).get('orders')?.receivers.length === 1;
    seen.add(`${receiver?.removed ? 'away' : 'back'}, ${named ? 'named' : 'not named'}`);
    expect(await redis.hget(keys.cursors, 'backend')).toBe('0-0');
  }
  expect([...seen].sort()).toEqual(['away, named', 'away, not named', 'back, named']);
});
