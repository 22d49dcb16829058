import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/file/load.ts';

const folder = join(import.meta.dirname, '../fixtures/config/valid');
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER_SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';

const EVERY_KEY_ENV = {
  HEADER: 'h',
  PROXY: 'http://proxy.example.com:3128',
  PROXY_PASSWORD: 'p%40',
  KEY: 'key-1',
  REDIS_PASSWORD: 'p',
  TOKEN: 'token-of-16-char',
  SMTP_URL: 'smtps://u:p@mail.example.com',
  HOOK_URL: 'http://10.0.0.8:3000/hook?t=1',
  RPC_URL: 'https://node.example.com/v2/key-of-the-node',
  SECRET_NEW: SECRET,
  SECRET_OLD: OTHER_SECRET,
  PRIVATE: 'true',
  CHAIN: '10',
  ORDER: '1042',
};

test('a file with only the required keys gets the documented defaults', async () => {
  const file = join(folder, 'minimal.yaml');
  const { digest, fingerprint, upstream, receivers, ...config } = await loadConfig(file, {});
  expect(fingerprint.reveal()).toMatch(/^[0-9a-f]{64}$/);
  const { apiKey, ...upstreamRest } = upstream;
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(apiKey?.reveal()).toBe('key-1');
  expect(upstreamRest).toEqual({
    baseUrl: 'https://api.example.com',
    quotesUrl: null,
    quotesRequestsPerSecond: 1,
    partnerQuotesRequestsPerSecond: 1,
    statusSource: 'v1',
    openStatusRequestsPerSecond: 1,
    dAppId: 'intentwatch',
    requestsPerSecond: 5,
    gatewayRequestsPerSecond: 2,
    timeoutMs: 10_000,
    proxy: null,
    quoteDomain: { name: 'ServiceQuoteV1', version: '1', isExplicit: false },
    gateway: {
      prefix: 'deposit-gateway',
      vaultPath: '/deposit-gateway/v2/depositAddresses/{vaultAddress}',
      chainParam: 'sourceChainId',
      jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
    },
  });
  expect(config).toEqual({
    file,
    redis: { url: null, prefix: 'intentwatch' },
    dataDir: join(folder, 'data'),
    retentionMs: 30 * 86_400_000,
    removal: { graceSpanMs: 86_400_000 },
    server: {
      host: '127.0.0.1',
      port: 9464,
      tokens: { read: null, consume: null, admin: [] },
      secretsKey: null,
      apiReceivers: { allowNetworks: [], allowInsecure: false, proxies: [], types: ['webhook', 'email'] },
      console: true,
      publicUrl: null,
      trustProxy: [],
    },
    log: { level: 'info', format: null },
    reload: { mode: 'watch', confirmAfter: 0.2 },
    books: null,
    smtp: null,
    polling: {
      confirmAfterMs: 600_000,
      fullSweepEveryMs: 300_000,
      shortestSeconds: 1,
      longestSeconds: 30,
      finished: {},
    },
    chains: [],
    tokens: [],
    checkedChains: [],
    uncheckedTokens: [],
    subscriptions: [
      {
        name: 'treasury',
        wallets: ['0x52908400098527886e0f7030069857d2e4169ee7'],
        intents: [],
        sourceTxs: [],
        destinationTxs: [],
        quotes: [],
        gaslessJobs: [],
        vaultQuotes: [],
        vaults: [],
        routes: [],
        metadata: {},
        receivers: ['backend'],
        history: 'skip',
        overdueAfterMs: null,
        warnBeforeMs: null,
        recipients: [],
      },
    ],
    importedQuotes: [],
    warnings: [],
  });
  expect(receivers).toMatchObject([
    {
      name: 'backend',
      type: 'webhook',
      events: ['*'],
      timeoutMs: 15_000,
      retries: {
        delaysMs: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1000),
        jitter: 0.1,
      },
      concurrency: 20,
      format: 'standard',
      headers: {},
      tls: null,
      rateLimit: null,
      filter: { wallets: null, chains: null, minAmount: null },
      ordering: 'none',
      disableAfterMs: 5 * 86_400_000,
      proxy: null,
      allowPrivateNetwork: false,
      allowNetworks: [],
      allowInsecure: false,
    },
  ]);
});

