import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect as connectSocket, createServer as createTcpServer } from 'node:net';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { stringify } from 'yaml';
import { z } from 'zod';
import { integer, pick, type Random, randomStream } from '../sandbox/world/random.ts';
import type { RedisClient } from '../src/store/commands.ts';
import { connect, disconnect } from '../src/store/connection.ts';
import { Keys } from '../src/store/keys.ts';
import { appendEvents } from '../test/support/log-entries.ts';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../test/support/scripted-upstream.ts';
import { printTargets } from './detection/targets.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const TOKEN = 'bench-admin-token-0123456789abcdef';
const PREFIX = 'bench';

const MOST_MS = 100;
const MIB = 1024 * 1024;

/** After this time, an input has stopped the daemon: it is killed and started again. Milliseconds. */
const GIVEN_UP_MS = 30_000;

const INTENTS = 30;
const TOKEN_ADDRESS = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';

const OPTIONS = {
  random: { type: 'string', default: '1000' },
  seed: { type: 'string', default: '1' },
  only: { type: 'string', default: '' },
} as const;
const COUNT = z.coerce.number().int().min(0);

/** Targets of an input. `next` is the next intent that has not changed yet. */
type Stage = {
  url: string;
  upstream: ScriptedUpstream;
  receiver: BenchReceiver;
  redis: RedisClient;
  lists: { tokens: string };
  rpc: { result: string };
  next: () => string;
  reload: (tokens: OtherTokens) => Promise<void>;
  restart: () => Promise<void>;
};
type OtherTokens = { read?: string; consume?: string };
type Input = { name: string; send: (stage: Stage) => Promise<void> };

/**
 * Sends inputs at the limits, and random ones, to a daemon with its default settings. Prints the event loop delay of each, as
 * the daemon itself measures it (`nodejs_eventloop_lag_max_seconds`), beside an ordinary page.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const only = new RegExp(values.only);
  const redis = await RedisProcess.create();
  const lists = { tokens: '[]' };
  const rpc = { result: '"0x2105"' };
  const upstream = new ScriptedUpstream(({ path, query }) => answerOf(path, query, lists), { lists: true });
  const receiver = new BenchReceiver(rpc);
  await Promise.all([upstream.start(), receiver.start()]);
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  const configFile = join(folder, 'intentwatch.yaml');
  const write = (tokens: OtherTokens): Promise<void> =>
    writeFile(configFile, configOf(upstream.url, { redisUrl: redis.url, receiver, tokens }));
  await write({});
  const client = connect({ kind: 'server', url: redis.url });
  let daemon = await startDaemon(configFile);
  const restart = async (): Promise<void> => {
    await daemon.program.end('SIGKILL');
    daemon = await startDaemon(configFile);
    stage.url = daemon.url;
  };
  let changed = 1;
  const stage: Stage = {
    url: daemon.url,
    upstream,
    receiver,
    redis: client,
    lists,
    rpc,
    next: () => hashOf(++changed),
    reload: async (tokens) => {
      await write(tokens);
      await accepted(`${stage.url}/api/v1/reload`, { method: 'POST', token: TOKEN });
    },
    restart,
  };
  const found: { name: string; longestMs: number }[] = [];
  const random = randomStream('bench-input', COUNT.parse(values.seed));
  const startedMs = performance.now();
  console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}`);
  try {
    for (const { name, send } of [...INPUTS, randomInputs(random, COUNT.parse(values.random))]) {
      if (!only.test(name)) continue;
      const longestMs = await measured(stage, send);
      Object.assign(lists, { tokens: '[]' });
      Object.assign(rpc, { result: '"0x2105"' });
      receiver.answer = ok;
      found.push({ name, longestMs });
      const isAnswering = longestMs < GIVEN_UP_MS;
      console.log(`${name.padEnd(60)} ${isAnswering ? '' : 'over '}${longestMs.toFixed(1)} ms`);
      if (!isAnswering) await restart();
    }
  } finally {
    await daemon.program.end('SIGKILL');
    await disconnect(client);
    await Promise.all([upstream.close(), receiver.close(), redis.close()]);
    await rm(folder, { recursive: true, maxRetries: 5 });
  }
  const tookS = (performance.now() - startedMs) / 1_000;
  console.log(`took ${tookS.toFixed(0)} s; load of the machine: ${loadavg()[0]?.toFixed(1)}`);
  const targets = found.map(({ name, longestMs }) => ({
    what: `${name}, ms`,
    found: longestMs,
    most: MOST_MS,
  }));
  return printTargets(targets) ? 0 : 1;
}

/** Answers with the requested pending intent, or a changed one, or a list. */
function answerOf(path: string, query: Record<string, string>, lists: { tokens: string }): Scripted {
  if (path === '/v1/tokens') return { status: 200, body: lists.tokens };
  if (path === '/v1/chains') return { status: 200, body: '[]' };
  return { records: [intentRecord(query.intentHash ?? hashOf(1), 'pending', null)] };
}

