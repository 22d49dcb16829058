import { describe, expect, inject, test } from 'vitest';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { endsOf, lastReported } from '../support/statuses.ts';

const { later, started } = opening();

const PAGES = { path: '/v1/intents/status', rate: 1 };

const ORDERS: readonly { name: string; faults: Fault[] }[] = [
  { name: 'with the newest first', faults: [] },
  { name: 'with the oldest first', faults: [{ type: 'oldest-first', ...PAGES }] },
  { name: 'in no order', faults: [{ type: 'shuffled-pages', ...PAGES }] },
  { name: 'that move between pages', faults: [{ type: 'moving-items', ...PAGES, rate: 0.5 }] },
  { name: 'with cursors that expire', faults: [{ type: 'expired-cursors', ...PAGES, rate: 0.3 }] },
  { name: 'with cursors that repeat', faults: [{ type: 'repeated-cursors', ...PAGES, rate: 0.3 }] },
];

describe('transfers of a wallet with 1,000 past ones are all reported, to their end, from pages', () => {
  test.for(ORDERS)('$name', async ({ faults }) => {
    const sandbox = await started(
      new Sandbox({
        seed: 5,
        wallets: 1,
        pastTransfers: 1_000,
        transfersPerSecond: 0,
        timeScale: 10,
        faults,
      }),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    const watchedSinceMs = Date.now();
    sandbox.setPace(30);
    await hook.until((events) => events.length >= 60);
    sandbox.setPace(0);

    await hook.until((events) => {
      const reported = lastReported(events);
      const ends = endsOf(sandbox.transitions(), watchedSinceMs);
      return reported.size >= 60 && [...ends].every(([subject, status]) => reported.get(subject) === status);
    });
    const moved = new Set(sandbox.transitions().map(({ subject }) => subject));
    expect(hook.events.filter(({ data }) => !moved.has(data.subject.id))).toEqual([]);
  });
});
