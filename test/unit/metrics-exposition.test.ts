import { afterEach, beforeEach, expect, test } from 'vitest';
import { WATCHES } from '../../src/domain/cadence/watch-rules.ts';
import { COMMON_NAMES, type Directory } from '../../src/domain/transfers/chains.ts';
import { OPEN_STATES } from '../../src/domain/transfers/transfer-move.ts';
import { MOST_PER_RECEIVER, MOST_PER_ROUTE } from '../../src/metrics/definition.ts';
import { type MetricSources, type Metrics, wantsOpenMetrics } from '../../src/metrics/metrics.ts';
import { Signals } from '../../src/signals.ts';
import type { OpenSum } from '../../src/store/wallets.ts';
import { metricsOf } from '../support/metrics-stage.ts';

const USDC_ON_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const EVENT_ID = `evt_${'0a'.repeat(20)}`;

/** The request header of Prometheus. */
const PROMETHEUS =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

let signals: Signals;
let open: Metrics[] = [];

function create({
  sources = {},
  receivers = ['backend'],
  directory = COMMON_NAMES,
}: {
  sources?: Partial<MetricSources>;
  receivers?: readonly string[];
  directory?: Directory;
}): Metrics {
  const metrics = metricsOf({
    signals,
    sources,
    receivers: receivers.map((name) => ({ name, type: 'webhook' })),
    directory,
  });
  open.push(metrics);
  return metrics;
}

beforeEach(() => {
  signals = new Signals();
  open = [];
});

afterEach(() => {
  for (const metrics of open) metrics.close();
});

function emitMove(route: string, token = USDC_ON_BASE): void {
  signals.emit('transfer.moved', {
    eventId: EVENT_ID,
    move: {
      route,
      sent: { chainId: '8453', token, amount: '2500000' },
      outcome: 'filled',
      fillSeconds: 24,
      settlement: { outcome: 'settled', seconds: 90 },
    },
  });
}

test.each([
  [undefined, false],
  ['*/*', false],
  ['text/plain', false],
  ['text/html, */*;q=0.5', false],
  [PROMETHEUS, true],
  ['application/openmetrics-text', true],
  ['Application/OpenMetrics-Text; version=1.0.0', true],
  ['application/openmetrics-text;q=0.4,text/plain;q=0.5', false],
  ['application/openmetrics-text;q=0', false],
  ['application/openmetrics-text;q=nonsense', false],
])('a client that accepts %j gets OpenMetrics: %s', (accept, expected) => {
  expect(wantsOpenMetrics(accept)).toBe(expected);
});

