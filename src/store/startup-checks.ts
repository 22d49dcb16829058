import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';

/** Something about Redis that the daemon cannot (`fatal`) or should not run with. */
export type RedisFinding = { fatal: boolean; message: string };

/** `PEXPIRE … GT`, on which the keeping of finished subjects rests, came with 7.0. */
const LEAST_VERSION = [7, 0] as const;

/** A difference between our clock and Redis's that is worth a word. */
export const CLOCK_WARNING_MS = 2_000;

/** Looks whether a Redis fits: version, eviction policy, persistence, clock. An empty list means that it does. */
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
  if (info.get('aof_enabled') === '0') {
    findings.push({
      fatal: false,
      message:
        'Redis has no append-only file (appendonly no): a restart of Redis loses events that were acknowledged',
    });
  }
  const skewMs = Math.abs((await redisTimeMs(redis)) - Date.now());
  if (skewMs > CLOCK_WARNING_MS) {
    findings.push({
      fatal: false,
      message: `the clock of this machine is ${(skewMs / 1_000).toFixed(1)} s off the clock of Redis`,
    });
  }
  return findings;
}

function parseInfo(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
