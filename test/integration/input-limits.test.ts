import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createConsumer } from '../../consumer/src/index.ts';
import { openPostgres } from '../../src/books/sql/postgres.ts';
import { work } from '../../src/chains/answer.ts';
import { RpcEndpoint } from '../../src/chains/endpoint.ts';
import { ApiClient } from '../../src/client/api-client.ts';
import { followDaemon } from '../../src/client/follow.ts';
import { readQuoteFile } from '../../src/commands/verify-quote.ts';
import type { Receiver } from '../../src/config/config.ts';
import { fitsMetadata } from '../../src/config/fields/fields.ts';
import { readTlsFiles } from '../../src/config/fields/tls.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { type InputLimits, LIMITS } from '../../src/domain/limits.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult } from '../../src/notifiers/notifier.ts';
import { Secret } from '../../src/secret.ts';
import { listEvents } from '../../src/server/api/routes/log.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { ADMIN_TOKEN, type ApiStage, apiStageOfFile } from '../support/api-stage.ts';
import { RawServer } from '../support/raw-server.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { WEBHOOK_SECRET, webhookReceiver } from '../support/webhook-receiver.ts';

type Limit = 'bytes' | 'depth' | 'members' | 'numberCharacters' | 'textCharacters';

/** Sends input of a size; returns true when it was refused for its size. */
type Send = (size: number) => Promise<boolean> | boolean;

/** Senders for each limit of a row. `slack`: the margin, on both sides, of input that cannot be sized to the byte. */
type Tried = Partial<Record<Limit, Send>> & { slack?: Partial<Record<Limit, number>> };

let stage: ApiStage;
apiStageOfFile((made) => {
  stage = made;
});

/** JSON in which one thing has a size; all else is small. `members` and `depth` count those of `head` too. */
function jsonOf(limit: Limit, size: number, { head = '', own = 0 } = {}): string {
  switch (limit) {
    case 'bytes':
      return `{${head}"a":1}`.padEnd(size);
    case 'depth':
      return `{${head}"a":${'['.repeat(size - 1)}${']'.repeat(size - 1)}}`;
    case 'members':
      return `{${head}"a":[${Array.from({ length: size - 1 - own }, () => '1').join(',')}]}`;
    case 'numberCharacters':
      return `{${head}"a":${'1'.repeat(size)}}`;
    case 'textCharacters':
      return `{${head}"a":"${'x'.repeat(size)}"}`;
  }
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serveBody = (body: string, type = 'application/json'): Promise<string> =>
  serve((_request, response) => response.writeHead(200, { 'content-type': type }).end(body));

async function rawServer(serve: ConstructorParameters<typeof RawServer>[0]): Promise<number> {
  const server = new RawServer(serve);
  await server.start();
  onTestFinished(() => server.close());
  return server.port;
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(made, { recursive: true, maxRetries: 5 }));
  return made;
}

/** The message with which a promise fails; empty where it does not. */
const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => '',
    (error: unknown) => String(error),
  );

