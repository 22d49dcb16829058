import fc from 'fast-check';
import { Pool } from 'undici';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { signErc2612, signErc3009, signPermit2, signPermit3 } from '../../examples/round-trip/sign.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { type Raw, type ShapeOf, wordFor } from '../support/interface-shapes.ts';

/** Number of requests to every endpoint; `npm run fuzz` sends 10,000. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 300);
const TIMEOUT_MS = 120_000 + RUNS * 100;

const owner = privateKeyToAccount(`0x${'46'.repeat(32)}`);
const WALLET = owner.address;
const BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const SPENDER = '0x1111111111111111111111111111111111111111';
const SIGNATURE = `0x${'12'.repeat(64)}1b`;
const AMOUNT = '100000000';
const TOKEN = { chainId: 8453, address: BASE, name: 'USD Coin', version: '2' } as const;
const UNTIL = 99_999_999_999n;

/** Signed payloads per way to fund; each is accepted once, and recognised again. */
const SIGNED = 5;

type Body = Record<string, unknown>;

const QUOTE: Body = {
  type: 'exact-in',
  dappId: 'fuzz',
  slippage: '0.01',
  source: { chainId: 8453, token: BASE, funder: WALLET, amount: AMOUNT },
  destination: { chainId: 10, token: OPTIMISM, recipient: WALLET, minAmountOut: '1' },
  refundRecipient: WALLET,
  options: { allQuotes: false },
};
const VAULT: Body = {
  dAppID: 'fuzz',
  sourceChainId: 8453,
  destinationChainId: 10,
  sourceToken: BASE,
  destinationToken: OPTIMISM,
  amount: AMOUNT,
  recipient: WALLET,
  refundRecipient: WALLET,
};
const LEGACY_VAULT: Body = {
  dAppID: 'fuzz',
  sourceChainId: 8453,
  amount: AMOUNT,
  recipient: WALLET,
  depositor: WALLET,
  refundRecipient: WALLET,
};
const openBody = (amount: Body): Body => ({
  dAppID: 'fuzz',
  intentExecutionTypes: ['GASLESS'],
  quoteRequest: {
    sourceChainID: 8453,
    destinationChainID: 10,
    sourceToken: BASE,
    destinationToken: OPTIMISM,
    ...amount,
    funder: WALLET,
    recipient: WALLET,
    refundRecipient: WALLET,
  },
  contracts: { prover: SPENDER },
});

/** Bodies that are correct on first use; the sandbox's known values, for requests. */
const bodies = new Map<string, Body[]>([
  ['/v1/quotes', [QUOTE]],
  ['/v1/deposit-gateway/deposit-addresses', [VAULT]],
  ['/deposit-gateway/v2/depositAddresses', [LEGACY_VAULT]],
  ['/api/v3/quotes/exactIn', [openBody({ sourceAmount: AMOUNT })]],
  ['/api/v3/quotes/exactOut', [openBody({ destinationAmount: AMOUNT })]],
  ['/api/v3/quotes/single', [openBody({ sourceAmount: AMOUNT })]],
]);
const existing: Record<'wallets' | 'hashes' | 'uuids' | 'vaults' | 'cursors', string[]> = {
  wallets: [],
  hashes: [],
  uuids: [],
  vaults: [],
  cursors: [],
};

let sandbox: Sandbox;
let service: Pool;
let quoting: Pool;

type FuzzRequest = { method: string; path: string; headers: Record<string, string>; body?: Buffer };

async function send(pool: Pool, { method, path, headers, body }: FuzzRequest): Promise<Raw> {
  const answer = await pool.request({ method, path, headers, body: body ?? null });
  const contentType = answer.headers['content-type'];
  return {
    status: answer.statusCode,
    contentType: typeof contentType === 'string' ? contentType : '',
    text: await answer.body.text(),
  };
}

