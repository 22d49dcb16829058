import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createVault,
  type Service,
  submitAdvice,
  submitErc3009,
  submitPermit2,
  submitPermit3,
  submitVaultErc3009,
  submitVaultPermit,
} from '../../examples/round-trip/submit.ts';
import type { Patience } from '../../src/commands/connection.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { OpenQuotesClient } from '../../src/upstream/client/open-quotes-client.ts';

const KEY = 'sk-live-0123456789abcdef';
const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const TOKEN = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const VAULT = `0x${'ab'.repeat(20)}`;
const SIGNATURE = `0x${'12'.repeat(65)}`;
const NONCE = `0x${'34'.repeat(32)}`;
const QUOTE_ID = 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const EAGER: Patience = { attempts: 4, firstDelayMs: 1, maxDelayMs: 1_000 };

type Seen = { method: string; url: string; headers: IncomingHttpHeaders; body: string };
type Canned = { status: number; body?: unknown; headers?: Record<string, string>; cut?: true };

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Answers one request after another, the last answer for ever; `seen` are the requests. */
async function serve(...answers: Canned[]): Promise<{ base: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    const answer = answers[Math.min(seen.length, answers.length) - 1] ?? { status: 500 };
    if (answer.cut) return void request.socket.destroy();
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(text);
  });
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return { base: `http://127.0.0.1:${address.port}`, seen };
}

const GATEWAY = { prefix: 'deposit-gateway', chainParam: 'sourceChainId' };
const OLDER_PATHS = {
  ...GATEWAY,
  vaultPath: '/deposit-gateway/v2/depositAddresses/{vaultAddress}',
  jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
};
const CURRENT_PATHS = {
  ...GATEWAY,
  vaultPath: '/v1/deposit-gateway/{vaultAddress}',
  jobPath: '/v1/deposit-gateway/status?id={id}',
};

/** A deployment whose vault endpoints have a word of their own. */
function serviceOf(client: UpstreamClient): Service {
  return { client, prefix: 'acme-vaults' };
}

function connect(baseUrl: string, paths = OLDER_PATHS): UpstreamClient {
  const client = new UpstreamClient({
    baseUrl,
    apiKey: new Secret(KEY),
    timeoutMs: 60_000,
    gateway: paths,
  });
  cleanups.push(() => client.close());
  return client;
}

function connectOpen(quotesUrl: string): OpenQuotesClient {
  const client = new OpenQuotesClient({ quotesUrl, timeoutMs: 60_000 });
  cleanups.push(() => client.close());
  return client;
}

async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error = await promise.then(
    () => new Error('an answer came'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof UpstreamFailure)) throw error;
  return error;
}

const problem = (status: number, code: string): Canned => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: { type: `http://x/v1/errors/${code}`, title: 'T', status, code },
});

const erc3009 = {
  quoteId: QUOTE_ID,
  authorization: {
    from: OWNER,
    to: VAULT,
    value: '115792089237316195423570985008687907853269984665640564039457584007913129639935',
    validAfter: '0',
    validBefore: '1795174524',
    nonce: NONCE,
  },
  signature: SIGNATURE,
};
const permit2 = {
  quoteId: QUOTE_ID,
  authorization: {
    owner: OWNER,
    spender: VAULT,
    token: TOKEN,
    amount: '1',
    nonce: '9',
    deadline: 1795174524,
  },
  signature: `${SIGNATURE}ff`,
};
const permit3 = {
  quoteId: QUOTE_ID,
  authorization: {
    owner: OWNER,
    salt: NONCE,
    deadline: 1795174524,
    timestamp: 1795174000,
    permits: [{ chainId: 8453, token: TOKEN, amount: '1', spender: VAULT }],
  },
  signature: SIGNATURE,
};
const vaultErc3009 = { chainId: 8453, ...erc3009.authorization, signature: SIGNATURE };
const vaultPermit = {
  chainId: 8453,
  owner: OWNER,
  depositAddress: VAULT,
  value: '5',
  deadline: '1795174524',
  signature: SIGNATURE,
};
const newVault = {
  sourceChainId: 8453,
  amount: '1000000',
  recipient: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  depositor: OWNER,
};
const JOB = { id: 'gasless:7d2c', type: 'gasless', status: 'pending' };
const GATEWAY_JOB = { data: { id: 'job-1', status: 'PENDING' } };
const VAULT_RECORD = { data: { vaultAddress: VAULT, state: 'PENDING', amount: '1000000', deadline: 5 } };

