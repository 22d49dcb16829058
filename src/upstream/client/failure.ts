import { describeSupport, type FieldFault, type SolverFault, type SupportDetails } from '../wire/problem.ts';
import type { Endpoint } from './endpoint.ts';

export const FAILURE_CODES = [
  'unauthorized',
  'forbidden',
  'rate-limited',
  'invalid-request',
  'not-found',
  'unavailable',
  'timeout',
  'malformed',
] as const;

/** One of the failure codes. */
export type FailureCode = (typeof FAILURE_CODES)[number];

/**
 * Advice to the caller about a failure:
 * `fix` — change what the error names (a field, the key, the quote, the signature) and request again;
 * `wait` — send nothing for `retryAfterMs`, or an own backoff, then send the same again;
 * `retry-bounded` — request again a few times, with backoff;
 * `never` — no request helps: request the original job, or contact the operator.
 */
export type Advice = 'fix' | 'wait' | 'retry-bounded' | 'never';

/** Every error code of the interface, with its failure and the advice. */
export const ERROR_CODES = {
  'invalid-request': { failure: 'invalid-request', advice: 'fix' },
  'invalid-parameter': { failure: 'invalid-request', advice: 'fix' },
  'missing-parameter': { failure: 'invalid-request', advice: 'fix' },
  'slippage-out-of-bounds': { failure: 'invalid-request', advice: 'fix' },
  'invalid-api-key': { failure: 'unauthorized', advice: 'fix' },
  'api-key-expired': { failure: 'unauthorized', advice: 'fix' },
  'invalid-signature': { failure: 'unauthorized', advice: 'fix' },
  'authorization-expired': { failure: 'unauthorized', advice: 'fix' },
  'permission-denied': { failure: 'forbidden', advice: 'never' },
  'funder-mismatch': { failure: 'forbidden', advice: 'fix' },
  'endpoint-not-found': { failure: 'not-found', advice: 'fix' },
  'token-not-found': { failure: 'not-found', advice: 'fix' },
  // Bound or used already: request the original job before anything is signed again.
  'signature-already-bound': { failure: 'invalid-request', advice: 'never' },
  'nonce-used': { failure: 'invalid-request', advice: 'never' },
  'quote-expired': { failure: 'invalid-request', advice: 'fix' },
  'chain-not-supported': { failure: 'invalid-request', advice: 'fix' },
  'no-route-found': { failure: 'invalid-request', advice: 'fix' },
  'chain-pair-unsupported': { failure: 'invalid-request', advice: 'fix' },
  'amount-too-low': { failure: 'invalid-request', advice: 'fix' },
  'amount-too-high': { failure: 'invalid-request', advice: 'fix' },
  'insufficient-liquidity': { failure: 'invalid-request', advice: 'fix' },
  'simulation-failed': { failure: 'invalid-request', advice: 'fix' },
  'rate-limit-exceeded': { failure: 'rate-limited', advice: 'wait' },
  'internal-error': { failure: 'unavailable', advice: 'retry-bounded' },
  'solver-error': { failure: 'unavailable', advice: 'retry-bounded' },
  'solver-timeout': { failure: 'unavailable', advice: 'retry-bounded' },
  'service-unavailable': { failure: 'unavailable', advice: 'retry-bounded' },
} as const satisfies Record<string, { failure: FailureCode; advice: Advice }>;

/** Advice for an answer without a code of the interface, or with one that its status contradicts. */
const BY_FAILURE: Readonly<Record<FailureCode, Advice>> = {
  unauthorized: 'fix',
  forbidden: 'fix',
  'rate-limited': 'wait',
  'invalid-request': 'fix',
  'not-found': 'fix',
  unavailable: 'retry-bounded',
  timeout: 'retry-bounded',
  malformed: 'retry-bounded',
};

/** Failure of a code of the interface; null for any other code. */
export function failureOfCode(problemCode: string | null): FailureCode | null {
  return rowOf(problemCode)?.failure ?? null;
}

type FailedAnswer = { endpoint: Endpoint; httpStatus: number | null; problemCode: string | null };

/** Advice about a failure. The status decides first, the problem's code second. */
export function adviceFor(failed: {
  code: FailureCode;
  httpStatus: number | null;
  problemCode: string | null;
}): Advice {
  const row = rowOf(failed.problemCode);
  if (row !== null && row.failure === failed.code) return row.advice;
  // A conflict without a readable code: part of this request exists already.
  return failed.httpStatus === 409 ? 'never' : BY_FAILURE[failed.code];
}

function rowOf(problemCode: string | null): { failure: FailureCode; advice: Advice } | null {
  const rows: Readonly<Record<string, { failure: FailureCode; advice: Advice }>> = ERROR_CODES;
  return problemCode !== null && Object.hasOwn(rows, problemCode) ? (rows[problemCode] ?? null) : null;
}

/** An answer beyond its limits: the found size, and the id of the first record if readable. */
export type TooLarge = { found: string; firstId: string | null };

type FailureFacts = {
  endpoint: Endpoint;
  code: FailureCode;
  /** The answer's content, without the API key and control characters. */
  found: string;
  expected: string;
  /** `null` without an answer. */
  httpStatus: number | null;
  problemCode: string | null;
  retryAfterMs: number | null;
  /** True where the endpoint takes the API key. Default false: then no answer can be about the key. */
  takesKey?: boolean;
  /** True when the request carried the API key. Default false. */
  hasKey?: boolean;
  /** True when a page came instead of the API's answer: an intermediary answered. Default false. */
  isPage?: boolean;
  /** Excess of the answer over its limits. Default null: none. */
  tooLarge?: TooLarge | null;
  fields?: FieldFault[];
  solvers?: SolverFault[];
  support?: SupportDetails;
  /** Never an error that carries the upstream's bytes: they may echo the key. */
  cause?: unknown;
};

