import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';

/** What is wrong with a place of a request. */
type Issue = { place: string; found: string; expected: string };

/** Answers with a problem (RFC 9457); `detail` says what was found and what was expected, `errors` where. */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  detail: string,
  errors?: readonly Issue[],
): FastifyReply {
  const title = STATUS_CODES[status] ?? 'Error';
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ type: 'about:blank', title, status, detail, ...(errors === undefined ? {} : { errors }) });
}
