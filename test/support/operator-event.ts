import { type Event, eventId } from '../../src/domain/events/event.ts';
import { type RedisClient, SCHEMA_VERSION } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';

/** An event for the operator as the log stores it, the `index`th of its type; only the type selects its receivers. */
export function operatorEvent(type: string, index: number): Event {
  const status = type.slice(type.indexOf('.') + 1);
  return {
    id: eventId([type, String(index)]),
    type,
    timestamp: new Date().toISOString(),
    data: {
      subject: { kind: 'upstream', id: 'upstream:status' },
      sequence: index + 1,
      epoch: 1,
      status,
      previousStatus: null,
      changes: ['status'],
      record: { endpointGroup: 'status', reason: 'made up' },
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    },
  };
}

/** Appends a complete event for the operator to the log. */
export async function appendOperatorEvent(redis: RedisClient, keys: Keys, event: Event): Promise<void> {
  const fields = { v: SCHEMA_VERSION, kind: 'operator', event: JSON.stringify(event), claimKeys: '[]' };
  await redis.xadd(keys.events, '*', ...Object.entries(fields).flat());
}
