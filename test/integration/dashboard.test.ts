import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { OPEN_STATES } from '../../src/domain/transfers/transfer-move.ts';
import type { EndpointGroupState } from '../../src/metrics/definition.ts';
import { DEFINITIONS } from '../../src/metrics/instruments.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { Server } from '../../src/server/server.ts';
import { Signals } from '../../src/signals.ts';
import { HEALTH } from '../support/health.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Prometheus, RULES_FILE } from '../support/prometheus.ts';

const DASHBOARD_FILE = new URL('../../config/grafana/intentwatch.json', import.meta.url);

const installation = needs(PARTS.prometheus);

const TARGET = z.object({ expr: z.string(), refId: z.string() });
const DASHBOARD = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      type: z.string(),
      targets: z.array(TARGET).default([]),
      gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
    }),
  ),
});
const VARIABLES = z.object({
  templating: z.object({ list: z.array(z.object({ name: z.string(), definition: z.string().default('') })) }),
});
const dashboard = DASHBOARD.parse(JSON.parse(await readFile(DASHBOARD_FILE, 'utf8')));
const variables = VARIABLES.parse(JSON.parse(await readFile(DASHBOARD_FILE, 'utf8'))).templating.list.map(
  ({ definition }) => definition,
);
const panels = dashboard.panels.filter((panel) => panel.type !== 'row');
const queries = panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, refId }) => ({ name: targets.length > 1 ? `${title} (${refId})` : title, expr })),
);

const IDLE: Omit<EndpointGroupState, 'endpointGroup'> = {
  state: 'ok',
  budget: 5,
  used: 0,
  price: 1,
  failing: 0,
  suspects: 0,
  overdueSeconds: 0,
};

const USDC_ON_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const EVENT_ID = `evt_${'0a'.repeat(20)}`;

/** Emits every signal that a panel shows, so that nothing on the dashboard is empty. */
function emitEverything(signals: Signals): void {
  const delivery = { receiver: 'backend', eventId: 'evt_1', eventType: 'intent.filled' };
  const moved = { endpointGroup: 'status', reason: 'down' };
  signals.emit('upstream.answered', { endpoint: 'status', outcome: 'ok', durationSeconds: 0.2 });
  signals.emit('upstream.answered', { endpoint: 'vault', outcome: 'timeout', durationSeconds: 5 });
  signals.emit('upstream.answered', { endpoint: 'open-quotes', outcome: 'ok', durationSeconds: 1 });
  signals.emit('upstream.moved', { ...moved, before: 'ok', after: 'unreachable' });
  signals.emit('status.compared', { result: 'differs' });
  signals.emit('clocks.compared', { isHeld: false });
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 3 });
  signals.emit('poll.ended', {
    endpointGroup: 'status',
    kind: 'intent',
    outcome: 'answered',
    lagSeconds: 0.3,
  });
  signals.emit('poll.crashed', { subject: 'intent:0x01', crashes: 1 });
  signals.emit('claims.returned', { endpointGroup: 'status', count: 1 });
  signals.emit('record.decided', { subject: 'intent:0x01', kind: 'intent', outcome: 'first', reason: null });
  signals.emit('record.decided', {
    subject: 'intent:0x01',
    kind: 'intent',
    outcome: 'stale',
    reason: 'older',
  });
  signals.emit('transfer.delivered', { route: '8453:10', ratio: 0.998 });
  for (const outcome of ['filled', 'expired'] as const) {
    signals.emit('transfer.moved', {
      eventId: EVENT_ID,
      move: {
        route: '8453:10',
        sent: { chainId: '8453', token: USDC_ON_BASE, amount: '2500000' },
        outcome,
        fillSeconds: 24,
        settlement: { outcome: 'settled', seconds: 90 },
      },
    });
  }
  signals.emit('record.expired', { subject: 'intent:0x02' });
  signals.emit('record.reserved', { kind: 'receiver', id: 'receiver:1', count: 1 });
  signals.emit('record.too-large', {
    wallet: 'wallet:0x01',
    id: null,
    reason: 'found more than 1048576 bytes',
  });
  signals.emit('event.unmatched', { reason: 'no-receiver' });
  signals.emit('suspension.ended', { reason: 'span-over', events: 3 });
  signals.emit('record.unreadable', { where: 'wallet:0x01', reason: 'result 0: no id' });
  for (const word of ['filled', 'overdue']) {
    signals.emit('event.committed', {
      kind: 'intent',
      event: {
        id: `evt_${word}`,
        type: `intent.${word}`,
        timestamp: '2026-11-20T11:31:00.123Z',
        data: {
          subject: { kind: 'intent', id: 'intent:0x01' },
          sequence: 1,
          epoch: 1,
          status: 'filled',
          previousStatus: 'pending',
          changes: word === 'filled' ? ['status'] : [],
          record: {},
          upstreamUpdatedAt: 1_763_638_259,
          detectionDelaySeconds: 1.5,
        },
      },
    });
  }
  emitChecks(signals);
  signals.emit('config.moved', { state: 'running', atMs: Date.now(), removal: null });
  signals.emit('books.fed', { ingested: 3, readMs: Date.now() });
  signals.emit('books.broken', { kind: 'lost' });
  signals.emit('error.internal', { part: 'poll' });
  signals.emit('books.mail', { outcome: 'sent' });
  signals.emit('books.failed', { reason: 'Postgres is away' });
  signals.emit('delivery.opened', delivery);
  signals.emit('delivery.attempted', {
    ...delivery,
    subject: null,
    attempt: 1,
    outcome: 'delivered',
    durationSeconds: 0.1,
    reason: '',
    refused: 1,
  });
  signals.emit('delivery.ended', { ...delivery, outcome: 'delivered', delaySeconds: 0.004 });
  signals.emit('relay.moved', { holding: true });
  signals.emit('repair.done', { what: 'poll-missing', subject: 'intent:0x01' });
  signals.emit('receiver.events-dropped', { receiver: 'backend', count: 2 });
}