async function right(method: string, path: string, body?: Body): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey };
  const sent = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
  return JSON.parse((await send(service, { method, path, headers, ...sent })).text);
}

async function newQuote(): Promise<string> {
  return z.object({ id: z.string() }).parse(await right('POST', '/v1/quotes', QUOTE)).id;
}

async function newVault(): Promise<`0x${string}`> {
  const vaultAddress = z.custom<`0x${string}`>((value) => typeof value === 'string');
  const made = await right('POST', '/v1/deposit-gateway/deposit-addresses', VAULT);
  return z.object({ data: z.object({ vaultAddress }) }).parse(made).data.vaultAddress;
}

/** Validly signed payloads of one way to fund, each for a quote or vault of its own. */
async function signed(path: string, sign: (nonce: bigint) => Promise<Body>): Promise<void> {
  const made: Body[] = [];
  for (let index = 0; index < SIGNED; index++) made.push(await sign(BigInt(index)));
  bodies.set(path, made);
}

beforeAll(async () => {
  // Slow enough for quotes and vaults to stay fundable to the end.
  sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 0.001, pastTransfers: 300, wallets: 3 });
  await sandbox.start();
  service = new Pool(sandbox.url);
  quoting = new Pool(sandbox.quotesUrl);
  const grant = { owner, token: TOKEN, spender: SPENDER, amount: BigInt(AMOUNT), until: UNTIL } as const;
  const nonce = (of: bigint): `0x${string}` => `0x${of.toString(16).padStart(64, '0')}`;
  await signed('/v1/gasless/submit/erc-3009', async (of) => ({
    quoteId: await newQuote(),
    ...(await signErc3009(grant, nonce(1_000n + of))),
  }));
  await signed('/v1/gasless/submit/permit2', async (of) => ({
    quoteId: await newQuote(),
    ...(await signPermit2(grant, of)),
  }));
  await signed('/v1/gasless/submit/permit3', async (of) => ({
    quoteId: await newQuote(),
    ...(await signPermit3(grant, { salt: nonce(of), nowSeconds: 1 })),
  }));
  const erc3009 = async (of: bigint): Promise<Body> => {
    const { authorization, signature } = await signErc3009(
      { ...grant, spender: await newVault() },
      nonce(of),
    );
    return { chainId: TOKEN.chainId, ...authorization, signature };
  };
  await signed('/v1/deposit-gateway/submit/erc-3009', (of) => erc3009(2_000n + of));
  await signed('/deposit-gateway/v1/gasless/transferWithAuthorization', (of) => erc3009(3_000n + of));
  await signed('/v1/deposit-gateway/submit/erc-2612', async (of) =>
    signErc2612({ ...grant, spender: await newVault() }, of),
  );
  await signed('/deposit-gateway/v1/gasless/permit', async (of) => {
    // An owner's permits count over both endpoints.
    const other = privateKeyToAccount(`0x${'5e'.repeat(32)}`);
    const { spender, ...permit } = await signErc2612(
      { ...grant, owner: other, spender: await newVault() },
      of,
    );
    return { ...permit, depositAddress: spender };
  });

  const { wallets, intents } = sandbox.subjects();
  existing.wallets = [...wallets, WALLET];
  existing.hashes = [...intents];
  const page = z.object({
    results: z.array(z.object({ id: z.string(), txHash: z.string().nullish() })),
    nextCursor: z.string().nullable(),
  });
  for (const wallet of wallets) {
    for (const status of ['', '&status=settled']) {
      const path = `/v1/intents/status?wallet=${wallet}${status}&limit=5`;
      const { results, nextCursor } = page.parse(await right('GET', path));
      existing.hashes.push(...results.flatMap(({ id, txHash }) => [id.replace('intent:', ''), txHash ?? '']));
      if (nextCursor !== null) existing.cursors.push(nextCursor);
    }
  }
  const [erc3009Body] = bodies.get('/v1/deposit-gateway/submit/erc-3009') ?? [];
  const jobs = z.object({ data: z.object({ id: z.string() }) });
  const job = jobs.parse(await right('POST', '/v1/deposit-gateway/submit/erc-3009', erc3009Body));
  existing.uuids = [job.data.id, (await newQuote()).slice('quote:'.length)];
  existing.vaults = [await newVault(), await newVault()];
});

