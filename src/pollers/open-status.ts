import type { UpstreamRecord } from '../domain/subjects/record.ts';
import { foldHex, intentId, parseSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { OpenQuotesClient } from '../upstream/client/open-quotes-client.ts';
import { kindOf, textOrNull } from '../upstream/wire/wire.ts';
import { type PollResponse, strangerFailure } from './poll-response.ts';
import { orUnknown } from './poll-subject.ts';

/** Requests one intent at the open source. Its record has the word of v1 as `status`, and the whole answer as `open`. */
export async function pollOpenStatus(
  client: OpenQuotesClient,
  subject: SubjectId,
  signal: AbortSignal,
): Promise<PollResponse> {
  const key = parseSubjectId(subject);
  if (key?.kind !== 'intent') throw new Error(`${subject} cannot be polled at the open source`);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.intentStatus(key.hash, { signal });
    const { status, intentHashes, raw } = value;
    const stranger = intentHashes.find((hash) => hash !== foldHex(key.hash));
    if (stranger !== undefined) {
      const found = intentId(stranger);
      throw strangerFailure({ endpoint: 'open-status', httpStatus, found, expected: subject });
    }
    const record: UpstreamRecord = {
      subject,
      status,
      updatedAt: null,
      names: [],
      raw: { id: subject, type: 'intent', status, open: raw },
      unreadable: [],
    };
    const { intentHash } = raw;
    const isUnread = intentHash !== undefined && intentHash !== null && textOrNull(intentHash) === null;
    const unreadable = isUnread ? [`open.intentHash: found ${kindOf(intentHash)}, expected text`] : [];
    return { records: [record], nextCursor: null, dateMs, unreadable };
  });
}
