import { type Advice, adviceFor } from './advice.ts';
import type { Endpoint } from './endpoint.ts';
import type { FieldFault, SolverFault, SupportDetails } from './problem.ts';

/** Why a request to the upstream gave no usable answer. */
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

/** What a failure is made of. */
export type FailureFacts = {
  endpoint: Endpoint;
  code: FailureCode;
  /** What came back, already free of the API key and of control characters. */
  found: string;
  expected: string;
  /** `null` when no answer came. */
  httpStatus: number | null;
  /** The stable `code` of a problem body. */
  problemCode: string | null;
  retryAfterMs: number | null;
  /** Whether the request carried the API key. Default false: then no answer can be about the key. */
  keyed?: boolean;
  /** Whether a page came instead of what the API says: something in between answered. Default false. */
  isPage?: boolean;
  /** The fields that were refused. */
  fields?: FieldFault[];
  /** Why each solver refused. */
  solvers?: SolverFault[];
  /** What a support ticket can name. */
  support?: SupportDetails;
  /** Never an error that carries the upstream's bytes: they may echo the key. */
  cause?: unknown;
};

/**
 * The only error that an answer of the upstream, or the lack of one, can end in. `retryable` says whether the same
 * request can succeed later, `advice` what the caller may do; `retryAfterMs` is how long the upstream asked to be left alone, at
 * most an hour.
 */
export class UpstreamFailure extends Error {
  readonly endpoint: Endpoint;
  readonly code: FailureCode;
  readonly retryable: boolean;
  readonly advice: Advice;
  readonly httpStatus: number | null;
  readonly problemCode: string | null;
  readonly retryAfterMs: number | null;
  readonly keyed: boolean;
  readonly isPage: boolean;
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
    this.keyed = facts.keyed ?? false;
    this.isPage = facts.isPage ?? false;
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
