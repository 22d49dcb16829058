import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { RpcEndpoint } from '../../src/chains/endpoint.ts';
import { Secret } from '../../src/secret.ts';
import { Thread } from '../../src/thread.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';

const TOKEN = {
  chainId: 8453,
  address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  symbol: 'USDC',
  decimals: 6,
};

async function serve(body: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function clientFor(body: string): Promise<UpstreamClient> {
  const client = new UpstreamClient({
    baseUrl: await serve(body),
    apiKey: new Secret('sk-live-0123456789abcdef'),
    timeoutMs: 60_000,
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/vaults/{vaultAddress}',
      chainParam: 'sourceChainId',
      jobPath: '/jobs/{id}',
    },
  });
  onTestFinished(() => client.close());
  return client;
}

function threaded(): number[] {
  const run = vi.spyOn(Thread.prototype, 'run');
  onTestFinished(() => run.mockRestore());
  const texts: number[] = [];
  run.mockImplementation(function (this: Thread<unknown, unknown>, task) {
    texts.push((task as { text: string }).text.length);
    run.mockRestore();
    return this.run(task);
  });
  return texts;
}

const tokens = (count: number): string => JSON.stringify(Array.from({ length: count }, () => TOKEN));

test('a list of a usual size is read at once, a large one in a thread, to the same effect', async () => {
  const texts = threaded();
  expect((await (await clientFor(tokens(1_000))).tokens()).value.entries).toHaveLength(1_000);
  expect(texts).toEqual([]);
  const large = tokens(9_000);
  const { entries, unreadable } = (await (await clientFor(large)).tokens()).value;
  expect(texts).toEqual([large.length]);
  expect([entries.length, unreadable]).toEqual([9_000, []]);
  expect(entries[0]).toEqual(TOKEN);
});

test('of a hostile list little comes back from the thread', async () => {
  const { entries, unreadable } = (await (await clientFor(`[${'{},'.repeat(99_999)}{}]`)).tokens()).value;
  expect([entries.length, unreadable.length]).toEqual([0, 10_001]);
  expect(unreadable.at(-1)?.reason).toBe('90000 more entries, expected at most 10000');
});

test('a large list with too many members is malformed', async () => {
  const requests = (await clientFor(`[${'1,'.repeat(200_000)}1]`)).tokens();
  const failure = await requests.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UpstreamFailure);
  expect(failure).toMatchObject({ code: 'malformed', message: expect.stringContaining('too many members') });
});

test('a large answer of an RPC endpoint is read in a thread, and data outside the result stays there', async () => {
  const texts = threaded();
  const block = {
    number: '0x10',
    hash: `0x${'ab'.repeat(32)}`,
    timestamp: '0x65000000',
    transactions: Array.from({ length: 5_000 }, () => `0x${'cd'.repeat(32)}`),
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: block });
  const endpoint = new RpcEndpoint(
    {
      name: 'node',
      url: new Secret(await serve(body)),
      headers: {},
      timeoutMs: 60_000,
      proxy: null,
      requestsPerSecond: 10,
    },
    { chainId: '8453', onCall: () => undefined },
  );
  onTestFinished(() => endpoint.close());
  const read = await endpoint.call({ method: 'eth_getBlockByNumber', params: [], result: 'evmBlock' });
  expect(texts).toEqual([body.length]);
  expect(read).toEqual({ number: 16n, hash: block.hash, timestamp: 0x65000000n });
});
