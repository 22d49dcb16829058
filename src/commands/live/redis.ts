import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import { parseRedisUrl, type RedisTarget } from '../../config/sections/redis.ts';
import { makeFolder } from '../../make-folder.ts';
import type { RedisClient } from '../../store/commands.ts';
import { connect, disconnect, redisTimeMs, redisWords } from '../../store/connection.ts';
import { unusableFolder } from '../../store/embedded.ts';
import { checkRedis } from '../../store/startup-checks.ts';
import { type Check, type Finding, failed, messageOf, seconds } from './finding.ts';

/** What is asked of the Redis that the config names; of the embedded one, whether it can be started. */
export function redisCheck(config: Config): Check {
  const target = parseRedisUrl(config.redis.url?.reveal() ?? '');
  return target === null ? embeddedCheck(config) : externalCheck(target);
}

/** The daemon waits for a Redis that is away; here the first trouble is the finding. */
function externalCheck(target: RedisTarget): Check {
  const wordsOf = redisWords(target);
  return {
    name: 'Redis (redis.url)',
    ask: async (signal) => {
      const trouble = Promise.withResolvers<never>();
      const redis = connect(target, { onTrouble: (words) => trouble.reject(new Error(words)) });
      signal.addEventListener('abort', () => redis.disconnect());
      try {
        return await Promise.race([look(redis, passwordOf(target)), trouble.promise]);
      } finally {
        await disconnect(redis);
      }
    },
    explain: (error) => failed(new Error(wordsOf(error))),
  };
}

async function look(redis: RedisClient, password: string | null): Promise<Omit<Finding, 'name'>> {
  const findings = await checkRedis(redis);
  if (password !== null && !(await asksForPassword(redis, password))) {
    const message =
      'found no password there, expected the one of the URL: whoever reaches it may read and change everything';
    findings.push({ fatal: true, message });
  }
  const skewMs = (await redisTimeMs(redis)) - Date.now();
  const words = findings.map((finding) => finding.message).join('; ');
  return {
    ok: findings.every((finding) => !finding.fatal),
    detail: words || `reachable, keeps what it is given; its clock is ${seconds(skewMs)} from ours`,
  };
}

/** The password of the default user; null where there is none, or another user logs in. */
function passwordOf(target: RedisTarget): string | null {
  if (target.kind === 'socket') return null;
  if (target.kind !== 'server') return target.username === undefined ? (target.password ?? null) : null;
  const { username, password } = new URL(target.url);
  return username === '' && password !== '' ? decodeURIComponent(password) : null;
}

/** A Redis without a password lets in whoever has one, and the driver says nothing of that. */
async function asksForPassword(redis: RedisClient, password: string): Promise<boolean> {
  try {
    await redis.call('AUTH', password);
    return true;
  } catch (error) {
    return !messageOf(error).includes('without any password');
  }
}

function embeddedCheck({ dataDir }: Config): Check {
  return {
    name: 'Redis (embedded)',
    ask: async (signal) => {
      const version = await redisServerVersion(signal);
      await openFolder(dataDir);
      return { ok: true, detail: `${version}; its data goes to ${dataDir}` };
    },
  };
}

async function openFolder(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir);
    await access(dataDir, constants.W_OK);
  } catch (error) {
    throw new Error(unusableFolder(dataDir, messageOf(error)));
  }
}

async function redisServerVersion(signal: AbortSignal): Promise<string> {
  const child = spawn('redis-server', ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], signal });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  await new Promise<void>((done, fail) => {
    child.once('error', () =>
      fail(
        new Error(
          'redis-server is not installed; install it (Debian: apt-get install redis-server) or set redis.url',
        ),
      ),
    );
    child.once('close', () => done());
  });
  return `redis-server ${/v=(\S+)/.exec(output)?.[1] ?? 'of an unknown version'}`;
}
