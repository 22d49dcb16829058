import { Socket } from 'node:net';
import { type buildConnector, errors } from 'undici';
import { LIMITS } from '../../domain/limits.ts';

/** A receiver sent more than any answer needs. */
class AnswerTooLongError extends Error {
  readonly code = 'ANSWER_TOO_LONG';
}

/**
 * The number of bytes that may come for one request: far more than the header (16 KiB) and the start of a body that are read.
 * It also ends what no limit of the HTTP parser does: informational answers without end, white space, a reason, the
 * extensions of chunks.
 */
const MAX_ANSWER_BYTES = LIMITS.receiverAnswer.bytes;

/** The number of informational answers (1xx) may come before the answer to one request. */
export const MAX_INFORMATIONAL_ANSWERS = 10;

/** The longest header of an informational answer, bytes. */
const MAX_INFORMATIONAL_BYTES = LIMITS.receiverHeader.bytes;

/** How an answer begins that may be informational; `#` stands for any digit. */
const INFORMATIONAL_START = 'HTTP/1.# 1##';

/**
 * A connector whose connections are given up when they are not made in time, to the millisecond: undici takes up to a
 * second longer, and so long the next attempts would wait for a place. Once made they break when one request is
 * answered with more than 256 KiB.
 */
export function boundedConnector(
  connect: buildConnector.connector,
  { timeoutMs }: { timeoutMs: number },
): buildConnector.connector {
  return (target, callback) => {
    let socket: unknown;
    const timer = setTimeout(() => {
      if (socket instanceof Socket) socket.destroy(new errors.ConnectTimeoutError());
    }, timeoutMs);
    // The socket, though the type does not say so; nothing where the connector has refused at once.
    socket = connect(target, (...[error, made]) => {
      clearTimeout(timer);
      if (error !== null) return callback(error, null);
      capAnswers(made);
      callback(null, made);
    });
  };
}

/**
 * Limits what comes for one request, and takes informational answers out of it: undici breaks the connection at an unasked
 * `100 Continue`. One request at a time goes over a socket, so what comes after something was written belongs to that. This
 * listens before undici does, and so sees all bytes first.
 */
function capAnswers(socket: Socket): void {
  let written = socket.bytesWritten;
  let readBefore = socket.bytesRead;
  let read = socket.bytesRead;
  let skip: SkipInformational | null = null;
  socket.on('readable', () => {
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      readBefore = read;
      skip = skipInformational();
    }
    read = socket.bytesRead;
    if (read - readBefore > MAX_ANSWER_BYTES) {
      socket.destroy(new AnswerTooLongError(`an answer of more than ${MAX_ANSWER_BYTES / 1_024} KiB`));
    } else if (skip !== null) {
      const { rest, problem } = skip(readAll(socket));
      if (problem !== null) socket.destroy(new AnswerTooLongError(problem));
      if (rest.length === 0) return;
      // The answer itself has begun: the rest of it is undici's.
      skip = null;
      socket.unshift(rest);
    }
  });
}

function readAll(socket: Socket): Buffer {
  const chunks: Buffer[] = [];
  for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Takes the next bytes for a request. `rest` is where the answer itself begins; empty while that has not come. */
type SkipInformational = (bytes: Buffer) => { rest: Buffer; problem: string | null };

function skipInformational(): SkipInformational {
  let held: Buffer = Buffer.alloc(0);
  let skipped = 0;
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    while (mayBeInformational(held)) {
      const end = held.indexOf(HEADER_END);
      if ((end === -1 ? held.length : end) > MAX_INFORMATIONAL_BYTES) {
        return { rest: NOTHING, problem: 'an informational answer of more than 16 KiB' };
      }
      if (end === -1) return { rest: NOTHING, problem: null };
      held = held.subarray(end + HEADER_END.length);
      skipped += 1;
      if (skipped > MAX_INFORMATIONAL_ANSWERS) {
        return { rest: NOTHING, problem: `more than ${MAX_INFORMATIONAL_ANSWERS} informational answers` };
      }
    }
    return { rest: held, problem: null };
  };
}

const NOTHING = Buffer.alloc(0);
const HEADER_END = '\r\n\r\n';

/** True when an informational answer begins here, or may: the bytes can end within its status. A switch of protocols is none. */
function mayBeInformational(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, INFORMATIONAL_START.length);
  const isAlike = [...start].every((character, at) =>
    INFORMATIONAL_START[at] === '#' ? /\d/.test(character) : character === INFORMATIONAL_START[at],
  );
  return isAlike && !start.endsWith(' 101');
}
