import { STATUS_CODES } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUnder, pathOf } from '../world/path.ts';

/** An invalid field, as an element of a Problem's `errors`. */
export type FieldError = { field: string; detail: string };

/** A solver's refusal, as an element of a Problem's `solverErrors`. */
export type SolverError = { solver: string; solverName: string; code: string; message: string };

/** Details that differ between Problems. The code decides status and title. */
export type ProblemDetails = {
  code: ProblemCode;
  detail?: string | undefined;
  errors?: FieldError[] | undefined;
  solverErrors?: SolverError[] | undefined;
};

export const PROBLEMS = {
  'invalid-request': { status: 400, title: 'The request is invalid' },
  'invalid-parameter': { status: 400, title: 'A parameter is invalid' },
  'missing-parameter': { status: 400, title: 'A parameter is missing' },
  'slippage-out-of-bounds': {
    status: 400,
    title: 'Slippage is a decimal fraction from 0.0001 to 1, not a percent',
  },
  'invalid-api-key': { status: 401, title: 'The API key is missing, unknown, or revoked' },
  'api-key-expired': { status: 401, title: 'The API key has expired' },
  'invalid-signature': { status: 401, title: 'The signature is invalid' },
  'authorization-expired': { status: 401, title: 'The signed authorization has expired' },
  'permission-denied': { status: 403, title: 'The API key lacks permission' },
  'funder-mismatch': { status: 403, title: 'The signer does not match the funder' },
  'endpoint-not-found': { status: 404, title: 'The endpoint does not exist' },
  'token-not-found': { status: 404, title: 'The token is not known' },
  'signature-already-bound': { status: 409, title: 'The signature is already bound to another job' },
  'nonce-used': { status: 409, title: 'The nonce has already been used' },
  'quote-expired': { status: 410, title: 'The quote has expired' },
  'chain-not-supported': { status: 422, title: 'The chain is not supported' },
  'no-route-found': { status: 422, title: 'No route was found' },
  'chain-pair-unsupported': { status: 422, title: 'The pair of chains is not supported' },
  'amount-too-low': { status: 422, title: 'The amount is too low' },
  'amount-too-high': { status: 422, title: 'The amount is too high' },
  'insufficient-liquidity': { status: 422, title: 'There is not enough liquidity' },
  'simulation-failed': { status: 422, title: 'The simulation failed' },
  'rate-limit-exceeded': { status: 429, title: 'Too many requests' },
  'internal-error': { status: 500, title: 'An internal error occurred' },
  'solver-error': { status: 502, title: 'No solver returned a usable quote' },
  'solver-timeout': { status: 503, title: 'The solvers did not answer in time' },
  'service-unavailable': { status: 503, title: 'The service is unavailable' },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** The pre-v1 numbers of the codes that had one. The interface shows no values. */
const LEGACY_CODES: { readonly [Code in ProblemCode]?: string } = {
  'invalid-request': '1001',
  'chain-not-supported': '1003',
  'no-route-found': '1004',
  'quote-expired': '1007',
  'internal-error': '1500',
  'solver-error': '1502',
};

/** Answers with a Problem. Its `type` is under the address that the client used. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  { code, detail, errors, solverErrors }: ProblemDetails,
): FastifyReply {
  const { status, title } = PROBLEMS[code];
  const legacyCode = LEGACY_CODES[code];
  const body = {
    type: `http://${request.host}/v1/errors/${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(solverErrors === undefined ? {} : { solverErrors }),
    ...(errors === undefined ? {} : { errors }),
    instance: request.originalUrl.split('?', 1)[0] ?? '',
    ...(legacyCode === undefined ? {} : { legacyCode }),
    requestId: requestIdOf(request),
  };
  // The interface names application/json for this one problem, application/problem+json for all others.
  const contentType = code === 'invalid-api-key' ? 'application/json' : 'application/problem+json';
  return reply.code(status).type(contentType).send(JSON.stringify(body));
}

/** Id of an error: a short number at the deposit vaults, which are a service of their own (interface, Problem). */
function requestIdOf(request: FastifyRequest): string {
  return isUnder(pathOf(request), '/v1/deposit-gateway') || isUnder(pathOf(request), '/deposit-gateway')
    ? String(Number.parseInt(request.id.slice(0, 4), 16))
    : request.id;
}

/** Answers `invalid-request`; the problem's `detail` explains each invalid field. */
export function sendInvalidRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  errors: FieldError[],
): FastifyReply {
  return sendProblem(request, reply, { code: 'invalid-request', detail: inWords(errors), errors });
}

/** Field errors as one line. */
export function inWords(errors: readonly FieldError[]): string {
  return errors.map((error) => `${error.field}: ${error.detail}`).join('; ');
}

/** The v1 vocabulary, and `not-found` for a job or vault that is unknown. */
type GatewayCode = ProblemCode | 'not-found';

/** A refusal of the deposit-vault endpoints. */
export type GatewayRefusal = { code: GatewayCode; message: string };

/**
 * Answers in the deposit-vault endpoints' own error format. The interface states only that it is not a Problem; the sandbox
 * sends `{ statusCode, error, message, code, details: { cause }, requestId }`, since clients show `details.cause` first.
 */
export function refuse(reply: FastifyReply, { code, message }: GatewayRefusal): FastifyReply {
  const statusCode = code === 'not-found' ? 404 : PROBLEMS[code].status;
  const requestId = requestIdOf(reply.request);
  const details = { cause: message };
  const body = { statusCode, error: STATUS_CODES[statusCode], message, code, details, requestId };
  return reply.code(statusCode).type('application/json').send(JSON.stringify(body));
}
