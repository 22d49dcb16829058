import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';

/** What is wrong with a place of a request. */
type Issue = { place: string; found: string; expected: string };

/** The media type of a problem. */
export const PROBLEM_TYPE = 'application/problem+json';

/** A problem, as it stands in a body. */
export function problemOf(status: number, detail: string) {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail };
}

/** Answers with a problem (RFC 9457); `detail` says what was found and what was expected, `errors` where. */
export function sendProblem(
  reply: FastifyReply,
  status: number,
  detail: string,
  errors?: readonly Issue[],
): FastifyReply {
  return reply
    .code(status)
    .type(PROBLEM_TYPE)
    .send({ ...problemOf(status, detail), ...(errors === undefined ? {} : { errors }) });
}
