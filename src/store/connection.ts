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

/** The time that a first connection and each reconnection may take before the next try. */
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_EVERY_MS = 500;

/** The time that one Sentinel, or one node of a Cluster that is asked for its slots, may take before the next is asked. */
const DIRECTORY_TIMEOUT_MS = 2_000;

/** The time that a server has to close its side before the connection is cut. */
const DISCONNECT_TIMEOUT_MS = 500;

/** The interval at which a Cluster is asked for its nodes: those of the config may be gone when the others are needed. */
const CLUSTER_NODES_EVERY_MS = 10_000;

/** The interval at which a command looks for the node of a Cluster that takes it, while none does. */
const CLUSTER_RETRY_MS = 200;

/**
 * Opens a connection that waits for Redis as long as it takes: commands sent while it is away are stored and sent when
 * it is back. One that owes an answer for 7 s is left, and so are its duplicates, which BullMQ makes. `onTrouble` is
 * reported once per outage, and `onReady` when it is over.
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
  for (const script of Object.values(scripts)) script.define(redis);
  return redis;
}

/** Makes what an error of this Redis says without the password: Redis repeats the arguments of a command that it does not know. */
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
      // A copy: it grows by what the Cluster says of itself.
      const startupNodes = [...hosts];
      return watchedCluster(
        new Cluster(startupNodes, {
          clusterRetryStrategy: (times) => Math.min(50 * times, RECONNECT_EVERY_MS),
          // A check that meets a frozen node would leave `connect()` pending for ever, and with it BullMQ, which awaits
          // it. A Cluster that is not ready says so to each command, which is then tried again.
          enableReadyCheck: false,
          slotsRefreshInterval: CLUSTER_NODES_EVERY_MS,
          slotsRefreshTimeout: DIRECTORY_TIMEOUT_MS,
          // A master that is away is waited for, as on the other kinds, and not given up after some tries.
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

/** Leaves a silent server, also on duplicates of the connection: BullMQ makes one for each worker to wait on. */
function watched(redis: Redis): Redis {
  leaveWhenSilent(redis);
  combineWrites(redis);
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => watched(duplicate(override));
  return redis;
}

/**
 * As `watched`, for the connection to each node; without it the client asks the others who has taken its place.
 *
 * A client that has lost all its nodes begins anew with its `startupNodes`. The config may name a single one, and that
 * may be the one that is frozen: so what the Cluster last said of its nodes is stored there too, after the `named`.
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

/** Closes a connection: politely when Redis answers, at once when it does not. */
export async function disconnect(redis: RedisClient): Promise<void> {
  if (redis.status === 'ready') {
    await withTimeout(redis.quit(), QUIT_TIMEOUT_MS).catch(() => null);
  }
  redis.disconnect();
}

/** Redis time, in ms. */
export async function redisTimeMs(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}
