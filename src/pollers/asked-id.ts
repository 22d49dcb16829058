import type { SubjectId } from '../domain/subjects/subject.ts';
import type { Endpoint } from '../upstream/client/endpoint.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';

/**
 * Whether an answer's id is the one that was asked for, in whatever form: with a prefix (`gasless:…`), in another case,
 * an address without `0x`. An exact look-up knows what it asked for; the id only has to name nothing else.
 */
export function isSameId(said: string, asked: string): boolean {
  return bareId(said) === bareId(asked);
}

function bareId(id: string): string {
  return id
    .slice(id.lastIndexOf(':') + 1)
    .toLowerCase()
    .replace(/^0x/, '');
}

/** An exact look-up that was answered with something else: no news of any kind. */
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
