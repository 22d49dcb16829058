import type { RouteDefinition } from '../domain/quotes/route.ts';
import { parseSubjectId, type RouteService, type SubjectId } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { pollGasless, pollVault } from './gateway.ts';
import type { Reading } from './reading.ts';
import type { AskedRoute } from './route.ts';
import { pollIntent, pollQuote, pollTx } from './status.ts';

/** What is requested, and when (ms since 1970); `route` is what a route's name means, null for any other subject. */
export type PollTarget = { subject: SubjectId; route: RouteDefinition | null; nowMs: number };

/** Who is asked for the price of a route, by its service; one that the config does not use is missing. */
export type Pricing = Readonly<
  Partial<Record<RouteService, (asked: AskedRoute, signal: AbortSignal) => Promise<Reading>>>
>;

/** Asks for a subject that has one record. Throws UpstreamFailure, or the signal's reason. */
export async function pollRecord(
  client: UpstreamClient,
  subject: SubjectId,
  signal: AbortSignal,
): Promise<Reading> {
  const key = parseSubjectId(subject);
  switch (key?.kind) {
    case 'intent':
      return pollIntent(client, key, signal);
    case 'quote':
      return pollQuote(client, key, signal);
    case 'gasless':
      return pollGasless(client, key, signal);
    case 'vault':
      return pollVault(client, key, signal);
    case 'by-tx':
      return pollTx(client, key, signal);
    default:
      throw new Error(`${subject} cannot be polled`);
  }
}

/** Asks for the price of a route. Throws UpstreamFailure, or the signal's reason. */
export async function pollPrice(
  pricing: Pricing,
  { subject, route, nowMs }: PollTarget,
  signal: AbortSignal,
): Promise<Reading> {
  const key = parseSubjectId(subject);
  const service = key?.kind === 'route' ? key.service : null;
  const price = route?.service === service && service !== null ? pricing[service] : undefined;
  if (route === null || price === undefined) throw new Error(`${subject} is not defined`);
  return price({ route, nowMs }, signal);
}
