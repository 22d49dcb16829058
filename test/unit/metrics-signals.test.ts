import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Event } from '../../src/domain/events/event.ts';
import type { Metrics } from '../../src/metrics/metrics.ts';
import { type SignalMap, Signals } from '../../src/signals.ts';
import { metricsOf } from '../support/metrics-stage.ts';

const signals = new Signals();
let metrics: Metrics;

beforeEach(() => {
  metrics = metricsOf({ signals, chains: [{ chainId: '8453', endpoints: ['own'] }] });
});

afterEach(() => {
  metrics.close();
  vi.useRealTimers();
});

/** The values of all series of our own that are not 0, without the clock, and without series that exist without signals. */
async function moved(): Promise<Record<string, number>> {
  const { body } = await metrics.expose();
  const samples = body
    .split('\n')
    .filter((line) => /^intentwatch_(?!clock_|build_|receiver_info|ready|redis_)/.test(line));
  const values = samples.map((line) => {
    const space = line.lastIndexOf(' ');
    // Differences of two times on a clock with a long uptime have an error of some parts in a trillion.
    const value = Math.round(Number(line.slice(space + 1)) * 1e6) / 1e6;
    return [line.slice('intentwatch_'.length, space), value] as const;
  });
  return Object.fromEntries(values.filter(([series, value]) => value !== 0 && !series.includes('_bucket')));
}

function event(type: string, facts: Partial<Event['data']> = {}): Event {
  return {
    id: 'evt_1',
    type,
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'intent', id: 'intent:0x01' },
      sequence: 1,
      epoch: 1,
      status: 'filled',
      previousStatus: 'pending',
      changes: ['status'],
      record: {},
      upstreamUpdatedAt: 1_763_638_259,
      detectionDelaySeconds: 1.5,
      ...facts,
    },
  };
}

const USDC_ON_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

const delivery = { receiver: 'backend', eventId: 'evt_1', eventType: 'intent.filled' };

