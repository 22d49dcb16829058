import type { RedisClient } from './commands.ts';

/** Returns Redis time, in ms. */
export async function redisTimeMs(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}
