import { parseSubjectId, type SubjectId } from '../domain/subject.ts';
import type { UpstreamClient } from '../upstream/client.ts';
import { pollGasless } from './gasless.ts';
import { pollIntent } from './intent.ts';
import { pollQuote } from './quote.ts';
import type { Reading } from './reading.ts';
import { pollVault } from './vault.ts';

/** Makes the one request that the poll of a subject consists of, other than a wallet's. Throws UpstreamFailure, or the signal's reason. */
export async function pollSubject(
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
    default:
      throw new Error(`${subject} cannot be polled`);
  }
}