function configOf(
  baseUrl: string,
  { redisUrl, receiver, tokens }: { redisUrl: string; receiver: BenchReceiver; tokens: OtherTokens },
): string {
  return stringify({
    upstream: { baseUrl, apiKey: 'bench-key' },
    redis: { url: redisUrl, prefix: PREFIX },
    polling: { shortestWait: '1s', longestWait: '1s' },
    server: {
      host: '127.0.0.1',
      port: 0,
      tokens: { admin: TOKEN, ...tokens },
      secretsKey: 'k'.repeat(32),
      apiReceivers: { allowNetworks: ['127.0.0.0/8'], allowInsecure: true },
    },
    smtp: { url: `smtp://127.0.0.1:${receiver.mailPort}`, from: 'bench@example.com' },
    chains: { 8453: { rpc: [{ name: 'node', url: `${receiver.url}rpc` }] } },
    receivers: [
      {
        name: 'backend',
        type: 'webhook',
        url: receiver.url,
        secrets: [`whsec_${Buffer.alloc(32, 9).toString('base64')}`],
        allowPrivateNetwork: true,
        allowInsecure: true,
      },
      { name: 'mail', type: 'email', to: ['ann@example.com', 'bob@example.com'] },
    ],
    subscriptions: [
      {
        name: 's',
        intents: Array.from({ length: INTENTS }, (_, n) => hashOf(n + 1)),
        receivers: ['backend', 'mail'],
      },
    ],
  });
}

async function startDaemon(configFile: string): Promise<{ program: Program; url: string }> {
  const program = await Program.start(MAIN, ['start', '--config', configFile]);
  const [, url = ''] = await program.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
  await program.line(/"msg":"daemon.started"/);
  return { program, url };
}

async function measured(stage: Stage, send: Input['send']): Promise<number> {
  // The daemon's measurement restarts with each scrape.
  await longestDelayMs(stage.url);
  // A refused or broken request is an answer too.
  await send(stage).catch(() => undefined);
  return longestDelayMs(stage.url).catch(() => GIVEN_UP_MS);
}

async function longestDelayMs(url: string): Promise<number> {
  const answer = await request(`${url}/metrics`, { signal: AbortSignal.timeout(GIVEN_UP_MS) });
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(await answer.body.text()) ?? [];
  return 1_000 * Number(seconds);
}

/** A webhook receiver with the answer of an input, an RPC endpoint, and a mail server that refuses one recipient for now. */
class BenchReceiver {
  readonly #http: Server;
  readonly #mail = createTcpServer((socket) => {
    let isData = false;
    socket.on('error', () => undefined);
    socket.write('220 bench\r\n');
    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      if (isData && !text.endsWith('\r\n.\r\n')) return;
      isData = text.startsWith('DATA');
      if (isData) socket.write('354 go on\r\n');
      else socket.write(text.includes('bob@') ? '451 try again later\r\n' : '250 ok\r\n');
    });
  });
  answer: (request: IncomingMessage, response: ServerResponse) => void = ok;
  rpcRequests = 0;

  constructor(rpc: { result: string }) {
    this.#http = createServer((request, response) => {
      if (request.url !== '/rpc') return this.answer(request, response);
      this.rpcRequests += 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"jsonrpc":"2.0","id":1,"result":${rpc.result}}`);
    });
  }

  async start(): Promise<void> {
    for (const server of [this.#http, this.#mail])
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/`;
  }

  get mailPort(): number {
    return (this.#mail.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    this.#mail.close();
  }
}

