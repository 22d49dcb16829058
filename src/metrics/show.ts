import { CACHES } from '../domain/caches.ts';
import {
  FILL_OUTCOMES,
  OPEN_STATES,
  SETTLEMENT_OUTCOMES,
  VOLUME_OUTCOMES,
} from '../domain/transfers/transfer-move.ts';
import { HEALTH_STATES } from '../store/health.ts';
import { RECEIVER_STATES } from '../store/receivers.ts';
import type { OpenSums } from '../store/wallets.ts';
import type { MetricSources } from './definition.ts';
import type { Instruments } from './instruments.ts';
import { type CountedSeries, OTHER, statusLabel, type TokenDirectories, tokenValue } from './label-values.ts';

/** The response of a source; null for none, which omits its gauges. */
type SourceAnswer<Name extends keyof MetricSources> = Awaited<ReturnType<MetricSources[Name]>> | null;

/** Most removed receivers that are shown by name; the others add up. */
const REMOVED_SHOWN = 20;

const LEARNED_SHOWN = 50;

export function showSubjects(metrics: Instruments, answer: SourceAnswer<'subjects'>): void {
  const samples = answer?.map(({ kind, status, count }) => ({
    labels: { kind, status: statusLabel(kind, status) },
    value: count,
  }));
  metrics.show('subjects', samples ?? null);
}

export function showQueues(metrics: Instruments, answer: SourceAnswer<'queues'>): void {
  const samples = answer?.map(({ queue, state, count }) => ({ labels: { queue, state }, value: count }));
  metrics.show('queueDepth', samples ?? null);
}

/** Shows deliveries. A removed receiver is shown while it has a backlog, the largest backlogs by name. */
export function showDeliveries(metrics: Instruments, answer: SourceAnswer<'deliveries'>): void {
  const shown = answer?.filter(({ removed, pending, dead }) => !removed || pending > 0 || dead > 0) ?? null;
  const removed = (shown ?? [])
    .filter((receiver) => receiver.removed)
    .sort((a, b) => b.pending + b.dead - (a.pending + a.dead))
    .slice(0, REMOVED_SHOWN)
    .map(({ receiver }) => receiver);
  const values = (pick: 'pending' | 'dead') =>
    shown?.map((one) => ({ labels: { receiver: one.receiver }, value: one[pick] })) ?? null;
  metrics.show('pending', values('pending'), removed);
  metrics.show('deadLetters', values('dead'), removed);
}

export function showReceivers(metrics: Instruments, answer: SourceAnswer<'receivers'>): void {
  const states = answer?.flatMap(({ receiver, state: current }) =>
    RECEIVER_STATES.map((state) => ({ labels: { receiver, state }, value: state === current ? 1 : 0 })),
  );
  metrics.show('receiverState', states ?? null);
  const values = (pick: (one: NonNullable<typeof answer>[number]) => number) =>
    answer?.map((one) => ({ labels: { receiver: one.receiver }, value: pick(one) })) ?? null;
  metrics.show(
    'receiverFull',
    values(({ full }) => (full ? 1 : 0)),
  );
  metrics.show(
    'oldestDelivery',
    values(({ oldestSeconds }) => oldestSeconds),
  );
  metrics.show(
    'oldestUndelivered',
    values(({ undeliveredSeconds }) => undeliveredSeconds),
  );
  metrics.show(
    'nextAttempt',
    values(({ nextAttemptSeconds }) => nextAttemptSeconds),
  );
}

export function showSuspensions(metrics: Instruments, answer: SourceAnswer<'suspensions'>): void {
  metrics.show('suspendedSubjects', answer === null ? null : [{ labels: {}, value: answer.claimKeys }]);
  metrics.show('withheld', answer === null ? null : [{ labels: {}, value: answer.waiting }]);
}

export function showEndpointGroups(metrics: Instruments, answer: SourceAnswer<'endpointGroups'>): void {
  const states = answer?.flatMap(({ endpointGroup, state: current }) =>
    HEALTH_STATES.map((state) => ({
      labels: { endpoint_group: endpointGroup, state },
      value: state === current ? 1 : 0,
    })),
  );
  metrics.show('upstreamState', states ?? null);
  const values = (pick: (plan: NonNullable<typeof answer>[number]) => number) =>
    answer?.map((plan) => ({ labels: { endpoint_group: plan.endpointGroup }, value: pick(plan) })) ?? null;
  metrics.show(
    'budget',
    values(({ budget }) => budget),
  );
  metrics.show(
    'budgetUsed',
    values(({ used }) => used),
  );
  metrics.show(
    'price',
    values(({ price }) => price),
  );
  metrics.show(
    'failing',
    values(({ failing }) => failing),
  );
  metrics.show(
    'overdue',
    values(({ overdueSeconds }) => overdueSeconds),
  );
  const suspects = answer?.reduce((sum, plan) => sum + plan.suspects, 0);
  metrics.show('crashing', suspects === undefined ? null : [{ labels: {}, value: suspects }]);
}

export function showChecks(metrics: Instruments, answer: SourceAnswer<'checks'>): void {
  const counts = answer?.chains.flatMap(({ chain, states }) =>
    states.map(({ state, count }) => ({ labels: { chain, state }, value: count })),
  );
  metrics.show('proofChecks', counts ?? null);
  const oldest = answer?.chains.map(({ chain, oldestSeconds }) => ({
    labels: { chain },
    value: oldestSeconds,
  }));
  metrics.show('proofOldest', oldest ?? null);
  const unread = answer?.unreadSeconds ?? null;
  metrics.show('proofUnread', unread === null ? null : [{ labels: {}, value: unread }]);
}

