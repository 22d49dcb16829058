import { randomUUID } from 'node:crypto';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Host, RedisTarget } from '../config/sections/redis.ts';
import { withoutArguments } from '../log.ts';
import { redactor, secretsOfLogin } from '../redact.ts';
import { withTimeout } from '../with-timeout.ts';
import { combineWrites } from './combine-writes.ts';
import type { RedisClient } from './commands.ts';
import { scripts } from './scripts.ts';
import { leaveWhenSilent } from './silence.ts';

type OpenOptions = RedisOptions & { replyMapping: 'legacy' };

/** Name of all connections of this process, by which CLIENT LIST shows whether any is open. */
export const CONNECTION_NAME = `intentwatch:${randomUUID()}`;

const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_EVERY_MS = 500;

/** Timeout of one Sentinel, or of one Cluster node that is requested for its slots, before the next is requested. */
const DIRECTORY_TIMEOUT_MS = 2_000;

const DISCONNECT_TIMEOUT_MS = 500;

/** Interval for fetching the nodes of a Cluster: those of the config may be gone when the others are needed. */
const CLUSTER_NODES_EVERY_MS = 10_000;

/** Interval at which a command searches for the Cluster node that accepts it, while none does. */
const CLUSTER_RETRY_MS = 200;

/**
 * Opens a connection that waits for Redis without limit: commands sent during an outage are queued and sent afterwards. A
 * connection that has an answer pending for 7 s is dropped, and so are its duplicates, which BullMQ makes. `onTrouble` is
 * called once per outage, and `onReady` when it is over.
 */
export function connect(
  target: RedisTarget,
  hooks: { onTrouble?: (reason: string) => void; onReady?: () => void } = {},
): RedisClient {
  const options: OpenOptions = {
    replyMapping: 'legacy',
    connectionName: CONNECTION_NAME,
    maxRetriesPerRequest: null,
    enableReadyCheck: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * times, RECONNECT_EVERY_MS),
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  const redis = open(target, options);
  const wordsOf = redisWords(target);
  let away = false;
  redis.on('error', (error: Error) => {
    if (!away) hooks.onTrouble?.(wordsOf(error));
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
  for (const script of Object.values(scripts)) script.read();
  return redis;
}

/** Renders errors of this Redis without the password: Redis repeats the arguments of a command that it does not know. */
export function redisWords(target: RedisTarget): (error: unknown) => string {
  const redact = redactor(secretsOfTarget(target));
  return (error) => {
    if (!(error instanceof Error)) return redact(String(error));
    const code = 'code' in error ? String(error.code) : error.name;
    return redact(withoutArguments(error.message === '' ? code : error.message));
  };
}

function secretsOfTarget(target: RedisTarget): string[] {
  switch (target.kind) {
    case 'server':
      return secretsOfLogin(new URL(target.url));
    case 'sentinel':
    case 'cluster':
      return target.password === undefined ? [] : [target.password];
    case 'socket':
      return [];
  }
}

function open(target: RedisTarget, options: OpenOptions): RedisClient {
  switch (target.kind) {
    case 'server':
      return watched(new Redis(target.url, options));
    case 'socket':
      return watched(new Redis({ ...options, path: target.path }));
    case 'sentinel': {
      const { hosts, group, username, password, tls } = target;
      return watched(
        new Redis({
          ...options,
          sentinels: hosts,
          sentinelCommandTimeout: DIRECTORY_TIMEOUT_MS,
          name: group,
          ...(username ? { username } : {}),
          ...(password ? { password } : {}),
          ...(tls ? { tls: {} } : {}),
        }),
      );
    }
    case 'cluster': {
      const { hosts, username, password, tls } = target;
      // A copy: it grows by the nodes that the Cluster reports.
      const startupNodes = [...hosts];
      return watchedCluster(
        new Cluster(startupNodes, {
          clusterRetryStrategy: (times) => Math.min(50 * times, RECONNECT_EVERY_MS),
          // A check that meets a frozen node would leave `connect()` pending for ever, and with it BullMQ, which awaits it. A
          // Cluster that is not ready rejects each command, which is then retried.
          enableReadyCheck: false,
          slotsRefreshInterval: CLUSTER_NODES_EVERY_MS,
          slotsRefreshTimeout: DIRECTORY_TIMEOUT_MS,
          // A missing master is waited for, as on the other kinds, and not given up after some tries.
          maxRedirections: Number.POSITIVE_INFINITY,
          retryDelayOnMoved: CLUSTER_RETRY_MS,
          retryDelayOnFailover: CLUSTER_RETRY_MS,
          retryDelayOnClusterDown: CLUSTER_RETRY_MS,
          redisOptions: {
            maxRetriesPerRequest: null,
            connectTimeout: CONNECT_TIMEOUT_MS,
            disconnectTimeout: DISCONNECT_TIMEOUT_MS,
            ...(username ? { username } : {}),
            ...(password ? { password } : {}),
            ...(tls ? { tls: {} } : {}),
          },
        }),
        hosts,
        startupNodes,
      );
    }
  }
}

/** Drops a silent server, also on duplicates of the connection: BullMQ makes one for each worker to wait on. */
function watched(redis: Redis): Redis {
  leaveWhenSilent(redis);
  combineWrites(redis);
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => watched(duplicate(override));
  return redis;
}

/**
 * As `watched`, for the connection to each node; without it the client requests its replacement from the others.
 *
 * A client that has lost all its nodes begins anew with its `startupNodes`. The config may name a single one, and that one may
 * be frozen: so the nodes that the Cluster last reported are stored there too, after the `named`.
 */
function watchedCluster(cluster: Cluster, named: readonly Host[], startupNodes: Host[]): Cluster {
  cluster.on('+node', (node: Redis) => {
    leaveWhenSilent(node);
    combineWrites(node);
  });
  cluster.on('refresh', () => {
    const seen = cluster.nodes().map(({ options: { host = '', port = 0 } }) => ({ host, port }));
    const isNew = (node: Host): boolean =>
      !named.some(({ host, port }) => host === node.host && port === node.port);
    startupNodes.splice(named.length, Number.POSITIVE_INFINITY, ...seen.filter(isNew));
  });
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (_nodes, options) => {
    const copied = [...startupNodes];
    return watchedCluster(duplicate(copied, options), named, copied);
  };
  return cluster;
}

const QUIT_TIMEOUT_MS = 500;

/** Closes a connection: with QUIT when Redis answers, at once when it does not. */
export async function disconnect(redis: RedisClient): Promise<void> {
  if (redis.status === 'ready') {
    await withTimeout(redis.quit(), QUIT_TIMEOUT_MS).catch(() => null);
  }
  redis.disconnect();
}
