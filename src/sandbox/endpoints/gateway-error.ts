import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';
import { PROBLEMS, type ProblemCode, requestIdOf } from './problem.ts';

/** The v1 vocabulary, and `not-found` for a job or vault that is unknown. */
export type GatewayCode = ProblemCode | 'not-found';

/**
 * Answers in the deposit-vault endpoints' own error format. The interface says only that it is not a Problem; the sandbox
 * sends `{ statusCode, error, message, code, requestId }`.
 */
export function refuse(
  reply: FastifyReply,
  { code, message }: { code: GatewayCode; message: string },
): FastifyReply {
  const statusCode = code === 'not-found' ? 404 : PROBLEMS[code].status;
  const requestId = requestIdOf(reply.request);
  const body = { statusCode, error: STATUS_CODES[statusCode], message, code, requestId };
  return reply.code(statusCode).type('application/json').send(JSON.stringify(body));
}
