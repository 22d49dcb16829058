import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { within } from '../within.ts';
import { defineCommands, type RedisClient } from './commands.ts';

/**
 * Where Redis is: one server (by URL or by socket), a Sentinel group, or a Cluster. Written in `redis.url` as
 * `redis://` or `rediss://host:port/db`, `redis+sentinel://host:port,host:port/group`,
 * `redis+cluster://host:port,host:port`.
 */
export type RedisTarget =
  | { kind: 'server'; url: string }
  | { kind: 'socket'; path: string }
  | {
      kind: 'sentinel';
      hosts: Host[];
      group: string;
      username?: string;
      password?: string;
      tls: boolean;
    }
  | { kind: 'cluster'; hosts: Host[]; username?: string; password?: string; tls: boolean };

type Host = { host: string; port: number };

const GROUP_URL = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/]+)(?:\/(.*))?$/;

/** Reads `redis.url`. Throws an error that names no part of the URL, for it may hold a password. */
export function parseRedisUrl(url: string): RedisTarget {
  const group = GROUP_URL.exec(url);
  if (group === null) {
    if (!/^rediss?:\/\/./.test(url)) {
      throw new Error(
        'redis.url: expected redis://, rediss://, redis+sentinel://…/group or redis+cluster://…',
      );
    }
    return { kind: 'server', url };
  }
  const [, scheme, kind, user, password, list = '', name] = group;
  const hosts = list.split(',').map((text) => parseHost(text, kind === 'sentinel' ? 26379 : 6379));
  const common = {
    hosts,
    tls: scheme === 'rediss',
    ...(user ? { username: decodeURIComponent(user) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
  if (kind === 'cluster') return { kind: 'cluster', ...common };
  if (!name) throw new Error('redis.url: expected the name of the Sentinel group after the last /');
  return { kind: 'sentinel', group: name, ...common };
}

function parseHost(text: string, defaultPort: number): Host {
  const match = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text);
  if (match?.[1] === undefined) throw new Error('redis.url: expected host:port,host:port');
  return { host: match[1].replace(/^\[|\]$/g, ''), port: Number(match[2] ?? defaultPort) };
}

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
