import { once } from 'node:events';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  client,
  expectProbesBeside,
  PROBE,
  SCRAPE,
  SIGN_IN,
  serveShipped,
} from '../support/attacked-daemon.ts';
import { eventually } from '../support/eventually.ts';

const closers: (() => Promise<unknown>)[] = [];
let url: string;

beforeAll(async () => {
  url = await serveShipped((close) => closers.push(close));
});

afterAll(async () => {
  for (const close of closers.toReversed()) await close();
});

test('a connection that sends more than 16 requests ahead ends', async () => {
  const ahead = client(url, SCRAPE.repeat(1_000), { deaf: true });
  await once(ahead.socket, 'connect');
  ahead.socket.resume();
  await eventually('it has ended', () => ahead.isClosed());
  // A connection that stalls for 8 s after its answers ends as any idle one does: then another is opened.
  await eventually('one that sends 16 is answered, and goes on', async () => {
    const few = client(url, SCRAPE.repeat(16));
    await eventually('all are answered', () => few.answer().split('HTTP/1.1 200').length === 17);
    return !few.isClosed();
  });
});

test('a connection without a complete request ends, however slowly bytes come', async () => {
  const stored = client(url, PROBE);
  const slow = [
    client(url, 'GET /metrics HTTP/1.1\r\nX-A: '),
    client(url, `${SIGN_IN}Content-Length: 10000\r\n\r\n`),
    client(url, `${PROBE}GET /`),
  ];
  const drip = setInterval(() => {
    for (const { socket, isClosed } of slow) if (!isClosed()) socket.write('a');
  }, 500);
  onTestFinished(() => clearInterval(drip));
  await eventually('all have ended', () => [stored, ...slow].every((one) => one.isClosed()));
  expect(stored.answer()).toMatch(/^Keep-Alive: timeout=8\r$/im);
});

test('a probe is answered beside 64 streams and 300 connections that send nothing', async () => {
  await expectProbesBeside(url, (to) => client(to, ''));
});
