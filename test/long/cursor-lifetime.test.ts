import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';

const { child, started } = opening();

const PAGES = { path: '/v1/intents/status', rate: 1 };

/** New transfers come on the last page of a wallet. */
const OLDEST_FIRST: Fault = { type: 'oldest-first', ...PAGES };

const REPORT = z.object({ neededRequestsPerSecond: z.number(), lifetimeSeconds: z.number() });

/** The shipped daemon on all wallets of a sandbox with a cursor lifetime in seconds. */
async function watching(world: { wallets: number; pastTransfers: number; seconds: number }) {
  const { seconds, ...more } = world;
  const faults: Fault[] = [OLDEST_FIRST, { type: 'cursor-lifetime', seconds, ...PAGES }];
  const sandbox = await started(new Sandbox({ seed: 7, transfersPerSecond: 0, faults, ...more }));
  const hook = await started(new TestReceiver());
  const port = await freePort();
  const daemon = child({
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { events: ['intent.*', 'upstream.*'] } } },
    subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
    more: {
      upstream: { baseUrl: sandbox.url, apiKey: sandbox.apiKey, requestsPerSecond: 5 },
      server: { host: '127.0.0.1', port },
    },
  });
  await daemon.start();
  /** Number of wallets that were never read to the end, by state. */
  const neverSwept = async (state: string): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return Number(
      new RegExp(`^intentwatch_wallets_never_swept\\{state="${state}"\\} (\\d+)$`, 'm').exec(page)?.[1],
    );
  };
  return { sandbox, hook, daemon, neverSwept };
}

test('wallets whose cursors live 30 s are all read to the end, with 60 of 4 pages and 5 requests a second', async () => {
  const { sandbox, hook, daemon, neverSwept } = await watching({
    wallets: 60,
    pastTransfers: 5_000,
    seconds: 30,
  });
  sandbox.setPace(2);
  await daemon.until((lines) => lines.some(({ msg }) => msg === 'sweep.cursor_expired'));
  expect(await neverSwept('broken')).toBeGreaterThan(0);
  sandbox.setPace(0);
  const born = sandbox
    .transitions()
    .flatMap(({ subject }) => (subject.startsWith('intent:') ? [subject] : []));
  await hook.until((events) => {
    const reported = new Set<string>(events.map(({ data }) => data.subject.id));
    return born.every((subject) => reported.has(subject));
  });
  const areRead = async () => (await neverSwept('broken')) + (await neverSwept('sweeping')) === 0;
  await eventually('all were read', areRead, 600_000);
  expect(hook.events.filter(({ type }) => type === 'upstream.cursor_expired')).toEqual([]);
});

test('where no page comes within the life of a cursor, the rate that would do is reported to the receiver', async () => {
  // Its 6 pages come at least 0.2 s apart at 5 requests a second; a cursor lives a twentieth of a second.
  const { sandbox, hook, neverSwept } = await watching({ wallets: 1, pastTransfers: 300, seconds: 0.05 });
  const isReport = ({ type }: { type: string }): boolean => type === 'upstream.cursor_expired';
  const event = (await hook.until((events) => events.some(isReport))).find(isReport);
  const [address] = sandbox.subjects().wallets;
  expect(event).toMatchObject({
    type: 'upstream.cursor_expired',
    data: {
      subject: { kind: 'upstream', id: 'upstream:status' },
      sequence: 1,
      epoch: 1,
      status: 'cursor_expired',
      previousStatus: 'ok',
      record: {
        endpointGroup: 'status',
        wallet: `wallet:${address?.toLowerCase()}`,
        pages: 1,
        requestsPerSecond: 5,
      },
    },
  });
  const { neededRequestsPerSecond, lifetimeSeconds } = REPORT.parse(event?.data.record);
  expect(neededRequestsPerSecond).toBeGreaterThan(5);
  // A page needs a fifth of the budget: where the budget is below the needed rate, the cursor has a shorter life.
  expect(lifetimeSeconds).toBeLessThanOrEqual(1);
  expect(await neverSwept('broken')).toBe(1);
});