type Submit = (service: Service, patience: Patience) => Promise<unknown>;

const SUBMITS: [name: string, path: string, key: boolean, answer: unknown, body: unknown, submit: Submit][] =
  [
    [
      'ERC-3009 for a quote',
      '/v1/gasless/submit/erc-3009',
      true,
      JOB,
      erc3009,
      (service, patience) => submitErc3009(service, erc3009, { patience }),
    ],
    [
      'Permit2 for a quote',
      '/v1/gasless/submit/permit2',
      true,
      JOB,
      permit2,
      (service, patience) => submitPermit2(service, permit2, { patience }),
    ],
    [
      'Permit3 for a quote',
      '/v1/gasless/submit/permit3',
      true,
      JOB,
      permit3,
      (service, patience) => submitPermit3(service, permit3, { patience }),
    ],
    [
      'EIP-2612 for a vault',
      '/acme-vaults/v1/gasless/permit',
      false,
      GATEWAY_JOB,
      vaultPermit,
      (service, patience) => submitVaultPermit(service, vaultPermit, { patience }),
    ],
    [
      'ERC-3009 for a vault',
      '/acme-vaults/v1/gasless/transferWithAuthorization',
      false,
      GATEWAY_JOB,
      vaultErc3009,
      (service, patience) => submitVaultErc3009(service, vaultErc3009, { patience }),
    ],
  ];

describe.each(SUBMITS)('a submit of %s', (_name, path, key, answer, body, submit) => {
  test('is one POST with the payload, with the key only where one is requested', async () => {
    const { base, seen } = await serve({ status: 202, body: answer });
    expect(await submit(serviceOf(connect(base)), EAGER)).toMatchObject({ httpStatus: 202 });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ method: 'POST', url: path });
    expect(seen[0]?.headers['content-type']).toBe('application/json');
    expect(seen[0]?.headers['x-api-key']).toBe(key ? KEY : undefined);
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(body);
  });

  test('is sent again byte for byte after 500, a lost connection, HTML and 429, until the job comes', async () => {
    const { base, seen } = await serve(
      problem(500, 'internal-error'),
      { status: 0, cut: true },
      { status: 200, body: '<html>' },
      { status: 429, headers: { 'retry-after': '0' } },
      { status: 200, body: answer },
    );
    const patience = { ...EAGER, attempts: 5 };
    expect(await submit(serviceOf(connect(base)), patience)).toMatchObject({ httpStatus: 200 });
    expect(seen).toHaveLength(5);
    expect(new Set(seen.map((one) => `${one.url} ${one.body}`)).size).toBe(1);
  });

  test.each([
    [409, 'nonce-used', 'never'],
    [409, 'signature-already-bound', 'never'],
    [410, 'quote-expired', 'fix'],
    [403, 'funder-mismatch', 'fix'],
  ])('is not sent again after %i %s', async (status, code, advice) => {
    const { base, seen } = await serve(problem(status, code));
    expect(await failureOf(submit(serviceOf(connect(base)), EAGER))).toMatchObject({
      problemCode: code,
      advice,
    });
    expect(seen).toHaveLength(1);
  });

  test('is given up after as many attempts as the patience has', async () => {
    const { base, seen } = await serve(problem(503, 'service-unavailable'));
    const failure = await failureOf(submit(serviceOf(connect(base)), { ...EAGER, attempts: 3 }));
    expect(failure).toMatchObject({ code: 'unavailable', advice: 'retry-bounded' });
    expect(submitAdvice(failure.advice)).toBe('resend-identical');
    expect(seen).toHaveLength(3);
  });

  test('is given up at once when the upstream requests more quiet than the patience has', async () => {
    const { base, seen } = await serve({ status: 429, headers: { 'retry-after': '60' } });
    expect(await failureOf(submit(serviceOf(connect(base)), EAGER))).toMatchObject({
      advice: 'wait',
      retryAfterMs: 60_000,
    });
    expect(seen).toHaveLength(1);
  });
});