export function showWaits(metrics: Instruments, answer: SourceAnswer<'waits'>): void {
  const longest = answer?.map(({ kind, longestSeconds }) => ({ labels: { kind }, value: longestSeconds }));
  metrics.show('longestWait', longest ?? null);
}

export function showSweeps(metrics: Instruments, answer: SourceAnswer<'sweeps'>): void {
  const unswept = answer?.map(({ state, count }) => ({ labels: { state }, value: count }));
  metrics.show('neverSwept', unswept ?? null);
}

/** Shows the routes with most observations by name; of the others only the number of observations. */
export function showLearned(metrics: Instruments, answer: SourceAnswer<'learned'>): void {
  const seen = new Map<string, number>();
  for (const { route, observations } of answer?.stages ?? []) {
    seen.set(route, (seen.get(route) ?? 0) + observations);
  }
  const names = [...seen].sort((a, b) => b[1] - a[1]).slice(0, LEARNED_SHOWN);
  const shown = names.map(([route]) => route);
  const observations = answer?.stages.map(({ route, stage, observations: value }) => ({
    labels: { route, stage },
    value,
  }));
  metrics.show('learnedObservations', observations ?? null, shown);
  const seconds = answer?.stages
    .filter(({ route }) => shown.includes(route))
    .flatMap(({ route, stage, medianSeconds, p99Seconds }) => [
      { labels: { route, stage, share: '0.5' }, value: medianSeconds },
      { labels: { route, stage, share: '0.99' }, value: p99Seconds },
    ]);
  metrics.show('learnedSeconds', seconds ?? null, shown);
  const arrivals = answer === null ? null : [{ labels: {}, value: answer.newTransfersPerSecond }];
  metrics.show('learnedNewTransfers', arrivals);
}

/** Omits values that a quote does not state: a 0 would be a price. */
export function showRoutes(metrics: Instruments, answer: SourceAnswer<'routes'>): void {
  const values = (pick: 'outputRatio' | 'feeRatio' | 'fillEstimateSeconds' | 'solvers') =>
    answer?.flatMap((price) => {
      const value = price[pick];
      return value === null ? [] : [{ labels: { route: price.route }, value }];
    }) ?? null;
  metrics.show('routeOutput', values('outputRatio'));
  metrics.show('routeFees', values('feeRatio'));
  metrics.show('routeFill', values('fillEstimateSeconds'));
  metrics.show('routeSolvers', values('solvers'));
}

/** Shows the open transfers by route, their amounts by token, and the age of the oldest; null omits all. */
export function showTransfers(
  metrics: Instruments,
  answer: (OpenSums & { nowMs: number }) | null,
  { directories, named }: { directories: TokenDirectories; named: CountedSeries },
): void {
  const sums = answer?.sums ?? [];
  const routes = largest(
    sums.map(({ route, count }) => [route, count]),
    CACHES.routeSeries.entries,
  );
  const open = sums.map(({ state, route, count }) => ({ labels: { state, route }, value: count }));
  // Every state of a route with any: otherwise no alert could compute its share of overdue ones.
  const zeros = routes.flatMap((route) =>
    OPEN_STATES.map((state) => ({ labels: { state, route }, value: 0 })),
  );
  metrics.show('transfersOpen', answer === null ? null : [...zeros, ...open], routes);
  const expected = new Set<string>();
  const values = sums.flatMap(({ state, route, chainId, token, amount }) => {
    const value = tokenValue({ chainId, token, amount: String(amount) }, directories);
    const ends = `${route} ${value?.token ?? ''}`;
    // Most sums differ only in state or chain, and there may be a thousand of them.
    if (!expected.has(ends)) expectEnds(metrics, { route, token: value?.token ?? null }, named);
    expected.add(ends);
    return value === null ? [] : [{ labels: { state, token: value.token }, value: value.units }];
  });
  const tokens = largest(
    values.map(({ labels: { token }, value }) => [token, value]),
    CACHES.tokenSeries.entries,
  );
  const none = tokens.flatMap((token) =>
    OPEN_STATES.map((state) => ({ labels: { state, token }, value: 0 })),
  );
  metrics.show('transfersOpenValue', answer === null ? null : [...none, ...values], tokens);
  const oldest = answer?.oldest.map(({ state, since }) => ({
    labels: { state },
    value: since === null ? 0 : Math.max(0, answer.nowMs / 1_000 - since),
  }));
  metrics.show('transferOldest', oldest ?? null);
}

/** Sets the series of an open transfer's later counts to 0 before its end. */
function expectEnds(
  metrics: Instruments,
  { route, token }: { route: string; token: string | null },
  { routes, tokens, areChecked }: CountedSeries,
): void {
  const extra = [...routes.add(route), ...(token === null ? [] : tokens.add(token))];
  for (const outcome of FILL_OUTCOMES) metrics.expect('fillTime', { route, outcome }, extra);
  for (const outcome of SETTLEMENT_OUTCOMES) metrics.expect('settlementTime', { route, outcome }, extra);
  if (areChecked) metrics.expect('upstreamLag', { route }, extra);
  if (token === null) return;
  for (const outcome of VOLUME_OUTCOMES) metrics.expect('volume', { route, token, outcome }, extra);
}

function largest(weighed: readonly (readonly [string, number])[], most: number): string[] {
  const sums = new Map<string, number>();
  for (const [word, weight] of weighed) {
    if (word !== OTHER) sums.set(word, (sums.get(word) ?? 0) + weight);
  }
  return [...sums]
    .sort((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([word]) => word);
}
