import type { ServerConfig } from '../config/config.ts';
import { isApiOn } from '../config/sections/server.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import { findEvent } from '../operations/events.ts';
import type { Secret } from '../secret.ts';
import type { AccessRules } from '../server/api/access.ts';
import type { ApiOptions } from '../server/api/api.ts';
import type { ApiContext } from '../server/api/route.ts';
import { API_BASE } from '../server/api/route.ts';
import { EventLinks } from '../server/event-links.ts';

/** Who may use the API of a daemon. */
export function accessRulesOf(server: ServerConfig): AccessRules {
  const { tokens, console, publicUrl, trustProxy } = server;
  return { tokens, linkToken: linkTokenOf(server), console, publicUrl, trustProxy };
}

/** The API of a daemon; null where there is none. */
export function apiOptionsOf(server: ServerConfig, parts: () => ApiContext | null): ApiOptions | null {
  if (!isApiOn(server)) return null;
  return {
    ...accessRulesOf(server),
    findEvent: async (wanted) => {
      const running = parts();
      if (running === null) throw new Error('the daemon has not started');
      return findEvent(wanted, running.operations);
    },
    parts,
  };
}

/** The first admin token signs links; null where there is none. */
function linkTokenOf({ tokens }: ServerConfig): Secret | null {
  return tokens.admin[0] ?? null;
}

/** Links to where the API shows an event; null where nobody could follow them. */
export async function eventUrlOf(server: ServerConfig): Promise<EventUrl | null> {
  const [{ publicUrl }, token] = [server, linkTokenOf(server)];
  if (publicUrl === null || token === null) return null;
  const links = await EventLinks.create(token);
  return (event, nowMs) => `${publicUrl}${API_BASE}/events/${event.id}?${links.query(event, nowMs)}`;
}