test('a file with every key is read with its values', async () => {
  const config = await loadConfig(join(folder, 'every-key.yaml'), EVERY_KEY_ENV);
  expect(config.upstream).toMatchObject({
    baseUrl: 'http://127.0.0.1:8080/base',
    quotesUrl: 'http://quotes.example.com',
    requestsPerSecond: 0.5,
    gatewayRequestsPerSecond: 500,
    quotesRequestsPerSecond: 0.1,
    partnerQuotesRequestsPerSecond: 3,
    statusSource: 'both',
    openStatusRequestsPerSecond: 4,
    dAppId: 'My.App_1',
    timeoutMs: 2000,
    quoteDomain: { name: 'AcmeQuoteV1', version: '2', isExplicit: true },
    gateway: {
      prefix: 'acme-vaults',
      vaultPath: '/v1/acme-vaults/{vaultAddress}',
      chainParam: 'chain',
      jobPath: '/jobs/{id}',
    },
  });
  expect(config.redis.url?.reveal()).toBe('rediss://user:p@redis.example.com:6380/2');
  expect(config.redis.prefix).toBe('team-1');
  expect(config.dataDir).toBe(resolve(folder, '../state'));
  expect(config.retentionMs).toBe(5 * 86_400_000);
  expect(config.server).toMatchObject({ host: '::1', port: 0, publicUrl: 'https://watch.example.com/a' });
  expect(config.server.tokens.admin[0]?.reveal()).toBe('token-of-16-char');
  expect(config.server.apiReceivers).toEqual({
    allowNetworks: ['10.1.0.0/16', 'fd12::/16'],
    allowInsecure: true,
    proxies: ['http://proxy.example.com:3128'],
    types: ['webhook', 'postgres'],
  });
  expect(config.log).toEqual({ level: 'warn', format: 'pretty' });
  expect(config.reload).toEqual({ mode: 'manual', confirmAfter: 0.125 });
  expect(config.smtp?.url.reveal()).toBe('smtps://u:p@mail.example.com');
  expect(config.smtp?.from).toBe('"Transfers, all" <transfers@example.com>');
  expect(config.polling).toEqual({
    confirmAfterMs: 30_000,
    fullSweepEveryMs: 60_000,
    shortestSeconds: 2,
    longestSeconds: 60,
    finished: { intent: ['settled', 'refunded'], 'deposit-address': [] },
  });
  // Keys that are whole numbers come in numeric order, as in JavaScript.
  expect(config.chains).toEqual([
    { chainId: '8453', name: 'Base', explorer: null },
    { chainId: '98866', name: 'Plume', explorer: 'https://explorer.example.com/tx/{txHash}?tab=index' },
  ]);
  const endpoints = config.checkedChains.flatMap((chain) => chain.endpoints);
  expect(endpoints.map(({ url }) => url.reveal())).toEqual([EVERY_KEY_ENV.RPC_URL, 'http://10.0.0.9:8545/']);
  expect(endpoints[0]?.headers.Authorization?.reveal()).toBe('Bearer h');
  expect(endpoints[1]?.proxy?.reveal()).toBe(EVERY_KEY_ENV.PROXY);
  expect(config.checkedChains).toMatchObject([
    {
      chainId: '8453',
      finality: { confirmations: 12 },
      endpoints: [
        { name: 'own', requestsPerSecond: 2.5, timeoutMs: 3_000, proxy: null },
        { name: 'other', requestsPerSecond: 10, timeoutMs: 10_000, headers: {} },
      ],
      fulfilments: {
        address: '0xde709f2102306220921060314715629080e2fb77',
        event: 'event Filled(bytes32 indexed intent, address solver)',
        hash: 'intent',
      },
    },
  ]);
  expect(config.uncheckedTokens).toEqual([
    { chainId: '98866', address: '0xDE709F2102306220921060314715629080E2FB77' },
  ]);
  expect(config.tokens).toEqual([
    {
      chainId: '98866',
      address: '0xDE709F2102306220921060314715629080E2FB77',
      symbol: 'pUSD',
      decimals: 6,
    },
  ]);
  const [local, nobodyWaits, channel, oncall] = config.receivers;
  if (local?.type !== 'webhook') throw new Error('expected a webhook');
  expect(local.url.reveal()).toBe('http://10.0.0.8:3000/hook?t=1');
  expect(local.secrets.map((secret) => secret.reveal())).toEqual([SECRET, OTHER_SECRET]);
  expect(local).toMatchObject({
    events: ['intent.*', '!*.updated'],
    timeoutMs: 500,
    retries: { delaysMs: [1000, 7_200_000], jitter: 0 },
    concurrency: 20,
    rateLimit: 0.5,
    format: 'standard',
    filter: {
      wallets: ['0xde709f2102306220921060314715629080e2fb77'],
      chains: ['10', '8453'],
      minAmount: '1000.5',
    },
    ordering: 'subject',
    disableAfterMs: 12 * 3_600_000,
    allowPrivateNetwork: true,
    allowInsecure: true,
  });
  const headers = Object.entries(local.headers).map(([name, value]) => [name, value.reveal()]);
  expect(headers).toEqual([
    ['Authorization', 'Bearer h'],
    ['X-Team', 'payments'],
  ]);
  expect(channel).toMatchObject({ format: 'slack', secrets: [], rateLimit: 1 });
  if (nobodyWaits?.type !== 'webhook') throw new Error('expected a webhook');
  expect(config.upstream.proxy?.reveal()).toBe('http://proxy.example.com:3128');
  expect(local.proxy).toBeNull();
  expect(local.allowNetworks).toEqual([]);
  expect(nobodyWaits.proxy?.reveal()).toBe('https://user:p%40@10.0.0.9:3128');
  expect(nobodyWaits).toMatchObject({
    allowPrivateNetwork: false,
    allowNetworks: ['10.0.0.0/8', 'fd00::/8'],
  });
  expect(nobodyWaits.url.reveal()).toBe('https://10.1.2.3/hook');
  expect(nobodyWaits?.retries).toEqual({ delaysMs: [], jitter: 0.1 });
  expect(oncall).toMatchObject({
    type: 'email',
    to: ['a@example.com', 'b@example.com'],
    events: ['*.failed'],
    timeoutMs: 60_000,
    retries: { jitter: 1 },
    concurrency: 2,
    rateLimit: 2,
    filter: { wallets: null, chains: null, minAmount: '1' },
    batching: {
      digest: { everyMs: 900_000, max: 20 },
      quietHours: { fromMinute: 1320, toMinute: 450, timeZone: 'Europe/Paris' },
    },
  });
  expect(config.subscriptions).toEqual([
    {
      name: '1042',
      wallets: [],
      intents: [`0x${'ab'.repeat(32)}`],
      sourceTxs: [`0x${'cd'.repeat(32)}`],
      destinationTxs: [
        '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW',
      ],
      quotes: ['3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41', '9a7e3c1d-2b4f-4e6a-8c5d-7f1b9e3a6d20'],
      gaslessJobs: [
        { id: '7d9f1c52-8a4e-4b6d-b0c3-2e5a9f7d1b68', endpoint: 'status' },
        { id: '7d9f1c52-8a4e-4b6d-b0c3-2e5a9f7d1b68', endpoint: 'gateway' },
        { id: 'Job_17', endpoint: 'gateway' },
      ],
      vaultQuotes: [],
      vaults: [
        { address: '0xde709f2102306220921060314715629080e2fb77', chainId: 8453 },
        { address: '0xde709f2102306220921060314715629080e2fb77', chainId: 10 },
      ],
      routes: [
        {
          name: 'base-to-solana',
          source: { chainId: 8453, token: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' },
          destination: { chainId: 1399811149, token: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' },
          amount: '250000000',
          funder: '0x52908400098527886e0f7030069857d2e4169ee7',
          recipient: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
          movedBy: 0.01,
          service: 'open',
          executions: ['SELF_PUBLISH'],
          everyMs: 120_000,
        },
        {
          name: 'partner-to-solana',
          source: { chainId: 8453, token: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' },
          destination: { chainId: 1399811149, token: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' },
          service: 'v1',
          executions: ['evm'],
          amount: '250000000',
          funder: '0x52908400098527886e0f7030069857d2e4169ee7',
          recipient: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
          movedBy: 0.005,
          everyMs: 30_000,
        },
      ],
      metadata: { order: '1042', note: '${literal} 100%' },
      receivers: ['local', 'oncall'],
      history: 'emit',
      overdueAfterMs: 900_000,
      warnBeforeMs: 90_000,
      recipients: [
        '0x52908400098527886e0f7030069857d2e4169ee7',
        '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs',
      ],
    },
  ]);
});

test('an imported quote is stored as far as its signature covers it and it promises something', async () => {
  const { importedQuotes } = await loadConfig(join(folder, 'every-key.yaml'), EVERY_KEY_ENV);
  const hash = `0x${'ab'.repeat(32)}`;
  expect(importedQuotes).toEqual([
    {
      subject: 'quote:9a7e3c1d-2b4f-4e6a-8c5d-7f1b9e3a6d20',
      raw: {
        id: 'quote:9A7E3C1D-2B4F-4E6A-8C5D-7F1B9E3A6D20',
        signature: `0x${'11'.repeat(64)}1b`,
        expiresAt: 1_795_174_500,
        intentHash: hash,
        source: expect.objectContaining({ chainId: 8453 }),
        destination: { chainId: 10, amountOut: '999000', minAmountOut: '994005' },
        steps: [{ type: 'BRIDGE', intents: [{ intentHash: hash, role: 'primary' }] }],
      },
    },
  ]);
});

test('wallets of each kind are accepted; EVM addresses are lower-cased, others are not changed', async () => {
  const { subscriptions } = await loadConfig(join(folder, 'wallets-of-each-kind.yaml'), {});
  expect(subscriptions.map(({ wallets }) => wallets)).toEqual([
    [
      '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
      '0xde709f2102306220921060314715629080e2fb77',
      '0x8617e340b3d01fa5f11f306f4090fd50e238070d',
      '0x27b1fdb04752bbc536007a920d24acb045561c26',
    ],
    [
      '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
      '11111111111111111111111111111111',
      'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
    ],
    ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
  ]);
});

describe('variables', () => {
  const file = join(folder, 'variables-and-anchors.yaml');

  test('are valid in flow mappings and lists without quotes, and become numbers where numbers are wanted', async () => {
    const config = await loadConfig(file, { KEY: 'k', PORT: '8080', SECRET, TEXT: '17' });
    expect(config.server.port).toBe(8080);
    expect(config.subscriptions[0]?.metadata).toEqual({ text: '17' });
    expect(config.receivers.map(({ retries }) => retries.delaysMs)).toEqual([[1000], [1000]]);
  });

  test('make no metadata of more than 4,096 bytes as JSON in UTF-8', async () => {
    const load = (TEXT: string) => loadConfig(file, { KEY: 'k', PORT: '1', SECRET, TEXT });
    // {"text":"…"} has 11 bytes beside the text.
    const fits = `${'é'.repeat(2_042)}x`;
    expect((await load(fits)).subscriptions[0]?.metadata).toEqual({ text: fits });
    await expect(load(`${fits}x`)).rejects.toThrow(/metadata: .*expected at most 4096 bytes of metadata/);
  });

  test('cannot change the structure of the file', async () => {
    const TEXT = '}\nreceivers: []\n# "\': [x, ${KEY}, *a, !b';
    const config = await loadConfig(file, { KEY: 'k', PORT: '1', SECRET, TEXT });
    expect(config.subscriptions[0]?.metadata).toEqual({ text: TEXT });
    expect(config.receivers).toHaveLength(2);
  });

  test('that are empty give way to a default', async () => {
    const config = await loadConfig(file, { KEY: 'k', PORT: '1', SECRET, TEXT: 'x', BASE: '' });
    expect(config.upstream.baseUrl).toBe('https://api.example.com');
  });
});

describe('the digest', () => {
  const file = join(folder, 'variables-and-anchors.yaml');
  const env = { KEY: 'k', PORT: '1', SECRET, TEXT: 'x' };

  test('does not depend on secrets nor on settings of one process', async () => {
    const { digest } = await loadConfig(file, env);
    const other = await loadConfig(file, { ...env, KEY: 'other', SECRET: OTHER_SECRET, PORT: '2' });
    expect(other.digest).toBe(digest);
  });

  test('changes with each setting that processes must share', async () => {
    const { digest } = await loadConfig(file, env);
    expect((await loadConfig(file, { ...env, TEXT: 'y' })).digest).not.toBe(digest);
  });
});

describe('the fingerprint', () => {
  const file = join(folder, 'variables-and-anchors.yaml');
  const env = { KEY: 'k', PORT: '1', SECRET, TEXT: 'x' };
  const of = async (path: string, changes: Record<string, string> = {}): Promise<string> =>
    (await loadConfig(path, { ...env, ...changes })).fingerprint.reveal();

  test.each([
    { SECRET: OTHER_SECRET },
    { KEY: 'other' },
    { TEXT: 'y' },
  ])('changes with %o', async (changes) => {
    expect(await of(file, changes)).not.toBe(await of(file));
  });

  test('is the same in processes that differ by the variable of their port, or the place of the file', async () => {
    const copy = join(await mkdtemp(join(tmpdir(), 'intentwatch-copy-')), 'other.yaml');
    onTestFinished(() => rm(dirname(copy), { recursive: true }));
    await copyFile(file, copy);
    expect(await of(copy, { PORT: '2' })).toBe(await of(file));
    await writeFile(copy, `${await readFile(file, 'utf8')}log: { level: debug }\n`);
    expect(await of(copy)).not.toBe(await of(file));
  });

  test('prints itself nowhere', async () => {
    const config = await loadConfig(file, env);
    expect(JSON.stringify(config)).not.toContain(config.fingerprint.reveal());
  });
});

test('the example config loads when the variables it names are set', async () => {
  const file = join(import.meta.dirname, '../../config/intentwatch.example.yaml');
  const config = await loadConfig(file, { UPSTREAM_API_KEY: 'key-1', WEBHOOK_SECRET: SECRET });
  expect(config.subscriptions.map(({ name }) => name)).toEqual(['treasury', 'order-1042', 'prices']);
});

test('a webhook with TLS files has their contents, relative to the config file', async () => {
  const { receivers } = await loadConfig(join(folder, 'webhook-with-tls.yaml'), {});
  const pem = (name: string): Promise<string> => readFile(join(folder, '../../tls', name), 'utf8');
  const [both, caOnly, none] = receivers.map((receiver) =>
    receiver.type === 'webhook' ? receiver.tls : undefined,
  );
  expect(both?.ca).toBe(await pem('ca.pem'));
  expect(both?.identity?.cert).toBe(await pem('client.pem'));
  expect(both?.identity?.key.reveal()).toBe(await pem('client-key.pem'));
  expect(caOnly).toEqual({ ca: await pem('ca.pem'), identity: null });
  expect(none).toBeNull();
});

describe('patterns of events that match no type of the catalogue', () => {
  async function warningsOf(events: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
    const minimal = await readFile(join(folder, 'minimal.yaml'), 'utf8');
    const own = await mkdtemp(join(tmpdir(), 'intentwatch-patterns-'));
    onTestFinished(() => rm(own, { recursive: true }));
    const file = join(own, 'intentwatch.yaml');
    await writeFile(
      file,
      minimal.replace('    type: webhook\n', `    type: webhook\n    events: ${events}\n`),
    );
    const { warnings } = await loadConfig(file, env);
    return warnings.map(({ line, path, message }) => `${line} ${path}: ${message}`);
  }

  test('are warnings with their place and the nearest type', async () => {
    expect(await warningsOf('["intent.fillled", "!*.updatd", "intent.*", "thing.happened-here"]')).toEqual([
      '7 receivers[0].events[0]: found "intent.fillled", expected a pattern that matches a known event type, like "intent.filled"',
      expect.stringMatching(
        /^7 receivers\[0\]\.events\[1\]: found "!\*\.updatd", expected .*, like "[a-z-]+\.updated"$/,
      ),
      '7 receivers[0].events[3]: found "thing.happened-here", expected a pattern that matches a known event type',
    ]);
  });

  test('that come from a variable are not shown', async () => {
    expect(await warningsOf('["${PATTERN}"]', { PATTERN: 'secretive.matter' })).toEqual([
      '7 receivers[0].events[0]: found a value from ${PATTERN}, expected a pattern that matches a known event type',
    ]);
  });
});

test.each([
  ['0.0.0.0', '', ['server.host: found "0.0.0.0", expected a loopback address, or a token beside it']],
  ['0.0.0.0', 'token: 0123456789abcdef', []],
  ['127.0.0.1', '', []],
])('a server at %s with "%s" is a warning where it has no API', async (host, token, expected) => {
  const own = await mkdtemp(join(tmpdir(), 'intentwatch-host-'));
  onTestFinished(() => rm(own, { recursive: true }));
  const file = join(own, 'intentwatch.yaml');
  const minimal = await readFile(join(folder, 'minimal.yaml'), 'utf8');
  await writeFile(file, `${minimal}\nserver:\n  host: ${host}\n  ${token}\n`);
  const { warnings } = await loadConfig(file, {});
  const texts = warnings.map(({ path, message }) => `${path}: ${message}`);
  expect(texts).toEqual(expected.map((text) => expect.stringContaining(text)));
});
