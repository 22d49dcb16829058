import { Socket } from 'node:net';
import { type buildConnector, errors } from 'undici';

/** A receiver said more than any answer needs. */
class AnswerTooLongError extends Error {
  readonly code = 'ANSWER_TOO_LONG';
}

/**
 * How many bytes may come for one request: far more than the header (16 KiB) and the start of a body that are read.
 * It also ends what no limit of the HTTP parser does: informational answers without end, white space, a reason, the
 * extensions of chunks.
 */
const MAX_ANSWER_BYTES = 256 * 1_024;

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

/** One request at a time goes over a socket, so what comes after something was written belongs to that. */
function capAnswers(socket: Socket): void {
  let written = socket.bytesWritten;
  let readBefore = socket.bytesRead;
  let read = socket.bytesRead;
  socket.on('readable', () => {
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      readBefore = read;
    }
    read = socket.bytesRead;
    if (read - readBefore > MAX_ANSWER_BYTES) {
      socket.destroy(new AnswerTooLongError(`an answer of more than ${MAX_ANSWER_BYTES / 1_024} KiB`));
    }
  });
}
