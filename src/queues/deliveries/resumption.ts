import type { Logger } from 'pino';
import type { RelayStores } from './relay-parts.ts';

/** What receivers are enabled with. */
type ResumptionParts = { stores: Pick<RelayStores, 'receivers' | 'deliveries' | 'backlog'>; log: Logger };

/** The number of deliveries that are opened or queued again in one step, so that neither Redis nor another receiver waits long. */
const BATCH = 500;

/**
 * Takes an `enabling` receiver one step further, under the relay's fencing token. Returns whether there is more to do.
 *
 * The dead letters of the failing span are opened again, then what waits for another try is queued, and only then attempts
 * are made and the cursor goes on. Their turns are those of their opening: what is oldest goes first. Each step can be
 * done again, so that whoever relays next goes on after a crash.
 */
export async function resume(
  token: string,
  name: string,
  { stores: { receivers, deliveries, backlog }, log }: ResumptionParts,
): Promise<boolean> {
  const { since } = await receivers.condition(name);
  const dead = since === null ? [] : await backlog.dead(name, { sinceMs: since, count: BATCH });
  if (dead.length > 0) return (await deliveries.renew(token, name, dead)) !== null;
  const came = await receivers.resume(token, name, BATCH);
  if (came === 'enabled') log.info({ receiver: name }, 'receiver.enabled');
  return came !== 'held';
}
