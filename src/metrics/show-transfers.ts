import { OPEN_STATES } from '../domain/transfers/open-transfer.ts';
import { FILL_OUTCOMES, SETTLEMENT_OUTCOMES, VOLUME_OUTCOMES } from '../domain/transfers/transfer-move.ts';
import type { OpenTransfers } from '../store/open-transfers.ts';
import type { Instruments } from './instruments.ts';
import { MOST_ROUTES, MOST_TOKENS, type Named, OTHER } from './label-values.ts';
import { type KnownTokens, tokenValue } from './token-value.ts';

/** The open transfers by route, what they have sent by token, and how old the oldest is; null leaves all out. */
export function showTransfers(
  metrics: Instruments,
  answer: (OpenTransfers & { nowMs: number }) | null,
  { known, named }: { known: KnownTokens; named: Named },
): void {
  const sums = answer?.sums ?? [];
  const routes = largest(
    sums.map(({ route, count }) => [route, count]),
    MOST_ROUTES,
  );
  const open = sums.map(({ state, route, count }) => ({ labels: { state, route }, value: count }));
  // Every state of a route that has any, or its share of those that are overdue could not be reported.
  const zeros = routes.flatMap((route) =>
    OPEN_STATES.map((state) => ({ labels: { state, route }, value: 0 })),
  );
  metrics.show('transfersOpen', answer === null ? null : [...zeros, ...open], routes);
  const expected = new Set<string>();
  const values = sums.flatMap(({ state, route, chainId, token, amount }) => {
    const value = tokenValue({ chainId, token, amount: String(amount) }, known);
    const ends = `${route} ${value?.token ?? ''}`;
    // Most sums differ in their state or chain alone, and there may be a thousand of them.
    if (!expected.has(ends)) expectEnds(metrics, { route, token: value?.token ?? null }, named);
    expected.add(ends);
    return value === null ? [] : [{ labels: { state, token: value.token }, value: value.units }];
  });
  const tokens = largest(
    values.map(({ labels: { token }, value }) => [token, value]),
    MOST_TOKENS,
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

/** Has what an open transfer will count as stand at 0 before it comes to its end. */
function expectEnds(
  metrics: Instruments,
  { route, token }: { route: string; token: string | null },
  { routes, tokens, areChecked }: Named,
): void {
  const extra = [...routes.add(route), ...(token === null ? [] : tokens.add(token))];
  for (const outcome of FILL_OUTCOMES) metrics.expect('fillTime', { route, outcome }, extra);
  for (const outcome of SETTLEMENT_OUTCOMES) metrics.expect('settlementTime', { route, outcome }, extra);
  if (areChecked) metrics.expect('upstreamLag', { route }, extra);
  if (token === null) return;
  for (const outcome of VOLUME_OUTCOMES) metrics.expect('volume', { route, token, outcome }, extra);
}

/** The words of which there is most; `other` is none. */
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