async function upstreamRefuses(body: string, list: 'status' | 'tokens'): Promise<boolean> {
  const client = new UpstreamClient({
    baseUrl: await serveBody(body),
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
  const requests = list === 'status' ? client.status({ quoteId: 'u' }) : client.tokens();
  const error = await requests.then(
    () => null,
    (reason: unknown) => reason,
  );
  return error instanceof UpstreamFailure && error.tooLarge !== null;
}

const upstream = (limit: Limit, list: 'status' | 'tokens', head: string): Send => {
  return (size) => upstreamRefuses(jsonOf(limit, size, { head, own: 2 }), list);
};

/** A longer number of the upstream is dropped, and the rest of its record is read. */
const droppedNumber: Send = async (size) => {
  const record = `{"id":"intent:0x1","type":"intent","status":"pending","updatedAt":1763638259,"a":${'1'.repeat(size)}}`;
  const client = new UpstreamClient({
    baseUrl: await serveBody(`{"results":[${record}],"nextCursor":null}`),
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
  const { value } = await client.status({ quoteId: 'u' });
  return !JSON.stringify(value).includes('1'.repeat(size));
};

const RPC_HEAD = '"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},';
const rpc = (limit: Limit): Send => {
  return (size) =>
    work({ text: jsonOf(limit, size, { head: RPC_HEAD, own: 5 }), result: 'evmBlock' }).kind === 'none';
};

const rpcBytes: Send = async (size) => {
  const endpoint = new RpcEndpoint(
    {
      name: 'node',
      url: new Secret(await serveBody(jsonOf('bytes', size, { head: RPC_HEAD }))),
      headers: {},
      timeoutMs: 60_000,
      proxy: null,
      requestsPerSecond: 10,
    },
    { chainId: '8453', onCall: () => undefined },
  );
  onTestFinished(() => endpoint.close());
  const requests = endpoint.call({ method: 'eth_getBlockByNumber', params: [], result: 'evmBlock' });
  return !/\bm\b/.test(await messageOf(requests));
};

async function delivered(receiver: Receiver, smtp: string | null = null): Promise<AttemptResult> {
  const notifier = createNotifier(receiver, {
    smtp: smtp === null ? null : { url: new Secret(smtp), from: 'a@example.com' },
    version: '0.0.0',
    eventUrl: null,
  });
  onTestFinished(() => notifier.close());
  const { signal } = new AbortController();
  return notifier.deliver(renderedEvent(), { signal, nowMs: Date.now() });
}

const receiverRefuses = async (answer: string): Promise<boolean> => {
  const port = await rawServer((socket) => socket.once('data', () => socket.write(answer)));
  return (await delivered(webhookReceiver(`http://127.0.0.1:${port}/`))).outcome !== 'delivered';
};
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';

const COMMON = {
  name: 'r',
  events: ['*'],
  filter: { wallets: null, chains: null, minAmount: null },
  rateLimit: null,
  timeoutMs: 60_000,
  retries: { delaysMs: [], jitter: 0 },
  concurrency: 1,
  disableAfterMs: 432_000_000,
};

async function mailed(greeting: string): Promise<AttemptResult> {
  const port = await rawServer((socket) => {
    socket.write(`${greeting}220 ok\r\n`);
    let isData = false;
    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      if (isData && !text.endsWith('\r\n.\r\n')) return;
      const isStart = text.startsWith('DATA');
      isData = isStart;
      socket.write(isStart ? '354 go on\r\n' : '250 ok\r\n');
    });
  });
  return delivered(mailReceiver(60_000), `smtp://127.0.0.1:${port}`);
}

function mailReceiver(timeoutMs: number): Receiver {
  const batching = { digest: null, quietHours: null };
  return { ...COMMON, type: 'email', to: ['b@example.com'], ordering: 'none', batching, timeoutMs };
}

function postgresError(bytes: number): Buffer {
  const fields = Buffer.from('SERROR\0C28000\0M');
  const length = bytes - 1;
  const message = Buffer.alloc(bytes - 5 - fields.length - 2, 'x');
  const head = Buffer.alloc(5, 'E');
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, fields, message, Buffer.alloc(2)]);
}

const AUTHENTICATED = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I');
const READY = AUTHENTICATED.subarray(9);

/** A Postgres that accepts every login, answers the first statement with an error of so many bytes, and ends at the second. */
async function postgresAnswers(bytes: number): Promise<string> {
  const answers = [AUTHENTICATED, Buffer.concat([postgresError(bytes), READY])];
  const port = await rawServer((socket) => {
    const left = [...answers];
    socket.on('data', () => {
      const answer = left.shift();
      if (answer === undefined) socket.destroy();
      else socket.write(answer);
    });
  });
  return `postgres://u:p-0123456789@127.0.0.1:${port}/d`;
}

const postgresReceiver = async (bytes: number): Promise<AttemptResult> =>
  delivered({
    ...COMMON,
    type: 'postgres',
    url: new Secret(await postgresAnswers(bytes)),
    table: 't',
    tls: null,
    ordering: 'subject',
    allowInsecure: true,
    apiNetworks: null,
  });

const isForSize = (text: string): boolean =>
  /nested too deeply|too many members|too long|more than \d+ values|bytes of metadata|is longer|larger than|a text of \d+ characters|a file of \d+ bytes/.test(
    text,
  );

const posted =
  (path: string, limit: Limit, token?: string): Send =>
  async (size) => {
    const answer = await fetch(stage.url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        origin: stage.url,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: jsonOf(limit, size),
    });
    const text = await answer.text();
    const expected = limit === 'bytes' ? [413] : [400];
    const isRefused = answer.status === 413 || isForSize(text);
    if (isRefused) expect(expected).toContain(answer.status);
    return isRefused;
  };

async function configRefuses(
  yaml: string,
  { env = {}, files = {} }: { env?: NodeJS.ProcessEnv; files?: Record<string, string> } = {},
): Promise<boolean> {
  const place = await folder();
  for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text);
  const file = join(place, 'intentwatch.yaml');
  await writeFile(file, yaml.replaceAll('@', place));
  return isForSize(await messageOf(loadConfig(file, env)));
}

