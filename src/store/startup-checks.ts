import type { RedisClient } from './commands.ts';
import { parseInfo, persistenceWarning, readPersistence } from './persistence.ts';
import { redisTimeMs } from './redis-time.ts';

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
