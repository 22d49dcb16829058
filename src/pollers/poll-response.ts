import type { UpstreamRecord } from '../domain/subjects/record.ts';
import {
  type ReservedKind,
  reservedKindOf,
  type SubjectId,
  subjectOfRecord,
} from '../domain/subjects/subject.ts';
import type { Endpoint } from '../upstream/client/endpoint.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { Answer } from '../upstream/client/send-request.ts';
import type { StatusPage, StatusRecord } from '../upstream/wire/status-page.ts';

/**
 * Content of one response. `dateMs` is the upstream's clock at the answer. `unreadable` describes the parts that named no
 * subject, `reserved` the records of kinds that are the daemon's own. `useless`: the failure of an answer without a usable
 * part.
 */
export type PollResponse = {
  records: UpstreamRecord[];
  nextCursor: string | null;
  dateMs: number | null;
  unreadable: string[];
  reserved?: readonly { kind: ReservedKind; id: string }[];
  useless?: UpstreamFailure | null;
};

/** Reads the records of a page of the status endpoint that name a subject. */
export function readPage(answer: Answer<StatusPage>): PollResponse {
  const { records, unreadable, nextCursor } = answer.value;
  const reserved: { kind: ReservedKind; id: string }[] = [];
  const response: PollResponse = {
    records: [],
    reserved,
    nextCursor,
    dateMs: answer.dateMs,
    unreadable: unreadable.map(({ index, reason }) => `result ${index}: ${reason}`),
  };
  for (const record of records) {
    const kind = reservedKindOf(record);
    if (kind !== null) {
      reserved.push({ kind, id: record.id });
      continue;
    }
    const read = readRecord(record);
    if (read === null) response.unreadable.push(`record ${JSON.stringify(record.id)} names no subject`);
    else response.records.push(read);
  }
  return response;
}

function readRecord(record: StatusRecord): UpstreamRecord | null {
  const subject = subjectOfRecord(record);
  if (subject === null) return null;
  return {
    subject,
    status: record.status,
    updatedAt: record.updatedAt,
    names: record.intentHashes,
    raw: record.raw,
    unreadable: record.unreadable,
  };
}

/** Failure of an exact poll that was answered with another record: it changes nothing. */
export function strangerFailure(answer: {
  endpoint: Endpoint;
  httpStatus: number;
  found: string;
  expected: SubjectId;
}): UpstreamFailure {
  const { endpoint, httpStatus, found, expected } = answer;
  return new UpstreamFailure({
    endpoint,
    code: 'malformed',
    found: `a record of ${JSON.stringify(found.slice(0, 100))}`,
    expected: `a record of ${expected}`,
    httpStatus,
    problemCode: null,
    retryAfterMs: null,
  });
}
