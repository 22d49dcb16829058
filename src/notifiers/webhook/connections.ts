import type { LookupFunction } from 'node:net';
import { type buildConnector, type Dispatcher, Pool } from 'undici';
import type { WebhookReceiver } from '../../config/config.ts';
import { CACHES } from '../../domain/caches.ts';
import { LIMITS } from '../../domain/limits.ts';
import { proxiedConnector } from '../../network/proxy.ts';
import { NameResolver } from '../../network/resolver.ts';
import { apiRules, ownRules } from '../address-rules.ts';
import { boundedConnector, guardedConnector, withoutLiterals } from './connector.ts';
import { exchange, type ReceiverAnswer, StaleConnectionError } from './exchange.ts';

/** Time for which an unused connection stays open; less where the receiver states a time of its own. */
const IDLE_MS = 60_000;

/** Age at which a connection is replaced at its next use: the name may have another address by then. */
const OLDEST_MS = 300_000;

/** Connections of the whole process, as after a reload two generations have some; receivers, the longest unused first. */
const open = { count: 0, users: new Set<ReceiverConnections>() };

/**
 * The connections to one receiver. They are made when they are needed and stay open between events.
 *
 * | State of a connection | Leaves it by |
 * |---|---|
 * | in use | the end of the answer (unused, or closed where the receiver requests that) |
 * | unused | a request (in use), 60 s or the receiver's own time, the limit of all connections, the receiver's close (closed) |
 * | stale: the receiver closed it before it answered the request on it | one repetition over a new connection (closed) |
 *
 * An attempt that fails without an answer closes the unused connections too: they may lead to the same dead end.
 */
export class ReceiverConnections {
  readonly #receiver: WebhookReceiver;
  readonly #origin: string;
  readonly #names: NameResolver;
  readonly #connect: buildConnector.connector;
  #pool: Pool | null = null;
  /** Pools that take no more requests, and end with those that they have. */
  readonly #ending = new Set<Pool>();
  #underWay = 0;
  #open = 0;

  constructor(receiver: WebhookReceiver, { origin }: { origin: string }) {
    this.#receiver = receiver;
    this.#origin = origin;
    this.#names = new NameResolver({ timeoutMs: receiver.timeoutMs });
    this.#connect = this.#counted(boundedConnector(connectorOf(receiver, this.#names.lookup), receiver));
  }

  /** Sends a request and returns its answer; repeats it at most once, where the connection turned out to be stale. */
  async request(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<ReceiverAnswer> {
    this.#underWay += 1;
    open.users.delete(this);
    open.users.add(this);
    this.#pool ??= this.#openPool();
    const pool = this.#pool;
    try {
      return await exchange(pool, request, signal);
    } catch (error) {
      if (this.#pool === pool) this.#endPool();
      if (!(error instanceof StaleConnectionError)) throw error;
      return await this.#repeat(request, signal);
    } finally {
      this.#underWay -= 1;
      closeUnused();
    }
  }

  /** Uses a connection of its own: another unused one may be as stale. */
  async #repeat(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<ReceiverAnswer> {
    const pool = this.#openPool();
    this.#ending.add(pool);
    try {
      return await exchange(pool, { ...request, reset: true }, signal);
    } finally {
      this.#end(pool);
    }
  }

  /** Closes the connections where none of them is in use. Returns how many. */
  closeUnused(): number {
    if (this.#underWay > 0) return 0;
    const count = this.#open;
    this.#endPool();
    return count;
  }

  /** Closes the unused connections; those in use close at the end of their requests. */
  #endPool(): void {
    if (this.#pool !== null) this.#end(this.#pool);
    this.#pool = null;
    if (this.#underWay === 0) open.users.delete(this);
  }

  #end(pool: Pool): void {
    this.#ending.add(pool);
    // It fails where the pool is destroyed meanwhile.
    const remove = (): void => void this.#ending.delete(pool);
    pool.close().then(remove, remove);
  }

  #counted(connect: buildConnector.connector): buildConnector.connector {
    return (target, callback) =>
      connect(target, (...[error, made]) => {
        if (error !== null) return callback(error, null);
        open.count += 1;
        this.#open += 1;
        made.once('close', () => {
          open.count -= 1;
          this.#open -= 1;
        });
        callback(null, made);
      });
  }

  async close(): Promise<void> {
    open.users.delete(this);
    this.#names.close();
    const pools = [...this.#ending, ...(this.#pool === null ? [] : [this.#pool])];
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  /** The attempt's own time limit is the only one: an unmade connection ends with it. */
  #openPool(): Pool {
    return new Pool(this.#origin, {
      connect: this.#connect,
      // Otherwise the pool makes one connection first to learn which HTTP is spoken, and all wait for its handshake.
      allowH2: false,
      connections: this.#receiver.concurrency,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      clientTtl: OLDEST_MS,
      // Independent of Node's command line.
      maxHeaderSize: LIMITS.receiverHeader.bytes,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }
}

function closeUnused(): void {
  let excess = open.count - CACHES.unusedConnections.entries;
  if (excess <= 0) return;
  for (const user of open.users) {
    excess -= user.closeUnused();
    if (excess <= 0) return;
  }
}

/** Connects directly or by proxy. A proxy resolves names: only literal addresses are checked; it decides for API receivers. */
function connectorOf(receiver: WebhookReceiver, lookup: LookupFunction): buildConnector.connector {
  const { proxy, timeoutMs } = receiver;
  const { ca, identity } = receiver.tls ?? { ca: null, identity: null };
  const tls = {
    ...(ca === null ? {} : { ca }),
    ...(identity === null ? {} : { cert: identity.cert, key: identity.key.reveal() }),
  };
  const own = ownRules(receiver);
  if (proxy !== null) return withoutLiterals(proxiedConnector({ proxy, lookup, timeoutMs, tls }), own);
  const rules = [...apiRules(receiver), ...own];
  return guardedConnector({ ...tls, timeout: 0, allowH2: false, lookup, rules });
}
