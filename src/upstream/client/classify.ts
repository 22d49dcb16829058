import { type FailureCode, failureOfCode } from './failure.ts';

/**
 * What an answer with this HTTP status failed with; null for a success. The status decides, because gateways answer
 * without a problem body; the problem's code only speaks where the status says too little.
 */
export function classify(answer: { httpStatus: number; problemCode: string | null }): FailureCode | null {
  const { httpStatus, problemCode } = answer;
  if (httpStatus >= 200 && httpStatus < 300) return null;
  // The upstream is reachable but what answers is not its API: a wrong base URL or something in between.
  if (httpStatus < 400 || httpStatus > 599) return 'malformed';
  if (httpStatus >= 500) return 'unavailable';
  switch (httpStatus) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'not-found';
    case 408:
      return 'unavailable';
    case 429:
      return 'rate-limited';
    case 400:
    case 409:
    case 410:
    case 422:
      return 'invalid-request';
    default:
      return failureOfCode(problemCode) ?? 'invalid-request';
  }
}
