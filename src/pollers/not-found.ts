import { UNKNOWN } from '../domain/subjects/kinds.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { Reading } from './reading.ts';

/**
 * The deposit gateway answers `404` where the status endpoint answers `unknown`: in both cases the id has not been
 * seen, which is no failure. A page, or an unknown endpoint, says nothing about the id: that is a wrong path or
 * something in between.
 */
export async function orUnknown(subject: SubjectId, ask: () => Promise<Reading>): Promise<Reading> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.code !== 'not-found') throw error;
    if (error.isPage || error.problemCode === 'endpoint-not-found') throw error;
    const record = {
      subject,
      status: UNKNOWN,
      updatedAt: null,
      names: [],
      said: { status: UNKNOWN },
      unreadable: [],
    };
    return { records: [record], nextCursor: null, dateMs: null, unreadable: [] };
  }
}
