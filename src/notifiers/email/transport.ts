import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import type { SMTPSentMessageInfo, SMTPTransportOptions, Transporter } from 'nodemailer';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { LIMITS } from '../../domain/limits.ts';
import { isLoopbackAddress } from '../../network/refused-addresses.ts';
import type { NameResolver } from '../../network/resolver.ts';
import type { Secret } from '../../secret.ts';

/** Private members of a nodemailer connection. Its version is fixed, and tests check that they exist. */
type SmtpConnection = {
  _responseQueue: string[];
  _destroyed: boolean;
  _onData(chunk: Buffer): void;
  _processResponse(): void;
  _onError(error: Error, code: string, response: false, command: string): void;
};

const require = createRequire(import.meta.url);

/** The library, loaded at its first use: most configs send no mail. */
function nodemailer(): typeof import('nodemailer') {
  return require('nodemailer');
}

function connectionClass(): typeof SMTPConnection {
  return require('nodemailer/lib/smtp-connection');
}

const MOST_REPLY_BYTES = LIMITS.mailReplies.bytes;

const received = new WeakMap<SmtpConnection, number>();

let isLimited = false;

function tooLong(): Error {
  return new Error(`found replies of more than ${MOST_REPLY_BYTES} bytes, expected fewer`);
}

/**
 * Ends nodemailer connections whose replies are too long in total; nodemailer limits a single reply only. Also drops empty
 * replies at once. Nodemailer takes a turn of the event loop for each, even after the connection has ended, so a server that
 * sends only those would occupy the process for minutes.
 */
function limitReplies(): void {
  if (isLimited) return;
  const connection = connectionClass().prototype as unknown as SmtpConnection;
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

const COUNT_EVERY_MS = 10;

/** URL parameters that would print mails and passwords, or change a limit or the number of tries. */
const REFUSED_PARAMETERS = ['logger', 'debug', 'transactionLog', 'pool', 'maxResponseSize'];

/** `timeoutMs` limits each phase of a connection, `signal` ends all; `onLogin` is called when the server accepts a login. */
type MailTransportOptions = {
  url: Secret;
  names: NameResolver;
  timeoutMs: number;
  signal: AbortSignal;
  onLogin?: () => void;
};

/**
 * Opens a transport for an `smtp://` or `smtps://` URL. A password goes over TLS only, except to this machine or with
 * `?ignoreTLS=true` or `?requireTLS=false` in the URL.
 */
export function openMailTransport(input: MailTransportOptions): MailTransport {
  limitReplies();
  const { url, timeoutMs, onLogin } = input;
  const address = new URL(url.reveal());
  for (const name of REFUSED_PARAMETERS) address.searchParams.delete(name);
  const { searchParams } = address;
  const chosen = searchParams.has('requireTLS') || searchParams.get('ignoreTLS') === 'true';
  if (address.password !== '' && !chosen && !isLoopback(address.hostname))
    searchParams.set('requireTLS', 'true');
  const options: SMTPTransportOptions = {
    url: address.href,
    getSocket: socketMaker(input),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    maxResponseSize: MOST_BYTES,
    disableFileAccess: true,
    disableUrlAccess: true,
    // The library reports a login nowhere else. Its entries contain the user, so none of them is passed on.
    ...(onLogin === undefined
      ? {}
      : { logger: { info: (entry: unknown) => void (isLogin(entry) && onLogin()) } }),
  };
  return nodemailer().createTransport(options);
}

function isLogin(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'action' in entry && entry.action === 'authenticated';
}

/** Connects for nodemailer, whose fallback for a failed name lookup is the process-wide resolver. */
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

/** Ends a connection with too many bytes besides replies, as TLS can. A timer counts: with TLS this socket emits no data. */
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

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
