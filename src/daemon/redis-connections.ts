import type { Logger } from 'pino';
import type { RedisTarget } from '../config/sections/redis.ts';
import type { RedisClient } from '../store/commands.ts';
import { connect, disconnect } from '../store/connection.ts';
import { checkRedis, isClockOff, persistenceWarning } from '../store/redis-checks.ts';
import { RedisMonitor } from '../store/redis-monitor.ts';

/** `target` is read for each connection, as the embedded Redis starts first; `onBack`: Redis answers again. */
type RedisConnectionsOptions = {
  target: () => RedisTarget;
  key: string;
  log: Logger;
  onBack: () => void;
};

class UnusableRedisError extends Error {
  constructor(reasons: readonly string[]) {
    super(reasons.join('\n'));
    this.name = 'UnusableRedisError';
  }
}

/** The connections of a daemon, each with its role, and their common state of Redis. */
export class RedisConnections {
  readonly monitor: RedisMonitor;
  readonly #options: RedisConnectionsOptions;
  readonly #open = new Set<RedisClient>();
  #closing = false;

  constructor(options: RedisConnectionsOptions) {
    const { target, key, log, onBack } = options;
    this.#options = options;
    this.monitor = new RedisMonitor({
      key,
      openFresh: () => connect(target()),
      onAway: (role, reason) => {
        if (!this.#closing) log.warn({ role, reason }, 'redis.away');
      },
      onBack: (role) => {
        log.info({ role }, 'redis.back');
        onBack();
      },
      onPersistence: (persistence) => {
        const warning = persistenceWarning(persistence);
        if (warning === null) log.info(persistence, 'redis.persistent');
        else log.warn({ ...persistence, warning }, 'redis.not_persistent');
      },
      onClock: (skewMs) => log[isClockOff(skewMs) ? 'warn' : 'info']({ skewMs }, 'redis.clock'),
      onRewritten: () => log.info('redis.file_rewritten'),
    });
  }

  start(): void {
    this.monitor.start();
  }

  open(role: string): RedisClient {
    const redis = connect(this.#options.target(), {
      onTrouble: (reason) => {
        if (this.#open.has(redis)) this.monitor.lost(role, reason);
      },
    });
    this.#open.add(redis);
    this.monitor.watch(role, redis);
    return redis;
  }

  async release(redis: RedisClient): Promise<void> {
    this.#open.delete(redis);
    this.monitor.unwatch(redis);
    await disconnect(redis);
  }

  /** Waits until Redis answers, without limit, and logs findings. Throws where it cannot be used. */
  async awaitUsable(redis: RedisClient): Promise<void> {
    const { log } = this.#options;
    const findings = await checkRedis(redis);
    for (const finding of findings) log[finding.fatal ? 'error' : 'warn'](finding.message);
    const fatal = findings.filter((finding) => finding.fatal).map((finding) => finding.message);
    if (fatal.length > 0) throw new UnusableRedisError(fatal);
  }

  stopWatching(): void {
    this.#closing = true;
    this.monitor.close();
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#open].map(disconnect));
  }
}
