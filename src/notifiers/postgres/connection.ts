import { createRequire } from 'node:module';
import { isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type pg from 'pg';
import type { PostgresReceiver } from '../../config/config.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { NameResolver } from '../../network/resolver.ts';
import { secretsOfLogin } from '../../redact.ts';
import type { Secret } from '../../secret.ts';
import { apiRules, permitted, refusalOf } from '../address-rules.ts';

type PostgresTarget = Pick<PostgresReceiver, 'url' | 'tls' | 'allowInsecure' | 'timeoutMs' | 'apiNetworks'>;

/** A connection to Postgres; `destroy` ends it at once, whatever it waits for. */
export type PostgresConnection = { client: pg.Client; isUsable(): boolean; destroy(): void };

const require = createRequire(import.meta.url);

/** The driver, loaded at its first use: most configs have no Postgres. */
export function driver(): typeof pg {
  return require('pg');
}

export const DEFAULT_PORT = 5_432;

/**
 * Connects to the first permitted address of the host that accepts. Ends, and rejects, when the signal aborts. Each address has
 * its share of the time: one that swallows all packets must not use up that of the others.
 */
export async function connectPostgres(
  target: PostgresTarget,
  { names, signal }: { names: NameResolver; signal: AbortSignal },
): Promise<PostgresConnection> {
  const { hostname } = new URL(target.url.reveal());
  const found = await untilAborted(names.resolve(hostname.replace(/^\[|\]$/g, '')), signal);
  const rules = apiRules(target);
  const addresses = permitted(found, rules);
  let failure: unknown = refusalOf(found, rules);
  const shareMs = Math.floor(target.timeoutMs / (addresses.length + 1));
  for (const [index, { address }] of addresses.entries()) {
    const isLast = index === addresses.length - 1;
    const share = new DOMException(`no connection to ${address} within ${shareMs} ms`, 'TimeoutError');
    const within = isLast ? signal : AbortSignal.any([signal, AbortSignal.timeout(shareMs)]);
    try {
      return await connectBounded(address, target, within);
    } catch (error) {
      signal.throwIfAborted();
      failure = within.aborted ? share : error;
    }
  }
  throw failure;
}

/** Protocol violation: the answer of a pooler such as PgBouncer to an unknown parameter. */
const UNKNOWN_PARAMETER = '08P01';

/**
 * Sets a statement timeout at the server: else an insert that waits for a lock would hold its connection there until the lock is
 * free, as would each later one. A pooler that does not know this parameter gets none.
 */
async function connectBounded(
  address: string,
  target: PostgresTarget,
  signal: AbortSignal,
): Promise<PostgresConnection> {
  try {
    return await connectTo(address, { ...target, statementMs: target.timeoutMs }, signal);
  } catch (error) {
    if (!(error instanceof driver().DatabaseError) || error.code !== UNKNOWN_PARAMETER) throw error;
    return connectTo(address, { ...target, statementMs: null }, signal);
  }
}

async function connectTo(
  address: string,
  { url, tls, allowInsecure, statementMs }: PostgresTarget & { statementMs: number | null },
  signal: AbortSignal,
): Promise<PostgresConnection> {
  const { hostname, port, username, password, pathname } = new URL(url.reveal());
  const user = decodeURIComponent(username);
  const socket = new Socket();
  const client = new (driver().Client)({
    host: address,
    port: port === '' ? DEFAULT_PORT : Number(port),
    user,
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || user,
    application_name: 'intentwatch',
    keepAlive: true,
    ...(statementMs === null ? {} : { statement_timeout: statementMs }),
    stream: () => socket,
    ssl: allowInsecure
      ? false
      : {
          ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
          ...(tls?.ca ? { ca: tls.ca } : {}),
          ...(tls?.identity ? { cert: tls.identity.cert, key: tls.identity.key.reveal() } : {}),
        },
  });
  limitAnswers(client, LIMITS.postgresAnswer.bytes);
  let isUsable = true;
  // Handles the error of an unused connection, which would otherwise end the process.
  client.on('error', () => {
    isUsable = false;
  });
  client.on('end', () => {
    isUsable = false;
  });
  const destroy = (): void => {
    isUsable = false;
    socket.destroy();
  };
  try {
    await untilAborted(client.connect(), signal);
  } catch (error) {
    destroy();
    throw error;
  }
  return { client, isUsable: () => isUsable, destroy };
}

/** Secrets of a Postgres URL that the server or an error could repeat. */
export function secretsOfPostgresUrl(url: Secret): string[] {
  return secretsOfLogin(new URL(url.reveal()));
}

/** Rejects when the signal aborts. The driver knows no signals: its operation goes on until its connection is destroyed. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Ends a connection that receives more bytes than one answer may have: the driver would buffer as many as the server announces.
 * Bytes after a write belong to that write. Call it before the client connects.
 */
export function limitAnswers({ connection }: pg.Client, mostBytes: number): void {
  limit(connection.stream, mostBytes);
  // From there on another stream has the decrypted bytes.
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
