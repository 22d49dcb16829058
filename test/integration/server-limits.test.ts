import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { loneServer } from '../support/lone-server.ts';
import { expectUnfinishedBodiesEnd, MIB, openTo } from '../support/unfinished-bodies.ts';

const TOKEN = 'a-token-of-some-length';
const EVENT = `/api/v1/events/evt_${'0'.repeat(40)}?receiver=backend`;

async function serve(): Promise<{ url: string; port: number }> {
  const server = loneServer(TOKEN);
  const { url } = await server.start();
  onTestFinished(() => server.close());
  return { url, port: Number(new URL(url).port) };
}

describe('strangers without a token', () => {
  test('cannot fill the memory by 600 unfinished bodies of 1 MiB, nor hold their connections', async () => {
    await expectUnfinishedBodiesEnd(
      `POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${MIB}\r\n\r\n`,
    );
  });

  test('cannot hold connections by headers that do not end, or by none', async () => {
    const { url, port } = await serve();
    const slow = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0 ? openTo(port, 'GET /metrics HTTP/1.1\r\nX-A: ') : openTo(port),
    );
    const drip = setInterval(() => {
      for (const { socket, isClosed } of slow.filter((_, index) => index % 2 === 0))
        if (!isClosed()) socket.write('a');
    }, 200);
    onTestFinished(() => clearInterval(drip));
    await eventually('every connection is ended', () => slow.every((one) => one.isClosed()));
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
  });

  test('get no more than 192 connections without a request', async () => {
    const { port } = await serve();
    const all = Array.from({ length: 400 }, () => openTo(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n'));
    await eventually('the rest is hung up on', () => all.filter((one) => one.isClosed()).length >= 208);
  });

  test('block no probe by 260 connections that send nothing', async () => {
    const { url, port } = await serve();
    const all = Array.from({ length: 260 }, () => openTo(port));
    await Promise.all(all.map(({ socket }) => once(socket, 'connect')));
    for (const path of ['healthz', 'metrics']) expect((await fetch(`${url}/${path}`)).status).toBe(200);
  });

  test('block no probe by 300 connections that they do not close', async () => {
    const { url, port } = await serve();
    const all = Array.from({ length: 300 }, () => openTo(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'));
    await eventually('all are answered or hung up on', () =>
      all.every((one) => one.isClosed() || one.answer() !== ''),
    );
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });
});

describe('a failed login', () => {
  const request = (token: string, from = '127.0.0.1') =>
    `GET ${EVENT} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nX-Forwarded-For: ${from}\r\n\r\n`;
  const statusesOf = (answer: string) =>
    [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);

  test('delays the next ones of its address: beyond 20 that wait, not even the right token is checked', async () => {
    const { url, port } = await serve();
    const guesses = Array.from({ length: 20 }, (_, index) => request(`wrong-${index}`));
    const denied = await eventually('the right token is refused', async () => {
      for (const half of [guesses.slice(0, 10), guesses.slice(10)]) openTo(port, half.join(''));
      const answer = await fetch(`${url}${EVENT}`, { headers: { authorization: `Bearer ${TOKEN}` } });
      return answer.status === 429 ? answer : null;
    });
    expect(denied.headers.get('retry-after')).toBe('5');
    const other = await once(
      connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).once(
        'connect',
        function (this: Socket) {
          this.write(request(TOKEN));
        },
      ),
      'data',
    );
    expect(statusesOf(String(other[0]))).toEqual(['404']);
  });

  test('through a trusted proxy counts only for the client that the proxy names', async () => {
    const { port } = await serve();
    const through = (...chunks: string[]): Socket => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.1.1' });
      onTestFinished(() => void socket.destroy());
      for (const one of chunks) socket.write(one);
      return socket;
    };
    const guesses = Array.from({ length: 20 }, (_, index) =>
      request(`wrong-${index}`, `10.0.0.${index}, 192.0.2.1`),
    );
    await eventually('the client is refused', async () => {
      for (const half of [guesses.slice(0, 10), guesses.slice(10)]) through(half.join(''));
      const [denied] = await once(through(request(TOKEN, '192.0.2.1')), 'data');
      return statusesOf(String(denied))[0] === '429';
    });
    const [answer] = await once(through(request(TOKEN, '192.0.2.1, 192.0.2.2')), 'data');
    expect(statusesOf(String(answer))).toEqual(['404']);
  });
});
