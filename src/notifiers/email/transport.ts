import { connect, isIP } from 'node:net';
import {
  createTransport,
  type SMTPSentMessageInfo,
  type SMTPTransportOptions,
  type Transporter,
} from 'nodemailer';
import { isLoopbackAddress } from '../../network/refused-addresses.ts';
import type { NameResolver } from '../../network/resolver.ts';
import type { Secret } from '../../secret.ts';

/** Sends mail, one connection per message, so that an attempt is exactly one try. */
export type MailTransport = Transporter<SMTPSentMessageInfo, SMTPTransportOptions>;

/** URL parameters that would print mails and passwords, or change how often a message is tried. */
const REFUSED_PARAMETERS = ['logger', 'debug', 'transactionLog', 'pool'];

/** Where mail goes and how; each phase of a connection may take `timeoutMs`, and `signal` ends them all. */
export type MailTransportOptions = {
  url: Secret;
  names: NameResolver;
  timeoutMs: number;
  signal: AbortSignal;
};

/**
 * A transport for an `smtp://` or `smtps://` URL. A password goes over TLS only, except to this machine or where the URL
 * says `?ignoreTLS=true` or `?requireTLS=false`.
 */
export function openMailTransport(parts: MailTransportOptions): MailTransport {
  const { url, timeoutMs } = parts;
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
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  return createTransport(options);
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
      done(null, { connection: socket });
    });
    socket.once('close', () => clearTimeout(timer));
  };
}

function isLoopback(hostname: string): boolean {
  const host = withoutBrackets(hostname);
  return isIP(host) === 0 ? host === 'localhost' : isLoopbackAddress(host);
}

/** As a URL has it, an IPv6 address stands in brackets. */
function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
