import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { LIMITS } from '../domain/limits.ts';
import { STATUS_CODES } from '../network/node-http.ts';

type Issue = { place: string; found: string; expected: string };

const PROBLEM_TYPE = 'application/problem+json';

function problemOf(status: number, detail: string) {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail };
}

/** Answers with a problem (RFC 9457); `detail` states the found and the expected value, `errors` the places. */
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

/** A request that cannot be done, as a problem (RFC 9457); the message states the found and the expected value. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * Answers a request that Node could not read with a problem, and ends its connection: 408 for an incomplete request, 431 for
 * a head beyond its limit, else 400.
 */
export function refuseRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable) {
    const [status, detail] = reasonOf(error.code);
    const body = JSON.stringify(problemOf(status, detail));
    socket.end(
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        `Content-Type: ${PROBLEM_TYPE}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  }
  socket.destroySoon();
}

function reasonOf(code: string | undefined): [status: number, detail: string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const { requestHead, api } = LIMITS;
    const expected = `its head within ${requestHead.seconds} s and all of it within ${api.seconds} s`;
    return [408, `found a request that was not complete in time, expected ${expected}`];
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    const { bytes } = LIMITS.requestHead;
    return [431, `found a larger URL, query and headers, expected at most ${bytes} bytes of them`];
  }
  return [400, 'found bytes that are no HTTP request, expected one'];
}
