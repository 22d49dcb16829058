import type { UpstreamClient } from '../upstream/client/client.ts';
import { type Reading, readPage } from './reading.ts';

/** Asks for one intent by its hash. */
export async function pollIntent(
  client: UpstreamClient,
  intent: { hash: string },
  signal: AbortSignal,
): Promise<Reading> {
  return readPage(await client.status({ intentHash: intent.hash }, { signal }));
}