const quoted =
  (limit: Limit): Send =>
  async (size) => {
    const file = join(await folder(), 'quote.json');
    await writeFile(file, jsonOf(limit, size));
    const inConfig = `subscriptions: [{name: s, quotes: [{file: ${file}}]}]\n`;
    const isRefused = isForSize(await messageOf(readQuoteFile(file)));
    expect(await configRefuses(inConfig)).toBe(isRefused);
    return isRefused;
  };

/** Data that arrives at once is read at once: an answer that ends within the same piece is complete. */
const CHUNK = 100_000;

const TRIED: Record<keyof typeof LIMITS, Tried> = {
  upstream: {
    bytes: upstream('bytes', 'status', '"results":[],"nextCursor":null,'),
    depth: upstream('depth', 'status', '"results":[],"nextCursor":null,'),
    members: upstream('members', 'status', '"results":[],"nextCursor":null,'),
    numberCharacters: droppedNumber,
  },
  upstreamList: {
    bytes: upstream('bytes', 'tokens', '"tokens":[],"b":1,'),
    depth: upstream('depth', 'tokens', '"tokens":[],"b":1,'),
    members: upstream('members', 'tokens', '"tokens":[],"b":1,'),
  },
  rpc: {
    bytes: rpcBytes,
    depth: rpc('depth'),
    members: rpc('members'),
    numberCharacters: rpc('numberCharacters'),
  },
  receiverAnswer: {
    bytes: (size) => receiverRefuses(`${'\r\n'.repeat((size - ANSWER.length - 4) >> 1)}${ANSWER}\r\nok`),
    slack: { bytes: 2 },
  },
  receiverHeader: {
    bytes: (size) => receiverRefuses(`${ANSWER}X: ${'x'.repeat(size)}\r\n\r\nok`),
    slack: { bytes: 200 },
  },
  mailReplies: {
    bytes: async (size) =>
      (await mailed('220-more\r\n'.repeat(Math.floor(size / 10)))).outcome !== 'delivered',
    slack: { bytes: 1_000 },
  },
  postgresAnswer: {
    bytes: async (size) => {
      const { outcome, reason } = await postgresReceiver(size);
      expect([outcome, reason.length <= 300]).toEqual(['failed', true]);
      return !reason.startsWith('xxx');
    },
    slack: { bytes: CHUNK },
  },
  booksAnswer: {
    bytes: async (size) => {
      const books = openPostgres(new Secret(await postgresAnswers(size)), { hasTls: false });
      onTestFinished(() => books.close());
      const message = await messageOf(books.read((sql) => sql.all('SELECT 1')));
      expect(message.length).toBeLessThan(500);
      return !message.includes('xxx');
    },
    slack: { bytes: CHUNK },
  },
  requestHead: {
    bytes: async (size) => {
      const answer = await fetch(`${stage.url}/healthz`, { headers: { x: 'x'.repeat(size) } });
      return answer.status === 431;
    },
    slack: { bytes: 500 },
  },
  api: {
    bytes: posted('/api/v1/subjects', 'bytes', ADMIN_TOKEN),
    depth: posted('/api/v1/subjects', 'depth', ADMIN_TOKEN),
    members: posted('/api/v1/subjects', 'members', ADMIN_TOKEN),
    numberCharacters: posted('/api/v1/subjects', 'numberCharacters', ADMIN_TOKEN),
    textCharacters: posted('/api/v1/subjects', 'textCharacters', ADMIN_TOKEN),
  },
  signIn: {
    bytes: posted('/console/session', 'bytes'),
    depth: posted('/console/session', 'depth'),
    members: posted('/console/session', 'members'),
    numberCharacters: posted('/console/session', 'numberCharacters'),
    textCharacters: posted('/console/session', 'textCharacters'),
  },
  metadata: { bytes: (size) => !fitsMetadata({ a: 'x'.repeat(size - '{"a":""}'.length) }) },
  config: {
    bytes: (size) => configRefuses(`a: 1\n#${'x'.repeat(size - 7)}\n`),
    depth: (size) => configRefuses(`a: ${'['.repeat(size)}${']'.repeat(size)}\n`),
    // Counted at aliases.
    members: (size) => {
      const aliases = '*a,'.repeat(Math.floor(size / 1_000));
      return configRefuses(`a: &a [${'1,'.repeat(999)}]\nb: [${aliases}]\n`);
    },
    textCharacters: (size) => configRefuses(`a: ${'x'.repeat(size)}\n`),
    slack: { members: 3_000 },
  },
  environment: { bytes: (size) => configRefuses('a: ${LONG}\n', { env: { LONG: 'x'.repeat(size) } }) },
  secretFile: {
    bytes: (size) => configRefuses('a: ${file:@/secret}\n', { files: { secret: 'x'.repeat(size) } }),
  },
  quoteFile: {
    bytes: quoted('bytes'),
    depth: quoted('depth'),
    members: quoted('members'),
    numberCharacters: quoted('numberCharacters'),
    textCharacters: quoted('textCharacters'),
  },
  certificateFile: {
    bytes: async (size) => {
      const place = await folder();
      await writeFile(join(place, 'ca.pem'), 'x'.repeat(size));
      const { findings } = await readTlsFiles({ ca: 'ca.pem' }, { folder: place });
      return isForSize(findings[0]?.found ?? '');
    },
  },
  daemonAnswer: {
    bytes: async (size) => {
      const url = await serveBody(jsonOf('bytes', size));
      return isForSize(await messageOf(new ApiClient({ url, token: null }).call(listEvents)));
    },
  },
  daemonEvent: {
    bytes: async (size) => {
      const url = await serveBody(`id: 1\ndata: {"a":"${'x'.repeat(size)}"}\n\n`, 'text/event-stream');
      const events = followDaemon(
        new ApiClient({ url, token: null }),
        { cursor: '1' },
        { signal: AbortSignal.timeout(60_000), onCut: () => undefined, onBack: () => undefined },
      );
      return isForSize(await messageOf(events.next()));
    },
    slack: { bytes: CHUNK },
  },
  consumer: {
    bytes: async (size) => {
      const consumer = createConsumer({ secrets: [WEBHOOK_SECRET], onError: () => undefined });
      return (await consumer.receive({ headers: {}, body: Buffer.alloc(size) })).status === 413;
    },
  },
};

