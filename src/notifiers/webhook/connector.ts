import type { LookupOptions } from 'node:dns';
import { isIP, type LookupFunction, Socket } from 'node:net';
import { buildConnector, errors } from 'undici';
import { LIMITS } from '../../domain/limits.ts';
import { type AddressRule, permitted, refusalOf } from '../address-rules.ts';

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

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it. A name is requested once, and the
 * connection goes to the very addresses that were checked: a name that is public when checked and private when
 * connected to gains nothing.
 */
export function guardedConnector({
  lookup,
  rules,
  ...options
}: buildConnector.BuildOptions & {
  lookup: LookupFunction;
  rules: readonly AddressRule[];
}): buildConnector.connector {
  return withoutLiterals(buildConnector({ ...options, lookup: guardedLookup(lookup, rules) }), rules);
}

/** A connector that refuses addresses that are given as such, which are connected to without a lookup. */
export function withoutLiterals(
  connect: buildConnector.connector,
  rules: readonly AddressRule[],
): buildConnector.connector {
  return (target, callback) => {
    // undici has taken the brackets of IPv6 away.
    const literals = isIP(target.hostname) === 0 ? [] : [{ address: target.hostname }];
    if (permitted(literals, rules).length < literals.length) {
      callback(refusalOf(literals, rules), null);
      return;
    }
    return connect(target, callback);
  };
}

function guardedLookup(lookup: LookupFunction, rules: readonly AddressRule[]): LookupFunction {
  return (hostname, options, callback) => {
    const all: LookupOptions & { all: true } = { ...options, all: true };
    lookup(hostname, all, (error, found) => {
      if (error) return callback(error, []);
      const answers = typeof found === 'string' ? [] : found;
      const allowed = permitted(answers, rules);
      const [first] = allowed;
      if (first === undefined) return callback(refusalOf(answers, rules), []);
      if (options.all === true) return callback(null, allowed);
      callback(null, first.address, first.family);
    });
  };
}
