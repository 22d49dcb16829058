import { isIP } from 'node:net';
import {
  createTransport,
  type SMTPSentMessageInfo,
  type SMTPTransportOptions,
  type Transporter,
} from 'nodemailer';
import { isLoopbackAddress } from '../../config/refused-addresses.ts';
import type { Secret } from '../../config/secret.ts';

/** Sends mail, one connection per message, so that an attempt is exactly one try. */
export type MailTransport = Transporter<SMTPSentMessageInfo, SMTPTransportOptions>;

/** URL parameters that would print mails and passwords, or change how often a message is tried. */
const REFUSED_PARAMETERS = ['logger', 'debug', 'transactionLog', 'pool'];

/**
 * A transport for an `smtp://` or `smtps://` URL; each phase of a connection may take `timeoutMs`. A password goes
 * over TLS only, except to this machine or where the URL says `?ignoreTLS=true` or `?requireTLS=false`.
 */
export function openMailTransport({ url, timeoutMs }: { url: Secret; timeoutMs: number }): MailTransport {
  const address = new URL(url.reveal());
  for (const name of REFUSED_PARAMETERS) address.searchParams.delete(name);
  const { searchParams } = address;
  const chosen = searchParams.has('requireTLS') || searchParams.get('ignoreTLS') === 'true';
  if (address.password !== '' && !chosen && !isLoopback(address.hostname))
    searchParams.set('requireTLS', 'true');
  const options: SMTPTransportOptions = {
    url: address.href,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  return createTransport(options);
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? host === 'localhost' : isLoopbackAddress(host);
}
