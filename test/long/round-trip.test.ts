import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { METHODS, type Method, type Payment, pay } from '../../examples/round-trip/pay.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';
import type { Program } from '../support/program.ts';
import { SANDBOX_KEY } from '../support/sandbox-process.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/round-trip');
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';

/** Of this seed's draws for the first five orders, none is `pending` for less than 41 s or `filled` for less than 118 s. */
const SEED = 16_149;
const TIME_SCALE = 10;

type Started = { upstreamUrl: string; controlUrl: string; key: string; port: number };

function start(stage: Stage, { upstreamUrl, controlUrl, key, port }: Started): Promise<Program> {
  const urls = [
    '--base-url',
    upstreamUrl,
    '--control-url',
    controlUrl,
    '--port',
    String(port),
    '--timeout',
    '600',
  ];
  return stage.program(join(EXAMPLE, 'round-trip.ts'), urls, {
    SENDER_KEY: key,
    UPSTREAM_API_KEY: SANDBOX_KEY,
    WEBHOOK_SECRET: SECRET,
  });
}

/** The ids that a sandbox of this seed gives to the example's orders: they are the same in each sandbox. */
async function rehearse(owner: ReturnType<typeof privateKeyToAccount>): Promise<Map<Method, Payment>> {
  const sandbox = new Sandbox({ seed: SEED, transfersPerSecond: 0, timeScale: TIME_SCALE });
  await sandbox.start();
  const client = new UpstreamClient({
    baseUrl: sandbox.url,
    apiKey: new Secret(SANDBOX_KEY),
    timeoutMs: 10_000,
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/v1/deposit-gateway/{vaultAddress}',
      chainParam: 'sourceChainId',
      jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
    },
  });
  try {
    const payments = new Map<Method, Payment>();
    for (const method of METHODS) {
      const payment = await pay(method, {
        client,
        signers: new QuoteSigners({ client }),
        owner,
        source: { chainId: 8453, address: USDC_BASE, name: 'USD Coin' },
        destination: { chainId: 10, address: USDC_OPTIMISM, name: 'USD Coin' },
        amount: 25_000_000n,
        send: async () => 'nothing: here it is not followed',
        log: () => {},
      });
      payments.set(method, payment);
    }
    return payments;
  } finally {
    await client.close();
    await sandbox.close();
  }
}

async function relay(
  target: { url: string },
  change: (path: string, body: string) => string,
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = 'GET', url = '/', headers } = request;
    const answer = await fetch(target.url + url, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(headers['x-api-key'] === undefined ? {} : { 'x-api-key': String(headers['x-api-key']) }),
      },
      ...(method === 'GET' ? {} : { body: Buffer.concat(chunks) }),
    });
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(change(url, await answer.text()));
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function followed(program: Program, method: Method, subject: string): string[] {
  const pattern = /^(\S+): webhook (\S+) #\d+ of (\S+), signature verified$/;
  return program.stdout.flatMap((line) => {
    const [, of, type = '', id] = pattern.exec(line) ?? [];
    return of === method && id === subject ? [type] : [];
  });
}

/** Expects some of the types, in any order, and the last: a state that came and went between two polls is not reported. */
function expectReported(
  found: readonly string[],
  { types, method }: { types: readonly string[]; method: Method },
): void {
  expect(found.toSorted(), method).toEqual(types.filter((type) => found.includes(type)).toSorted());
  expect(found, method).toContain(types.at(-1));
}

