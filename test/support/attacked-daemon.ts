import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { hashOf, upstreamOfStatuses } from './scripted-upstream.ts';
import { ShippedDaemon } from './shipped-daemon.ts';

const TOKEN = 'admin-token-0123456789';

/** Most streams that all clients may have at once, from as many addresses as that needs. */
const STREAMS = 64;
const STREAMS_OF_ADDRESS = 16;

export type Client = { socket: Socket; isClosed: () => boolean; answer: () => string };

/** A connection to a daemon until the test ends. It sends some bytes, and reads the answer unless it is `deaf`. */
export function client(
  url: string,
  sent: string,
  { from = '127.0.0.1', deaf = false }: { from?: string; deaf?: boolean } = {},
): Client {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress: from });
  let closed = false;
  let answer = '';
  socket.on('error', () => undefined);
  socket.once('close', () => {
    closed = true;
  });
  if (deaf) socket.pause();
  else socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  if (sent !== '') socket.write(sent);
  onTestFinished(() => void socket.destroy());
  return { socket, isClosed: () => closed, answer: () => answer };
}

/** Starts the shipped daemon with an admin token; returns its URL. */
export async function serveShipped(later: (close: () => Promise<unknown>) => void): Promise<string> {
  const upstream = upstreamOfStatuses(new Map([[hashOf(1), 'pending']]));
  await upstream.start();
  later(() => upstream.close());
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      subscription: { intents: [hashOf(1)] },
      more: { server: { host: '127.0.0.1', port: 0, token: TOKEN } },
    },
    later,
  );
  return daemon.start();
}

/** The answers to a probe and a scrape, each over a connection of its own. */
async function probed(url: string): Promise<string[]> {
  const statuses: string[] = [];
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    const status = async (): Promise<string> => {
      const probe = client(url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      await eventually(`${path} is answered`, () => probe.answer() !== '' || probe.isClosed());
      return probe.answer().slice(9, 12);
    };
    // A daemon is briefly not ready where Redis answers slowly.
    const isPassing = (found: string): boolean => path === '/readyz' && found === '503';
    const request = async (): Promise<string | null> => {
      const found = await status();
      return isPassing(found) ? null : found;
    };
    statuses.push(await eventually(`${path} is answered for good`, request));
  }
  return statuses;
}

const FINE = ['200', '200', '200'];
export const PROBE = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
export const SCRAPE = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n';
/** Without its token and its end. */
const STREAM = 'GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n';
export const SIGN_IN = 'POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

/** Opens the most streams of events that all clients may have, and 300 connections. A probe must still be answered. */
export async function expectProbesBeside(url: string, make: (url: string) => Client): Promise<void> {
  const streams = Array.from({ length: STREAMS }, (_each, index) =>
    client(url, `${STREAM}Authorization: Bearer ${TOKEN}\r\n\r\n`, {
      from: `127.0.0.${10 + Math.floor(index / STREAMS_OF_ADDRESS)}`,
    }),
  );
  await eventually('every stream runs', () => streams.every((one) => one.answer().includes('200 OK')));
  const all = Array.from({ length: 300 }, () => make(url));
  await Promise.all(
    all.map(({ socket }) => (socket.connecting ? once(socket, 'connect').catch(() => null) : null)),
  );
  expect(await probed(url)).toEqual(FINE);
  expect(streams.filter((one) => one.isClosed())).toEqual([]);
}
