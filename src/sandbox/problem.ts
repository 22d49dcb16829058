import type { FastifyReply, FastifyRequest } from 'fastify';

/** A field that is wrong, as an element of a Problem's `errors`. */
export type FieldError = { field: string; detail: string };

/** What differs between Problems. The code decides status and title. */
export type ProblemDetails = { code: ProblemCode; detail?: string; errors?: FieldError[] };

const PROBLEMS = {
  'invalid-request': { status: 400, title: 'The request is invalid' },
  'invalid-api-key': { status: 401, title: 'The API key is missing, unknown, or revoked' },
  'endpoint-not-found': { status: 404, title: 'The endpoint does not exist' },
  'internal-error': { status: 500, title: 'An internal error occurred' },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** Answers with a Problem. Its `type` is under the address that the client used. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  { code, detail, errors }: ProblemDetails,
): FastifyReply {
  const { status, title } = PROBLEMS[code];
  const body = {
    type: `http://${request.host}/v1/errors/${code}`,
    title,
    status,
    code,
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
    requestId: request.id,
  };
  // The interface names application/json for this one problem, application/problem+json for all others.
  const contentType = code === 'invalid-api-key' ? 'application/json' : 'application/problem+json';
  return reply.code(status).type(contentType).send(JSON.stringify(body));
}

/** Answers `invalid-request`; the problem's `detail` says what is wrong with each field. */
export function sendInvalidRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  errors: FieldError[],
): FastifyReply {
  const detail = errors.map((error) => `${error.field}: ${error.detail}`).join('; ');
  return sendProblem(request, reply, { code: 'invalid-request', detail, errors });
}
