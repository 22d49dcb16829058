import { type Endpoint, isSubmit } from './endpoint.ts';
import type { FailureCode } from './failure.ts';

/**
 * What the caller may do about a failure:
 * `fix` — change what the error names (a field, the key, the quote, the signature) and ask anew;
 * `wait` — leave the upstream alone for `retryAfterMs`, or a backoff of one's own, then send the same again;
 * `retry-bounded` — ask again a few times, with backoff;
 * `resend-identical` — send the very bytes again to the same endpoint: the job that exists comes back, never a second;
 * `never` — nothing that is sent helps: look the original job up, or talk to the operator.
 */
export type Advice = 'fix' | 'wait' | 'retry-bounded' | 'resend-identical' | 'never';

/** A read, a quote or the creation of a vault (which costs nothing until it is funded); a signed payload. */
type ByRequest = { ask: Advice; submit: Advice };

const FIX: ByRequest = { ask: 'fix', submit: 'fix' };
const WAIT: ByRequest = { ask: 'wait', submit: 'wait' };
const AGAIN: ByRequest = { ask: 'retry-bounded', submit: 'resend-identical' };
const NEVER: ByRequest = { ask: 'never', submit: 'never' };

/** Every error code of the interface: the failure that it is, and what the caller may do. */
export const ERROR_CODES = {
  'invalid-request': { failure: 'invalid-request', advice: FIX },
  'invalid-parameter': { failure: 'invalid-request', advice: FIX },
  'missing-parameter': { failure: 'invalid-request', advice: FIX },
  'slippage-out-of-bounds': { failure: 'invalid-request', advice: FIX },
  'invalid-api-key': { failure: 'unauthorized', advice: FIX },
  'api-key-expired': { failure: 'unauthorized', advice: FIX },
  'invalid-signature': { failure: 'unauthorized', advice: FIX },
  'authorization-expired': { failure: 'unauthorized', advice: FIX },
  'permission-denied': { failure: 'forbidden', advice: NEVER },
  'funder-mismatch': { failure: 'forbidden', advice: FIX },
  'endpoint-not-found': { failure: 'not-found', advice: FIX },
  'token-not-found': { failure: 'not-found', advice: FIX },
  // Bound or used already: the original job is the one to look up, before anything is signed again.
  'signature-already-bound': { failure: 'invalid-request', advice: NEVER },
  'nonce-used': { failure: 'invalid-request', advice: NEVER },
  'quote-expired': { failure: 'invalid-request', advice: FIX },
  'chain-not-supported': { failure: 'invalid-request', advice: FIX },
  'no-route-found': { failure: 'invalid-request', advice: FIX },
  'chain-pair-unsupported': { failure: 'invalid-request', advice: FIX },
  'amount-too-low': { failure: 'invalid-request', advice: FIX },
  'amount-too-high': { failure: 'invalid-request', advice: FIX },
  'insufficient-liquidity': { failure: 'invalid-request', advice: FIX },
  'simulation-failed': { failure: 'invalid-request', advice: FIX },
  'rate-limit-exceeded': { failure: 'rate-limited', advice: WAIT },
  'internal-error': { failure: 'unavailable', advice: AGAIN },
  'solver-error': { failure: 'unavailable', advice: AGAIN },
  'solver-timeout': { failure: 'unavailable', advice: AGAIN },
  'service-unavailable': { failure: 'unavailable', advice: AGAIN },
} as const satisfies Record<string, { failure: FailureCode; advice: ByRequest }>;

/** What is advised where the answer bears no code of the interface, or one that its status contradicts. */
const BY_FAILURE: Readonly<Record<FailureCode, ByRequest>> = {
  unauthorized: FIX,
  forbidden: FIX,
  'rate-limited': WAIT,
  'invalid-request': FIX,
  'not-found': FIX,
  unavailable: AGAIN,
  timeout: AGAIN,
  malformed: AGAIN,
};

/** The failure that a code of the interface stands for; null for any other code. */
export function failureOfCode(problemCode: string | null): FailureCode | null {
  return rowOf(problemCode)?.failure ?? null;
}

/** What the caller may do about a failure at this endpoint. The status decides first, the problem's code second. */
export function adviceFor(failed: {
  endpoint: Endpoint;
  code: FailureCode;
  httpStatus: number | null;
  problemCode: string | null;
}): Advice {
  const row = rowOf(failed.problemCode);
  const kind = isSubmit(failed.endpoint) ? 'submit' : 'ask';
  if (row !== null && row.failure === failed.code) return row.advice[kind];
  // A conflict without a readable code: something of this request exists already.
  if (failed.httpStatus === 409) return 'never';
  return BY_FAILURE[failed.code][kind];
}

function rowOf(problemCode: string | null): { failure: FailureCode; advice: ByRequest } | null {
  const rows: Readonly<Record<string, { failure: FailureCode; advice: ByRequest }>> = ERROR_CODES;
  return problemCode !== null && Object.hasOwn(rows, problemCode) ? (rows[problemCode] ?? null) : null;
}
