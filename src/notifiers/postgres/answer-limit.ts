import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type pg from 'pg';

/**
 * Ends a connection where more bytes come than one answer may have: the driver would hold as many as the server announces.
 * What comes after something was written belongs to that. Call it before the client connects.
 */
export function limitAnswers({ connection }: pg.Client, mostBytes: number): void {
  limit(connection.stream, mostBytes);
  // From there on another stream has what is decrypted.
  connection.once('sslconnect', () => limit(connection.stream, mostBytes));
}

function limit(stream: Duplex, mostBytes: number): void {
  if (!(stream instanceof Socket)) return;
  let written = 0;
  let read = 0;
  stream.on('data', (chunk: Buffer) => {
    if (stream.bytesWritten !== written) {
      written = stream.bytesWritten;
      read = 0;
    }
    read += chunk.length;
    if (read <= mostBytes) return;
    stream.destroy(new Error(`the connection was closed: found an answer of more than ${mostBytes} bytes`));
  });
}
