import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createChainReaders } from '../../src/chains/chain-readers.ts';
import { Secret } from '../../src/secret.ts';
import { type AnvilChain, FILLED_EVENT, startAnvil } from '../support/anvil.ts';
import { type CannedServer, cannedServer } from '../support/canned-server.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { Program } from '../support/program.ts';

const OPTIONAL = needs(PARTS.anvil);

const MAIN = resolve(import.meta.dirname, '../../src/main.ts');
const ALICE = '0x52908400098527886e0f7030069857d2e4169ee7';
const BOB = '0xde709f2102306220921060314715629080e2fb77';
const INTENT = `0x${'1e'.repeat(32)}` as const;
const OTHER_INTENT = `0x${'2e'.repeat(32)}` as const;

/** The upstream's statements, by requested hash. */
const stated = new Map<string, unknown>();

let chain: AnvilChain;
let upstream: CannedServer;
let folder: string;

describe.skipIf(OPTIONAL.skip)(`against a real EVM node with a real token${OPTIONAL.note}`, () => {
  beforeAll(async () => {
    chain = await startAnvil();
    upstream = await cannedServer(({ url }) => {
      const hash = new URL(url, 'http://upstream').searchParams.get('intentHash') ?? '';
      const unknown = { id: `intent:${hash}`, type: 'intent', status: 'unknown', updatedAt: null };
      return { status: 200, body: { results: [stated.get(hash) ?? unknown], nextCursor: null } };
    });
    folder = await mkdtemp(join(tmpdir(), 'intentwatch-verify-'));
  });

  afterAll(async () => {
    await upstream.close();
    await chain.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  function state(txHash: string, amount = '1000000'): void {
    stated.set(INTENT, {
      id: `intent:${INTENT}`,
      type: 'intent',
      status: 'filled',
      updatedAt: Math.floor(Date.now() / 1_000),
      destinationTx: { chainId: chain.chainId, txHash, token: chain.token, amount },
    });
  }

  type Options = { endpoints?: string[]; pinned?: boolean; json?: boolean };

  /** Runs the command as a user does, with two endpoints of distinct hosts. */
  async function verify({
    endpoints = ['127.0.0.1', 'localhost'],
    pinned = false,
    json = true,
  }: Options = {}) {
    const rpc = endpoints.map((host, index) => ({
      name: `rpc-${index}`,
      url: `http://${host}:${chain.port}`,
    }));
    const fulfilments = { address: chain.portal, event: FILLED_EVENT, hash: 'intent' };
    const config = {
      upstream: { baseUrl: upstream.url, apiKey: 'sk-test-0123456789' },
      // No server listens there.
      server: { port: 9 },
      chains: { [chain.chainId]: { rpc, ...(pinned ? { fulfilments } : {}) } },
      tokens: [{ chainId: chain.chainId, address: chain.token, symbol: 'TST', decimals: 6 }],
      receivers: [{ name: 'nobody', type: 'email', to: ['nobody@example.com'] }],
      smtp: { url: 'smtp://127.0.0.1:9', from: 'a@example.com' },
      subscriptions: [{ name: 'one', intents: [INTENT], receivers: ['nobody'] }],
    };
    const file = join(folder, 'intentwatch.yaml');
    await writeFile(file, JSON.stringify(config));
    const args = ['verify', INTENT, '--config', file, '--recipient', ALICE, ...(json ? ['--json'] : [])];
    const program = await Program.start(MAIN, args);
    const { code } = await program.ending();
    const out = program.stdout.join('\n');
    return {
      code,
      out,
      err: program.stderr.join('\n'),
      verdict: json && out !== '' ? JSON.parse(out).payments[0]?.verdict : null,
    };
  }

  test('a payment as stated is verified once its block is final', async () => {
    const txHash = await chain.transfer(ALICE, 1_000_000n);
    state(txHash);
    const early = await verify({ json: false });
    expect(early.code).toBe(75);
    expect(early.out).toContain('1.00 TST to 0x5290');
    expect(early.out).toContain('not reported (not-final)');
    await chain.mine(3);
    const { code, verdict, err } = await verify();
    expect(err).toBe('');
    expect(verdict).toMatchObject({
      outcome: 'verified',
      proof: {
        txHash,
        checked: ['chain', 'success', 'token', 'amount', 'recipient', 'final'],
        moved: [{ token: chain.token, to: ALICE, amount: '1000000' }],
        endpoints: ['rpc-0', 'rpc-1'],
      },
    });
    expect(code).toBe(0);
  });

  test.each([
    ['less than stated is short', 'short', () => chain.transfer(ALICE, 999_999n)],
    ['paying somebody else is another recipient', 'other-recipient', () => chain.transfer(BOB, 1_000_000n)],
    ['a transaction that failed is reverted', 'reverted', () => chain.transfer(ALICE, 10n ** 30n)],
    ['a transaction that moves nothing has no transfer', 'no-transfer', () => chain.fill(INTENT, [], 0n)],
  ])('%s', async (_, reason, pay) => {
    state(await pay());
    await chain.mine(3);
    const { code, verdict } = await verify();
    expect(verdict).toMatchObject({ outcome: 'disputed', proof: { reason } });
    expect(code).toBe(1);
  });

  test('one endpoint alone disputes nothing', async () => {
    state(await chain.transfer(BOB, 1_000_000n));
    await chain.mine(3);
    const verdict = { outcome: 'waiting', because: 'one-endpoint' };
    expect(await verify({ endpoints: ['127.0.0.1'] })).toMatchObject({ code: 75, verdict });
  });

  test('with the contract of fulfilments pinned, one of another intent is disputed', async () => {
    state(await chain.fill(OTHER_INTENT, [ALICE], 1_000_000n));
    await chain.mine(3);
    expect(await verify({ pinned: true })).toMatchObject({
      code: 1,
      verdict: { outcome: 'disputed', proof: { reason: 'other-intent' } },
    });
    state(await chain.fill(INTENT, [ALICE], 1_000_000n));
    await chain.mine(3);
    const { code, verdict } = await verify({ pinned: true });
    expect(code).toBe(0);
    expect(verdict.proof.checked).toContain('intent');
  });

  test('two payments that may be meant are ambiguous', async () => {
    state(await chain.fill(INTENT, [ALICE, ALICE], 1_000_000n));
    await chain.mine(3);
    expect(await verify()).toMatchObject({
      code: 75,
      verdict: { outcome: 'unchecked', because: 'ambiguous' },
    });
  });

  test('a payment that is undone by a reorganisation is not there any more', async () => {
    const endpoint = {
      name: 'own',
      url: new Secret(chain.url),
      headers: {},
      requestsPerSecond: 100,
      timeoutMs: 5_000,
      proxy: null,
    };
    const checked = {
      chainId: String(chain.chainId),
      finality: { confirmations: 5 },
      endpoints: [endpoint],
      fulfilments: null,
      transmitter: null,
    };
    const reader = createChainReaders([checked], { onCall: () => undefined }).get(checked.chainId);
    if (reader === undefined) throw new Error('expected a reader');
    const txHash = await chain.transfer(ALICE, 1_000_000n);
    expect(await reader.read(txHash)).toMatchObject([{ outcome: 'found', isFinal: false }]);
    await chain.reorganise(1);
    expect(await reader.read(txHash)).toMatchObject([{ outcome: 'absent', isSynced: true }]);
    await reader.close();
  });
});
