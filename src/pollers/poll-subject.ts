import type { RouteDefinition } from '../domain/quotes/route.ts';
import { parseSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { pollGasless, pollVault } from './gateway.ts';
import { type PartnerPricing, pollPartnerRoute } from './partner-route.ts';
import type { Reading } from './reading.ts';
import { pollRoute, type QuotingService } from './route.ts';
import { pollIntent, pollQuote, pollTx } from './status.ts';

/** Who is asked. `quoting` is null where the config names no open quoting service, `partner` where no route is priced with the key. */
export type Upstreams = {
  client: UpstreamClient;
  quoting: QuotingService | null;
  partner: PartnerPricing | null;
};

/** What is asked for, and when (ms since 1970); `route` is what a route's name means, null for any other subject. */
export type PollTarget = { subject: SubjectId; route: RouteDefinition | null; nowMs: number };

/** Makes the one request that the poll of a subject consists of, other than a wallet's. Throws UpstreamFailure, or the signal's reason. */
export async function pollSubject(
  { client, quoting, partner }: Upstreams,
  { subject, route, nowMs }: PollTarget,
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
    case 'route':
      if (route?.service === 'v1' && partner !== null && key.service === 'v1') {
        return pollPartnerRoute(partner, { route, nowMs }, signal);
      }
      if (route?.service === 'open' && quoting !== null && key.service === 'open') {
        return pollRoute(quoting, { route, nowMs }, signal);
      }
      throw new Error(`${subject} is not defined`);
    default:
      throw new Error(`${subject} cannot be polled`);
  }
}