afterAll(async () => {
  await Promise.all([service.close(), quoting.close()]);
  await sandbox.close();
});

const strange = fc.oneof(
  fc.jsonValue(),
  fc.constant(undefined),
  fc.bigInt({ min: 0n, max: 2n ** 260n }).map(String),
  fc.constantFrom(
    0,
    -1,
    1.5,
    1e30,
    '0',
    '-1',
    '1e3',
    '0x',
    ' ',
    '\u0000',
    '8453',
    8453n.toString(),
    10,
    728126428,
  ),
  fc.constantFrom(
    WALLET.toLowerCase(),
    WALLET.toUpperCase(),
    SPENDER,
    OPTIMISM,
    `0x${'F'.repeat(40)}`,
    SIGNATURE,
  ),
  fc.constantFrom('exact-out', 'custom', 'GASLESS', '__proto__', 'constructor', 'quote:', 'quote:0'),
  fc.uint8Array({ minLength: 65, maxLength: 65 }).map((raw) => `0x${Buffer.from(raw).toString('hex')}`),
  fc.uint8Array({ minLength: 32, maxLength: 32 }).map((raw) => `0x${Buffer.from(raw).toString('hex')}`),
);

/** A change of a tree at one place: a member is replaced, removed (`undefined`), varied, added or renamed. */
const mutation = fc.record({
  place: fc.nat(),
  kind: fc.constantFrom('replace', 'replace', 'near', 'near', 'near', 'add', 'rename'),
  amount: fc.nat(),
  name: fc.oneof(
    fc.string(),
    fc.constantFrom('', '__proto__', 'constructor', 'funder', 'swapType', 'encodedRoute'),
  ),
  value: strange,
});

type Tree = { [key: string]: unknown };
type Mutation = typeof mutation extends fc.Arbitrary<infer M> ? M : never;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

function places(tree: Tree): { parent: Tree; key: string }[] {
  return Object.entries(tree).flatMap(([key, value]) => [
    { parent: tree, key },
    ...(isTree(value) ? places(value) : []),
  ]);
}

/** A value of the same form: a well-formed wrong value gets further than a malformed one. */
function near(value: unknown, amount: number): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return Math.max(0, value + (amount % 7) - 3);
  if (typeof value !== 'string') return value;
  if (/^\d{1,78}$/.test(value))
    return String(BigInt(value) / 10n ** BigInt(amount % 12) + BigInt(amount % 3));
  if (!/^0x[0-9a-fA-F]+$/.test(value)) return amount % 2 === 0 ? value.toUpperCase() : `${value} `;
  const at = 2 + (amount % (value.length - 2));
  return `${value.slice(0, at)}${value[at] === '0' ? '1' : '0'}${value.slice(at + 1)}`;
}

/** A body with some members of another of the same form: each valid alone, and not together. */
function mixed([body, other]: readonly [Body, Body], at: readonly number[]): string {
  const tree: Tree = structuredClone(body);
  const mine = places(tree);
  const others = places(other);
  for (const place of at) {
    const into = mine[place % mine.length];
    const from = others[place % others.length];
    if (into !== undefined && from?.key === into.key) into.parent[into.key] = from.parent[from.key];
  }
  return JSON.stringify(tree);
}

