import type { RenderedEvent } from './event.ts';
import { TEST_TYPE } from './event-types.ts';
import { eventId } from './make-event.ts';

/** The event that `intentwatch test` sends to a receiver: signed like any other, about nothing, and in no log. */
export function makeTestEvent(receiver: string, nowMs: number): RenderedEvent {
  const timestamp = new Date(nowMs).toISOString();
  return {
    id: eventId([TEST_TYPE, receiver, timestamp]),
    type: TEST_TYPE,
    timestamp,
    data: {
      subject: { kind: 'intentwatch', id: 'intentwatch:test' },
      sequence: 1,
      status: 'test',
      previousStatus: null,
      changes: [],
      record: { receiver, message: 'A test of this receiver. No transfer has changed.' },
      wallets: [],
      subscriptions: [],
      metadata: {},
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    },
  };
}
