import { Redis } from 'ioredis';

/** What a Redis was asked in some time: by clients, and inside scripts. */
export type Counted = { client: number; inside: number };

/** Counts every command that a server takes for so many ms, with MONITOR. */
export async function countCommands(url: string, forMs: number): Promise<Counted> {
  // Nothing of its own must be among what it is told.
  const redis = new Redis(url, {
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
  });
  const monitor = await redis.monitor();
  const counted: Counted = { client: 0, inside: 0 };
  monitor.on('monitor', (_time: string, _args: string[], source: string) => {
    if (source === 'lua') counted.inside++;
    else counted.client++;
  });
  await new Promise((resolve) => setTimeout(resolve, forMs));
  monitor.disconnect();
  redis.disconnect();
  return counted;
}