function ok(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204).end();
}

function ordinary(count: number): string {
  return JSON.stringify(
    Array.from({ length: count }, (_, n) => intentRecord(hashOf(n + 1), 'pending', null)),
  );
}

function answered(name: string, records: () => string): Input {
  return {
    name,
    send: async ({ upstream }) => {
      const usual = upstream.answer;
      const body = `{"results":${records()},"nextCursor":null}`;
      await new Promise<void>((resolve) => {
        upstream.answer = () => {
          resolve();
          upstream.answer = usual;
          return { status: 200, body };
        };
      });
      await wait(1_000);
    },
  };
}

async function fill({ upstream, next }: Stage, count: number, more: object = {}): Promise<void> {
  const usual = upstream.answer;
  const filled = new Set(Array.from({ length: count }, next));
  const waiting = new Set(filled);
  await new Promise<void>((resolve) => {
    upstream.answer = (request) => {
      const hash = request.query.intentHash ?? '';
      if (!filled.has(hash)) return usual(request);
      waiting.delete(hash);
      if (waiting.size === 0) resolve();
      return { records: [intentRecord(hash, 'filled', Math.floor(Date.now() / 1_000), { ...more })] };
    };
  });
  await wait(2_000);
}

const delivered = (name: string, answer: BenchReceiver['answer']): Input => ({
  name,
  send: async (stage) => {
    stage.receiver.answer = answer;
    await fill(stage, 1);
  },
});

const agents = new Map<string, Agent>();

/** Agent with one loopback address: wrong tokens of one address delay each other. */
function agentOf(from: string): Agent {
  const agent = agents.get(from) ?? new Agent({ connect: { localAddress: from } });
  agents.set(from, agent);
  return agent;
}

type Sent = { method?: 'GET' | 'POST' | 'PATCH'; token?: string; body?: string; from?: string };