function mutated(body: Body, mutations: readonly Mutation[]): string {
  const tree: Tree = structuredClone(body);
  for (const { place, kind, name, value, amount } of mutations) {
    const all = places(tree);
    const found = all[place % Math.max(1, all.length)];
    if (found === undefined) continue;
    // An own member also where an assignment would set a prototype.
    const put = (key: string, of: unknown): unknown =>
      Object.defineProperty(found.parent, key, {
        value: of,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    if (kind === 'add') put(name, value);
    else if (kind === 'rename') put(name, found.parent[found.key]);
    else put(found.key, kind === 'near' ? near(found.parent[found.key], amount) : value);
    if (kind === 'rename') delete found.parent[found.key];
  }
  return JSON.stringify(tree);
}

function damaged(text: string, damages: readonly { at: number; byte: number; cut: boolean }[]): Buffer {
  let bytes = Buffer.from(text);
  for (const { at, byte, cut } of damages) {
    const place = at % Math.max(1, bytes.length);
    if (cut) bytes = bytes.subarray(0, place);
    else bytes[place] = byte;
  }
  return bytes;
}

const damage = fc.record({ at: fc.nat(), byte: fc.nat(255), cut: fc.boolean() });

function bodyOf(path: string): fc.Arbitrary<Buffer> {
  const valid = fc.constantFrom(...(bodies.get(path) ?? []));
  const some = { minLength: 1, maxLength: 3 };
  return fc.oneof(
    {
      weight: 10,
      arbitrary: fc.tuple(valid, fc.array(mutation, some)).map(([it, by]) => Buffer.from(mutated(it, by))),
    },
    {
      weight: 3,
      arbitrary: fc.tuple(valid, fc.array(damage, some)).map(([it, by]) => damaged(JSON.stringify(it), by)),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.tuple(valid, valid), fc.array(fc.nat(), some))
        .map(([two, at]) => Buffer.from(mixed(two, at))),
    },
    { weight: 2, arbitrary: valid.map((it) => Buffer.from(JSON.stringify(it))) },
    { weight: 1, arbitrary: fc.json().map((it) => Buffer.from(it)) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }).map((it) => Buffer.from(it)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((it) => Buffer.from(it)) },
  );
}

const ascii = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});

const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant('application/json') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      null,
      '',
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json;;',
      'application/problem+json',
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ),
  },
  { weight: 1, arbitrary: ascii },
);

function apiKey(): fc.Arbitrary<string | null> {
  const endings = ['-expired', '-forbidden', '-unattributed', '-other', ` , ${sandbox.apiKey}`];
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant(sandbox.apiKey) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(null, '', ...endings.map((ending) => `${sandbox.apiKey}${ending}`)),
    },
    { weight: 1, arbitrary: ascii },
  );
}

/** Query strings with existing and other names, with existing and strange values, or no query at all. */
function queryOf(): fc.Arbitrary<string> {
  const statuses = ['pending', 'settled', 'unknown', 'PENDING'];
  const name = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.constantFrom('wallet', 'status', 'cursor', 'limit', 'quoteId', 'jobId', 'intentHash'),
    },
    { weight: 3, arbitrary: fc.constantFrom('sourceTxHash', 'destinationTxHash', 'sourceChainId', 'id') },
    { weight: 1, arbitrary: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'wallet[]', 'limit.x')) },
  );
  const cursor = fc
    .tuple(fc.constantFrom(...existing.cursors), fc.array(mutation, { maxLength: 2 }))
    .map(([text, by]) => {
      const content: Body = JSON.parse(Buffer.from(text, 'base64url').toString());
      return Buffer.from(mutated(content, by)).toString('base64url');
    });
  const value = fc.oneof(
    fc.constantFrom(...existing.wallets, ...existing.hashes, ...existing.uuids, ...existing.cursors),
    fc.constantFrom(
      ...statuses,
      '1',
      '50',
      '51',
      '0',
      '-1',
      '1.5',
      '8453',
      '',
      '__proto__',
      `quote:${existing.uuids[0]}`,
    ),
    cursor,
    fc.uuid(),
    fc.string({ unit: 'binary' }).map((it) => it.toWellFormed()),
  );
  const pair = fc.tuple(name, value);
  const wallet = fc.tuple(fc.constant('wallet'), fc.constantFrom(...existing.wallets));
  const encode = (pairs: [string, string][]): string => `?${new URLSearchParams(pairs)}`;
  const raw = fc.string({ unit: fc.constantFrom(...'abc=&%[]?/;+.0F') }).map((it) => `?${it}`);
  return fc.oneof(
    { weight: 5, arbitrary: fc.array(pair, { minLength: 1, maxLength: 1 }).map(encode) },
    { weight: 5, arbitrary: fc.tuple(wallet, pair).map(encode) },
    { weight: 3, arbitrary: fc.array(pair, { maxLength: 4 }).map(encode) },
    { weight: 1, arbitrary: raw },
    { weight: 1, arbitrary: fc.constant('') },
  );
}

