import type { ServerConfig } from '../config/config.ts';
import { renderEvent } from '../domain/events/render.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import type { FindEvent } from '../server/api.ts';
import { EventLinks } from '../server/event-links.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import { eventOf } from '../store/log-entry.ts';
import type { Registry } from '../store/registry.ts';

/** Where events are found, and what chains and tokens are called. */
type Found = {
  stores: { deliveries: DeliveryStore; events: EventLog; registry: Registry };
  polling: { discovery: { readonly directory: Directory } };
};

/** Finds events for the API; before the daemon's parts run, nobody can tell. */
export function daemonEvents(parts: () => Found | null): FindEvent {
  return async ({ id, receiver }) => {
    const running = parts();
    if (running === null) throw new Error('the daemon has not started');
    const { deliveries, events, registry } = running.stores;
    const { directory } = running.polling.discovery;
    const fact = await deliveries.fact(receiver, id);
    const event = fact === null ? null : eventOf(await events.at(fact.entry));
    if (fact === null || event === null) return null;
    return renderEvent(event, fact.roots, await registry.subscriptions(fact.roots), directory);
  };
}

/** Links to where the API shows an event; null where it does not run, or nobody said how it is reached. */
export function eventUrlOf({ publicUrl, token }: ServerConfig): EventUrl | null {
  if (publicUrl === null || token === null) return null;
  const links = new EventLinks(token);
  return (event, nowMs) => `${publicUrl}/v1/events/${event.id}?${links.query(event, nowMs)}`;
}