function emitChecks(signals: Signals): void {
  const ended = { chainId: '8453', route: '10:8453', lagSeconds: 3 };
  signals.emit('check.ended', { ...ended, state: 'verified' });
  signals.emit('check.ended', { ...ended, state: 'disputed' });
  signals.emit('checks.missed', { reason: 'trimmed' });
  const call = { chainId: '8453', endpoint: 'own', method: 'eth_chainId', ms: 250 };
  signals.emit('rpc.called', { ...call, outcome: 'ok' });
  signals.emit('rpc.called', { ...call, outcome: 'timeout' });
}

test('every metric is on the dashboard or in an alert', async () => {
  const used = [...queries.map(({ expr }) => expr), await readFile(RULES_FILE, 'utf8')].join('\n');
  const unused = Object.values(DEFINITIONS).filter(
    ({ name }) => !new RegExp(`\\b${name}(_bucket|_sum)?\\b`).test(used),
  );
  expect(unused.map(({ name }) => name)).toEqual([]);
});

test('the dashboard and the alerts name only metrics that there are', async () => {
  const used = [...queries.map(({ expr }) => expr), ...variables, await readFile(RULES_FILE, 'utf8')].join(
    '\n',
  );
  const defined = new Set(Object.values(DEFINITIONS).map(({ name }) => name as string));
  const named = new Set(used.match(/(?<![\w:])intentwatch_\w+(?![\w:])/g));
  const unknown = [...named].filter(
    (name) => !defined.has(name) && !defined.has(name.replace(/_(bucket|sum|count)$/, '')),
  );
  expect(unknown).toEqual([]);
});

test('every query of a panel goes by the chosen job and processes, and by receiver and route where it has them', () => {
  const definitions = new Map(Object.values(DEFINITIONS).map((one) => [one.name as string, one]));
  for (const { name, expr } of queries) {
    for (const [, metric = '', selector = ''] of expr.matchAll(/\b(intentwatch_\w+)\{([^}]*)\}/g)) {
      expect([name, selector]).toEqual([name, expect.stringContaining('job=~"$job", instance=~"$instance"')]);
      const definition =
        definitions.get(metric) ?? definitions.get(metric.replace(/_(bucket|sum|count)$/, ''));
      for (const [label, values] of Object.entries(definition?.labels ?? {})) {
        const variable = values === 'receivers' ? 'receiver' : values === 'learned' ? 'route' : null;
        if (variable === null || label !== variable) continue;
        expect([name, selector]).toEqual([name, expect.stringContaining(`${label}=~"$${variable}"`)]);
      }
    }
  }
  expect(queries.every(({ expr }) => /\{/.test(expr))).toBe(true);
});

test('no two panels of the dashboard overlap, and none exceeds the page', () => {
  const cells = new Map<string, string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect([title, gridPos.x + gridPos.w <= 24]).toEqual([title, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, cells.get(`${x},${y}`)]).toEqual([title, undefined]);
        cells.set(`${x},${y}`, title);
      }
    }
  }
});

