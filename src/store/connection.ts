import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisTarget } from '../config/redis-target.ts';
import { within } from '../within.ts';
import { defineCommands, type RedisClient } from './commands.ts';

type OpenOptions = RedisOptions & { replyMapping: 'legacy' };

/** How long a first connection and each reconnection may take before the next try. */
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_EVERY_MS = 500;

/**
 * Opens a connection that waits for Redis as long as it takes: commands sent while it is away are kept and sent when
 * it is back. `onTrouble` is told once per outage, and `onReady` when it is over.
 */
export function connect(
  target: RedisTarget,
  hooks: { onTrouble?: (reason: string) => void; onReady?: () => void } = {},
): RedisClient {
  const options: OpenOptions = {
    replyMapping: 'legacy',
    maxRetriesPerRequest: null,
    enableReadyCheck: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * times, RECONNECT_EVERY_MS),
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  const redis = open(target, options);
  let away = false;
  redis.on('error', (error: Error) => {
    if (!away) hooks.onTrouble?.(error.message);
    away = true;
  });
  redis.on('close', () => {
    if (!away) hooks.onTrouble?.('the connection was closed');
    away = true;
  });
  redis.on('ready', () => {
    if (away) hooks.onReady?.();
    away = false;
  });
  defineCommands(redis);
  return redis;
}

function open(target: RedisTarget, options: OpenOptions): RedisClient {
  switch (target.kind) {
    case 'server':
      return new Redis(target.url, options);
    case 'socket':
      return new Redis({ ...options, path: target.path });
    case 'sentinel': {
      const { hosts, group, username, password, tls } = target;
      return new Redis({
        ...options,
        sentinels: hosts,
        name: group,
        ...(username ? { username } : {}),
        ...(password ? { password } : {}),
        ...(tls ? { tls: {} } : {}),
      });
    }
    case 'cluster': {
      const { hosts, username, password, tls } = target;
      return new Cluster(hosts, {
        clusterRetryStrategy: (times) => Math.min(50 * times, RECONNECT_EVERY_MS),
        redisOptions: {
          maxRetriesPerRequest: null,
          connectTimeout: CONNECT_TIMEOUT_MS,
          ...(username ? { username } : {}),
          ...(password ? { password } : {}),
          ...(tls ? { tls: {} } : {}),
        },
      });
    }
  }
}

const QUIT_TIMEOUT_MS = 500;

/** Closes a connection: politely when Redis answers, at once when it does not. */
export async function disconnect(redis: RedisClient): Promise<void> {
  if (redis.status === 'ready') {
    await within(redis.quit(), QUIT_TIMEOUT_MS).catch(() => null);
  }
  redis.disconnect();
}

/** Redis time, in ms. */
export async function redisTimeMs(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}
