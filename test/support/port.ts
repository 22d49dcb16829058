import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/**
 * Below the ports that systems assign by themselves (Linux: from 32768, others: from 49152): no connection and no other
 * server of a test can take one of these by chance between its choice and its use.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const COUNT = HIGHEST - LOWEST;

/** Chance separates most searches of two processes. */
let place = randomInt(COUNT);

/**
 * Finds a free loopback port. It is reserved until this process ends: no other test gets it meanwhile, in this process or
 * in another one, even while its server is stopped.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries += 1) {
    place = (place + 1) % COUNT;
    const port = LOWEST + place;
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`found ${COUNT} ports in use from ${LOWEST} on, expected a free one`);
}

/** Reserves a port among test processes by its UDP twin, which only one socket can hold. False when another holds it. */
async function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    socket.once('error', () => socket.close(() => resolve(false)));
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      socket.unref();
      resolve(true);
    });
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
