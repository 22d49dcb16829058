import { type ApiClient, ProblemReply } from '../client/api-client.ts';
import { parseSubjectId } from '../domain/subjects/subject.ts';
import { printableLine } from '../notifiers/printable.ts';
import { listWatched, readSubject } from '../server/api/routes/subjects.ts';
import { pagesOf } from './daemon.ts';

/** No watched subject has this name. */
export class NotWatchedError extends Error {
  override readonly name = 'NotWatchedError';
}

/** Several watched subjects have this name. */
export class SeveralWatchedError extends Error {
  override readonly name = 'SeveralWatchedError';
}

const MOST_NAMED = 20;

/**
 * Finds the id of a subject: by its id, the hash of an intent or of a transaction, an address, the UUID of a quote or job, or
 * its metadata as `key=value`. Throws a NotWatchedError for no match, and a SeveralWatchedError for several.
 */
export async function findSubject(client: ApiClient, text: string): Promise<string> {
  for (const subject of candidates(text)) {
    if (await isWatched(client, subject)) return subject;
  }
  const query = /^[^=:]+=/.test(text) ? { metadata: [text] } : { mentions: text };
  const { items } = await pagesOf(MOST_NAMED + 1, {
    most: 200,
    fetchPage: async (limit, cursor) => {
      const { body } = await client.call(listWatched, { query: { ...query, limit, cursor } });
      return { items: body.subjects.map(({ subject }) => subject), next: body.next };
    },
  });
  // A transfer goes before subjects that only lead to it: a quote, a job, a funding transaction.
  const transfers = items.filter((subject) => subject.startsWith('intent:'));
  const [found, ...others] = transfers.length === 1 ? transfers : items;
  if (found !== undefined && others.length === 0) return found;
  const named = JSON.stringify(printableLine(text, 120));
  if (found === undefined) {
    throw new NotWatchedError(
      `found nothing watched by ${named}, expected an id, an intent or transaction hash, or metadata as key=value`,
    );
  }
  const shown = items.slice(0, MOST_NAMED).map((one) => `  ${one}`);
  const more = items.length > MOST_NAMED ? ['  …'] : [];
  throw new SeveralWatchedError(
    [`found several by ${named}, expected one of:`, ...shown, ...more].join('\n'),
  );
}

/** The id of a subject that an option names in one of these ways. An id stays as it is: its events may outlive it. */
export async function subjectOption(
  client: ApiClient,
  text: string | undefined,
): Promise<string | undefined> {
  return text === undefined || parseSubjectId(text) !== null ? text : findSubject(client, text);
}

/** Subjects that a text may be the id of, with or without a prefix. */
function candidates(text: string): string[] {
  if (parseSubjectId(text) !== null) return [text];
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return [`intent:${text.toLowerCase()}`];
  if (/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/.test(text))
    return [`quote:${text.toLowerCase()}`, `gasless:${text.toLowerCase()}`];
  // A watched wallet goes before its transfers.
  return /^(?:0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/.test(text) ? [`wallet:${text}`] : [];
}

async function isWatched(client: ApiClient, subject: string): Promise<boolean> {
  try {
    await client.call(readSubject, { params: { subject }, query: { limit: 1 } });
    return true;
  } catch (error) {
    if (error instanceof ProblemReply && error.status === 404) return false;
    throw error;
  }
}
