import type { FastifyReply } from 'fastify';

const ERRORS = { 400: 'Bad Request', 404: 'Not Found', 500: 'Internal Server Error' } as const;

/**
 * Answers in the deposit-vault endpoints' own error format. The interface says only that it is not a Problem; the sandbox
 * sends `{ statusCode, message, error }`.
 */
export function refuse(
  reply: FastifyReply,
  { statusCode, message }: { statusCode: keyof typeof ERRORS; message: string },
): FastifyReply {
  const body = { statusCode, message, error: ERRORS[statusCode] };
  return reply.code(statusCode).type('application/json').send(JSON.stringify(body));
}
