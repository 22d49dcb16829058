import type { RenderedEvent } from '../../src/domain/events/event.ts';

/** An event as a notifier gets it, with its id. */
export function renderedEvent(id = `evt_${'0123456789'.repeat(4)}`): RenderedEvent {
  return {
    id,
    type: 'intent.filled',
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'intent', id: `intent:0x${'ab'.repeat(32)}` },
      sequence: 1,
      epoch: 1,
      status: 'filled',
      previousStatus: 'pending',
      changes: ['status'],
      record: { id: `intent:0x${'ab'.repeat(32)}`, type: 'intent', status: 'filled' },
      upstreamUpdatedAt: 1_763_638_259,
      detectionDelaySeconds: 0.9,
      wallets: [],
      subscriptions: ['treasury'],
      metadata: {},
    },
  };
}
