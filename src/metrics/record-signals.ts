import { FILE_STATES, REMOVED_KINDS } from '../config/sections/process.ts';
import type { Event } from '../domain/events/event.ts';
import { parseSubjectId } from '../domain/subjects/subject.ts';
import type { SignalMap, Signals } from '../signals.ts';
import type { Instruments } from './instruments.ts';
import { type CountedSeries, OTHER, type TokenDirectories, tokenValue } from './label-values.ts';

/** Updates the metrics at each signal, an internal event of the daemon. Returns a function that ends this. */
export function recordSignals(
  signals: Signals,
  metrics: Instruments,
  { directories, named: { routes, tokens } }: { directories: TokenDirectories; named: CountedSeries },
): () => void {
  const removals: (() => void)[] = [];
  const on = <Name extends keyof SignalMap>(
    name: Name,
    listener: (signal: SignalMap[Name][0]) => void,
  ): void => {
    signals.on(name, listener);
    removals.push(() => signals.off(name, listener));
  };

  on('upstream.answered', ({ endpoint, outcome, durationSeconds }) => {
    metrics.count('requests', { endpoint, outcome });
    metrics.observe('requestDuration', { endpoint }, durationSeconds);
  });
  on('upstream.moved', ({ endpointGroup, before, after }) => {
    metrics.count('upstreamMoves', { endpoint_group: endpointGroup, state: after });
    metrics.count('events', { type: operatorType(before, after) });
  });
  const addedPause = pauses();
  on('upstream.paused', ({ endpointGroup, seconds }) => {
    metrics.count('paused', { endpoint_group: endpointGroup }, addedPause(endpointGroup, seconds));
  });

  on('poll.ended', ({ endpointGroup, kind, outcome, lagSeconds }) => {
    metrics.count('polls', { endpoint_group: endpointGroup, kind, outcome });
    if (lagSeconds !== null) metrics.observe('pollLag', { endpoint_group: endpointGroup }, lagSeconds);
  });
  on('claims.returned', ({ endpointGroup, count }) =>
    metrics.count('claimsReturned', { endpoint_group: endpointGroup }, count),
  );
  on('poll.crashed', ({ subject }) => metrics.count('pollCrashes', { kind: kindOf(subject) }));
  on('repair.done', ({ what }) => metrics.count('repairs', { what }));

  on('record.decided', ({ kind, outcome, reason }) => {
    metrics.count('records', { kind, outcome });
    if (outcome === 'stale') metrics.count('stale', { reason: reason ?? OTHER });
  });
  on('status.compared', ({ result }) => metrics.count('comparisons', { result }));
  on('record.expired', () => metrics.count('expired', {}));
  on('transfer.delivered', ({ route, ratio }) => {
    metrics.observe('deliveredRatio', { route }, ratio, { extra: routes.add(route) });
  });
  on('transfer.moved', ({ move, eventId }) => {
    const { route, outcome, fillSeconds, settlement, sent } = move;
    const extra = routes.add(route);
    if (fillSeconds !== null && outcome !== null) {
      metrics.observe('fillTime', { route, outcome }, fillSeconds, { extra, eventId });
    }
    if (settlement !== null) {
      const labels = { route, outcome: settlement.outcome };
      metrics.observe('settlementTime', labels, settlement.seconds, { extra, eventId });
    }
    const value = outcome === null ? null : tokenValue(sent, directories);
    if (outcome === null || value === null) return;
    const series = [...extra, ...tokens.add(value.token)];
    metrics.count('volume', { route, token: value.token, outcome }, value.units, series);
  });
  on('record.reserved', ({ kind, count }) => metrics.count('reserved', { kind }, count));
  on('record.too-large', () => {
    metrics.count('tooLarge', {});
    metrics.count('events', { type: 'upstream.record_too_large' });
  });
  on('cursor.expired', () => metrics.count('events', { type: 'upstream.cursor_expired' }));
  on('record.unreadable', ({ where }) => metrics.count('unreadable', { kind: kindOf(where) }));
  on('event.committed', ({ event, kind }) => {
    metrics.count('events', { type: event.type });
    const delaySeconds = event.data.detectionDelaySeconds;
    if (delaySeconds !== null && !isTimeDriven(event)) {
      metrics.observe('detectionDelay', { kind }, delaySeconds, { eventId: event.id });
    }
  });

  on('relay.moved', ({ holding }) => metrics.set('relayHolding', {}, holding ? 1 : 0));
  on('relay.stopped', ({ stopped }) => metrics.set('relayStopped', {}, stopped ? 1 : 0));
  on('event.unmatched', ({ reason }) => metrics.count('unmatched', { reason }));
  on('suspension.ended', ({ reason, events }) => {
    metrics.count('withheldDropped', { reason }, events);
    metrics.count('events', { type: 'intentwatch.suspension_ended' });
  });
  on('store.foreign', ({ what }) => metrics.count('foreign', { what }));
  on('relay.quarantined', () => metrics.count('quarantine', {}));
  on('error.internal', ({ part }) => metrics.count('internalErrors', { part }));
  on('delivery.opened', ({ receiver }) => metrics.count('opened', { receiver }));
  on('delivery.attempted', ({ receiver, outcome, durationSeconds, eventId, refused }) => {
    metrics.count('attempts', { receiver, outcome });
    if (refused > 0) metrics.count('refusedRecipients', { receiver }, refused);
    metrics.observe('attemptDuration', { receiver }, durationSeconds, { eventId });
  });
  on('delivery.ended', ({ receiver, outcome, delaySeconds, eventId }) => {
    metrics.count('deliveries', { receiver, outcome });
    if (delaySeconds !== null) metrics.observe('deliveryDelay', { receiver }, delaySeconds, { eventId });
  });
  on('receiver.moved', ({ move }) => metrics.count('events', { type: `receiver.${move}` }));
  on('config.moved', ({ state, atMs, removal }) => {
    metrics.set('configReloaded', {}, state === 'refused' ? 0 : 1);
    if (state === 'running') metrics.set('configReloadedAt', {}, atMs / 1_000);
    for (const one of FILE_STATES) metrics.set('configState', { state: one }, one === state ? 1 : 0);
    for (const what of REMOVED_KINDS) metrics.set('configRemoval', { what }, removal?.[what].removed ?? 0);
  });
  on('clocks.compared', ({ isHeld }) => metrics.set('clocksHeld', {}, isHeld ? 1 : 0));
  on('epoch.checked', ({ epoch }) => metrics.set('dataEpoch', {}, epoch));
  on('check.ended', ({ chainId, state, route, lagSeconds }) => {
    metrics.count('proofs', { chain: chainId, outcome: state });
    if (lagSeconds !== null && route !== '') {
      metrics.observe('upstreamLag', { route }, lagSeconds, { extra: routes.add(route) });
    }
  });
  on('check.failed', ({ chainId }) => metrics.count('proofErrors', { chain: chainId }));
  on('checks.missed', () => metrics.count('checksMissed', {}));
  on('rpc.called', ({ chainId, endpoint, outcome, ms }) => {
    metrics.count('rpcCalls', { chain: chainId, endpoint, outcome });
    metrics.observe('rpcDuration', { chain: chainId, endpoint }, ms / 1_000);
  });
  on('books.fed', ({ readMs }) => metrics.set('booksRead', {}, readMs / 1_000));
  on('books.broken', ({ kind }) => metrics.count('booksBreaks', { kind }));
  on('books.mail', ({ outcome }) => metrics.count('booksMails', { outcome }));
  on('books.failed', () => metrics.count('booksFailures', {}));
  on('receiver.events-dropped', ({ receiver, count }) => metrics.count('dropped', { receiver }, count));

  return () => {
    for (const remove of removals) remove();
  };
}

/** Returns the part of a pause that no earlier pause of the endpoint group covers, in seconds to the millisecond. */
function pauses(): (endpointGroup: string, seconds: number) => number {
  const untilMs = new Map<string, number>();
  return (endpointGroup, seconds) => {
    const nowMs = performance.now();
    const fromMs = Math.max(nowMs, untilMs.get(endpointGroup) ?? 0);
    const toMs = Math.max(fromMs, nowMs + seconds * 1_000);
    untilMs.set(endpointGroup, toMs);
    return Math.round(toMs - fromMs) / 1_000;
  };
}

/** Returns the type of the operator event that belongs to a new state of an endpoint group. That event emits no signal. */
function operatorType(before: string, after: string): string {
  if (after !== 'ok') return `upstream.${after}`;
  return before === 'unreachable' ? 'upstream.reachable' : 'upstream.authorized';
}

/** True when a time was reached and the upstream changed nothing, as for `overdue`: the event has no detection delay. */
function isTimeDriven(event: Event): boolean {
  return event.data.changes.length === 0;
}

function kindOf(subject: string): string {
  return parseSubjectId(subject)?.kind ?? OTHER;
}
