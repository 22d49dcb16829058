import { isTrackedRoot, parseClaimRoot, walletsOf } from '../subjects/claim.ts';
import { COMMON, type Directory } from '../transfers/chains.ts';
import { transferFacts } from '../transfers/transfer-facts.ts';
import type { Event, RenderedEvent } from './event.ts';

/** What rendering needs of a subscription; `order` is its place in the config. */
export type RenderedSubscription = { name: string; order: number; metadata: Record<string, string> };

/**
 * The event as one receiver gets it. `roots` are the claims that lead to this receiver; wallets, subscriptions and
 * metadata come from them alone. The metadata of several subscriptions merges in their order. `directory` says what
 * chains and tokens are called.
 */
export function renderEvent(
  event: Event,
  roots: readonly string[],
  subscriptions: ReadonlyMap<string, RenderedSubscription>,
  directory: Directory = COMMON,
): RenderedEvent {
  const names = [...new Set(roots.map((root) => parseClaimRoot(root).subscription))];
  const leading = names
    .map((name) => subscriptions.get(name) ?? { name, order: Number.MAX_SAFE_INTEGER, metadata: {} })
    .sort((a, b) => a.order - b.order);
  const { upstreamUpdatedAt, detectionDelaySeconds, before, promised, fundedAt, ...facts } = event.data;
  const transfer = transferFacts(event, directory);
  return {
    ...event,
    data: {
      ...facts,
      ...(transfer === null ? {} : { transfer }),
      wallets: walletsOf(roots),
      subscriptions: leading.map(({ name }) => name).filter((name) => !isTrackedRoot(name)),
      metadata: Object.assign({}, ...leading.map((subscription) => subscription.metadata)),
      upstreamUpdatedAt,
      detectionDelaySeconds,
    },
  };
}

/** An event that waited until what it is for came back into the config. */
export function withSuspended(event: RenderedEvent): RenderedEvent {
  const { upstreamUpdatedAt, detectionDelaySeconds, ...data } = event.data;
  return { ...event, data: { ...data, suspended: true, upstreamUpdatedAt, detectionDelaySeconds } };
}