const LIMIT_NAMES: readonly Limit[] = ['bytes', 'depth', 'members', 'numberCharacters', 'textCharacters'];

const ROWS = Object.entries<InputLimits>(LIMITS).flatMap(([name, limits]) => {
  const tried = TRIED[name as keyof typeof LIMITS];
  return LIMIT_NAMES.flatMap((limit) => {
    const [most, send] = [limits[limit] ?? null, tried[limit]];
    return most === null ? [] : [{ name, limit, most, send, slack: tried.slack?.[limit] ?? 0 }];
  });
});

/** A long number in a list is dropped as on a page, and no member that is read shows it. */
const TESTED = ROWS.filter(({ name, limit }) => `${name}.${limit}` !== 'upstreamList.numberCharacters');

describe('each limit of the table is the one that holds', () => {
  test.each(TESTED)('$name: $limit', async ({ most, send, slack }) => {
    expect(await send?.(most - slack)).toBe(false);
    expect(await send?.(most + 1 + slack)).toBe(true);
  });
});

describe('a mail server with endless replies costs one attempt', () => {
  test.each([
    ['one line', 'x'.repeat(1_000)],
    ['lines of one reply', '220-more\r\n'.repeat(100)],
    ['empty replies', '\r\n'.repeat(500)],
  ])('%s', async (_, more) => {
    const port = await rawServer((socket) => {
      const flood = (): void => {
        while (!socket.destroyed && socket.write(more));
        if (!socket.destroyed) socket.once('drain', flood);
      };
      flood();
    });
    const result = await delivered(mailReceiver(60_000), `smtp://127.0.0.1:${port}`);
    expect(result).toMatchObject({ outcome: 'failed', retryAfterMs: null });
    expect(result.reason.length).toBeLessThanOrEqual(300);
    // No part of the flood occupies the process once the attempt is over.
    const isBusy = (): boolean => process.getActiveResourcesInfo().includes('Immediate');
    for (let turns = 0; isBusy() && turns < 100; turns += 1)
      await new Promise((resolve) => setTimeout(resolve, 1));
    expect(isBusy()).toBe(false);
  });

  test('one that comes slowly', async () => {
    const port = await rawServer((socket) => {
      const timer = setInterval(() => socket.write('220-more\r\n'), 10);
      socket.once('close', () => clearInterval(timer));
    });
    const result = await delivered(mailReceiver(300), `smtp://127.0.0.1:${port}`);
    expect(result).toMatchObject({ outcome: 'failed', reason: 'not sent within 300 ms' });
  });
});