test('OpenMetrics names an event beside the bucket that it fell into; plain text has no such thing', async () => {
  const metrics = create({});
  emitMove('8453:10');
  const { body, contentType } = await metrics.expose(PROMETHEUS);
  expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(body).toContain(
    `intentwatch_transfer_fill_seconds_bucket{le="30",route="8453:10",outcome="filled"} 1 # {event_id="${EVENT_ID}"} 24 `,
  );
  expect(body.endsWith('# EOF\n')).toBe(true);
  const plain = await metrics.expose('*/*');
  expect(plain.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(plain.body).not.toContain('event_id');
});

test('both formats have the same series, for any first client and any number of scrapes', async () => {
  const metrics = create({});
  emitMove('8453:10');
  const samples = (body: string): string[] =>
    body
      .split('\n')
      .filter((line) => line.startsWith('intentwatch_') && !line.startsWith('intentwatch_clock'))
      .map((line) => line.replace(/ # .*$/, ''));
  const bodies = await Promise.all([PROMETHEUS, '', PROMETHEUS, ''].map((accept) => metrics.expose(accept)));
  const [first, ...others] = bodies.map(({ body }) => samples(body));
  expect(first?.length).toBeGreaterThan(500);
  expect(first).toContain(
    'intentwatch_polls_total{endpoint_group="status",kind="intent",outcome="answered"} 0',
  );
  for (const other of others) expect(other).toEqual(first);
});

test('open transfers are shown by state, route and token, with the amounts sent and the age of the oldest', async () => {
  const sum = { route: '8453:10', chainId: '8453', token: USDC_ON_BASE };
  const metrics = create({
    sources: {
      transfers: async () => ({
        nowMs: 1_000_000,
        sums: [
          { ...sum, state: 'overdue', count: 2, amount: 1_500_000n },
          { ...sum, state: 'pending', count: 3, amount: 2_000_000n },
          { ...sum, state: 'pending', route: '8453:*', chainId: '56', token: '0x01', count: 1, amount: 7n },
        ],
        oldest: [
          { state: 'pending', since: 400 },
          { state: 'overdue', since: null },
        ],
      }),
    },
  });
  const { body } = await metrics.expose();
  const shown = body
    .split('\n')
    .filter((line) => /^intentwatch_transfer(s_open|_oldest).* (?!0$)/.test(line));
  expect(shown).toEqual([
    'intentwatch_transfers_open{state="pending",route="8453:10"} 3',
    'intentwatch_transfers_open{state="overdue",route="8453:10"} 2',
    'intentwatch_transfers_open{state="pending",route="8453:*"} 1',
    'intentwatch_transfers_open_value_tokens{state="pending",token="USDC"} 2',
    'intentwatch_transfers_open_value_tokens{state="overdue",token="USDC"} 1.5',
    'intentwatch_transfer_oldest_seconds{state="pending"} 600',
  ]);
  // A state without transfers is 0, so that its share can be computed.
  expect(body).toContain('intentwatch_transfers_open{state="refundable",route="8453:10"} 0\n');
  expect(body).toContain('intentwatch_transfer_oldest_seconds{state="overdue"} 0\n');
});

async function countSeries(metrics: Metrics): Promise<number> {
  const { body } = await metrics.expose();
  return body.split('\n').filter((line) => line.startsWith('intentwatch_')).length;
}

test('a receiver more costs no more series than the docs state', async () => {
  const receivers = ['one', 'two', 'three'];
  const of = async (names: readonly string[]): Promise<number> =>
    countSeries(
      create({
        receivers: names,
        sources: {
          receivers: async () =>
            names.map((receiver) => ({
              receiver,
              state: 'ok' as const,
              full: false,
              oldestSeconds: 1,
              undeliveredSeconds: 1,
              nextAttemptSeconds: 0,
            })),
        },
      }),
    );
  const [one, three] = await Promise.all([of(['one']), of(receivers)]);
  expect((three - one) / 2).toBeLessThanOrEqual(MOST_PER_RECEIVER);
  expect((three - one) / 2).toBeGreaterThan(MOST_PER_RECEIVER - 15);
});

test('a route more costs no more series than the docs state, and from the 51st on none', async () => {
  const outcomes = ['filled', 'expired', 'failed', 'refundable'] as const;
  const of = async (count: number): Promise<number> => {
    signals = new Signals();
    const routes = Array.from({ length: count }, (_, index) => `1:${index}`);
    const sums: OpenSum[] = routes.flatMap((route) =>
      OPEN_STATES.map((state) => ({
        state,
        route,
        chainId: '8453',
        token: USDC_ON_BASE,
        count: 1,
        amount: 1n,
      })),
    );
    const metrics = create({
      sources: {
        transfers: async () => ({ sums, oldest: [], nowMs: 0 }),
        learned: async () => ({
          stages: routes.flatMap((route) =>
            WATCHES.map((stage) => ({ route, stage, observations: 1, medianSeconds: 1, p99Seconds: 2 })),
          ),
          newTransfersPerSecond: 0,
        }),
      },
    });
    for (const route of routes) {
      emitMove(route);
      signals.emit('transfer.delivered', { route, ratio: 1 });
      signals.emit('check.ended', { chainId: '10', state: 'verified', route, lagSeconds: 1 });
      for (const outcome of outcomes) {
        const sent = { chainId: '8453', token: USDC_ON_BASE, amount: '1' };
        const move = { route, sent, outcome, fillSeconds: 1, settlement: null };
        signals.emit('transfer.moved', { eventId: EVENT_ID, move });
      }
    }
    return countSeries(metrics);
  };
  const [one, eleven] = [await of(1), await of(11)];
  expect((eleven - one) / 10).toBeLessThanOrEqual(MOST_PER_ROUTE);
  expect((eleven - one) / 10).toBeGreaterThan(MOST_PER_ROUTE - 20);
  // The 51st is `other`, and so are all later ones.
  expect(await of(300)).toBe(await of(51));
});

test('the series of an open transfer are at 0 before it ends, and retain their counts', async () => {
  const sum = { state: 'pending', route: '8453:10', chainId: '8453', token: USDC_ON_BASE } as const;
  const metrics = create({
    sources: {
      transfers: async () => ({ sums: [{ ...sum, count: 1, amount: 1n }], oldest: [], nowMs: 0 }),
    },
  });
  const volume = 'intentwatch_transfer_volume_tokens_total{route="8453:10",token="USDC",outcome="filled"}';
  const fills = 'intentwatch_transfer_fill_seconds_count{route="8453:10",outcome="filled"}';
  const first = await metrics.expose();
  expect(first.body).toContain(`${volume} 0\n`);
  expect(first.body).toContain(`${fills} 0\n`);
  emitMove('8453:10');
  const second = await metrics.expose();
  expect(second.body).toContain(`${volume} 2.5\n`);
  expect(second.body).toContain(`${fills} 1\n`);
});

test('unlisted tokens count as other, and use no place of the listed ones', async () => {
  const tokens = {
    directory: { chain: () => null, token: () => ({ symbol: 'USDC', decimals: 0 }) },
    listed: COMMON_NAMES,
  };
  const metrics = metricsOf({ signals, tokens });
  open.push(metrics);
  for (let index = 0; index < 30; index += 1) emitMove('8453:10', `0x${index}`);
  emitMove('8453:10');
  const volume = (await metrics.expose()).body
    .split('\n')
    .filter((line) => line.startsWith('intentwatch_transfer_volume'));
  expect(volume).toEqual([
    'intentwatch_transfer_volume_tokens_total{route="8453:10",token="other",outcome="filled"} 75000000',
    'intentwatch_transfer_volume_tokens_total{route="8453:10",token="USDC",outcome="filled"} 2500000',
  ]);
});

test('symbols of tokens beyond the tenth count as other', async () => {
  const metrics = create({});
  const symbols = Array.from({ length: 30 }, (_, index) => `T${index}`);
  const named = create({
    directory: {
      chain: () => null,
      token: (_, address) => ({ symbol: symbols[Number(address)] ?? '', decimals: 6 }),
    },
  });
  for (let index = 0; index < 30; index += 1) emitMove('8453:10', String(index));
  const volumes = (body: string): string[] =>
    body.split('\n').filter((line) => line.startsWith('intentwatch_transfer_volume'));
  const shown = volumes((await named.expose()).body);
  expect(shown).toHaveLength(11);
  expect(shown).toContain(
    'intentwatch_transfer_volume_tokens_total{route="8453:10",token="other",outcome="filled"} 50',
  );
  // A token with unknown decimals has no value.
  expect(volumes((await metrics.expose()).body)).toEqual([]);
});
