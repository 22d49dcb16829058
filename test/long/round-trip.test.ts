import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { METHODS } from '../../examples/round-trip/pay.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { freePort } from '../support/port.ts';
import type { Program } from '../support/program.ts';
import { usdcOn } from '../support/sandbox-order.ts';
import { SANDBOX_KEY, SandboxProcess } from '../support/sandbox-process.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/round-trip');
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;

/** Of this seed's draws for the first five orders, none is `pending` for less than 41 s or `filled` for less than 118 s. */
const SEED = 16_149;
const TIME_SCALE = 10;

/** The names of a deployment, which the program gets by flags. */
const NAMES = ['--quote-domain', 'AcmeQuoteV1', '--gateway-prefix', 'acme-vaults'];

const SETTLED = ['intent.pending', 'intent.filled', 'intent.settled'];
const REFUNDED = ['intent.pending', 'intent.expired', 'intent.refundable', 'intent.refunded'];

async function startSandbox(stage: Stage): Promise<SandboxProcess> {
  const ports = ['--port=0', '--control-port=0', '--transfers-per-second=0', '--wallets=1'];
  const pace = [`--seed=${SEED}`, `--time-scale=${TIME_SCALE}`, '--faucet'];
  return SandboxProcess.of(await stage.intentwatch(['sandbox', ...ports, ...pace, ...NAMES]));
}

/** Starts the program; `upstreamUrl` where it is not the sandbox itself. */
async function start(
  stage: Stage,
  deps: { sandbox: SandboxProcess; key: Hex; port: number; upstreamUrl?: string },
): Promise<Program> {
  const { sandbox, key, port, upstreamUrl = sandbox.url } = deps;
  const urls = { base: upstreamUrl, rpc: `${sandbox.url}/chains/8453/wallet`, control: sandbox.controlUrl };
  const flags = Object.entries(urls).flatMap(([name, url]) => [`--${name}-url`, url]);
  return stage.program(
    join(EXAMPLE, 'round-trip.ts'),
    [...flags, ...NAMES, '--port', String(port), '--timeout', '600'],
    { SENDER_KEY: key, UPSTREAM_API_KEY: SANDBOX_KEY, WEBHOOK_SECRET: SECRET },
  );
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

/** The events that the program reported of each transfer, by its name; every transfer is one intent. */
function reported(program: Program): Map<string, { intents: Set<string>; types: string[] }> {
  const found = new Map<string, { intents: Set<string>; types: string[] }>();
  for (const line of program.stdout) {
    const [, name = '', type = '', intent] =
      /^(\S+): webhook (\S+) #\d+ of (\S+), signature verified$/.exec(line) ?? [];
    if (intent === undefined) continue;
    const { intents, types } = found.get(name) ?? { intents: new Set(), types: [] };
    found.set(name, { intents: intents.add(intent), types: [...types, type] });
  }
  return found;
}

describe('the round trip of the examples', () => {
  test('goes from discovery to the end by webhook in each way to fund, and is refunded where nobody fills', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const key = generatePrivateKey();
    const owner = privateKeyToAccount(key);
    const [sandbox, redis] = await Promise.all([startSandbox(stage), stage.redis()]);
    await sandbox.give(owner.address, { chainId: 8453, token: usdcOn(8453) });
    const port = await freePort();
    const file = await stage.config({
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      receiver: { url: `http://127.0.0.1:${port}/`, secret: SECRET },
      subscriptions: [{ name: 'sender', wallets: [owner.address], receivers: [RECEIVER_NAME] }],
    });
    const daemon = await stage.daemon(file);
    const program = await start(stage, { sandbox, key, port });
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
    expect(program.stdout.at(-1)).toBe(`${METHODS.length} of ${METHODS.length} settled, 1 of 1 refunded`);
    expect(program.stderr).toEqual([expect.stringContaining('a webhook was refused')]);
    const transitions = await sandbox.transitions();
    const transfers = reported(program);
    expect([...transfers.keys()].toSorted()).toEqual([...METHODS, 'refund'].toSorted());
    for (const [name, { intents, types }] of transfers) {
      const expected = name === 'refund' ? REFUNDED : SETTLED;
      const [intent] = intents;
      expect(intents.size, name).toBe(1);
      const made = transitions.filter(({ subject }) => subject === intent).map(({ to }) => `intent.${to}`);
      expect(made, name).toEqual(expected);
      // In any order, and perhaps without one that came and went between two polls.
      expect(types.toSorted(), name).toEqual(expected.filter((type) => types.includes(type)).toSorted());
      expect(types, name).toContain(expected.at(-1));
    }
    for (const name of ['transaction', 'erc-3009', 'permit2', 'permit3', 'refund']) {
      expect(program.stdout, name).toContainEqual(
        expect.stringMatching(`^${name}: quote:\\S+ gives \\d+, signed by 0x[0-9a-fA-F]{40}: valid$`),
      );
      expect(program.stdout, name).toContain(`${name}: its bytes pay what was requested`);
    }
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

  test.each<[string, (body: string) => string, RegExp]>([
    [
      'a signed member',
      (body) => body.replace(/"expiresAt":(\d+)/, '"expiresAt":9$1'),
      /^round-trip: the quote is not valid, signature: /,
    ],
    [
      'the bytes of its transaction',
      (body) => body.replace(/"data":"(0xdf00f8fa\w+)\w"/, '"data":"$1f"'),
      /^round-trip: intentHash: found 0x\w+, expected 0x\w+ as requested$/,
    ],
    [
      'the contract that it calls',
      (body) => body.replace(/"to":"0x\w{40}"/, `"to":"0x${'66'.repeat(20)}"`),
      /^round-trip: route.portal: found 0x\w+, expected 0x(66){20} as requested$/,
    ],
  ])('funds nothing when %s of a quote was altered on its way', async (_part, alter, message) => {
    const stage = new Stage(onTestFinished);
    const sandbox = await startSandbox(stage);
    const quotes: string[] = [];
    const between = await relay(sandbox, (path, body) => {
      if (path !== '/v1/quotes') return body;
      quotes.push(...(/quote:[0-9a-f-]{36}/.exec(body) ?? []));
      const altered = alter(body);
      expect(altered).not.toBe(body);
      return altered;
    });
    onTestFinished(() => between.close());
    const { url: upstreamUrl } = between;
    const program = await start(stage, {
      sandbox,
      key: generatePrivateKey(),
      port: await freePort(),
      upstreamUrl,
    });
    expect(await program.ending()).toEqual({ code: 1, signal: null });
    expect(program.stderr).toEqual([expect.stringMatching(message)]);
    expect(quotes).toHaveLength(1);
    const moves = (await sandbox.transitions()).filter(({ subject }) => subject === quotes[0]);
    expect(moves.map(({ to }) => to)).toEqual(['active']);
  });
});
