import type { UpstreamFailure } from './failure.ts';

/**
 * Says in one sentence that the upstream refuses the key, and what to do; null for any other failure. A page is from
 * something in between, and the open quoting service takes no key.
 */
export function refusalSentence(
  failure: Pick<UpstreamFailure, 'endpoint' | 'httpStatus' | 'problemCode' | 'isPage'>,
): string | null {
  const { endpoint, httpStatus, problemCode, isPage } = failure;
  if (isPage || endpoint === 'open-quotes') return null;
  if (httpStatus === 401 && problemCode === 'api-key-expired') {
    return 'the upstream refuses the API key (HTTP 401, api-key-expired): it has expired; set upstream.apiKey to a new one';
  }
  if (httpStatus === 401 && (problemCode === 'invalid-api-key' || problemCode === null)) {
    const code = problemCode === null ? '' : `, ${problemCode}`;
    return `the upstream refuses the API key (HTTP 401${code}): it is missing, unknown or revoked; check upstream.apiKey`;
  }
  if (httpStatus === 403 && problemCode === 'permission-denied') {
    return 'the upstream refuses the API key (HTTP 403, permission-denied): it lacks the permission; ask its operator to enable it';
  }
  if (httpStatus === 403 && problemCode === null) {
    return 'the upstream refuses the request (HTTP 403 without a code): no key reaches it, or it has no such path; check upstream.apiKey, baseUrl and the paths beside them';
  }
  return null;
}