/** One segment of a path: existing, similar, or arbitrary. An empty segment names nothing. */
function segmentOf(values: readonly string[]): fc.Arbitrary<string> {
  const near = fc
    .tuple(fc.constantFrom(...values), fc.array(damage, { minLength: 1, maxLength: 2 }))
    .map(([text, by]) => damaged(text, by).toString('latin1'));
  return fc
    .oneof(
      { weight: 3, arbitrary: fc.constantFrom(...values, ...values.map((value) => value.toUpperCase())) },
      { weight: 2, arbitrary: near },
      { weight: 1, arbitrary: fc.uuid() },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1 }).map((it) => it.toWellFormed()) },
    )
    .filter((text) => !['', '.', '..'].includes(text))
    .map(encodeURIComponent);
}

type Endpoint = {
  name: string;
  shape: ShapeOf;
  method: 'GET' | 'POST';
  path: () => fc.Arbitrary<string>;
};

const fixed = (path: string) => () => fc.constant(path);

const POSTS: [string, ShapeOf][] = [
  ['/v1/quotes', 'quotes'],
  ['/v1/gasless/submit/erc-3009', 'gasless-submit'],
  ['/v1/gasless/submit/permit2', 'gasless-submit'],
  ['/v1/gasless/submit/permit3', 'gasless-submit'],
  ['/v1/deposit-gateway/deposit-addresses', 'vault-create'],
  ['/v1/deposit-gateway/submit/erc-3009', 'vault-submit'],
  ['/v1/deposit-gateway/submit/erc-2612', 'vault-submit'],
  ['/deposit-gateway/v1/gasless/transferWithAuthorization', 'vault-submit'],
  ['/deposit-gateway/v1/gasless/permit', 'vault-submit'],
  ['/deposit-gateway/v2/depositAddresses', 'legacy-vault-create'],
  ['/api/v3/quotes/exactIn', 'open-quotes'],
  ['/api/v3/quotes/exactOut', 'open-quotes'],
  ['/api/v3/quotes/single', 'open-quote'],
];

/** The query of a vault by chain: mostly correct. */
const atChain = (): fc.Arbitrary<string> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant('?sourceChainId=8453') }, { weight: 1, arbitrary: queryOf() });

