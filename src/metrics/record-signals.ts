import type { Event } from '../domain/events/event.ts';
import { parseSubjectId } from '../domain/subjects/subject.ts';
import type { SignalMap, Signals } from '../signals.ts';
import type { Instruments } from './instruments.ts';
import { OTHER } from './label-values.ts';

/** Pairs of chains that get a series of their own: who hands over a quote chooses them, so they are bounded. */
const MOST_ROUTES = 50;

/** Moves the metrics with the signals. Returns what ends it. */
export function recordSignals(signals: Signals, metrics: Instruments): () => void {
  const ends: (() => void)[] = [];
  const on = <Name extends keyof SignalMap>(
    name: Name,
    listener: (signal: SignalMap[Name][0]) => void,
  ): void => {
    signals.on(name, listener);
    ends.push(() => signals.off(name, listener));
  };

  on('upstream.answered', ({ endpoint, outcome, durationSeconds }) => {
    metrics.count('requests', { endpoint, outcome });
    metrics.observe('requestDuration', { endpoint }, durationSeconds);
  });
  on('upstream.moved', ({ surface, before, after }) => {
    metrics.count('upstreamMoves', { surface, state: after });
    metrics.count('events', { type: operatorType(before, after) });
  });
  const added = pauses();
  on('upstream.paused', ({ surface, seconds }) => {
    metrics.count('paused', { surface }, added(surface, seconds));
  });

  on('poll.ended', ({ surface, kind, outcome, lagSeconds }) => {
    metrics.count('polls', { surface, kind, outcome });
    if (lagSeconds !== null) metrics.observe('pollLag', { surface }, lagSeconds);
  });
  on('claims.returned', ({ surface, count }) => metrics.count('claimsReturned', { surface }, count));
  on('poll.crashed', ({ subject }) => metrics.count('pollCrashes', { kind: kindOf(subject) }));
  on('repair.done', ({ what }) => metrics.count('repairs', { what }));

  on('record.decided', ({ kind, outcome, reason }) => {
    metrics.count('records', { kind, outcome });
    if (outcome === 'stale') metrics.count('stale', { reason: reason ?? OTHER });
  });
  const routes = new Set<string>();
  on('transfer.delivered', ({ route, ratio }) => {
    if (routes.size < MOST_ROUTES) routes.add(route);
    metrics.observe('deliveredRatio', { route }, ratio, [...routes]);
  });
  on('record.unreadable', ({ where }) => metrics.count('unreadable', { kind: kindOf(where) }));
  on('event.committed', ({ event, kind }) => {
    metrics.count('events', { type: event.type });
    const delaySeconds = event.data.detectionDelaySeconds;
    if (delaySeconds !== null && !isOfTheClock(event)) {
      metrics.observe('detectionDelay', { kind }, delaySeconds);
    }
  });

  on('relay.moved', ({ holding }) => metrics.set('relayHolding', {}, holding ? 1 : 0));
  on('relay.stopped', ({ stopped }) => metrics.set('relayStopped', {}, stopped ? 1 : 0));
  on('store.foreign', ({ what }) => metrics.count('foreign', { what }));
  on('relay.set-aside', () => metrics.count('setAside', {}));
  on('delivery.opened', ({ receiver }) => metrics.count('opened', { receiver }));
  on('delivery.attempted', ({ receiver, outcome, durationSeconds }) => {
    metrics.count('attempts', { receiver, outcome });
    metrics.observe('attemptDuration', { receiver }, durationSeconds);
  });
  on('delivery.ended', ({ receiver, outcome }) => metrics.count('deliveries', { receiver, outcome }));
  on('receiver.moved', ({ move }) => metrics.count('events', { type: `receiver.${move}` }));
  on('config.reloaded', ({ ok, atMs }) => {
    metrics.set('configReloaded', {}, ok ? 1 : 0);
    if (ok) metrics.set('configReloadedAt', {}, atMs / 1_000);
  });
  on('receiver.events-dropped', ({ receiver, count }) => metrics.count('dropped', { receiver }, count));

  return () => {
    for (const end of ends) end();
  };
}

/** Gives the part of a pause that no earlier pause of the surface covers, in seconds. */
function pauses(): (surface: string, seconds: number) => number {
  const untilMs = new Map<string, number>();
  return (surface, seconds) => {
    const nowMs = performance.now();
    const fromMs = Math.max(nowMs, untilMs.get(surface) ?? 0);
    const toMs = Math.max(fromMs, nowMs + seconds * 1_000);
    untilMs.set(surface, toMs);
    return (toMs - fromMs) / 1_000;
  };
}

/** The operator's event that a move of a surface makes; it is written with the move and has no signal of its own. */
function operatorType(before: string, after: string): string {
  if (after !== 'ok') return `upstream.${after}`;
  return before === 'unreachable' ? 'upstream.reachable' : 'upstream.authorized';
}

/** Whether only the passing of time made an event, as for `overdue`: its delay is no delay of detection. */
function isOfTheClock(event: Event): boolean {
  return event.data.changes.length === 0;
}

function kindOf(subject: string): string {
  return parseSubjectId(subject)?.kind ?? OTHER;
}