test('an abort ends the wait for another attempt with the caller’s own reason', async () => {
  const { base } = await serve(problem(500, 'internal-error'));
  const controller = new AbortController();
  const patience = { attempts: 2, firstDelayMs: 600_000, maxDelayMs: 600_000 };
  const service = serviceOf(connect(base));
  const reason = new Error('no longer wanted');
  const outcome = submitErc3009(service, erc3009, { patience, signal: controller.signal });
  setTimeout(() => controller.abort(reason), 200);
  await expect(outcome).rejects.toBe(reason);
});

describe('a request that the interface would refuse', () => {
  test.each<[string, (client: UpstreamClient) => Promise<unknown>]>([
    [
      'authorization.nonce: 0x and 64 hex digits; signature: 0x and 130 hex digits',
      (client) =>
        submitErc3009(serviceOf(client), {
          ...erc3009,
          authorization: { ...erc3009.authorization, nonce: '0x12' },
          signature: '0x',
        }),
    ],
    [
      'quoteId: a quote id that begins with quote:',
      (client) => submitErc3009(serviceOf(client), { ...erc3009, quoteId: '3f1c' }),
    ],
    [
      'chainId: a chain id from 1',
      (client) => submitVaultPermit(serviceOf(client), { ...vaultPermit, chainId: 0 }),
    ],
    [
      'amount: base units as digits',
      (client) => createVault(serviceOf(client), { ...newVault, amount: '1.5' }),
    ],
    [
      'slippage: a decimal fraction from 0.0001 to 1 (0.005 is 0.5 %)',
      (client) => client.quote({ ...quoteRequest, slippage: 5 }),
    ],
    ['dappId: a name that is not empty', (client) => client.quote({ ...quoteRequest, dappId: '' })],
  ])('is not sent: %s', async (message, send) => {
    const { base, seen } = await serve({ status: 202, body: JOB });
    await expect(send(connect(base))).rejects.toThrow(`request not sent: ${message}`);
    expect(seen).toEqual([]);
  });
});

const quoteRequest = {
  type: 'exact-in' as const,
  dappId: 'intentwatch',
  slippage: '0.005',
  source: { chainId: 8453, token: TOKEN, funder: OWNER, amount: '1000000' },
  destination: { chainId: 10, token: TOKEN, recipient: OWNER },
  options: { allQuotes: true },
};
const quote = {
  id: QUOTE_ID,
  type: 'exact-in',
  signature: SIGNATURE,
  expiresAt: 1795174524,
  intentHash: NONCE,
  source: { chainId: 8453, token: TOKEN, funder: OWNER, amount: '1000000' },
  destination: { chainId: 10, token: TOKEN, recipient: OWNER, amountOut: '999000', minAmountOut: '994005' },
  fees: [{ type: 'solver', token: TOKEN, amount: '1000' }],
  steps: [{ type: 'BRIDGE', intents: [{ intentHash: NONCE, role: 'primary' }] }],
  execution: { transaction: { type: 'evm', chainId: 8453, to: VAULT, data: '0x', value: '0' } },
};