/** For every signal: its arguments, and the series that it changes. */
const CASES: { [Name in keyof SignalMap]: { emitted: SignalMap[Name][0]; moves: Record<string, number> } } = {
  'upstream.answered': {
    emitted: { endpoint: 'status', outcome: 'rate-limited', durationSeconds: 0.25 },
    moves: {
      'upstream_requests_total{endpoint="status",outcome="rate-limited"}': 1,
      'upstream_request_duration_seconds_sum{endpoint="status"}': 0.25,
      'upstream_request_duration_seconds_count{endpoint="status"}': 1,
    },
  },
  'upstream.moved': {
    emitted: { endpointGroup: 'gateway', before: 'ok', after: 'unreachable', reason: 'down' },
    moves: {
      'upstream_state_changes_total{endpoint_group="gateway",state="unreachable"}': 1,
      'events_total{type="upstream.unreachable"}': 1,
    },
  },
  'record.too-large': {
    emitted: { wallet: 'wallet:0x11', id: null, reason: 'a page of one record: found more than 9 bytes' },
    moves: { records_too_large_total: 1, 'events_total{type="upstream.record_too_large"}': 1 },
  },
  'clocks.compared': { emitted: { isHeld: true }, moves: { clocks_held: 1 } },
  'cursor.expired': {
    emitted: { wallet: 'wallet:0x11', neededRequestsPerSecond: 20 },
    moves: { 'events_total{type="upstream.cursor_expired"}': 1 },
  },
  'epoch.checked': { emitted: { epoch: 3 }, moves: { data_epoch: 3 } },
  'upstream.paused': {
    emitted: { endpointGroup: 'status', seconds: 30 },
    moves: { 'upstream_paused_seconds_total{endpoint_group="status"}': 30 },
  },
  'poll.ended': {
    emitted: { endpointGroup: 'status', kind: 'wallet', outcome: 'failed', lagSeconds: 2.5 },
    moves: {
      'polls_total{endpoint_group="status",kind="wallet",outcome="failed"}': 1,
      'poll_lag_seconds_sum{endpoint_group="status"}': 2.5,
      'poll_lag_seconds_count{endpoint_group="status"}': 1,
    },
  },
  'poll.crashed': {
    emitted: { subject: 'vault:8453:0x01', crashes: 1 },
    moves: { 'poll_crashes_total{kind="vault"}': 1 },
  },
  'claims.returned': {
    emitted: { endpointGroup: 'gateway', count: 3 },
    moves: { 'claims_returned_total{endpoint_group="gateway"}': 3 },
  },
  'record.decided': {
    emitted: { subject: 'intent:0x01', kind: 'intent', outcome: 'stale', reason: 'backward' },
    moves: {
      'records_total{kind="intent",outcome="stale"}': 1,
      'stale_answers_total{reason="backward"}': 1,
    },
  },
  'status.compared': {
    emitted: { result: 'ahead' },
    moves: { 'status_comparisons_total{result="ahead"}': 1 },
  },
  'record.expired': { emitted: { subject: 'intent:0x1' }, moves: { records_expired_total: 1 } },
  'transfer.delivered': {
    emitted: { route: '8453:10', ratio: 0.96 },
    moves: { 'delivered_ratio_sum{route="8453:10"}': 0.96, 'delivered_ratio_count{route="8453:10"}': 1 },
  },
  'transfer.moved': {
    emitted: {
      eventId: 'evt_1',
      move: {
        route: '8453:10',
        sent: { chainId: '8453', token: USDC_ON_BASE, amount: '2500000' },
        outcome: 'filled',
        fillSeconds: 24,
        settlement: { outcome: 'settled', seconds: 90 },
      },
    },
    moves: {
      'transfer_fill_seconds_sum{route="8453:10",outcome="filled"}': 24,
      'transfer_fill_seconds_count{route="8453:10",outcome="filled"}': 1,
      'transfer_settlement_seconds_sum{route="8453:10",outcome="settled"}': 90,
      'transfer_settlement_seconds_count{route="8453:10",outcome="settled"}': 1,
      'transfer_volume_tokens_total{route="8453:10",token="USDC",outcome="filled"}': 2.5,
    },
  },
  'record.reserved': {
    emitted: { kind: 'route', id: 'route:1', count: 3 },
    moves: { 'records_reserved_total{kind="route"}': 3 },
  },
  'record.unreadable': {
    emitted: { where: 'wallet:0x01', reason: 'result 3: no id' },
    moves: { 'records_unreadable_total{kind="wallet"}': 1 },
  },
  'event.committed': {
    emitted: { event: event('intent.filled'), kind: 'intent' },
    moves: {
      'events_total{type="intent.filled"}': 1,
      'detection_delay_seconds_sum{kind="intent"}': 1.5,
      'detection_delay_seconds_count{kind="intent"}': 1,
    },
  },
  'delivery.opened': {
    emitted: delivery,
    moves: { 'deliveries_opened_total{receiver="backend"}': 1 },
  },
  'delivery.attempted': {
    emitted: {
      ...delivery,
      subject: null,
      attempt: 2,
      outcome: 'failed',
      durationSeconds: 0.5,
      reason: 'HTTP 500',
      refused: 2,
    },
    moves: {
      'mail_recipients_refused_total{receiver="backend"}': 2,
      'delivery_attempts_total{receiver="backend",outcome="failed"}': 1,
      'delivery_attempt_duration_seconds_sum{receiver="backend"}': 0.5,
      'delivery_attempt_duration_seconds_count{receiver="backend"}': 1,
    },
  },
  'delivery.ended': {
    emitted: { ...delivery, outcome: 'dead', delaySeconds: null },
    moves: { 'deliveries_total{receiver="backend",outcome="dead"}': 1 },
  },
  'receiver.moved': {
    emitted: { receiver: 'backend', move: 'disabled', reason: '410 Gone' },
    moves: { 'events_total{type="receiver.disabled"}': 1 },
  },
  'relay.moved': { emitted: { holding: true }, moves: { relay_holding: 1 } },
  'relay.stopped': { emitted: { stopped: true }, moves: { relay_stopped: 1 } },
  'store.foreign': {
    emitted: { what: 'claim', where: 'x', reason: 'y' },
    moves: { 'foreign_entries_total{what="claim"}': 1 },
  },
  'event.unmatched': {
    emitted: { reason: 'no-receiver' },
    moves: { 'events_unmatched_total{reason="no-receiver"}': 1 },
  },
  'relay.quarantined': { emitted: { entry: '1-1' }, moves: { entries_quarantined_total: 1 } },
  'repair.done': {
    emitted: { what: 'poll-missing', subject: 'intent:0x01' },
    moves: { 'repairs_total{what="poll-missing"}': 1 },
  },
  'check.ended': {
    emitted: { chainId: '8453', state: 'disputed', route: '10:8453', lagSeconds: 3 },
    moves: {
      'proofs_total{chain="8453",outcome="disputed"}': 1,
      'upstream_lag_seconds_sum{route="10:8453"}': 3,
      'upstream_lag_seconds_count{route="10:8453"}': 1,
    },
  },
  'check.failed': {
    emitted: { chainId: '8453' },
    moves: { 'proof_errors_total{chain="8453"}': 1 },
  },
  'checks.missed': { emitted: { reason: 'trimmed' }, moves: { proof_log_gaps_total: 1 } },
  'rpc.called': {
    emitted: { chainId: '8453', endpoint: 'own', method: 'eth_chainId', outcome: 'ok', ms: 250 },
    moves: {
      'rpc_calls_total{chain="8453",endpoint="own",outcome="ok"}': 1,
      'rpc_call_duration_seconds_sum{chain="8453",endpoint="own"}': 0.25,
      'rpc_call_duration_seconds_count{chain="8453",endpoint="own"}': 1,
    },
  },
  'books.fed': {
    emitted: { ingested: 3, readMs: 1_795_174_224_500 },
    moves: { books_read_timestamp_seconds: 1_795_174_224.5 },
  },
  'books.broken': {
    emitted: { kind: 'lost' },
    moves: { 'books_breaks_total{kind="lost"}': 1 },
  },
  'error.internal': { emitted: { part: 'record' }, moves: { 'internal_errors_total{part="record"}': 1 } },
  'books.mail': { emitted: { outcome: 'dead' }, moves: { 'books_mails_total{outcome="dead"}': 1 } },
  'books.failed': { emitted: { reason: 'Postgres is away' }, moves: { books_failures_total: 1 } },
  'receiver.events-dropped': {
    emitted: { receiver: 'backend', count: 12 },
    moves: { 'events_dropped_total{receiver="backend"}': 12 },
  },
  'suspension.ended': {
    emitted: { reason: 'span-over', events: 3 },
    moves: {
      'suspended_events_dropped_total{reason="span-over"}': 3,
      'events_total{type="intentwatch.suspension_ended"}': 1,
    },
  },
  'config.moved': {
    emitted: {
      state: 'held',
      atMs: 1_763_638_259_000,
      removal: { wallets: { removed: 3 }, subjects: { removed: 0 }, receivers: { removed: 1 } },
    },
    moves: {
      config_last_reload_successful: 1,
      'config_state{state="held"}': 1,
      'config_large_removal{what="wallets"}': 3,
      'config_large_removal{what="receivers"}': 1,
    },
  },
};

