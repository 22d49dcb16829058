import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { openBooks } from '../books/books.ts';
import { type Database, prepareTables } from '../books/sql/database.ts';
import { createChainReaders, hostOf } from '../chains/chain-readers.ts';
import type { ChainEndpoint, CheckedChain, Config, PostgresReceiver } from '../config/config.ts';
import { parseRedisUrl, type RedisTarget } from '../config/sections/redis.ts';
import { makeTestEvent } from '../domain/events/make-event.ts';
import type { TxState } from '../domain/proof/proof.ts';
import { chainFamily } from '../domain/proof/statement.ts';
import { chainName, extendDirectory } from '../domain/transfers/chains.ts';
import { messageOf } from '../errors.ts';
import { makeFolder } from '../files.ts';
import { NameResolver } from '../network/resolver.ts';
import { secretsOfSmtpUrl } from '../notifiers/email/email.ts';
import { openMailTransport } from '../notifiers/email/transport.ts';
import { connectPostgres, secretsOfPostgresUrl, untilAborted } from '../notifiers/postgres/connection.ts';
import { describePostgresError } from '../notifiers/postgres/postgres.ts';
import { insertStatement, insertValues } from '../notifiers/postgres/table.ts';
import { limiterWithout } from '../notifiers/printable.ts';
import type { Secret } from '../secret.ts';
import { type RedisClient, redisTimeMs } from '../store/commands.ts';
import { connect, disconnect, redisWords } from '../store/connection.ts';
import { unusableFolder } from '../store/embedded.ts';
import { checkRedis } from '../store/redis-checks.ts';
import { refusalReport, UpstreamFailure } from '../upstream/client/failure.ts';
import { withTimeout } from '../with-timeout.ts';

/** Result of one check. `refused`: a retry does not help, the config has to change. */
type CheckOutcome = { ok: boolean; detail: string; refused?: true };

type NamedOutcome = CheckOutcome & { name: string };

/** A check of an outside service. `probe` stops and releases its resources when `signal` aborts. */
export type LiveCheck = {
  name: string;
  probe(signal: AbortSignal): Promise<CheckOutcome>;
  /** Explains an error; default: the check failed. */
  explain?(error: unknown): CheckOutcome;
};

/** Longest time of a check; it also ends one whose answer drips, or whose own timeout is longer. */
const LIMIT_MS = 12_000;

/** Runs a check for at most 12 s. */
export async function runCheck({ name, probe, explain = failed }: LiveCheck): Promise<NamedOutcome> {
  const ending = new AbortController();
  const outcome = probe(ending.signal).catch(explain);
  const found = await withTimeout(outcome, LIMIT_MS);
  ending.abort();
  return { name, ...(found ?? explain(new Error(`no whole answer within ${LIMIT_MS / 1_000} s`))) };
}

/** Result of a failed check: the error's message, or the explanation of a refused key. */
export function failed(error: unknown): CheckOutcome {
  const refusal = error instanceof UpstreamFailure ? refusalReport(error) : null;
  if (refusal !== null) return { ok: false, detail: refusal, refused: true };
  return { ok: false, detail: messageOf(error) };
}