async function call(url: string, { method = 'GET', token, body, from = '127.0.0.1' }: Sent): Promise<number> {
  const answer = await request(url, {
    method,
    dispatcher: agentOf(from),
    headers: {
      origin: new URL(url).origin,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(GIVEN_UP_MS),
  });
  await answer.body.dump();
  return answer.statusCode;
}

/** Sends a request that an input needs: where it is refused, the figure would mean nothing. */
async function accepted(url: string, sent: Sent): Promise<void> {
  const status = await call(url, sent);
  if (status >= 300) console.log(`  refused with ${status}: ${new URL(url).pathname}`);
}

/** A fraction that JavaScript represents only nearly, so that its digits are compared. */
const digits = (count: number): string => `1.${'0'.repeat(count - 2)}1`;
const filled = (member: string, size: number): string =>
  `[${Array.from({ length: Math.floor(size / (member.length + 1)) }, () => member).join(',')}]`;
const posted = (name: string, path: string, body: string, token?: string): Input => ({
  name,
  send: async ({ url }) =>
    void (await call(url + path, { method: 'POST', body, ...(token === undefined ? {} : { token }) })),
});

/** Starts a daemon whose upstream lists these tokens: the list is fetched at the start. */
const started = (name: string, tokens: () => string): Input => ({
  name,
  send: async ({ lists, restart }) => {
    lists.tokens = tokens();
    await restart();
    await wait(3_000);
  },
});

const PAYMENT = { chainId: 8453, txHash: hashOf(7), token: TOKEN_ADDRESS, amount: '1000' };

const checked = (name: string, result: () => string): Input => ({
  name,
  send: async (stage) => {
    stage.rpc.result = result();
    const before = stage.receiver.rpcRequests;
    await fill(stage, 1, { destinationTx: PAYMENT });
    if (stage.receiver.rpcRequests === before) console.log('  the RPC endpoint got no request');
  },
});

const GLOB = `${'*'.repeat(120)}x`;
const made = (name: string, url: string, more: object = {}): string =>
  JSON.stringify({
    name,
    type: 'webhook',
    url,
    secrets: [`whsec_${Buffer.alloc(32, 8).toString('base64')}`],
    allowPrivateNetwork: true,
    allowInsecure: true,
    ...more,
  });

const INPUTS: readonly Input[] = [
  answered('an ordinary page of 50 records', () => ordinary(50)),
  answered('a number of 1,000,000 digits from the upstream', () => `[{"n":${digits(1_000_000)}}]`),
  answered('4 MiB of ordinary records', () => filled(ordinary(1).slice(1, -1), 4 * MIB - 100)),
  answered('4 MiB of 1,1,…', () => filled('1', 4 * MIB - 100)),
  answered('4 MiB of {},{},…', () => filled('{}', 4 * MIB - 100)),
  answered('1 MiB with 20,000 members', () => filled(JSON.stringify('x'.repeat(48)), MIB - 100)),
  answered('a status with a mail address', () =>
    JSON.stringify([{ ...intentRecord(hashOf(1), 'pending', null), status: 'SECRET_ops@example.com' }]),
  ),
  checked('a check with ordinary answers of an RPC endpoint', () => '"0x2105"'),
  checked('a check with 4 MiB of 1,1,… from an RPC endpoint', () => filled('1', 4 * MIB - 100)),
  checked('a check with 4 MiB of one text from an RPC endpoint', () => `"0x${'a'.repeat(4 * MIB - 100)}"`),
  posted('16 KiB of digits at the sign-in', '/console/session', `{"token":${digits(16_000)}}`),
  posted(
    '256 KiB of digits at an acknowledgement',
    '/api/v1/consumers/x/ack',
    `{"n":${digits(260_000)}}`,
    TOKEN,
  ),
  posted(
    'metadata of 50 × 1,000 characters',
    '/api/v1/subjects',
    JSON.stringify({
      kind: 'intent',
      id: hashOf(99),
      metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`m${n}`, 'x'.repeat(1_000)])),
    }),
    TOKEN,
  ),
  {
    name: 'a type of *** and x',
    send: async ({ url }) => void (await call(`${url}/api/v1/events?type=${GLOB}`, { token: TOKEN })),
  },
  {
    name: 'events of a receiver of the API of *** and x',
    send: async (stage) => {
      const body = made('globs', `${stage.receiver.url}globs`, { events: [GLOB] });
      await accepted(`${stage.url}/api/v1/receivers`, { method: 'POST', token: TOKEN, body });
      await fill(stage, 1);
    },
  },
  {
    name: 'a subject with 5,000 events',
    send: async ({ url, redis }) => {
      const subject = `intent:${hashOf(INTENTS)}`;
      const atMs = Date.now();
      const events = Array.from({ length: 5_000 }, (_, n) => ({
        subject,
        sequence: n + 2,
        atMs,
        key: 'none',
      }));
      await appendEvents(redis, new Keys(PREFIX), events);
      await accepted(`${url}/api/v1/subjects/${subject}`, { token: TOKEN });
      await accepted(`${url}/api/v1/subjects/${subject}/deliveries`, { token: TOKEN });
    },
  },
  {
    name: '8 events of 900 KB, read 10 times',
    send: async (stage) => {
      await fill(stage, 8, { note: 'x'.repeat(900_000) });
      for (let read = 0; read < 10; read += 1) {
        await accepted(`${stage.url}/api/v1/events?since=1m&limit=100`, { token: TOKEN });
      }
    },
  },
  {
    name: '10 reloads with other tokens',
    send: async ({ reload }) => {
      for (let count = 0; count < 10; count += 1) {
        await reload({
          read: `bench-read-token-0123456789-${count}`,
          consume: `bench-consume-token-0123456789-${count}`,
        });
      }
    },
  },
  {
    name: '50 wrong tokens',
    send: async ({ url }) => {
      await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          call(`${url}/api/v1/subjects`, { token: `wrong-${n}`, from: `127.0.1.${n + 1}` }),
        ),
      );
    },
  },
  { name: '260 connections that send nothing', send: ({ url }) => idle(url, 260) },
  {
    name: '64 streams, and an event',
    send: async (stage) => {
      const ended = new AbortController();
      const streams = Array.from({ length: 64 }, (_, n) =>
        request(`${stage.url}/api/v1/events/stream`, {
          dispatcher: agentOf(`127.0.2.${1 + (n % 4)}`),
          headers: { authorization: `Bearer ${TOKEN}` },
          signal: ended.signal,
        }).then(
          ({ body }) => body.dump({ limit: MIB }),
          () => undefined,
        ),
      );
      await fill(stage, 1);
      ended.abort();
      await Promise.allSettled(streams);
    },
  },
  {
    name: '20 changes of a receiver while a delivery hangs',
    send: async (stage) => {
      const { url, receiver } = stage;
      const body = made('hanging', `${receiver.url}hanging`);
      await accepted(`${url}/api/v1/receivers`, { method: 'POST', token: TOKEN, body });
      receiver.answer = () => undefined;
      await fill(stage, 1);
      for (let change = 1; change <= 20; change += 1) {
        const changed = JSON.stringify({ timeout: `${20 + change}s` });
        await accepted(`${url}/api/v1/receivers/hanging`, { method: 'PATCH', token: TOKEN, body: changed });
      }
    },
  },
  delivered('an answer 429 with Retry-After: 0', (_request, response) =>
    response.writeHead(429, { 'retry-after': '0' }).end(),
  ),
  delivered('5 unasked answers 100 Continue before a 200', (_request, response) => {
    for (let count = 0; count < 5; count += 1) response.writeContinue();
    response.writeHead(200).end();
  }),
  delivered('an answer of 16 MiB', (_request, response) => response.end(Buffer.alloc(16 * MIB, 'x'))),
  delivered('a mail with one of two recipients refused', ok),
  started('a start with an ordinary list of tokens', () => '[]'),
  started('a start with 4 MiB of tokens', () => filled(TOKEN_ENTRY, 4 * MIB - 100)),
  started('a start with 4 MiB of {},{},… as tokens', () => filled('{}', 4 * MIB - 100)),
];

