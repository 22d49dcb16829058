import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that systems hand out by themselves (Linux: from 32768, others: from 49152): no connection and no other
 * server of a test can take one of these by chance between its choice and its use.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const MOST_TRIES = 100;

/** A loopback port on which nobody listens. Tests that run side by side choose at random, each from 12,000. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) return port;
  }
  throw new Error(`found ${MOST_TRIES} ports in use, expected a free one from ${LOWEST} to ${HIGHEST}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