/** Formats a difference of two clocks. */
export function seconds(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1_000).toFixed(1)} s`;
}

/** `1 chain`, `2 chains`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Checks the Redis that the config names; of the embedded one, that it can be started. */
export function redisCheck(config: Config): LiveCheck {
  const target = parseRedisUrl(config.redis.url?.reveal() ?? '');
  return target === null ? embeddedCheck(config) : externalCheck(target);
}

/** Reports the first error. The daemon waits for an absent Redis instead. */
function externalCheck(target: RedisTarget): LiveCheck {
  const wordsOf = redisWords(target);
  return {
    name: 'Redis (redis.url)',
    probe: async (signal) => {
      const trouble = Promise.withResolvers<never>();
      const redis = connect(target, { onTrouble: (words) => trouble.reject(new Error(words)) });
      signal.addEventListener('abort', () => redis.disconnect());
      try {
        return await Promise.race([probeRedis(redis, passwordOf(target)), trouble.promise]);
      } finally {
        await disconnect(redis);
      }
    },
    explain: (error) => failed(new Error(wordsOf(error))),
  };
}

async function probeRedis(redis: RedisClient, password: string | null): Promise<CheckOutcome> {
  const findings = await checkRedis(redis);
  if (password !== null && !(await requiresPassword(redis, password))) {
    const message =
      'found no password there, expected the one of the URL: whoever reaches it may read and change everything';
    findings.push({ fatal: true, message });
  }
  const skewMs = (await redisTimeMs(redis)) - Date.now();
  const words = findings.map((finding) => finding.message).join('; ');
  return {
    ok: findings.every((finding) => !finding.fatal),
    detail: words || `reachable, stores its data on disk; its clock is ${seconds(skewMs)} from ours`,
  };
}

/** The password of the default user; null where there is none, or another user logs in. */
function passwordOf(target: RedisTarget): string | null {
  if (target.kind === 'socket') return null;
  if (target.kind !== 'server') return target.username === undefined ? (target.password ?? null) : null;
  const { username, password } = new URL(target.url);
  return username === '' && password !== '' ? decodeURIComponent(password) : null;
}

/** A Redis without a password accepts any password, and the driver reports nothing. */
async function requiresPassword(redis: RedisClient, password: string): Promise<boolean> {
  try {
    await redis.call('AUTH', password);
    return true;
  } catch (error) {
    return !messageOf(error).includes('without any password');
  }
}

function embeddedCheck({ dataDir }: Config): LiveCheck {
  return {
    name: 'Redis (embedded)',
    probe: async (signal) => {
      const version = await redisServerVersion(signal);
      await openFolder(dataDir);
      return { ok: true, detail: `${version}; its data goes to ${dataDir}` };
    },
  };
}

async function openFolder(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir);
    await access(dataDir, constants.W_OK);
  } catch (error) {
    throw new Error(unusableFolder(dataDir, messageOf(error)));
  }
}

async function redisServerVersion(signal: AbortSignal): Promise<string> {
  const child = spawn('redis-server', ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], signal });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  await new Promise<void>((done, fail) => {
    child.once('error', () =>
      fail(
        new Error(
          'redis-server is not installed; install it (Debian: apt-get install redis-server) or set redis.url',
        ),
      ),
    );
    child.once('close', () => done());
  });
  return `redis-server ${/v=(\S+)/.exec(output)?.[1] ?? 'of an unknown version'}`;
}

/** Timeout of each phase of the connection; the check's own limit covers all of them. */
const PHASE_MS = 10_000;

/** Checks that the mail server answers, and accepts the login where there is one. No mail is sent. */
export function smtpCheck({ smtp }: Config): LiveCheck {
  const name = 'SMTP';
  if (smtp === null)
    return { name, probe: async () => ({ ok: true, detail: 'not checked: the config has no smtp' }) };
  const { url } = smtp;
  return {
    name,
    probe: async (signal) => {
      const names = new NameResolver({ timeoutMs: PHASE_MS });
      let hasLoggedIn = false;
      const onLogin = (): void => {
        hasLoggedIn = true;
      };
      const transport = openMailTransport({ url, names, timeoutMs: PHASE_MS, signal, onLogin });
      try {
        await transport.verify();
        return { ok: true, detail: hasLoggedIn ? 'reachable, takes the login' : withoutLogin(url) };
      } finally {
        names.close();
        transport.close();
      }
    },
    explain: (error) => ({
      ok: false,
      detail: limiterWithout(secretsOfSmtpUrl(url)).reason(messageOf(error)),
    }),
  };
}

/** The library sends no login to a server that offers none, in the check and in deliveries alike. */
function withoutLogin(url: Secret): string {
  return new URL(url.reveal()).username === ''
    ? 'reachable; smtp.url has no login, so none was checked'
    : 'reachable, but offers no login: that of smtp.url was not checked, and is not used';
}

/** Checks that each receiver of type `postgres` can insert an event: inserts one and rolls back. */
export function postgresChecks({ receivers }: Config): LiveCheck[] {
  return receivers.flatMap((receiver) => (receiver.type === 'postgres' ? [postgresCheck(receiver)] : []));
}

function postgresCheck(receiver: PostgresReceiver): LiveCheck {
  const { name, table, url, timeoutMs } = receiver;
  return {
    name: `Postgres (receiver ${name})`,
    probe: async (signal) => {
      const names = new NameResolver({ timeoutMs });
      try {
        const { client, destroy } = await connectPostgres(receiver, { names, signal });
        try {
          const insert = async (): Promise<void> => {
            await client.query('BEGIN');
            await client.query(
              insertStatement(table),
              insertValues([{ event: makeTestEvent(name, Date.now()), entry: null }]),
            );
            await client.query('ROLLBACK');
          };
          await untilAborted(insert(), signal);
          return { ok: true, detail: `takes the login; an event could be inserted into ${table}` };
        } finally {
          destroy();
        }
      } finally {
        names.close();
      }
    },
    explain: (error) => ({
      ok: false,
      detail: limiterWithout(secretsOfPostgresUrl(url)).reason(describePostgresError(error, receiver)),
    }),
  };
}

class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

/** Checks the Postgres of the books: creates its tables as at the start, and rolls back. */
export function booksChecks({ books, dataDir }: Config): LiveCheck[] {
  // A file needs only its folder, which the check of the embedded Redis covers.
  if (books === null || books.url === null) return [];
  return [
    {
      name: 'Postgres (books.url)',
      probe: async (signal) => {
        const database = openBooks(books, { dataDir });
        const close = () => void database.close();
        signal.addEventListener('abort', close, { once: true });
        try {
          await prepareTables(rolledBack(database));
          throw new Error('found what was rolled back stored, expected an end without');
        } catch (error) {
          if (!(error instanceof RolledBack)) throw error;
          return { ok: true, detail: 'takes the login, and has the tables of the books or could make them' };
        }
      },
    },
  ];
}

function rolledBack(database: Database): Database {
  return {
    ...database,
    write: (work) =>
      database.write(async (sql) => {
        await work(sql);
        throw new RolledBack();
      }),
  };
}

/** A transaction hash that no chain has: a working endpoint does not know it. */
const NOBODYS_EVM_TX = `0x${'0'.repeat(64)}`;
const NOBODYS_SOLANA_TX = '1'.repeat(64);

/** Checks that each RPC endpoint is of its chain, knows its finality, and answers about a transaction. */
export function chainChecks(config: Config): LiveCheck[] {
  const directory = extendDirectory(config);
  return config.checkedChains.flatMap((chain) =>
    chain.endpoints.map((endpoint) => ({
      name: `RPC endpoint ${endpoint.name} of ${chainName(chain.chainId, directory)}`,
      probe: (signal) => callEndpoint(chain, endpoint, signal),
    })),
  );
}

async function callEndpoint(
  chain: CheckedChain,
  endpoint: ChainEndpoint,
  signal: AbortSignal,
): Promise<CheckOutcome> {
  const readers = createChainReaders([{ ...chain, endpoints: [endpoint] }], { onCall: () => undefined });
  const reader = readers.get(chain.chainId);
  const nobodys = chainFamily(chain.chainId) === 'solana' ? NOBODYS_SOLANA_TX : NOBODYS_EVM_TX;
  try {
    const [txState] = (await reader?.read(nobodys, { signal })) ?? [];
    if (txState === undefined) return { ok: false, detail: 'found no reader of this chain, expected one' };
    if (txState.outcome === 'failed') return { ok: false, detail: txState.reason };
    return { ok: true, detail: `is of this chain, ${finalityOf(txState)}${limitOf(chain)}` };
  } finally {
    await reader?.close();
  }
}

/** States the limit of endpoints on one host: their number does not help. */
function limitOf({ endpoints }: CheckedChain): string {
  return new Set(endpoints.map(hostOf)).size > 1
    ? ''
    : '; nothing is disputed without an endpoint on another host';
}

function finalityOf(txState: Exclude<TxState, { outcome: 'failed' }>): string {
  if (txState.head === null) return 'where no block is final yet';
  const { number, timestamp } = txState.head;
  const isBehind = txState.outcome === 'absent' && !txState.isSynced;
  const at = new Date(timestamp * 1_000).toISOString().replace('.000', '');
  return `final up to block ${number} of ${at}${isBehind ? ', and still catching up' : ''}`;
}
