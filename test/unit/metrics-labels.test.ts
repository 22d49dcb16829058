import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Event } from '../../src/domain/events/event.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { type Definition, MOST_PER_ROUTE } from '../../src/metrics/definition.ts';
import { DEFINITIONS } from '../../src/metrics/instruments.ts';
import type { MetricSources, Metrics } from '../../src/metrics/metrics.ts';
import { Signals } from '../../src/signals.ts';
import { metricsOf } from '../support/metrics-stage.ts';
import { needs, PARTS } from '../support/optional-parts.ts';

const promtool = needs(PARTS.promtool);

function create(sources: Partial<MetricSources> = {}): { signals: Signals; metrics: Metrics } {
  const signals = new Signals();
  const receivers = [
    { name: 'backend', type: 'webhook' },
    { name: 'oncall', type: 'email' },
  ];
  return { signals, metrics: metricsOf({ signals, sources, receivers, routes: ['base-to-optimism'] }) };
}

async function series(metrics: Metrics): Promise<Map<string, number>> {
  const { body } = await metrics.expose();
  const samples = body.split('\n').filter((line) => line.startsWith('intentwatch_'));
  return new Map(
    samples.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

function wordOf(index: number): string {
  return createHash('sha256').update(String(index)).digest('hex').slice(0, 12);
}

function eventOf(type: string): Event {
  return {
    id: 'evt_1',
    type,
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'intent', id: 'intent:0x01' },
      sequence: 1,
      epoch: 1,
      status: null,
      previousStatus: null,
      changes: ['status'],
      record: {},
      upstreamUpdatedAt: null,
      detectionDelaySeconds: 1,
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('1,000 unforeseen names', () => {
  const words = Array.from({ length: 1_000 }, (_, index) => wordOf(index));

  test('as event types, endpoints, reasons and subjects make no new series', async () => {
    const { signals, metrics } = create();
    const before = await series(metrics);
    for (const word of words) {
      signals.emit('event.committed', { event: eventOf(`intent.${word}`), kind: 'intent' });
      signals.emit('upstream.answered', { endpoint: word, outcome: word, durationSeconds: 1 });
      signals.emit('record.decided', { subject: word, kind: 'intent', outcome: 'stale', reason: word });
      signals.emit('record.unreadable', { where: word, reason: word });
      signals.emit('poll.crashed', { subject: `${word}:1`, crashes: 3 });
    }
    const after = await series(metrics);
    expect([...after.keys()]).toEqual([...before.keys()]);
    expect(after.get('intentwatch_events_total{type="other"}')).toBe(1_000);
    expect(after.get('intentwatch_upstream_requests_total{endpoint="other",outcome="other"}')).toBe(1_000);
    expect(after.get('intentwatch_stale_answers_total{reason="other"}')).toBe(1_000);
    expect(after.get('intentwatch_records_unreadable_total{kind="other"}')).toBe(1_000);
  });

  test('as statuses and kinds of subjects make no new series, and each is counted', async () => {
    const without = await series(create().metrics);
    const { metrics } = create({
      subjects: async () => [
        ...words.map((status) => ({ kind: 'intent', status, count: 1 })),
        ...words.map((kind) => ({ kind, status: 'pending', count: 2 })),
        { kind: 'intent', status: 'FILLED', count: 7 },
      ],
    });
    const found = await series(metrics);
    expect([...found.keys()]).toEqual([...without.keys()]);
    expect(found.get('intentwatch_subjects{kind="intent",status="other"}')).toBe(1_000);
    expect(found.get('intentwatch_subjects{kind="other",status="other"}')).toBe(2_000);
    expect(found.get('intentwatch_subjects{kind="intent",status="filled"}')).toBe(7);
  });

  test('as routes on which was learned are shown by name where most was seen, and the others add up', async () => {
    const stages = Array.from({ length: 60 }, (_, index) => ({
      route: `1:${index}`,
      stage: 'pending',
      observations: 100 + index,
      medianSeconds: 25,
      p99Seconds: 80,
    }));
    const { metrics } = create({ learned: async () => ({ stages, newTransfersPerSecond: 0.02 }) });
    const found = await series(metrics);
    const seen = [...found].filter(([name]) => name.startsWith('intentwatch_learned_observations'));
    expect(seen).toHaveLength(51);
    expect(found.get('intentwatch_learned_observations{route="1:59",stage="pending"}')).toBe(159);
    expect(found.get('intentwatch_learned_observations{route="other",stage="pending"}')).toBe(1_045);
    expect(found.get('intentwatch_learned_new_transfers_per_second')).toBe(0.02);
    const p99 = 'intentwatch_learned_seconds{route="1:59",stage="pending",share="0.99"}';
    expect(found.get(p99)).toBe(80);
    expect([...found].filter(([name]) => name.startsWith('intentwatch_learned_seconds'))).toHaveLength(100);
  });

  test('as receivers that were removed from the config are shown by name for the largest backlogs only', async () => {
    const { signals, metrics } = create({
      deliveries: async () => [
        { receiver: 'backend', pending: 5, dead: 6, removed: false },
        { receiver: 'gone-without-backlog', pending: 0, dead: 0, removed: true },
        ...words.map((receiver, index) => ({ receiver, pending: index + 1, dead: 1, removed: true })),
      ],
      queues: async () =>
        words.map((word) => ({ queue: `deliver-${word}`, state: 'delayed' as const, count: 1 })),
    });
    for (const receiver of words) signals.emit('receiver.events-dropped', { receiver, count: 1 });
    const found = await series(metrics);
    const pending = [...found].filter(([name]) => name.startsWith('intentwatch_deliveries_pending'));
    expect(pending).toHaveLength(2 + 20 + 1);
    expect(found.get('intentwatch_deliveries_pending{receiver="backend"}')).toBe(5);
    expect(found.get('intentwatch_deliveries_pending{receiver="oncall"}')).toBe(0);
    expect(found.get(`intentwatch_deliveries_pending{receiver="${words.at(-1)}"}`)).toBe(1_000);
    expect(pending.reduce((sum, [, value]) => sum + value, 0)).toBe(5 + 500_500);
    expect(found.get('intentwatch_dead_letters{receiver="(removed)"}')).toBe(980);
    expect(found.get('intentwatch_events_dropped_total{receiver="(removed)"}')).toBe(1_000);
    expect(found.get('intentwatch_queue_depth{queue="(removed)",state="delayed"}')).toBe(1_000);
  });
});

test('every combination of closed label sets exists from the start, at 0', async () => {
  const found = await series(create().metrics);
  const outcomes = ['answered', 'failed', 'ended', 'aborted'];
  for (const outcome of outcomes) {
    expect(
      found.get(`intentwatch_polls_total{endpoint_group="gateway",kind="vault",outcome="${outcome}"}`),
    ).toBe(0);
  }
  for (const receiver of ['backend', 'oncall']) {
    expect(found.get(`intentwatch_deliveries_total{receiver="${receiver}",outcome="dead"}`)).toBe(0);
    expect(found.get(`intentwatch_queue_depth{queue="deliver-${receiver}",state="waiting"}`)).toBe(0);
  }
  for (const type of [...EVENT_TYPES, 'other']) {
    expect([type, found.get(`intentwatch_events_total{type="${type}"}`)]).toEqual([type, 0]);
  }
  expect(found.get('intentwatch_detection_delay_seconds_bucket{le="3600",kind="intent"}')).toBe(0);
});

test('names follow the conventions: a prefix, base units, and _total on counters and nothing else', () => {
  const definitions: Definition[] = Object.values(DEFINITIONS);
  for (const { name, type, help, labels } of definitions) {
    expect(name).toMatch(/^intentwatch_[a-z_]+$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    if (type === 'histogram') expect(name).toMatch(/_(seconds|ratio)$/);
    // `quantile` belongs to summaries; a time is no duration.
    expect(Object.keys(labels)).not.toContain('quantile');
    if (help.includes('since 1970')) expect(name).toMatch(/_timestamp_seconds$/);
    expect(help).toMatch(/\.$/);
  }
  expect(new Set(definitions.map(({ name }) => name)).size).toBe(definitions.length);
});

test(`the exposition parses, and promtool complains of nothing in it${promtool.note}`, {
  skip: promtool.skip,
}, async () => {
  const { signals, metrics } = create({
    deliveries: async () => [{ receiver: 'old', pending: 1, dead: 1, removed: true }],
  });
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 0.1 });
  const { body, contentType } = await metrics.expose();
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: body });
  expect([status, `${stdout}${stderr}`]).toEqual([0, '']);
});

