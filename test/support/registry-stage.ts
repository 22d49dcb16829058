import { inject } from 'vitest';
import { intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import type { Desired } from '../../src/store/sync-config.ts';
import { testPrefix } from './daemon.ts';
import { firstEpoch } from './epoch.ts';
import { hashOf } from './scripted-upstream.ts';

export const ONE = intentId(hashOf(1));
export const TWO = intentId(hashOf(2));

/** A config with the receivers `backend` and `desk`, and subscriptions to one subject each. */
export function wantedOf(
  subscriptions: Record<string, { subject: SubjectId; receivers: string[] }>,
  graceSpanMs = 0,
): Desired {
  return {
    digest: JSON.stringify(subscriptions),
    graceSpanMs,
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
      subjects: [subject],
      metadata: {},
      history: 'skip',
      overdueAfterMs: null,
      warnBeforeMs: null,
      recipients: [],
    })),
  };
}

/** A Redis prefix with a registry and a log, without a daemon. */
export function registryStage(later: (close: () => Promise<unknown>) => void, url = inject('redisUrl')) {
  const redis = connect({ kind: 'server', url });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const registry = new Registry(redis, keys, subjects);
  return { redis, keys, subjects, events: new EventLog(redis, keys), registry };
}