describe('a quote', () => {
  test('is requested with the key, and all of them are read', async () => {
    const body = { ...quote, quotes: [quote, { ...quote, signature: null }] };
    const { base, seen } = await serve({ status: 200, body });
    const { value } = await connect(base).quote(quoteRequest);
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/v1/quotes' });
    expect(seen[0]?.headers['x-api-key']).toBe(KEY);
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(quoteRequest);
    expect(value).toMatchObject({
      id: QUOTE_ID,
      expiresAt: 1795174524,
      destination: { amountOut: '999000', minAmountOut: '994005' },
      fees: [{ type: 'solver', token: TOKEN, amount: '1000' }],
      transaction: { type: 'evm', to: VAULT },
      unreadable: [],
      raw: body,
    });
    expect(value.quotes.map(({ id }) => id)).toEqual([QUOTE_ID]);
    expect(value.unreadableQuotes).toEqual([{ index: 1, reason: 'null as signature' }]);
  });

  test.each([
    ['destination', 'somewhere'],
    ['destination', { amountOut: 999000 }],
    ['fees', [{ type: 'solver', amount: 'much' }]],
    ['steps', [{ type: 'BRIDGE' }]],
    ['execution', {}],
  ])('whose %s is %j is a quote all the same', async (member, value) => {
    const { base } = await serve({ status: 200, body: { ...quote, [member]: value } });
    const answer = await connect(base).quote(quoteRequest);
    expect(answer.value.id).toBe(QUOTE_ID);
    expect(answer.value.unreadable).toEqual([member]);
  });

  test.each([
    'id',
    'signature',
    'expiresAt',
    'intentHash',
    'source',
  ])('without %s is malformed', async (member) => {
    const { base } = await serve({ status: 200, body: { ...quote, [member]: null } });
    expect(await failureOf(connect(base).quote(quoteRequest))).toMatchObject({
      code: 'malformed',
      advice: 'retry-bounded',
      endpoint: 'quotes',
    });
  });

  test('that no solver gives is refused with the reason of each solver', async () => {
    const solverErrors = [
      { solver: VAULT, solverName: 'Swift', code: 'NO_LIQUIDITY', message: 'too\nlarge' },
      { solver: VAULT, code: 'COLD', message: 'slow' },
      { solver: 7 },
    ];
    const { base } = await serve({ status: 502, body: { code: 'solver-error', solverErrors } });
    const failure = await failureOf(connect(base).quote(quoteRequest));
    expect(failure).toMatchObject({ code: 'unavailable', advice: 'retry-bounded' });
    expect(failure.solvers).toEqual([
      { solver: 'Swift', code: 'NO_LIQUIDITY', message: 'too large' },
      { solver: VAULT, code: 'COLD', message: 'slow' },
    ]);
    expect(failure.message).toContain('solver Swift: NO_LIQUIDITY, too large');
  });

  test('that is refused for its fields names them', async () => {
    const errors = [{ field: 'source.funder', detail: 'Required' }, { field: 5 }];
    const { base } = await serve({ status: 400, body: { code: 'invalid-request', errors } });
    const failure = await failureOf(connect(base).quote(quoteRequest));
    expect(failure.fields).toEqual([{ field: 'source.funder', detail: 'Required' }]);
    expect(failure.message).toContain('(invalid-request; source.funder: Required)');
  });
});

describe('the deposit gateway', () => {
  test('creates a vault without the key', async () => {
    const { base, seen } = await serve({ status: 201, body: VAULT_RECORD });
    const { value } = await createVault(serviceOf(connect(base)), newVault);
    expect(value).toMatchObject({ vaultAddress: VAULT, state: 'PENDING', deadline: 5 });
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/acme-vaults/v2/depositAddresses' });
    expect(seen[0]?.headers['x-api-key']).toBeUndefined();
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(newVault);
  });

  test('is read in both generations of paths', async () => {
    const both = { data: { ...GATEWAY_JOB.data, ...VAULT_RECORD.data } };
    const { base, seen } = await serve({ status: 200, body: both });
    const [older, current] = [connect(base, OLDER_PATHS), connect(base, CURRENT_PATHS)];
    await older.gaslessJob('job-1');
    await current.gaslessJob('job-1&x');
    await older.vault({ address: VAULT, chainId: 8453 });
    await current.vault({ address: VAULT, chainId: 8453 });
    expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /deposit-gateway/v1/gasless/jobs/job-1',
      'GET /v1/deposit-gateway/status?id=job-1%26x',
      `GET /deposit-gateway/v2/depositAddresses/${VAULT}?sourceChainId=8453`,
      `GET /v1/deposit-gateway/${VAULT}?sourceChainId=8453`,
    ]);
    expect(seen.every(({ headers }) => headers['x-api-key'] === undefined)).toBe(true);
  });

  test('is understood when it refuses in its own form', async () => {
    const body = {
      statusCode: 422,
      error: 'Unprocessable',
      message: 'below the quote',
      code: 'amount-too-low',
    };
    const { base } = await serve({ status: 422, body });
    const failure = await failureOf(submitVaultErc3009(serviceOf(connect(base)), vaultErc3009));
    expect(failure).toMatchObject({ code: 'invalid-request', problemCode: 'amount-too-low', advice: 'fix' });
    expect(failure.message).toContain('(amount-too-low; below the quote)');
  });
});

