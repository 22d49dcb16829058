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

/** Interval of TCP probes: without them a firewall drops a quiet connection after half a minute, and reports it to nobody. */
const PROBE_EVERY_MS = 15_000;

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
      made.setKeepAlive(true, PROBE_EVERY_MS);
      boundAnswers(made);
      callback(null, made);
    });
  };
}

/** Ends of connections on which an earlier request was answered, and no byte came for the one after it. */
const STALE = new WeakSet<object>();

/** True for the end of a connection that the receiver may have closed before it had the request. */
export function isStale(error: unknown): boolean {
  return typeof error === 'object' && error !== null && STALE.has(error);
}

/**
 * Limits the bytes for one request, and removes informational answers from them: undici breaks the connection at an unasked `100
 * Continue`. A socket carries one request at a time, so bytes after a write belong to that write. Replaces `read`, which undici
 * calls for all bytes: to read them first and put them back costs as much as parsing them.
 */
function boundAnswers(socket: Socket): void {
  const readRaw: (size?: number) => Buffer | null = socket.read.bind(socket);
  let written = socket.bytesWritten;
  let read = 0;
  let answers = 0;
  let skip: SkipInformational | null = null;

  socket.read = (size?: number): Buffer | null => {
    for (;;) {
      const chunk = readRaw(size);
      if (chunk === null) return null;
      if (socket.bytesWritten !== written) {
        written = socket.bytesWritten;
        read = 0;
        skip = skipInformational();
      }
      read += chunk.length;
      if (read > MAX_ANSWER_BYTES) {
        socket.destroy(new AnswerTooLongError(`an answer of more than ${MAX_ANSWER_BYTES / 1_024} KiB`));
        return null;
      }
      if (skip === null) return chunk;
      const { rest, problem } = skip(chunk);
      if (problem !== null) {
        socket.destroy(new AnswerTooLongError(problem));
        return null;
      }
      if (rest.length === 0) continue;
      // The answer itself has begun: the rest of it is undici's.
      skip = null;
      answers += 1;
      return rest;
    }
  };

  // An informational answer, too, shows that the receiver has the request.
  const mark = <T extends Error>(error: T): T => {
    if (answers > 0 && (skip === null || socket.bytesWritten !== written)) STALE.add(error);
    return error;
  };
  socket.on('error', mark);
  // undici would destroy it with an error of its own, which cannot be marked.
  socket.on('end', () => {
    const error = mark(new errors.SocketError('other side closed'));
    if (isStale(error)) socket.destroy(error);
  });
}

/** Takes the next bytes for a request. `rest` begins with the answer itself; empty while that has not come. */
type SkipInformational = (bytes: Buffer) => { rest: Buffer; problem: string | null };

function skipInformational(): SkipInformational {
  let held: Buffer = NOTHING;
  let skipped = 0;
  return (bytes) => {
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
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

/** Place of the first digit of the status, which decides about most answers. */
const FIRST_DIGIT = INFORMATIONAL_START.indexOf(' ') + 1;
const ONE = 0x31;

/** True when an informational answer begins here, or may: the bytes can end within its status. A switch of protocols is none. */
function mayBeInformational(bytes: Buffer): boolean {
  if (bytes.length > FIRST_DIGIT && bytes[FIRST_DIGIT] !== ONE) return false;
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
