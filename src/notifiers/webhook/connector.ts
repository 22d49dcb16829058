import type { LookupOptions } from 'node:dns';
import { isIP, type LookupFunction, Socket } from 'node:net';
import { buildConnector, errors } from 'undici';
import { LIMITS } from '../../domain/limits.ts';
import { type AddressRule, permitted, refusalOf } from '../address-rules.ts';

class AnswerTooLongError extends Error {
  readonly code = 'ANSWER_TOO_LONG';
}

/**
 * Most bytes for one request: far more than the header (16 KiB) and the start of a body that are read. It also ends
 * endless informational answers, white space, reasons and chunk extensions, which no limit of the HTTP parser does.
 */
const MAX_ANSWER_BYTES = LIMITS.receiverAnswer.bytes;

/** Most informational answers (1xx) before the answer to one request. */
export const MAX_INFORMATIONAL_ANSWERS = 10;

const MAX_INFORMATIONAL_BYTES = LIMITS.receiverHeader.bytes;

/** Beginning of an answer that may be informational; `#` is any digit. */
const INFORMATIONAL_START = 'HTTP/1.# 1##';

/**
 * Bounds a connector: ends a connection that is not made in time, to the millisecond. undici takes up to a second longer, and
 * the next attempts would wait for a place that long. A connection that is made breaks when one request is answered with more
 * than 256 KiB.
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
    // The socket, though the type lacks it; undefined where the connector has refused at once.
    socket = connect(target, (...[error, made]) => {
      clearTimeout(timer);
      if (error !== null) return callback(error, null);
      capAnswers(made);
      callback(null, made);
    });
  };
}

/**
 * Limits the bytes for one request, and removes informational answers from them: undici breaks the connection at an unasked `100
 * Continue`. A socket carries one request at a time, so bytes after a write belong to that write. This listens before undici
 * does, and so sees all bytes first.
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

/** Takes the next bytes for a request. `rest` begins with the answer itself; empty while that has not come. */
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
 * Builds a connector for undici that checks the address after DNS, so that a name cannot point a receiver at the inside of the
 * network. Every connection of the pool uses it. A name is resolved once, and the connection goes to the checked addresses: a
 * name that is public when checked and private when connected to gains nothing.
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

/** Builds a connector that refuses literal addresses, which are connected to without a lookup. */
export function withoutLiterals(
  connect: buildConnector.connector,
  rules: readonly AddressRule[],
): buildConnector.connector {
  return (target, callback) => {
    // undici has removed the brackets of IPv6.
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
