import { randomUUID } from 'node:crypto';
import { Cluster, Command, Redis, type RedisOptions } from 'ioredis';
import type { Host, RedisTarget } from '../config/sections/redis.ts';
import { repeatTogether } from '../duty.ts';
import { withoutArguments } from '../log.ts';
import { redactor, secretsOfLogin } from '../redact.ts';
import { withTimeout } from '../with-timeout.ts';
import type { RedisClient } from './commands.ts';
import { scripts } from './scripts.ts';

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
 * called once per outage.
 */
export function connect(
  target: RedisTarget,
  { onTrouble }: { onTrouble?: (reason: string) => void } = {},
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
    if (!away) onTrouble?.(wordsOf(error));
    away = true;
  });
  redis.on('close', () => {
    if (!away) onTrouble?.('the connection was closed');
    away = true;
  });
  redis.on('ready', () => {
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

/** Joins the writes of one turn of the event loop, for a fraction of their cost. They retain their order, and that turn. */
function combineWrites(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis;
    const write = stream.write.bind(stream);
    let isCorked = false;
    const corked = (...args: Parameters<typeof write>): boolean => {
      if (!isCorked) {
        isCorked = true;
        stream.cork();
        process.nextTick(() => {
          isCorked = false;
          stream.uncork();
        });
      }
      return write(...args);
    };
    // Node replaces `write` when the server closes its side: a property that cannot be replaced would end the process.
    Object.defineProperty(stream, 'write', { value: corked, configurable: true, writable: true });
  });
}

/**
 * Longest time that a connection may have an answer pending. A fork, swapping or a stop of 5 s must pass unnoticed; a master
 * that was failed over must be dropped within 15 s, also when its successor comes just after we have sent a command.
 */
const SILENCE_MS = 7_000;
const CHECK_EVERY_MS = 1_000;

/**
 * Ends a connection on which an answer is overdue, so that the client connects anew: to the same server when it is back, or to
 * its replacement. TCP does not report a server that is frozen, or behind a pulled cable. Unanswered commands are sent again
 * on the next connection, as after any other loss of it.
 *
 * A command has no timeout of its own: the client would still send an abandoned command once it is connected, and jobs would
 * be claimed that nobody waits for.
 *
 * It counts checks, not time: a process that was paused itself first reads the answers that have come meanwhile.
 */
function leaveWhenSilent(redis: Redis): void {
  let stop = (): void => undefined;
  redis.on('connect', () => {
    const { stream } = redis;
    let checks = 0;
    stream.on('data', () => {
      checks = 0;
    });
    stop();
    stop = repeatTogether(CHECK_EVERY_MS, () => {
      const command = redis.commandQueue.peekFront()?.command;
      checks = command === undefined ? 0 : checks + 1;
      const blockMs = command instanceof Command ? (command.extractBlockingTimeout() ?? 0) : 0;
      const allowedMs = SILENCE_MS + blockMs;
      if (checks * CHECK_EVERY_MS < allowedMs) return;
      stop();
      stream.destroy(new Error(`no answer for ${allowedMs / 1_000} s`));
    });
  });
  redis.on('close', () => stop());
}
