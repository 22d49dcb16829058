import { expect, test } from 'vitest';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { unmatchedReason } from '../../src/queues/deliveries/count-unmatched.ts';
import type { Fact } from '../../src/queues/deliveries/matches.ts';
import type { StoredReceiver, StoredSubscription } from '../../src/store/definitions.ts';

const SUBJECT = asSubjectId(`intent:0x${'ab'.repeat(32)}`);
const RECORD: JsonObject = { id: SUBJECT, type: 'intent', status: 'filled' };

function fact(claimKeys: string[] | null, withheld: string[] = []): Fact {
  const transition = {
    type: 'intent.filled',
    status: 'filled',
    previousStatus: null,
    changes: [],
    skipped: false,
    regression: false,
  };
  const event = makeEvent({
    subject: { kind: 'intent', id: SUBJECT },
    sequence: 1,
    epoch: 1,
    transition,
    record: RECORD,
    updatedAt: null,
    nowMs: 1,
  });
  return { event, place: '1-0', claimKeys, at: '1-0', withheld, isSuspended: false };
}

const receiver = (name: string, events = ['*']): StoredReceiver => ({
  name,
  type: 'webhook',
  events,
  filter: { wallets: null, chains: null, minAmount: null },
  ordering: 'none',
  removed: false,
});

const subscription = (
  name: string,
  receivers: string[],
  removedAtMs: number | null = null,
): StoredSubscription => ({
  name,
  order: 0,
  metadata: {},
  receivers,
  history: 'skip',
  overdueAfterMs: null,
  warnBeforeMs: null,
  recipients: [],
  awayReceivers: [],
  joined: {},
  left: {},
  removedAtMs,
});

const CLAIM_KEYS = [`one|${SUBJECT}`];
const hook = receiver('hook');

test.each<[string, string[] | null, StoredReceiver[], StoredSubscription[], string | null]>([
  ['a receiver gets it', CLAIM_KEYS, [hook], [subscription('one', ['hook'])], null],
  [
    'its subscription was removed, and a receiver still gets it',
    CLAIM_KEYS,
    [hook],
    [subscription('one', ['hook'], 5)],
    null,
  ],
  [
    'the only receiver is not there',
    CLAIM_KEYS,
    [receiver('other')],
    [subscription('one', ['hook'])],
    'no-receiver',
  ],
  [
    'one receiver filters it, another is not there',
    CLAIM_KEYS,
    [receiver('mail', ['quote.*'])],
    [subscription('one', ['mail', 'hook'])],
    'no-receiver',
  ],
  ['nothing leads to it', [], [hook], [], 'not-in-config'],
  ['its subscription is not known', CLAIM_KEYS, [hook], [], 'not-in-config'],
  [
    'its subscription and the receiver were removed',
    CLAIM_KEYS,
    [],
    [subscription('one', ['hook'], 5)],
    'not-in-config',
  ],
  [
    'the events of its receivers leave it out',
    CLAIM_KEYS,
    [receiver('hook', ['quote.*'])],
    [subscription('one', ['hook'])],
    'filtered',
  ],
  [
    'its subscription key counts for another receiver of the subscription',
    [`one>first|${SUBJECT}`],
    [hook, receiver('first', ['quote.*'])],
    [subscription('one', ['first', 'hook'])],
    'filtered',
  ],
  [
    'its subscription key counts for the log alone',
    [`one>|${SUBJECT}`],
    [hook],
    [subscription('one', ['hook'])],
    'pull-only',
  ],
  ['its subscription names no receiver', CLAIM_KEYS, [hook], [subscription('one', [])], 'pull-only'],
  ["it is the operator's and nobody requests it", null, [receiver('hook', ['quote.*'])], [], 'filtered'],
  ["it is the operator's and there is no receiver", null, [], [], 'pull-only'],
])('an event is matched with receivers: %s', (_, claimKeys, receivers, subscriptions, reason) => {
  const named = subscriptions.map((one, index) => [['one', 'two'][index] ?? '', one] as const);
  const matching = {
    receivers: new Map(receivers.map((one) => [one.name, one])),
    subscriptions: new Map(named),
    directory: COMMON_NAMES,
  };
  expect(unmatchedReason(fact(claimKeys), matching)).toBe(reason);
});
