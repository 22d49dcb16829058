import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';

/** Answers with a problem (RFC 9457); `detail` says what was found and what was expected. */
export function sendProblem(reply: FastifyReply, status: number, detail: string): FastifyReply {
  const title = STATUS_CODES[status] ?? 'Error';
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ type: 'about:blank', title, status, detail });
}
