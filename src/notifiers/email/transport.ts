import { connect, isIP, type Socket } from 'node:net';
import {
  createTransport,
  type SMTPSentMessageInfo,
  type SMTPTransportOptions,
  type Transporter,
} from 'nodemailer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { LIMITS } from '../../domain/limits.ts';
import { isLoopbackAddress } from '../../network/refused-addresses.ts';
import type { NameResolver } from '../../network/resolver.ts';
import type { Secret } from '../../secret.ts';

/** What nodemailer keeps to itself of a connection. Its version is fixed, and tests hold that it is there. */
type Connection = {
  _responseQueue: string[];
  _destroyed: boolean;
  _onData(chunk: Buffer): void;
  _processResponse(): void;
  _onError(error: Error, code: string, response: false, command: string): void;
};

const MOST_REPLY_BYTES = LIMITS.mailReplies.bytes;

/** The bytes of the replies of each connection so far. */
const received = new WeakMap<Connection, number>();

let isLimited = false;

function tooLong(): Error {
  return new Error(`found replies of more than ${MOST_REPLY_BYTES} bytes, expected fewer`);
}

/**
 * Ends every connection of nodemailer whose replies are too long together, as they come: it limits one reply only. Also lets
 * it drop empty ones at once: it takes a turn of the event loop for each, also after the connection has ended, so a server
 * that sends nothing else would keep the process busy for minutes.
 */
function limitReplies(): void {
  if (isLimited) return;
  const connection = SMTPConnection.prototype as unknown as Connection;
  const { _onData: take, _processResponse: go } = connection;
  connection._onData = function (chunk) {
    const bytes = (received.get(this) ?? 0) + chunk.length;
    received.set(this, bytes);
    if (bytes <= MOST_REPLY_BYTES) return take.call(this, chunk);
    this._responseQueue = [];
    if (!this._destroyed) this._onError(tooLong(), 'EPROTOCOL', false, 'CONN');
  };
  connection._processResponse = function () {
    const first = this._responseQueue.findIndex((reply) => reply.trim() !== '');
    if (first !== 0) this._responseQueue.splice(0, first === -1 ? this._responseQueue.length : first);
    return go.call(this);
  };
  isLimited = true;
}

/** Sends mail, one connection per message, so that an attempt is exactly one try. */
export type MailTransport = Transporter<SMTPSentMessageInfo, SMTPTransportOptions>;

const MOST_BYTES = LIMITS.mailReplies.bytes;

/** The interval at which the bytes of a connection are counted. */
const COUNT_EVERY_MS = 10;

/** URL parameters that would print mails and passwords, or change a limit or how often a message is tried. */
const REFUSED_PARAMETERS = ['logger', 'debug', 'transactionLog', 'pool', 'maxResponseSize'];

/**
 * The place where mail goes and how; each phase of a connection may take `timeoutMs`, and `signal` ends them all. `onLogin` is called
 * when the server has accepted a login.
 */
type MailTransportOptions = {
  url: Secret;
  names: NameResolver;
  timeoutMs: number;
  signal: AbortSignal;
  onLogin?: () => void;
};

/**
 * A transport for an `smtp://` or `smtps://` URL. A password goes over TLS only, except to this machine or where the URL
 * says `?ignoreTLS=true` or `?requireTLS=false`.
 */
export function openMailTransport(parts: MailTransportOptions): MailTransport {
  limitReplies();
  const { url, timeoutMs, onLogin } = parts;
  const address = new URL(url.reveal());
  for (const name of REFUSED_PARAMETERS) address.searchParams.delete(name);
  const { searchParams } = address;
  const chosen = searchParams.has('requireTLS') || searchParams.get('ignoreTLS') === 'true';
  if (address.password !== '' && !chosen && !isLoopback(address.hostname))
    searchParams.set('requireTLS', 'true');
  const options: SMTPTransportOptions = {
    url: address.href,
    getSocket: socketMaker(parts),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    maxResponseSize: MOST_BYTES,
    disableFileAccess: true,
    disableUrlAccess: true,
    // The library reports a login nowhere else. Its entries hold the user, so nothing of them is passed on.
    ...(onLogin === undefined
      ? {}
      : { logger: { info: (entry: unknown) => void (isLogin(entry) && onLogin()) } }),
  };
  return createTransport(options);
}

function isLogin(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'action' in entry && entry.action === 'authenticated';
}

/** Connects for nodemailer, which would ask the process's one way to look up names when its own finds nothing. */
function socketMaker({
  names,
  timeoutMs,
  signal,
}: MailTransportOptions): NonNullable<SMTPTransportOptions['getSocket']> {
  return ({ host = 'localhost', port, secure = false }, done) => {
    const socket = connect({
      host: withoutBrackets(host),
      port: Number(port ?? (secure ? 465 : 587)),
      lookup: names.lookup,
      signal,
    });
    const timer = setTimeout(
      () => socket.destroy(new Error(`not connected within ${timeoutMs} ms`)),
      timeoutMs,
    );
    socket.once('error', done);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', done);
      endWhereTooLong(socket);
      done(null, { connection: socket });
    });
    socket.once('close', () => clearTimeout(timer));
  };
}

/**
 * Ends a connection that brings too much besides replies, as TLS can. A timer counts, since with TLS nobody sees the bytes
 * come on this socket.
 */
function endWhereTooLong(socket: Socket): void {
  const timer = setInterval(() => {
    if (socket.bytesRead > MOST_BYTES) socket.destroy(tooLong());
  }, COUNT_EVERY_MS);
  socket.once('close', () => clearInterval(timer));
}

function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  return isIP(host) === 0 ? host === 'localhost' : isLoopbackAddress(host);
}

/** As a URL has it, an IPv6 address stands in brackets. */
function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