describe.skipIf(installation.skip)(`against a real Prometheus${installation.note}`, () => {
  const prometheus = new Prometheus();
  const signals = new Signals();
  const metrics = new Metrics({
    signals,
    sources: {
      transfers: async () => ({
        nowMs: 1_000_000,
        sums: OPEN_STATES.map((state) => ({
          state,
          route: '8453:10',
          chainId: '8453',
          token: USDC_ON_BASE,
          count: 2,
          amount: 1_500_000n,
        })),
        oldest: OPEN_STATES.map((state) => ({ state, since: 400 })),
      }),
      subjects: async () => [
        { kind: 'intent', status: 'pending', count: 3 },
        { kind: 'wallet', status: 'watched', count: 2 },
      ],
      queues: async () => [{ queue: 'status', state: 'delayed', count: 5 }],
      deliveries: async () => [{ receiver: 'backend', pending: 1, dead: 1, removed: false }],
      receivers: async () => [
        {
          receiver: 'backend',
          state: 'ok',
          full: false,
          oldestSeconds: 1,
          undeliveredSeconds: 3,
          nextAttemptSeconds: 0,
        },
      ],
      suspensions: async () => ({ claimKeys: 2, waiting: 3 }),
      endpointGroups: async () => [
        {
          ...IDLE,
          endpointGroup: 'status',
          state: 'unreachable',
          budget: 5,
          used: 0.4,
          failing: 2,
          suspects: 1,
        },
        { ...IDLE, endpointGroup: 'gateway' },
        { ...IDLE, endpointGroup: 'quotes', budget: 1 },
      ],
      sweeps: async () => [
        { state: 'sweeping', count: 1 },
        { state: 'broken', count: 0 },
      ],
      waits: async () => [{ kind: 'wallet', longestSeconds: 12 }],
      checks: async () => ({
        chains: [{ chain: '8453', states: [{ state: 'waiting', count: 2 }], oldestSeconds: 30 }],
        unreadSeconds: 4,
      }),
      learned: async () => ({
        stages: [
          { route: '8453>10', stage: 'pending', observations: 41.5, medianSeconds: 24, p99Seconds: 130 },
        ],
        newTransfersPerSecond: 0.01,
      }),
      routes: async () => [
        {
          route: 'base-to-optimism',
          outputRatio: 0.998,
          feeRatio: 0.002,
          fillEstimateSeconds: 25,
          solvers: 3,
        },
      ],
    },
    tokens: { directory: COMMON_NAMES, listed: COMMON_NAMES },
    health: HEALTH,
    receivers: [{ name: 'backend', type: 'webhook' }],
    routes: ['base-to-optimism'],
    chains: [{ chainId: '8453', endpoints: ['own'] }],
    version: '1.2.3',
    nodeVersion: process.version,
  });
  const server = new Server({
    host: '127.0.0.1',
    port: 0,
    metrics,
    readiness: async () => [],
    health: () => [],
    api: null,
  });

  beforeAll(async () => {
    const { url } = await server.start();
    await prometheus.start(new URL(url).host);
    // Counters at 0 must be scraped before they move, or nothing has increased.
    await prometheus.until(
      'a first scrape',
      async () => (await prometheus.count('intentwatch_build_info')) > 0,
    );
    emitEverything(signals);
    await prometheus.until(
      'a scrape of what was emitted',
      async () => (await prometheus.count('intentwatch_events_dropped_total == 2')) > 0,
    );
  });

  afterAll(async () => {
    metrics.close();
    await server.close();
    await prometheus.close();
  });

  test('an exemplar leads from a bucket to an event', async () => {
    const query = 'query=intentwatch_transfer_fill_seconds_bucket';
    const found = async () =>
      JSON.stringify(await prometheus.get(`query_exemplars?${query}&start=0&end=${Date.now() / 1_000 + 60}`));
    await prometheus.until('an exemplar', async () => (await found()).includes(EVENT_ID));
  });

  test.each(queries)('the panel "$name" shows something', async ({ expr }) => {
    // A single emission is within an hour, however slow this machine is.
    const requests = expr
      .replaceAll('$__rate_interval', '1h')
      .replaceAll('$__range', '1h')
      .replaceAll('$job', 'intentwatch')
      .replaceAll(/\$(instance|receiver|route)\b/g, '.*');
    expect(requests).not.toContain('$');
    // After a failed scrape, there is nothing until the next.
    await prometheus.until(`something of ${requests}`, async () => (await prometheus.count(requests)) > 0);
  });

  test('the job of the dashboard can be chosen', async () => {
    const values = await prometheus.get('label/job/values?match[]=intentwatch_build_info');
    expect(values).toMatchObject({ data: ['intentwatch'] });
  });

  test('every alert evaluates without an error', async () => {
    const RULES = z.object({
      data: z.object({
        groups: z.array(z.object({ rules: z.array(z.object({ name: z.string(), health: z.string() })) })),
      }),
    });
    const rules = async () =>
      RULES.parse(await prometheus.get('rules')).data.groups.flatMap((one) => one.rules);
    await prometheus.until('to have evaluated every rule', async () =>
      (await rules()).every(({ health }) => health !== 'unknown'),
    );
    const found = await rules();
    expect(found.length).toBeGreaterThan(10);
    expect(found.filter(({ health }) => health !== 'ok')).toEqual([]);
  });
});
