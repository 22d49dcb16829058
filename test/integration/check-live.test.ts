import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { type CannedAnswer, cannedServer } from '../support/canned-server.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rpcServer } from '../support/json-rpc-server.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { RawServer } from '../support/raw-server.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

const POSTGRES = needs(PARTS.postgres);

const open = opening();

const INVALID: CannedAnswer = {
  status: 401,
  body: {
    type: 'about:blank',
    title: 'API key is missing, unknown, or revoked',
    status: 401,
    code: 'invalid-api-key',
  },
};
const GATEWAY: CannedAnswer = { status: 403, body: { Message: 'User is not authorized' } };
const WORKS = {
  status: 200,
  body: { results: [{ id: `intent:0x${'0'.repeat(64)}`, type: 'intent', status: 'unknown' }] },
};

type Checked = { code: number; lines: string[]; stderr: string; upstream: string; lists: string };

/** Writes a config whose upstream gives one answer to all requests; null for one that never answers. */
async function configOf(answer: CannedAnswer | null, given: Given = {}): Promise<string> {
  const { redisUrl = inject('redisUrl'), path = '', more = {} } = given;
  let baseUrl = `http://127.0.0.1:${await freePort()}`;
  if (answer !== null) {
    const server = await cannedServer(() => answer);
    open.later(() => server.close());
    baseUrl = `${server.url}${path}`;
  }
  const file = join(await new Stage(onTestFinished).folder(), 'intentwatch.yaml');
  const receivers = { hook: { url: 'http://127.0.0.1:1' } };
  const subscriptions = [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }];
  const config = { baseUrl, redisUrl, prefix: testPrefix(), receivers, subscriptions, more };
  await writeFile(file, configYaml(config));
  return file;
}

type Given = { redisUrl?: string; path?: string; more?: object };

/**
 * Runs `check --live` against an upstream that gives one answer to all requests; null for one that never answers. Repeated
 * once where this machine stalled for longer than the command waits for an answer.
 */
async function check(answer: CannedAnswer | null, given: Given = {}): Promise<Checked> {
  return eventually(
    'a check that was not held up',
    async () => {
      const checked = await checkOnce(answer, given);
      const isHeldUp = checked.lines.some((line) => /within \d+ s$|Greeting never received/.test(line));
      return isHeldUp ? null : checked;
    },
    800_000,
  );
}

async function checkOnce(answer: CannedAnswer | null, given: Given = {}): Promise<Checked> {
  const { code, out, err } = await runCommand(['check', '--live', '--config', await configOf(answer, given)]);
  const lines = out.split('\n');
  const [upstream, lists] = [lineOf('upstream', lines), lineOf('chains and tokens', lines)];
  return { code, lines, stderr: err, upstream, lists };
}

function lineOf(name: string, lines: readonly string[]): string {
  return lines.find((line) => line.includes(`  ${name} `)) ?? '';
}

async function talkingServer(greeting: string, reply: (line: string) => string): Promise<RawServer> {
  return open.started(
    new RawServer((socket) => {
      socket.write(greeting);
      socket.on('data', (chunk) => {
        for (const line of chunk.toString('latin1').split('\r\n').slice(0, -1)) socket.write(reply(line));
      });
    }),
  );
}

const smtpAt = ({ port }: RawServer, login = '') => ({
  smtp: { url: `smtp://${login}127.0.0.1:${port}`, from: 'transfers@example.com' },
});

/** Characters that move the cursor of a terminal, hide text or turn it round. */
const CLEAR = '\u001b[2J\u001b]0;owned\u0007\u009b31m\u202e';
const UNPRINTABLE = /[\p{Cc}\p{Cf}]/u;

