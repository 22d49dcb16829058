import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { bytes, integer, pick, type Random } from '../../sandbox/world/random.ts';

/** Number of concurrent requests of any kind, number of those that the daemon can answer at once, and time limit of each. */
const AT_ONCE = 8;
const QUICK_AT_ONCE = 4;
const TIMEOUT_MS = 15_000;

/** Names of the objects that hostile requests make, change and remove; nothing else has this prefix. */
const NAMES = ['hostile-1', 'hostile-2', 'hostile-3'];

/** These would change the counts of the reckoning, and the stream does not end by itself. */
const LEFT_OUT = new Set(['delete /learned', 'post /quarantine/replay', 'get /events/stream']);

const digits = (count: number): string => `1.${'0'.repeat(count)}1`;

const BODIES: readonly ((random: Random) => string)[] = [
  () => '{}',
  () => '',
  (random) => `{"n":${digits(pick(random, [998, 1_000, 16_000, 250_000]))}}`,
  (random) => '['.repeat(integer(random, 50_000)),
  () => '{"__proto__":{"isAdmin":true},"token":"\\ud800"}',
  () => 'x'.repeat(300_000),
  (random) => Buffer.from(bytes(random, 200)).toString('latin1'),
  () => '{"events":["***************************x"]}',
];

/** An operation of the API, such as `post /subjects`. */
export type Operation = { method: string; path: string };

/** Number of the client's requests, and of the responses with each status; `none`: no response. */
export type Sent = { requests: number; answers: Map<string, number> };

/** Sends random requests over sockets of its own until `untilMs`. `credentials` are header lines that the daemon accepts. */
export async function sendHostile(options: {
  /** Counted up while it runs. */
  sent: Sent;
  url: string;
  operations: readonly Operation[];
  credentials: readonly string[];
  random: Random;
  untilMs: number;
}): Promise<void> {
  const { sent } = options;
  const operations = options.operations.filter(({ method, path }) => !LEFT_OUT.has(`${method} ${path}`));
  const loop = async (isQuick: boolean): Promise<void> => {
    while (Date.now() < options.untilMs) {
      const chunks = requestOf({ ...options, operations, isQuick });
      const status = await exchange(options.url, chunks);
      sent.requests += 1;
      sent.answers.set(status, (sent.answers.get(status) ?? 0) + 1);
      await wait(integer(options.random, 50));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => loop(index < QUICK_AT_ONCE)));
}

/** The bytes of a request, in the chunks in which they are sent. */
function requestOf(options: {
  operations: readonly Operation[];
  credentials: readonly string[];
  random: Random;
  /** True for a whole request without a wrong token; a wrong token is answered late. */
  isQuick: boolean;
}): string[] {
  const { operations, credentials, random, isQuick } = options;
  const { method, path } = pick(random, [
    ...operations.map((one) => ({ ...one, path: `/api/v1${one.path}` })),
    ...(isQuick ? [] : [{ method: 'post', path: '/console/session' }]),
  ]);
  const query = pick(random, [
    '',
    '',
    `?type=${'*'.repeat(100)}x`,
    '?limit=-1',
    `?limit=${digits(1_000)}`,
    '?%ff',
  ]);
  const target = path.replaceAll(/\{\w+\}/g, () => pick(random, NAMES)) + query;
  const wrong = `authorization: Bearer wrong-${integer(random, 1_000)}`;
  const credential = pick(random, isQuick ? credentials : [null, wrong, ...credentials]);
  const body = method === 'get' ? '' : pick(random, BODIES)(random);
  const head = [
    `${method.toUpperCase()} ${target} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(credential === null ? [] : [credential]),
    ...(body === '' ? [] : ['content-type: application/json']),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ].join('\r\n');
  const whole = `${head}\r\n\r\n${body}`;
  if (isQuick) return [whole];
  switch (pick(random, ['whole', 'whole', 'whole', 'slow', 'partial', 'pipelined', 'idle', 'garbage'])) {
    case 'slow':
      return [whole.slice(0, 20), whole.slice(20, 40), whole.slice(40)];
    case 'partial':
      return [whole.slice(0, whole.length / 2)];
    case 'pipelined':
      return [whole.replace('connection: close', 'connection: keep-alive') + whole];
    case 'idle':
      return [];
    case 'garbage':
      return [Buffer.from(bytes(random, 300)).toString('latin1')];
    default:
      return [whole];
  }
}

/** Sends chunks over a connection of its own. Resolves with the first status, or `none`. */
async function exchange(url: string, chunks: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  let answer = '';
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.setEncoding('latin1').on('data', (text) => {
    if (answer.length < 20) answer += String(text).slice(0, 20);
  });
  // A refused or broken connection is one without an answer.
  socket.on('error', () => undefined);
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
  for (const chunk of chunks) {
    socket.write(chunk);
    if (chunks.length > 1) await wait(100);
  }
  await closed;
  return /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'none';
}
