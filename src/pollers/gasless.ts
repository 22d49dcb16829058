import { UNSTATED } from '../domain/subjects/kinds.ts';
import { gatewayJobId } from '../domain/subjects/subject.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { isSameId, strangerFailure } from './asked-id.ts';
import { orUnknown } from './not-found.ts';
import { type Reading, readPage } from './reading.ts';

/** Asks for one gasless job: at the v1 status endpoint, or at the deposit gateway that queued it. */
export async function pollGasless(
  client: UpstreamClient,
  job: { endpoint: 'status' | 'gateway'; id: string },
  signal: AbortSignal,
): Promise<Reading> {
  if (job.endpoint === 'status') return readPage(await client.status({ jobId: job.id }, { signal }));
  const subject = gatewayJobId(job.id);
  return orUnknown(subject, async () => {
    const { value, dateMs, httpStatus } = await client.gaslessJob(job.id, { signal });
    if (value.id !== null && !isSameId(value.id, job.id)) {
      throw strangerFailure({ endpoint: 'gasless-job', httpStatus, found: value.id, expected: subject });
    }
    const record = {
      subject,
      status: value.status ?? UNSTATED,
      updatedAt: null,
      names: value.intentHash === null ? [] : [value.intentHash],
      said: value.raw,
      unreadable: value.unreadable,
    };
    return { records: [record], nextCursor: null, dateMs, unreadable: [] };
  });
}