const route = {
  dAppID: 'intentwatch',
  intentExecutionTypes: ['SELF_PUBLISH' as const],
  quoteRequest: {
    sourceChainID: 8453,
    destinationChainID: 10,
    sourceToken: TOKEN,
    destinationToken: TOKEN,
    sourceAmount: '1000000',
    funder: OWNER,
    recipient: OWNER,
  },
};
const openQuote = {
  quoteID: QUOTE_ID,
  quoteResponseID: 'quoteResponse:1',
  solverID: VAULT,
  quoteData: {
    contracts: { sourcePortal: VAULT, destinationPortal: VAULT, prover: VAULT },
    quoteResponse: {
      sourceAmount: '1000000',
      destinationAmount: '999000',
      minimumDestinationAmount: '994005',
      fees: [
        {
          name: 'Solver',
          description: '',
          token: { address: TOKEN, decimals: 6, symbol: 'USDC' },
          amount: '1000',
          kinds: [],
        },
      ],
      deadline: 1795174524,
      quoteExpiry: 1795174500,
      estimatedFulfillTimeSec: 25,
      encodedRoute: '0x',
    },
  },
};

describe('the open quoting service', () => {
  test('is requested without a key, and each quote is read', async () => {
    const { base, seen } = await serve({ status: 201, body: { data: [openQuote, { quoteID: 'quote:x' }] } });
    const { value } = await connectOpen(base).exactIn(route);
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/api/v3/quotes/exactIn' });
    expect(seen[0]?.headers['x-api-key']).toBeUndefined();
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(route);
    expect(value.quotes).toEqual([
      {
        quoteId: QUOTE_ID,
        solverId: VAULT,
        destinationAmount: '999000',
        sourceAmount: '1000000',
        minimumDestinationAmount: '994005',
        fees: [{ name: 'Solver', amount: '1000', token: TOKEN, decimals: 6, symbol: 'USDC' }],
        quoteExpiry: 1795174500,
        deadline: 1795174524,
        estimatedFulfillSeconds: 25,
        raw: openQuote,
        unreadable: [],
      },
    ]);
    expect(value.unreadable).toEqual([{ index: 1, reason: 'nothing as quoteData.quoteResponse' }]);
  });

  test('that gives no quote has answered', async () => {
    const { base } = await serve({ status: 201, body: { data: [] } });
    expect((await connectOpen(base).exactIn(route)).value).toEqual({ quotes: [], unreadable: [] });
  });

  test('is understood when it refuses in its own form', async () => {
    const validationErrors = [{ field: 'quoteRequest.funder', message: 'must be an address' }];
    const { base } = await serve({
      status: 400,
      body: { statusCode: 400, createdBy: 'ValidationFilter', validationErrors },
    });
    const failure = await failureOf(connectOpen(base).exactIn(route));
    expect(failure).toMatchObject({ endpoint: 'open-quotes', code: 'invalid-request', advice: 'fix' });
    expect(failure.fields).toEqual([{ field: 'quoteRequest.funder', detail: 'must be an address' }]);
    expect(failure.message).toContain('(quoteRequest.funder: must be an address)');
  });

  test.each([
    ['5', 5_000],
    [null, null],
  ])('that refuses too many requests with Retry-After %j causes a wait', async (after, retryAfterMs) => {
    const { base } = await serve({ status: 429, ...(after && { headers: { 'retry-after': after } }) });
    expect(await failureOf(connectOpen(base).exactIn(route))).toMatchObject({
      code: 'rate-limited',
      advice: 'wait',
      retryAfterMs,
    });
  });

  test.each([{ data: {} }, [], { results: [] }])('that answers %j is malformed', async (body) => {
    const { base } = await serve({ status: 201, body });
    expect(await failureOf(connectOpen(base).exactIn(route))).toMatchObject({ code: 'malformed' });
  });
});