const ENDPOINTS: Endpoint[] = [
  ...POSTS.map(
    ([path, shape]): Endpoint => ({ name: `POST ${path}`, shape, method: 'POST', path: fixed(path) }),
  ),
  { name: 'GET /v1/chains', shape: 'chains', method: 'GET', path: fixed('/v1/chains') },
  { name: 'GET /v1/tokens', shape: 'tokens', method: 'GET', path: fixed('/v1/tokens') },
  { name: 'GET /v1/intents/status', shape: 'status', method: 'GET', path: fixed('/v1/intents/status') },
  {
    name: 'GET /v1/deposit-gateway/status',
    shape: 'gateway-job',
    method: 'GET',
    path: () => segmentOf(existing.uuids).map((id) => `/v1/deposit-gateway/status?id=${id}`),
  },
  {
    name: 'GET /deposit-gateway/v1/gasless/jobs/{id}',
    shape: 'gateway-job',
    method: 'GET',
    path: () => segmentOf(existing.uuids).map((id) => `/deposit-gateway/v1/gasless/jobs/${id}`),
  },
  {
    name: 'GET /v1/deposit-gateway/{vaultAddress}',
    shape: 'vault',
    method: 'GET',
    path: () =>
      fc
        .tuple(segmentOf(existing.vaults), atChain())
        // `status` is an endpoint of its own, with another answer.
        .filter(([vault]) => vault !== 'status')
        .map(([vault, query]) => `/v1/deposit-gateway/${vault}${query}`),
  },
  {
    name: 'GET /deposit-gateway/v2/depositAddresses/{vaultAddress}',
    shape: 'vault',
    method: 'GET',
    path: () =>
      fc
        .tuple(segmentOf(existing.vaults), atChain())
        .map(([vault, query]) => `/deposit-gateway/v2/depositAddresses/${vault}${query}`),
  },
];

function requests({ method, path, name }: Endpoint): fc.Arbitrary<FuzzRequest> {
  const headers = fc
    .record({ 'content-type': contentType, 'x-api-key': apiKey() })
    .map((all) =>
      Object.fromEntries(
        Object.entries(all).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
      ),
    );
  const target = fc
    .tuple(path(), queryOf())
    .map(([base, query]) => (base.includes('?') ? base : `${base}${query}`));
  if (method === 'GET') return fc.record({ method: fc.constant(method), path: target, headers });
  const body = bodyOf(name.slice('POST '.length));
  return fc.record({ method: fc.constant(method), path: target, headers, body });
}

/** Counts of the answers, printed when many were requested. */
function tally(words: ReadonlyMap<string, number>): string {
  const sorted = [...words].sort(([a], [b]) => a.localeCompare(b));
  return sorted.map(([word, count]) => `${word} ${count}`).join(', ');
}

describe('mutated and random requests are answered in shapes of the interface:', () => {
  test.each(ENDPOINTS.map((endpoint) => [endpoint.name, endpoint] as const))(
    '%s',
    async (_name, endpoint) => {
      const pool = endpoint.shape.startsWith('open-') ? quoting : service;
      const words = new Map<string, number>();
      await fc.assert(
        fc.asyncProperty(requests(endpoint), async (input) => {
          const raw = await send(pool, input);
          try {
            const word = wordFor(endpoint.shape, raw);
            words.set(word, (words.get(word) ?? 0) + 1);
          } catch (error) {
            const body = input.body === undefined ? '' : ` with ${input.body.toString('latin1')}`;
            throw new Error(`${input.method} ${input.path}${body}: ${raw.status} ${raw.text}`, {
              cause: error,
            });
          }
        }),
        { numRuns: RUNS },
      );
      // Some requests were accepted and some refused: they reached the code under test.
      const isSuccess = (word: string): boolean => word.endsWith(' ok');
      expect([...words.keys()].some(isSuccess), tally(words)).toBe(true);
      if (!['chains', 'tokens'].includes(endpoint.shape)) {
        expect([...words.keys()].every(isSuccess), tally(words)).toBe(false);
      }
      if (process.env.FUZZ_RUNS !== undefined) console.log(`${endpoint.name}: ${tally(words)}`);
    },
    TIMEOUT_MS,
  );

  test('and after all of them the sandbox answers as before', async () => {
    const path = `/v1/intents/status?wallet=${existing.wallets[0]}`;
    const raw = await send(service, { method: 'GET', path, headers: { 'x-api-key': sandbox.apiKey } });
    expect(wordFor('status', raw)).toBe('200 ok');
    expect(z.object({ results: z.array(z.unknown()) }).parse(JSON.parse(raw.text)).results).toHaveLength(20);
  });
});
