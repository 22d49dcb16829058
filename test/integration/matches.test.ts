import { expect, inject, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { COMMON } from '../../src/domain/transfers/chains.ts';
import { readBatch } from '../../src/queues/deliveries/log-batch.ts';
import { matchesOf } from '../../src/queues/deliveries/matches.ts';
import { connect, disconnect, redisTimeMs } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry, type Wanted } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { appendEvents } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { later } = opening();

const [ONE, TWO] = [1, 2].map((number) => asSubjectId(`intent:${hashOf(number)}`));

/** A config with some subscriptions, each of one subject, for some receivers. */
function wantedOf(subscriptions: Record<string, { subject: typeof ONE; receivers: string[] }>): Wanted {
  return {
    digest: JSON.stringify(subscriptions),
    graceSpanMs: 0,
    receivers: ['backend', 'desk'].map((name) => ({
      name,
      type: 'webhook',
      events: ['intent.*'],
      filter: { wallets: null, chains: null, minAmount: null },
      ordering: 'none',
    })),
    routes: [],
    subscriptions: Object.entries(subscriptions).map(([name, { subject, receivers }]) => ({
      name,
      receivers,
      subjects: subject === undefined ? [] : [subject],
      metadata: {},
      history: 'skip',
      overdueAfterMs: null,
      warnBeforeMs: null,
      recipients: [],
    })),
  };
}

test('what was logged before a reload that moves its subject is for the receivers that go on with it', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const events = new EventLog(redis, keys);
  const registry = new Registry(
    redis,
    keys,
    new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) }),
  );
  await registry.sync(wantedOf({ a: { subject: ONE, receivers: ['backend'] } }), '0-0');
  await appendEvents(redis, keys, [
    { subject: ONE ?? '', sequence: 1, atMs: await redisTimeMs(redis), root: `a|${ONE}` },
  ]);
  const matchedBy = async () => {
    const { facts } = await readBatch((await events.after('0-0', 10)).entries, events);
    const receivers = (await registry.receivers()).toSorted((one, other) => (one.name < other.name ? -1 : 1));
    const found: Record<string, string[]> = {};
    for (const receiver of receivers) {
      const matched = await matchesOf(receiver, facts, { registry, directory: COMMON });
      found[receiver.name] = matched.flatMap(({ roots }) => roots);
    }
    return found;
  };
  expect(await matchedBy()).toEqual({ backend: [`a|${ONE}`], desk: [] });
  // The name stands for something else now.
  await registry.sync(
    wantedOf({
      a: { subject: TWO, receivers: [] },
      b: { subject: ONE, receivers: ['backend', 'desk'] },
    }),
    '0-0',
  );
  expect(await matchedBy()).toEqual({ backend: [`b>backend|${ONE}`], desk: [] });
  // What goes on with it is suspended: it has what waits for it, and nothing beside.
  const suspended = wantedOf({
    a: { subject: TWO, receivers: [] },
    b: { subject: TWO, receivers: ['backend'] },
  });
  await registry.sync({ ...suspended, graceSpanMs: 60_000 }, '0-0');
  expect(await matchedBy()).toEqual({ backend: [], desk: [] });
  // Nobody goes on with it.
  await registry.sync(wantedOf({ a: { subject: TWO, receivers: [] } }), '0-0');
  expect(await matchedBy()).toEqual({ backend: [], desk: [] });
});