describe('check --live', () => {
  test.each([
    ['401 invalid-api-key', INVALID, 'the upstream refuses the API key (HTTP 401, invalid-api-key): '],
    ['403 of the gateway', GATEWAY, 'the upstream refuses the request (HTTP 403 without a code): '],
  ])('reports a refused key in one sentence (%s), and ends with 78', async (_, answer, sentence) => {
    const { code, upstream, lists } = await check(answer);
    expect(code).toBe(78);
    expect(lists).toMatch(/^FAILED {2}chains and tokens +the upstream refuses/);
    expect(upstream).toMatch(/^FAILED {2}upstream http:\S+ +the upstream refuses/);
    expect(upstream).toContain(sentence);
    expect(upstream).not.toMatch(/[{}]/);
  });

  test.each<[string, CannedAnswer]>([
    ['that refuses the key', INVALID],
    ['of any other kind', { ...INVALID, status: 500 }],
  ])('names the details for a support ticket of an answer %s', async (_, { status, body }) => {
    const support = { requestId: 4711, legacyCode: '1203', instance: '/requests/9f' };
    const { upstream } = await check({ status, body: { ...Object(body), ...support } });
    expect(upstream).toContain('title "API key is missing, unknown, or revoked"');
    expect(upstream).toContain('instance /requests/9f, legacyCode 1203, requestId 4711');
  });

  test('ends with 78 as well where something else cannot be reached', async () => {
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    expect((await check(INVALID, { redisUrl })).code).toBe(78);
  });

  test('ends with 75 where no server answers, or with an error that passes', async () => {
    expect((await check(null)).code).toBe(75);
    expect((await check({ status: 503, body: '' })).code).toBe(75);
  });

  test('ends with 0 where all is well', async () => {
    const { code, upstream, lists } = await check(WORKS);
    expect([code, upstream.startsWith('ok ')]).toEqual([0, true]);
    // Unreadable chains are no fault: the built-in ones are used.
    expect(lists).toMatch(/^ok .*those that are built in: /);
  });

  test('prints the lists of the upstream, and their unusable entries', async () => {
    const token = { chainId: 8453, address: `0x${'1b'.repeat(20)}`, symbol: 'PUSD', decimals: 6 };
    const entries = [{ chainId: 8453, quoteSigner: '0xabc' }, token, { ...token, decimals: 18 }, 'none'];
    const { lists } = await check({ status: 200, body: { ...WORKS.body, data: entries } });
    expect(lists).toContain('1 chain, 1 with quoteSigner; 1 token; ');
    expect(lists).toContain('that are incomplete; 1 with other decimals than are known');
  });

  test('prints nothing that moves the cursor of a terminal', async () => {
    const { upstream } = await check({ status: 500, body: '\u001b[2J\u202egone' }, { path: '/\u009b2J' });
    expect(upstream).toContain('FAILED');
    expect(upstream).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  test('nor of a response of a mail server or a Redis', async () => {
    const mail = await talkingServer(`554-${CLEAR}go\r\n554 away${CLEAR}\r\n`, () => '');
    const redis = await talkingServer('', (line) => (line.startsWith('*') ? `-ERR ${CLEAR}no\r\n` : ''));
    const redisUrl = `redis://127.0.0.1:${redis.port}`;
    const { code, lines } = await check(WORKS, { redisUrl, more: smtpAt(mail) });
    expect(code).toBe(75);
    expect(lineOf('SMTP', lines)).toMatch(/^FAILED .*away/);
    expect(lineOf('Redis (redis.url)', lines)).toMatch(/^FAILED .*ERR .*no/);
    expect(lines.join('')).not.toMatch(UNPRINTABLE);
  });

  test('gives up a mail server that never comes to the end of its answer', async () => {
    const mail = await open.started(
      new RawServer((socket) => {
        socket.write('220 mail.example.com\r\n');
        const timer = setInterval(() => socket.write('250-STILL-HERE\r\n'), 500);
        socket.on('close', () => clearInterval(timer));
      }),
    );
    let checks = 0;
    // On a slow machine the greeting of this server may be too late for a check, again and again.
    const greeted = async (): Promise<Checked | null> => {
      checks += 1;
      const checked = await checkOnce(WORKS, { more: smtpAt(mail) });
      return lineOf('SMTP', checked.lines).includes('Greeting never received') ? null : checked;
    };
    const { code, lines } = await eventually('a check that was greeted', greeted, 800_000);
    expect([code, lineOf('SMTP', lines)]).toEqual([75, expect.stringMatching(/^FAILED .*within 12 s$/)]);
    expect(mail.sockets.length).toBe(checks);
  });

  test('aborts a slow upstream, for any timeout', async () => {
    const upstream = await open.started(
      new RawServer((socket) => {
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n');
          const timer = setInterval(() => socket.write(' '), 500);
          socket.on('close', () => clearInterval(timer));
        });
      }),
    );
    const baseUrl = `http://127.0.0.1:${upstream.port}`;
    const { code, lines } = await checkOnce(null, {
      more: { upstream: { baseUrl, apiKey: 'sandbox-key', timeout: '5m' } },
    });
    expect([code, lineOf('upstream', lines)]).toEqual([75, expect.stringMatching(/^FAILED .*within 12 s$/)]);
    expect(lineOf('chains and tokens', lines)).toMatch(/^ok .*built in: .*within 12 s$/);
  });

  test('reports a refused connection once, and as soon as it is known', async () => {
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    const startMs = performance.now();
    const { code, lines } = await check(null, { redisUrl });
    const tookMs = performance.now() - startMs;
    expect(code).toBe(75);
    for (const name of ['upstream', 'chains and tokens', 'Redis (redis.url)']) {
      expect(lineOf(name, lines).match(/ECONNREFUSED/g), name).toHaveLength(1);
    }
    // Beside a check that waits for its full time it would take as long.
    const silent = await open.started(new RawServer(() => undefined));
    const slowMs = performance.now();
    await checkOnce(null, { redisUrl: `redis://127.0.0.1:${silent.port}` });
    expect(tookMs).toBeLessThan(performance.now() - slowMs);
  });

  test('states for each RPC endpoint whether it is of its chain, and its final block', async () => {
    const block = { number: '0x6e', hash: `0x${'b'.repeat(64)}`, timestamp: '0x6b000000' };
    const node = await rpcServer(({ method, path }) => {
      if (path === '/gone') return { status: 404, body: 'no such path' };
      if (method === 'eth_chainId') return { result: path === '/ten' ? '0xa' : '0x2105' };
      if (method === 'eth_getBlockByNumber') {
        return path === '/untagged'
          ? { error: { code: -32602, message: 'unknown block' } }
          : { result: block };
      }
      return { result: method === 'eth_syncing' ? false : null };
    });
    open.later(() => node.close());
    const endpoint = (name: string, host = '127.0.0.1') => ({
      name,
      url: `http://${host}:${node.port}/${name}`,
      headers: { authorization: 'Bearer Zqx3-of-the-node' },
    });
    const rpc = [
      ...['own', 'ten', 'untagged', 'gone'].map((name) => endpoint(name)),
      endpoint('far', 'localhost'),
    ];
    const oneHost = await check(WORKS, {
      more: { chains: { 8453: { rpc: [endpoint('own'), endpoint('second')] } } },
    });
    for (const name of ['own', 'second']) {
      expect(lineOf(`RPC endpoint ${name} of Base`, oneHost.lines)).toMatch(
        /^ok .*Z; nothing is disputed without an endpoint on another host$/,
      );
    }
    const { code, lines } = await check(WORKS, { more: { chains: { 8453: { rpc } } } });
    const lineFor = (name: string): string => lineOf(`RPC endpoint ${name} of Base`, lines);
    expect(code).toBe(75);
    expect(lineFor('own')).toMatch(/^ok .*is of this chain, final up to block 110 of 2026-11-20T08:08:32Z$/);
    expect(lineFor('ten')).toMatch(/^FAILED .*found an endpoint of chain 10, expected one of chain 8453$/);
    expect(lineFor('untagged')).toMatch(/^FAILED .*knows no "finalized" block .*or another finality/);
    expect(lineFor('gone')).toMatch(
      /^FAILED .*found HTTP 404 and no such path, expected an answer of JSON-RPC$/,
    );
    expect(lines.join('\n')).not.toMatch(/Zqx3|\/gone/);
  });

  test.skipIf(POSTGRES.skip)(
    `states whether the Postgres of the books is usable, and writes nothing there${POSTGRES.note}`,
    async () => {
      const server = await PostgresProcess.start();
      open.later(() => server.close());
      const lineFor = async (url: string): Promise<string> =>
        lineOf('Postgres (books.url)', (await check(WORKS, { more: { books: { url } } })).lines);
      expect(await lineFor(server.url)).toMatch(/^ok .*could make them$/);
      const client = new pg.Client(server.url);
      await client.connect();
      const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE tablename LIKE 'books%'");
      await client.end();
      expect(rows).toEqual([]);
      const elsewhere = server.url.replace(/postgres$/, 'nowhere');
      expect(await lineFor(elsewhere)).toMatch(/^FAILED .*database "nowhere" does not exist$/);
      const refused = `postgres://u:Zqx4@127.0.0.1:${await freePort()}/books`;
      expect(await lineFor(refused)).toMatch(/^FAILED .*ECONNREFUSED/);
      expect(await lineFor(refused)).not.toContain('Zqx4');
    },
  );

  test.each([
    'require',
    'verify-ca',
    'verify-full',
  ])('connects to the Postgres of the books with sslmode=%s as with verify-full, and prints no warning of the driver', async (mode) => {
    const url = `postgres://u:Zqx5@127.0.0.1:${await freePort()}/books?sslmode=${mode}`;
    // The driver warns once a process.
    const file = await configOf(WORKS, { more: { books: { url } } });
    const program = await new Stage(onTestFinished).intentwatch(['check', '--live', '--config', file]);
    expect(await program.ending()).toMatchObject({ code: 75 });
    expect(lineOf('Postgres (books.url)', program.stdout)).toMatch(/^FAILED .*ECONNREFUSED/);
    expect(program.stderr).toEqual([]);
  });

  test('shows no password of Redis that an answer repeats', async () => {
    const open = inject('redisUrl').replace('redis://', 'redis://:Zqx1nobody-reads@');
    const { lines: found } = await check(WORKS, { redisUrl: open });
    expect(lineOf('Redis (redis.url)', found)).toMatch(
      /^FAILED .*found no password there, expected the one of/,
    );
    expect(found.join()).not.toContain('Zqx1');
    const password = 'Zqx1password-of-redis';
    const redis = await talkingServer('', (line) =>
      line.startsWith('*')
        ? `-ERR ${password}: unknown command 'AUTH', with args beginning with: '${password}'\r\n`
        : '',
    );
    const { code, lines } = await check(WORKS, { redisUrl: `redis://:${password}@127.0.0.1:${redis.port}` });
    expect(code).toBe(75);
    expect(lineOf('Redis (redis.url)', lines)).toMatch(/^FAILED .*unknown command/);
    expect(lines.join('\n')).not.toContain('Zqx1');
  });

  test.each([
    ['has no login', '', 'AUTH PLAIN', /^ok .*reachable; smtp\.url has no login, so none was checked$/],
    ['has a login that the server accepts', 'u:p@', 'AUTH PLAIN', /^ok .*reachable, takes the login$/],
    [
      'has a login, and the server offers none',
      'u:p@',
      'PIPELINING',
      /^ok .*reachable, but offers no login: /,
    ],
  ])('reports the checks of a mail server whose url %s', async (_, login, extension, expected) => {
    const mail = await talkingServer('220 ready\r\n', (line) => {
      if (line.startsWith('EHLO')) return `250-hello\r\n250 ${extension}\r\n`;
      return line.startsWith('AUTH') ? '235 welcome\r\n' : '221 bye\r\n';
    });
    const { lines } = await check(WORKS, { more: smtpAt(mail, login) });
    expect(lineOf('SMTP', lines)).toMatch(expected);
  });

  test('shows no password of the mail server, and names the one that refuses', async () => {
    const mail = await talkingServer('220 ready\r\n', (line) =>
      line.startsWith('EHLO') ? '250-hello\r\n250 AUTH PLAIN\r\n' : `535 no: ${line}\r\n`,
    );
    const { lines } = await check(WORKS, { more: smtpAt(mail, 'apikey:Zqx2p%2Fssword@') });
    expect(lineOf('SMTP', lines)).toMatch(/^FAILED .*535 no: AUTH PLAIN \[secret\]/);
    const refusing = { smtp: { url: `smtp://u:Zqx2p@127.0.0.1:${await freePort()}`, from: 'a@example.com' } };
    const { lines: refused } = await check(WORKS, { more: refusing });
    expect(lineOf('SMTP', refused)).toMatch(/^FAILED .*ECONNREFUSED 127\.0\.0\.1:\d+$/);
    expect([...lines, ...refused].join('\n')).not.toContain('Zqx2');
  });
});

test('an error on stderr holds no control characters either', async () => {
  const { code, err } = await runCommand(['check', '--config', 'no/such\u001b[2J.yaml']);
  expect(code).toBe(78);
  expect(err).toContain('found no such file');
  expect(err).not.toMatch(/\p{Cc}/u);
});

test('check warns of a pattern of events that matches no known type, and ends with 0', async () => {
  const stage = new Stage(onTestFinished);
  const file = join(await stage.folder(), 'intentwatch.yaml');
  const receivers = { hook: { url: 'http://127.0.0.1:1', more: { events: ['intent.fillled'] } } };
  const subscriptions = [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }];
  const config = { baseUrl: 'http://127.0.0.1:1', redisUrl: inject('redisUrl'), prefix: testPrefix() };
  await writeFile(file, configYaml({ ...config, receivers, subscriptions }));
  const { code, out } = await runCommand(['check', '--config', file]);
  expect(code).toBe(0);
  const [first, second] = out.split('\n');
  expect(first).toContain(': ok, 1 receiver');
  expect(second).toMatch(/^warning: .*:\d+:\d+: receivers\[0\]\.events\[0\]: .*like "intent\.filled"$/);
});
