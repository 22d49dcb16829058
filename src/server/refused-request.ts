import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../domain/limits.ts';
import { PROBLEM_TYPE, problemOf } from './problem.ts';

/**
 * Answers a request that Node could not read, which no route ever sees, with a problem, and ends its connection: 408 for
 * one that was not complete in time, 431 for a head beyond its limit, else 400.
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