test(`for any names of 10,000 tokens and pairs of chains, series are bounded and promtool complains of nothing${promtool.note}`, {
  skip: promtool.skip,
}, async () => {
  const words = [
    'a\nb',
    '"',
    '\\',
    '}',
    '{le="1"} 5',
    '# HELP x',
    'x'.repeat(10_000),
    '\u202eCDSU',
    '\u{1f4b8}',
    '\u0000',
  ];
  const name = (index: number): string => `${words[index % words.length]}${index}`;
  const signals = new Signals();
  const token = (index: number): string => `0x${index}`;
  const metrics = metricsOf({
    signals,
    directory: {
      chain: () => null,
      token: (_, address) => ({ symbol: name(Number(address.slice(2))), decimals: 18 }),
    },
    sources: {
      transfers: async () => ({
        nowMs: 0,
        oldest: [],
        sums: Array.from({ length: 10_000 }, (_, index) => ({
          state: 'pending' as const,
          route: name(index),
          chainId: '1',
          token: token(index),
          count: 1,
          amount: 2n ** 256n - BigInt(index),
        })),
      }),
    },
  });
  const nothing = [...(await series(metricsOf())).keys()].length;
  for (let index = 0; index < 10_000; index += 1) {
    signals.emit('transfer.moved', {
      eventId: 'evt_1',
      move: {
        route: name(index),
        sent: { chainId: '1', token: token(index), amount: '1' },
        outcome: 'filled',
        fillSeconds: 1,
        settlement: null,
      },
    });
  }
  const { body } = await metrics.expose();
  const shown = body.split('\n').filter((line) => line.startsWith('intentwatch_'));
  expect(shown.length - nothing).toBeLessThan(51 * MOST_PER_ROUTE);
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: body });
  expect([status, `${stdout}${stderr}`]).toEqual([0, '']);
});
