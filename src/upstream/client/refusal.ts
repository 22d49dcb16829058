import { describeSupport } from '../wire/problem.ts';
import type { UpstreamFailure } from './failure.ts';

/** True when an answer can be about the key: one was sent, and what refuses it is the API, not a page in between. */
export function isAboutKey({ keyed, isPage }: Pick<UpstreamFailure, 'keyed' | 'isPage'>): boolean {
  return keyed && !isPage;
}

/** The sentence for a refusal, with what a support ticket can name; null for any other failure. */
export function refusalReport(failure: UpstreamFailure): string | null {
  const sentence = refusalSentence(failure);
  const support = describeSupport(failure.support);
  return sentence === null || support === '' ? sentence : `${sentence} (${support})`;
}

/**
 * Says in one sentence that the upstream refuses the key, or a path that takes none, and what to do; null for any other
 * failure.
 */
export function refusalSentence(
  failure: Pick<UpstreamFailure, 'endpoint' | 'httpStatus' | 'problemCode' | 'isPage' | 'keyed'>,
): string | null {
  const { httpStatus, problemCode } = failure;
  if (!isAboutKey(failure)) return failure.isPage ? null : pathSentence(failure);
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

/** The gateway answers an unknown path with 403 as well (interface, Errors); where no key is sent, none can be refused. */
function pathSentence({
  endpoint,
  httpStatus,
  problemCode,
}: Pick<UpstreamFailure, 'endpoint' | 'httpStatus' | 'problemCode'>): string | null {
  if (httpStatus !== 403 || problemCode !== null) return null;
  const settings = {
    'gasless-job': 'upstream.gaslessJobPath and baseUrl',
    vault: 'upstream.vaultPath and baseUrl',
    'open-quotes': 'upstream.quotesUrl',
  };
  const places = Object.entries(settings).find(([name]) => name === endpoint)?.[1] ?? 'upstream.baseUrl';
  return `the upstream refuses the request (HTTP 403 without a code), which takes no key: it has no such path; check ${places}`;
}
