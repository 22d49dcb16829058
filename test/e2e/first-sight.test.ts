import { expect, inject, test } from 'vitest';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const WALLET = '0x3333333333333333333333333333333333333333';
const HASH = hashOf(77);

const { later, started } = opening();

test('the first sight of a named intent is reported also when a page, to which it is history, is committed meanwhile', async () => {
  const pageCommitted = Promise.withResolvers<void>();
  const requested = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<void>();
  const longAgo = Math.floor(Date.now() / 1_000) - 3_600;
  const upstream = await started(
    new ScriptedUpstream(async ({ query }) => {
      // Both requests are under way before either is answered; the page is stored first.
      if (query.intentHash === undefined) await Promise.all([requested.promise, listening.promise]);
      requested.resolve();
      if (query.intentHash !== undefined) await pageCommitted.promise;
      return { records: [intentRecord(HASH, 'pending', longAgo)] };
    }),
  );
  const hook = await started(new TestReceiver());
  const { daemon, signals } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', wallets: [WALLET], intents: [HASH], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const pageIngested = signalled<{ outcome: string }>(
    (take) => signals.on('record.decided', take),
    ({ outcome }) => outcome === 'history',
  );
  listening.resolve();
  await pageIngested;
  pageCommitted.resolve();
  const [event] = await hook.until((events) => events.length > 0);
  expect(event).toMatchObject({ type: 'intent.pending', data: { sequence: 1, subscriptions: ['s'] } });
});
