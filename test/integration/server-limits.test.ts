import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Stage } from '../support/stage.ts';

const TOKEN = 'a-token-of-some-length';
const EVENT = `/api/v1/events/evt_${'0'.repeat(40)}?receiver=backend`;
const MIB = Buffer.alloc(1_024 * 1_024 - 1, 'x');

type Served = { url: string; port: number; rssMiB: () => Promise<number> };

async function serve(): Promise<Served> {
  const stage = new Stage(onTestFinished);
  const program = await stage.program(join(import.meta.dirname, '../support/server-program.ts'), [], {
    SERVER_TOKEN: TOKEN,
  });
  await eventually('the server listens', () => program.stdout.length > 0);
  const url = program.stdout[0] ?? '';
  const rssMiB = async (): Promise<number> => {
    const status = await readFile(`/proc/${program.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
  };
  return { url, port: Number(new URL(url).port), rssMiB };
}

/** A connection that says something; `closed` once the other side has hung up. */
function open(
  port: number,
  ...said: (string | Buffer)[]
): { socket: Socket; isClosed: () => boolean; answer: () => string } {
  const socket = connect(port, '127.0.0.1');
  let closed = false;
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  for (const one of said) socket.write(one);
  onTestFinished(() => void socket.destroy());
  return { socket, isClosed: () => closed, answer: () => answer };
}

describe('strangers without a token', () => {
  test.each([
    [
      'a length',
      `POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${MIB.length + 1}\r\n\r\n`,
    ],
    [
      'chunks',
      `POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${(MIB.length + 1).toString(16)}\r\n`,
    ],
    ['a GET', `GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: ${MIB.length + 1}\r\n\r\n`],
  ])('cannot fill the memory by 600 unfinished bodies of 1 MiB (%s), nor keep their connections', async (_, head) => {
    const { url, port, rssMiB } = await serve();
    await (await fetch(`${url}/metrics`)).text();
    const before = await rssMiB();
    const all = Array.from({ length: 600 }, () => open(port, head, MIB));
    await eventually('every connection is ended', () => all.every((one) => one.isClosed()));
    expect((await rssMiB()) / before).toBeLessThan(2);
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
  });

  test('cannot hold connections by headers that do not end, or by none', async () => {
    const { url, port } = await serve();
    const slow = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0 ? open(port, 'GET /metrics HTTP/1.1\r\nX-A: ') : open(port),
    );
    const drip = setInterval(() => {
      for (const { socket, isClosed } of slow.filter((_, index) => index % 2 === 0))
        if (!isClosed()) socket.write('a');
    }, 200);
    onTestFinished(() => clearInterval(drip));
    await eventually('every connection is ended', () => slow.every((one) => one.isClosed()));
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
  });

  test('get no more than 256 connections', async () => {
    const { port } = await serve();
    const all = Array.from({ length: 400 }, () => open(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n'));
    await eventually('the rest is hung up on', () => all.filter((one) => one.isClosed()).length >= 144);
    expect(all.filter((one) => one.isClosed()).length).toBe(144);
  });

  test('keep no probe out by 300 connections that they leave open', async () => {
    const { url, port } = await serve();
    const all = Array.from({ length: 300 }, () => open(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'));
    await eventually('all are answered or hung up on', () =>
      all.every((one) => one.isClosed() || one.answer() !== ''),
    );
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});

describe('a failed login', () => {
  const timed = async (url: string, token: string): Promise<{ status: number; ms: number }> => {
    const startedAt = performance.now();
    const { status } = await fetch(`${url}${EVENT}`, { headers: { authorization: `Bearer ${token}` } });
    return { status, ms: performance.now() - startedAt };
  };

  test('is answered later and later, and delays no right token', async () => {
    const { url } = await serve();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const { status, ms } = await timed(url, `wrong-${attempt}`);
      expect(status).toBe(401);
      waits.push(ms);
    }
    expect(waits[4]).toBeGreaterThan(1_500);
    expect(waits[4]).toBeGreaterThan(2 * (waits[1] ?? 0));
    const waiting = timed(url, 'wrong-again');
    const right = await timed(url, TOKEN);
    expect(right.status).toBe(404);
    expect(right.ms).toBeLessThan((await waiting).ms / 2);
  });

  test('of many at once makes few wait, and is told so', async () => {
    const { url } = await serve();
    const failed = Array.from({ length: 200 }, (_, index) => timed(url, `wrong-${index}`));
    const right = await timed(url, TOKEN);
    expect(right.status).toBe(404);
    const statuses = (await Promise.all(failed)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(50);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
  });
});