describe.each(Object.entries(CASES))('the signal %s', (name, { emitted, moves }) => {
  test('moves its metrics and no others', async () => {
    expect(await moved()).toEqual({});
    signals.emit(name, emitted);
    expect(await moved()).toEqual(moves);
  });

  test('moves nothing once the metrics are closed', async () => {
    metrics.close();
    signals.emit(name, emitted);
    expect(await moved()).toEqual({});
  });
});

test('an accepted event counts from its timestamp to its acceptance, a replay not at all', async () => {
  signals.emit('delivery.ended', { ...delivery, outcome: 'delivered', delaySeconds: 0.004 });
  signals.emit('delivery.ended', { ...delivery, outcome: 'delivered', delaySeconds: null });
  expect(await moved()).toEqual({
    'deliveries_total{receiver="backend",outcome="delivered"}': 2,
    'delivery_delay_seconds_sum{receiver="backend"}': 0.004,
    'delivery_delay_seconds_count{receiver="backend"}': 1,
  });
  const { body } = await metrics.expose();
  expect(body).toContain('intentwatch_delivery_delay_seconds_bucket{le="0.005",receiver="backend"} 1\n');
});

test('the relay gauge falls back when another process takes over', async () => {
  signals.emit('relay.moved', { holding: true });
  signals.emit('relay.moved', { holding: false });
  expect(await moved()).toEqual({});
});