const TOKEN_ENTRY = JSON.stringify({ chainId: 8453, address: TOKEN_ADDRESS, symbol: 'USDC', decimals: 6 });

async function idle(url: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () =>
    connectSocket(Number(port), hostname).on('error', () => undefined),
  );
  await wait(2_000);
  for (const socket of sockets) socket.destroy();
}

const AT_ONCE = 8;

/** One in so many has a wrong token, each from an address of its own: those of one address delay each other. */
const WRONG_ONE_IN = 10;

function randomInputs(random: Random, count: number): Input {
  const bodies = [
    () => `{"n":${digits(2 + integer(random, 2_000))}}`,
    () => '['.repeat(1 + integer(random, 5_000)),
    () => filled(pick(random, ['1', '{}', '""']), integer(random, 100_000)),
    () => '{"__proto__":{"a":1},"b":"\\ud800"}',
    () => '<html>',
  ];
  const paths = ['/api/v1/subjects', '/api/v1/receivers', '/api/v1/consumers/x/ack', '/console/session'];
  return {
    name: `${count} random requests`,
    send: async ({ url }) => {
      let sent = 0;
      const sendOne = async (): Promise<void> => {
        while (sent < count) {
          sent += 1;
          const isWrong = integer(random, WRONG_ONE_IN) === 0;
          const from = `127.0.${3 + Math.floor(sent / 250)}.${1 + (sent % 250)}`;
          const body = pick(random, bodies)();
          const token = isWrong ? 'wrong' : TOKEN;
          await call(url + pick(random, paths), { method: 'POST', body, token, from }).catch(() => undefined);
          await agents.get(from)?.close();
          agents.delete(from);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, sendOne));
    },
  };
}
