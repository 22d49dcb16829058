import type { ServerConfig } from '../config/config.ts';
import { isApiOn } from '../config/sections/server.ts';
import type { EventUrl } from '../notifiers/notifier.ts';
import { findEvent } from '../operations/find-event.ts';
import type { AccessRules } from '../server/api/access.ts';
import { API_BASE, type ApiOptions } from '../server/api/api.ts';
import type { ApiParts } from '../server/api/route.ts';
import { EventLinks } from '../server/event-links.ts';

/** Who may use the API of a daemon. */
export function accessRulesOf(server: ServerConfig): AccessRules {
  const { tokens, console, publicUrl } = server;
  return { tokens, links: linksOf(server), console, publicUrl };
}

/** The API of a daemon; null where there is none. */
export function apiOptionsOf(server: ServerConfig, parts: () => ApiParts | null): ApiOptions | null {
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

/** Signs links by the first admin token; null where there is none. */
function linksOf({ tokens }: ServerConfig): EventLinks | null {
  const [token] = tokens.admin;
  return token === undefined ? null : new EventLinks(token);
}

/** Links to where the API shows an event; null where nobody could follow them. */
export function eventUrlOf(server: ServerConfig): EventUrl | null {
  const links = linksOf(server);
  const { publicUrl } = server;
  if (publicUrl === null || links === null) return null;
  return (event, nowMs) => `${publicUrl}${API_BASE}/events/${event.id}?${links.query(event, nowMs)}`;
}
