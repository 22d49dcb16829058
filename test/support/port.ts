import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that systems hand out by themselves (Linux: from 32768, others: from 49152): no connection and no other
 * server of a test can take one of these by chance between its choice and its use.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const MOST_TRIES = 100;

/** Of the upper half each process that runs test files has a part of its own; the lower half is all others'. */
const HALF = (HIGHEST - LOWEST) / 2;
const PROCESSES = 16;
const worker = process.env.VITEST_POOL_ID;
const COUNT = worker === undefined ? HALF : HALF / PROCESSES;
const FIRST = worker === undefined ? LOWEST : LOWEST + HALF + (Number(worker) % PROCESSES) * COUNT;

/** Chance keeps two runs on one machine apart. */
let place = randomInt(COUNT);

/** A loopback port on which nobody listens, and which no other test was given of late. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    place = (place + 1) % COUNT;
    const port = FIRST + place;
    if (await isFree(port)) return port;
  }
  throw new Error(`found ${MOST_TRIES} ports in use, expected a free one of the ${COUNT} from ${FIRST} on`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