/**
 * The only error of a missing or unusable upstream answer. `retryable`: the same request can succeed later. `advice`:
 * the caller's next action. `retryAfterMs`: the pause that the upstream requested, at most an hour.
 */
export class UpstreamFailure extends Error {
  readonly endpoint: Endpoint;
  readonly code: FailureCode;
  readonly retryable: boolean;
  readonly advice: Advice;
  readonly httpStatus: number | null;
  readonly problemCode: string | null;
  readonly retryAfterMs: number | null;
  readonly takesKey: boolean;
  readonly hasKey: boolean;
  readonly isPage: boolean;
  readonly tooLarge: TooLarge | null;
  readonly fields: readonly FieldFault[];
  readonly solvers: readonly SolverFault[];
  readonly support: SupportDetails;

  constructor(facts: FailureFacts) {
    super(
      `upstream ${facts.endpoint}: found ${facts.found}; expected ${facts.expected}`,
      facts.cause === undefined ? undefined : { cause: facts.cause },
    );
    this.name = 'UpstreamFailure';
    this.endpoint = facts.endpoint;
    this.code = facts.code;
    this.retryable = isRetryable(facts.code);
    this.advice = adviceFor(facts);
    this.httpStatus = facts.httpStatus;
    this.problemCode = facts.problemCode;
    this.retryAfterMs = facts.retryAfterMs;
    this.takesKey = facts.takesKey ?? false;
    this.hasKey = facts.hasKey ?? false;
    this.isPage = facts.isPage ?? false;
    this.tooLarge = facts.tooLarge ?? null;
    this.fields = facts.fields ?? [];
    this.solvers = facts.solvers ?? [];
    this.support = facts.support ?? {};
  }
}

function isRetryable(code: FailureCode): boolean {
  switch (code) {
    case 'unavailable':
    case 'timeout':
    case 'rate-limited':
    case 'malformed':
      return true;
    case 'unauthorized':
    case 'forbidden':
    case 'invalid-request':
    case 'not-found':
      return false;
    default:
      return code satisfies never;
  }
}

/** True when an answer can be about the key: the endpoint takes one, and the API answered, not a page of an intermediary. */
export function isAboutKey({ takesKey, isPage }: { takesKey: boolean; isPage: boolean }): boolean {
  return takesKey && !isPage;
}

/** Sentence for a refusal, with details for a support ticket; null for any other failure. */
export function refusalReport(failure: UpstreamFailure): string | null {
  const sentence = refusalSentence(failure);
  const support = describeSupport(failure.support);
  return sentence === null || support === '' ? sentence : `${sentence} (${support})`;
}

/** Sentence for a refused key, or a refused path that takes none, with the remedy; null for any other failure. */
export function refusalSentence(
  failure: FailedAnswer & { takesKey: boolean; hasKey: boolean; isPage: boolean },
): string | null {
  const { httpStatus, problemCode } = failure;
  if (!isAboutKey(failure)) return failure.isPage ? null : pathSentence(failure);
  if (!failure.hasKey) return keylessSentence(failure);
  if (httpStatus === 401 && problemCode === 'api-key-expired') {
    return 'the upstream refuses the API key (HTTP 401, api-key-expired): it has expired; set upstream.apiKey to a new one';
  }
  if (httpStatus === 401 && (problemCode === 'invalid-api-key' || problemCode === null)) {
    const code = problemCode === null ? '' : `, ${problemCode}`;
    return `the upstream refuses the API key (HTTP 401${code}): it is missing, unknown or revoked; check upstream.apiKey`;
  }
  if (httpStatus === 403 && problemCode === 'permission-denied') {
    return 'the upstream refuses the API key (HTTP 403, permission-denied): it lacks the permission; its operator can enable it';
  }
  if (httpStatus === 403 && problemCode === null) {
    return 'the upstream refuses the request (HTTP 403 without a code): no key reaches it, or it has no such path; check upstream.apiKey, baseUrl and the paths beside them';
  }
  return null;
}

/** A signature that is refused (401 with another code) is not about the key. */
function keylessSentence({ httpStatus, problemCode }: FailedAnswer): string | null {
  const codes: Record<number, (string | null)[]> = {
    401: ['invalid-api-key', 'api-key-expired', null],
    403: ['permission-denied', null],
  };
  if (httpStatus === null || codes[httpStatus]?.includes(problemCode) !== true) return null;
  const code = problemCode === null ? '' : `, ${problemCode}`;
  return `the upstream refuses a request without a key (HTTP ${httpStatus}${code}): set upstream.apiKey`;
}

/** The gateway answers an unknown path with 403 too (interface, Errors); without a sent key, none is refused. */
function pathSentence({ endpoint, httpStatus, problemCode }: FailedAnswer): string | null {
  if (httpStatus !== 403 || problemCode !== null) return null;
  const settings = {
    'gasless-job': 'upstream.gateway and baseUrl',
    vault: 'upstream.gateway and baseUrl',
    'open-quotes': 'upstream.quotesUrl',
    'open-status': 'upstream.quotesUrl',
  };
  const places = Object.entries(settings).find(([name]) => name === endpoint)?.[1] ?? 'upstream.baseUrl';
  return `the upstream refuses the request (HTTP 403 without a code), which takes no key: it has no such path; check ${places}`;
}