test('pauses that overlap count once', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 10 });
  vi.advanceTimersByTime(4_000);
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 3 });
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 10 });
  vi.advanceTimersByTime(60_000);
  signals.emit('upstream.paused', { endpointGroup: 'status', seconds: 1 });
  expect(await moved()).toEqual({ 'upstream_paused_seconds_total{endpoint_group="status"}': 15 });
});

test('the recoveries of an endpoint group count as the events that they are', async () => {
  const move = { endpointGroup: 'status', after: 'ok', reason: '' };
  signals.emit('upstream.moved', { ...move, before: 'unreachable' });
  signals.emit('upstream.moved', { ...move, before: 'unauthorized' });
  expect(await moved()).toMatchObject({
    'events_total{type="upstream.reachable"}': 1,
    'events_total{type="upstream.authorized"}': 1,
    'upstream_state_changes_total{endpoint_group="status",state="ok"}': 2,
  });
});

test('an event that only the clock made has no detection delay', async () => {
  const overdue = event('intent.overdue', { changes: [], detectionDelaySeconds: 7_200 });
  signals.emit('event.committed', { event: overdue, kind: 'intent' });
  expect(await moved()).toEqual({ 'events_total{type="intent.overdue"}': 1 });
});

test('an event or a poll without a known delay counts without one', async () => {
  const unknown = event('intent.unknown', { detectionDelaySeconds: null });
  signals.emit('event.committed', { event: unknown, kind: 'intent' });
  signals.emit('poll.ended', { endpointGroup: 'status', kind: 'intent', outcome: 'ended', lagSeconds: null });
  expect(await moved()).toEqual({
    'events_total{type="intent.unknown"}': 1,
    'polls_total{endpoint_group="status",kind="intent",outcome="ended"}': 1,
  });
});

test('an invalid number never reaches the emitter of the signal, and moves nothing', async () => {
  for (const wrong of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
    signals.emit('upstream.paused', { endpointGroup: 'status', seconds: wrong });
    signals.emit('receiver.events-dropped', { receiver: 'backend', count: wrong });
    signals.emit('delivery.attempted', {
      ...delivery,
      subject: null,
      attempt: 1,
      outcome: 'delivered',
      durationSeconds: wrong,
      reason: '',
      refused: wrong,
    });
  }
  expect(await moved()).toEqual({
    'delivery_attempts_total{receiver="backend",outcome="delivered"}': 3,
  });
});

test('the version, the receivers and the clock are reported', async () => {
  const { body } = await metrics.expose();
  expect(body).toContain('intentwatch_build_info{version="1.2.3",node_version="v26.0.0"} 1\n');
  expect(body).toContain('intentwatch_receiver_info{receiver="backend",type="webhook"} 1\n');
  const [, seconds] = /^intentwatch_clock_timestamp_seconds (\S+)$/m.exec(body) ?? [];
  expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(60);
});
