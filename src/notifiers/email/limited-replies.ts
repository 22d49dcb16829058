import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { LIMITS } from '../../domain/limits.ts';

/** What nodemailer keeps to itself of a connection. Its version is fixed, and tests hold that it is there. */
type Connection = {
  _responseQueue: string[];
  _destroyed: boolean;
  _onData(chunk: Buffer): void;
  _processResponse(): void;
  _onError(error: Error, code: string, response: false, command: string): void;
};

const MOST_BYTES = LIMITS.mailReplies.bytes;

/** The bytes of the replies of each connection so far. */
const received = new WeakMap<Connection, number>();

let isLimited = false;

/** An error for replies that are too long together. */
export function tooLong(): Error {
  return new Error(`found replies of more than ${MOST_BYTES} bytes, expected fewer`);
}

/**
 * Ends every connection of nodemailer whose replies are too long together, as they come: it limits one reply only. Also lets
 * it drop empty ones at once: it takes a turn of the event loop for each, also after the connection has ended, so a server
 * that sends nothing else would keep the process busy for minutes.
 */
export function limitReplies(): void {
  if (isLimited) return;
  const connection = SMTPConnection.prototype as unknown as Connection;
  const { _onData: take, _processResponse: go } = connection;
  connection._onData = function (chunk) {
    const bytes = (received.get(this) ?? 0) + chunk.length;
    received.set(this, bytes);
    if (bytes <= MOST_BYTES) return take.call(this, chunk);
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
