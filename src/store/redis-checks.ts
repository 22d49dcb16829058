import { type RedisClient, redisTimeMs } from './commands.ts';

/** A fault of a Redis server. `fatal`: the daemon cannot run with it; else it runs, and logs a warning. */
export type RedisFinding = { fatal: boolean; message: string };

/** The oldest version on which the tests run. */
const LEAST_VERSION = [7, 0] as const;

const CLOCK_WARNING_MS = 2_000;

/** True when the clocks of this machine and of Redis differ so much that a warning is due. */
export function isClockOff(skewMs: number): boolean {
  return Math.abs(skewMs) > CLOCK_WARNING_MS;
}

/** Checks the version, eviction policy, persistence and clock of a Redis server. Returns the faults, an empty list for none. */
export async function checkRedis(redis: RedisClient): Promise<RedisFinding[]> {
  const info = parseInfo(await redis.info());
  const findings: RedisFinding[] = [];
  const version = info.get('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1])) {
    findings.push({
      fatal: true,
      message: `Redis is version ${version}, expected ${LEAST_VERSION.join('.')} or newer`,
    });
  }
  const policy = info.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    findings.push({
      fatal: true,
      message: `Redis has maxmemory-policy ${policy}, expected noeviction: it would throw away snapshots and events`,
    });
  }
  const warning = persistenceWarning(await readPersistence(redis));
  if (warning !== null) findings.push({ fatal: false, message: warning });
  const skewMs = Math.abs((await redisTimeMs(redis)) - Date.now());
  if (isClockOff(skewMs)) {
    findings.push({
      fatal: false,
      message: `the clock of this machine is ${(skewMs / 1_000).toFixed(1)} s off the clock of Redis`,
    });
  }
  return findings;
}

/**
 * The persistence of Redis beyond its restart: every write in an append-only file, the same in one that grows since its last
 * rewrite has failed, dumps now and then (of which up to so much is lost), nothing, or less than configured because writing
 * fails. Some services do not report it.
 */
export type Persistence =
  | { kind: 'append-only' }
  | { kind: 'growing' }
  | { kind: 'dumps'; losesUpToSeconds: number }
  | { kind: 'nothing' }
  | { kind: 'failing'; what: 'append-only file' | 'dumps' }
  | { kind: 'unknown' };

/** Reads the persistence of Redis. */
export async function readPersistence(redis: RedisClient): Promise<Persistence> {
  const info = parseInfo(await redis.info('persistence'));
  switch (info.get('aof_enabled')) {
    case '1':
      if (info.get('aof_last_write_status') === 'err') return { kind: 'failing', what: 'append-only file' };
      return { kind: info.get('aof_last_bgrewrite_status') === 'err' ? 'growing' : 'append-only' };
    case '0':
      break;
    default:
      return { kind: 'unknown' };
  }
  // Services that manage Redis refuse CONFIG; where no save points are known, nothing is proven either way.
  const save = await redis.config('GET', 'save').then(
    (reply) => String(reply.at(-1) ?? ''),
    () => null,
  );
  if (save === null) return { kind: 'unknown' };
  const spans = [...save.matchAll(/(\d+) \d+/g)].map((match) => Number(match[1]));
  if (spans.length === 0) return { kind: 'nothing' };
  return info.get('rdb_last_bgsave_status') === 'err'
    ? { kind: 'failing', what: 'dumps' }
    : { kind: 'dumps', losesUpToSeconds: Math.max(...spans) };
}

/** True when Redis certainly stores its data, false when it certainly does not; null where that is unknown. */
export function isPersistent(persistence: Persistence): boolean | null {
  switch (persistence.kind) {
    case 'append-only':
    case 'growing':
    case 'dumps':
      return true;
    case 'nothing':
    case 'failing':
      return false;
    case 'unknown':
      return null;
  }
}

/** Formats the warning about a persistence; null where there is none. */
export function persistenceWarning(persistence: Persistence): string | null {
  switch (persistence.kind) {
    case 'append-only':
      return null;
    case 'growing':
      return 'Redis could not rewrite its append-only file (aof_last_bgrewrite_status err): the file grows until a rewrite succeeds, and a gap that a full disk left in it stays; see its log, its memory and its disk';
    case 'dumps':
      return `Redis has no append-only file (appendonly no), only dumps: when it ends, up to the last ${spanOf(persistence.losesUpToSeconds)} of what was acknowledged can be lost`;
    case 'nothing':
      return 'Redis stores nothing on disk (appendonly no, no save points): when it ends, all events, deliveries and what is known of every transfer are lost';
    case 'failing':
      return `Redis cannot write its ${persistence.what}: when it ends, what came since the last successful write is lost; see its log and its disk`;
    case 'unknown':
      return 'Redis does not report whether it stores its data on disk (no aof_enabled in INFO, or CONFIG refused): check its settings';
  }
}

function spanOf(seconds: number): string {
  return seconds % 60 === 0 && seconds >= 120 ? `${seconds / 60} minutes` : `${seconds} s`;
}

/** Parses a reply to INFO. */
export function parseInfo(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