describe.concurrent('the round trip of the examples', () => {
  test('goes from discovery to settled by webhook in each of the five ways to fund', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const key = generatePrivateKey();
    const owner = privateKeyToAccount(key);
    const payments = await rehearse(owner);
    const [sandbox, redis, accounting, port] = await Promise.all([
      stage.sandbox({ seed: SEED, timeScale: TIME_SCALE, wallets: 1 }),
      stage.redis(),
      stage.receiver(),
      freePort(),
    ]);
    const all = [...payments.values()];
    const byId = {
      quotes: all.flatMap(({ quote }) => quote ?? []),
      gaslessJobs: all.flatMap(({ job }) =>
        job === null ? [] : [job.id, { id: job.id, endpoint: 'gateway' }],
      ),
      vaults: all.flatMap(({ vault }) => vault ?? []),
    };
    const file = await stage.config({
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      receiver: { url: `http://127.0.0.1:${port}/`, secret: SECRET },
      others: [{ name: 'accounting', url: accounting.url, secret: accounting.secret }],
      subscriptions: [
        // The program gets the wallet's events alone; the ids' events go to another receiver.
        { name: 'sender', wallets: [owner.address], receivers: [RECEIVER_NAME] },
        { name: 'orders', ...byId, receivers: ['accounting'] },
      ],
    });
    const daemon = await stage.daemon(file);
    const program = await start(stage, {
      upstreamUrl: sandbox.url,
      controlUrl: sandbox.controlUrl,
      key,
      port,
    });
    // A webhook with another signature is refused, and has no effect.
    await program.line(/^discovered 6 chains, 10 tokens$/);
    const forged = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: {
        'webhook-id': 'evt_forged',
        'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
        'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
      },
      body: '{}',
    });
    expect(forged.status).toBe(401);

    expect(await program.ending(), program.output()).toEqual({ code: 0, signal: null });
    expect(program.stdout.at(-1)).toBe('5 of 5 settled');
    expect(program.stderr).toEqual([expect.stringContaining('a webhook was refused')]);
    const transitions = await sandbox.transitions();
    const moves = (subject: string): string[] =>
      transitions.flatMap(({ subject: of, to }) => (of === subject ? [to] : []));
    const steps = ['pending', 'filled', 'settled'];
    const types = steps.map((step) => `intent.${step}`);
    for (const [method, { intentHash, quote, job }] of payments) {
      const intent = `intent:${intentHash}`;
      expect(moves(intent), method).toEqual(steps);
      expectReported(followed(program, method, intent), { types, method });
      if (quote !== null) {
        const verified = `^${method}: quote:${quote} gives \\d+, signed by 0x[0-9a-fA-F]{40}: valid$`;
        expect(program.stdout, method).toContainEqual(expect.stringMatching(verified));
        expect(moves(`quote:${quote}`), method).toEqual(['active', 'submitted']);
      }
      if (job !== null) {
        const done = job.endpoint === 'gateway' ? 'COMPLETED' : 'published';
        expect(program.stdout, method).toContain(`${method}: job ${done}`);
        expect(moves(`gasless:${job.id}`).at(-1), method).toBe('published');
        expect(moves(`gasless:gateway:${job.id}`).at(-1), method).toBe('COMPLETED');
      }
    }

    // Subscribers of the quotes, the jobs (at both endpoints) and the vault got their events, and those of their intents too.
    const reported = (subject: string): string[] => {
      const events = accounting.events().filter(({ data }) => data.subject.id === subject);
      return events.toSorted((a, b) => a.data.sequence - b.data.sequence).map(({ type }) => type);
    };
    const isReported = (subject: string, type: string): Promise<true> =>
      eventually(`${subject} is reported as ${type}`, () => reported(subject).at(-1) === type);
    for (const [method, { intentHash, quote, job, vault }] of payments) {
      const intent = `intent:${intentHash}`;
      await isReported(intent, 'intent.settled');
      // A found intent is polled from the time when its quote, job or vault names it.
      expectReported(reported(intent), { types, method });
      if (quote !== null) {
        // Its steps may change after that.
        await eventually('the quote', () => reported(`quote:${quote}`).includes('quote.submitted'));
      }
      if (job !== null) {
        await isReported(`gasless:${job.id}`, 'gasless.published');
        await isReported(`gasless:gateway:${job.id}`, 'gasless.completed');
      }
      if (vault !== null) {
        const subject = `vault:${vault.chainId}:${vault.address.toLowerCase()}`;
        expect(moves(subject), method).toEqual(['PENDING', 'FUNDING_DETECTED', 'PUBLISHED']);
        await isReported(subject, 'vault.published');
      }
    }
    expect(accounting.received.filter(({ verified }) => !verified)).toEqual([]);
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('has a config that the daemon accepts, for the wallet that the program names', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const key = generatePrivateKey();
    const program = await stage.program(join(EXAMPLE, 'round-trip.ts'), ['--wallet'], { SENDER_KEY: key });
    expect(await program.ending()).toEqual({ code: 0, signal: null });
    const [wallet = ''] = program.stdout;
    expect(wallet).toBe(privateKeyToAccount(key).address);
    const config = await loadConfig(join(EXAMPLE, 'intentwatch.yaml'), {
      UPSTREAM_API_KEY: SANDBOX_KEY,
      WEBHOOK_SECRET: SECRET,
      SENDER_WALLET: wallet,
    });
    expect(config.subscriptions.map(({ wallets }) => wallets)).toEqual([[wallet.toLowerCase()]]);
  });

  test('funds nothing when the quote was altered on its way', async ({ onTestFinished }) => {
    const stage = new Stage(onTestFinished);
    const sandbox = await stage.sandbox({ seed: SEED, timeScale: TIME_SCALE, wallets: 1 });
    const submits: string[] = [];
    const quotes: string[] = [];
    const between = await relay(sandbox, (path, body) => {
      if (path.includes('/submit/')) submits.push(path);
      quotes.push(...(/quote:[0-9a-f-]{36}/.exec(body) ?? []));
      return path === '/v1/quotes' ? body.replace(/"expiresAt":(\d+)/, '"expiresAt":9$1') : body;
    });
    onTestFinished(() => between.close());
    const program = await start(stage, {
      upstreamUrl: between.url,
      controlUrl: sandbox.controlUrl,
      key: generatePrivateKey(),
      port: await freePort(),
    });
    expect(await program.ending()).toEqual({ code: 1, signal: null });
    expect(program.stderr).toEqual([
      expect.stringMatching(/^round-trip: the quote is not valid, signature: /),
    ]);
    expect(submits).toEqual([]);
    expect(quotes).toHaveLength(1);
    const moves = (await sandbox.transitions()).filter(({ subject }) => subject === quotes[0]);
    expect(moves.map(({ to }) => to)).toEqual(['active']);
  });
});
