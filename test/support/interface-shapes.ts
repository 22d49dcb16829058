import { z } from 'zod';

/** An answer as it came over HTTP. */
export type Raw = { status: number; contentType: string; text: string };

const address = z.string().regex(/^0x[a-fA-F0-9]{40}$/);
const hash = z.string().regex(/^0x[a-f0-9]{64}$/);
const amount = z.string().regex(/^(0|[1-9]\d*)$/);
const seconds = z.int().min(1);
const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const text = z.string().min(1);

const transaction = z.strictObject({ chainId: z.int(), txHash: text, token: text, amount });
const reference = z.strictObject({ chainId: z.int(), txHash: text });
const side = z.strictObject({ token: text, amount, chainId: z.int() });

const statusResult = z.strictObject({
  id: z.string().regex(/^(intent|quote|gasless|deposit-address):./s),
  type: z.enum(['intent', 'quote', 'gasless', 'deposit-address']),
  status: text,
  updatedAt: seconds.nullable(),
  intentHashes: z.array(hash).optional(),
  txHash: text.nullable().optional(),
  subStatuses: z
    .array(
      z.strictObject({
        chainId: z.int(),
        quoteIds: z.array(z.string().regex(new RegExp(`^quote:${uuid}$`))),
        txHash: text.nullable(),
        intentHashes: z.array(hash),
        state: z.enum(['pending', 'submitted', 'published', 'failed']),
      }),
    )
    .optional(),
  sourceTx: transaction.optional(),
  destinationTx: transaction.optional(),
  steps: z
    .array(
      z.strictObject({
        type: z.enum(['SWAP', 'BRIDGE']),
        intentHash: hash,
        status: text,
        from: side,
        to: side,
        transactions: z.strictObject({
          created: reference.optional(),
          fulfilled: reference.optional(),
          refunded: reference.optional(),
        }),
      }),
    )
    .optional(),
});

const quote = z.looseObject({
  id: z.string().regex(new RegExp(`^quote:${uuid}$`)),
  type: z.enum(['exact-in', 'exact-out', 'custom']),
  signature: z.string().regex(/^0x[a-f0-9]{130}$/),
  expiresAt: seconds,
  intentHash: hash,
  source: z.looseObject({ chainId: z.int(), funder: text, amount }),
  destination: z.looseObject({ amountOut: amount, minAmountOut: amount }),
  fees: z.array(z.looseObject({ type: text, amount })),
  steps: z.array(
    z.looseObject({ type: text, intents: z.array(z.looseObject({ intentHash: hash, role: text })) }),
  ),
  execution: z.looseObject({ transaction: z.looseObject({ type: text }) }),
});

const gatewayJob = z.strictObject({
  data: z.strictObject({
    id: z.string().regex(new RegExp(`^${uuid}$`)),
    status: text,
    permitTxHash: hash.optional(),
    transferTxHash: hash.optional(),
    intentHash: hash.optional(),
    amount: amount.optional(),
    error: z.string().optional(),
  }),
});

const vault = z.strictObject({
  data: z.strictObject({
    vaultAddress: address,
    amount,
    deadline: seconds,
    state: text,
    intentHash: hash.optional(),
    sourceChainId: z.int(),
  }),
});

const job = z.strictObject({
  id: z.string().regex(new RegExp(`^gasless:${uuid}$`)),
  type: z.literal('gasless'),
  status: text,
});

const openEntry = z.strictObject({
  quoteID: z.string().regex(new RegExp(`^quote:${uuid}$`)),
  quoteResponseID: z.string().regex(new RegExp(`^quoteResponse:${uuid}$`)),
  solverID: address,
  quoteData: z.strictObject({
    contracts: z.strictObject({ sourcePortal: address, destinationPortal: address, prover: address }),
    quoteResponse: z.strictObject({
      intentExecutionType: z.enum(['SELF_PUBLISH', 'GASLESS']),
      sourceChainID: z.int(),
      destinationChainID: z.int(),
      finalDestinationChainID: z.int(),
      sourceToken: text,
      destinationToken: text,
      sourceAmount: amount,
      destinationAmount: amount,
      minimumDestinationAmount: amount,
      funder: text,
      refundRecipient: text,
      recipient: text,
      fees: z.array(
        z.strictObject({
          name: text,
          description: text,
          token: z.strictObject({ address: text, decimals: z.int(), symbol: text }),
          amount,
          kinds: z.array(z.strictObject({ kind: text, amount, basis: text })),
        }),
      ),
      deadline: seconds,
      quoteExpiry: seconds,
      estimatedFulfillTimeSec: z.int(),
      encodedRoute: z.string().regex(/^0x([a-f0-9]{2})*$/),
    }),
  }),
});

/** A success of each endpoint: the statuses, and the shape of the body. */
export const SUCCESSES = {
  chains: { statuses: [200], shape: z.object({ chains: z.array(z.looseObject({ quoteSigner: address })) }) },
  tokens: { statuses: [200], shape: z.object({ tokens: z.array(z.looseObject({ address: text })) }) },
  quotes: { statuses: [200], shape: quote.extend({ quotes: z.array(quote).nullable() }) },
  'gasless-submit': { statuses: [202, 200], shape: job },
  status: {
    statuses: [200],
    shape: z.strictObject({ results: z.array(statusResult).max(50), nextCursor: text.nullable() }),
  },
  'vault-create': { statuses: [201], shape: vault },
  'vault-submit': { statuses: [202, 200], shape: gatewayJob },
  'gateway-job': { statuses: [200], shape: gatewayJob },
  vault: { statuses: [200], shape: vault },
  'legacy-vault-create': {
    statuses: [201],
    shape: z.strictObject({ data: z.strictObject({ vaultAddress: address, amount, deadline: seconds }) }),
  },
  'open-quotes': { statuses: [201], shape: z.strictObject({ data: z.array(openEntry) }) },
  'open-quote': { statuses: [201], shape: z.strictObject({ data: openEntry.shape.quoteData }) },
} as const;

/** An endpoint of the interface, by the shape of its success. */
export type ShapeOf = keyof typeof SUCCESSES;

const CODES: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid-request', 'invalid-parameter', 'missing-parameter', 'slippage-out-of-bounds'],
  401: ['invalid-api-key', 'api-key-expired', 'invalid-signature', 'authorization-expired'],
  403: ['permission-denied', 'funder-mismatch'],
  404: ['endpoint-not-found', 'token-not-found'],
  409: ['signature-already-bound', 'nonce-used'],
  410: ['quote-expired'],
  422: [
    'chain-not-supported',
    'no-route-found',
    'chain-pair-unsupported',
    'amount-too-low',
    'amount-too-high',
    'insufficient-liquidity',
    'simulation-failed',
  ],
  429: ['rate-limit-exceeded'],
  502: ['solver-error'],
};

/** Refusals before a request reaches the deposit vaults, in the form of v1. */
const CODES_BEFORE_VAULTS = ['invalid-api-key', 'api-key-expired', 'permission-denied', 'endpoint-not-found'];

const problem = z.strictObject({
  type: z.url(),
  title: text,
  status: z.int().min(400).max(599),
  code: z.string(),
  detail: z.string().optional(),
  instance: z.string().optional(),
  legacyCode: z.string().optional(),
  solverErrors: z
    .array(z.strictObject({ solver: z.string(), solverName: text, code: text, message: z.string() }))
    .optional(),
  errors: z.array(z.strictObject({ field: text, detail: text })).optional(),
  requestId: z.string().optional(),
});

const gatewayRefusal = z.strictObject({ Message: text });

const vaultError = z.strictObject({
  statusCode: z.int(),
  error: text,
  message: text,
  details: z.strictObject({ cause: text }),
  code: text,
  requestId: z.string().regex(/^\d{1,5}$/),
});

const openError = z.strictObject({
  statusCode: z.int(),
  createdBy: z.literal('ValidationFilter'),
  validationErrors: z.array(z.strictObject({ field: text, message: text })).min(1),
});

/**
 * Classifies an answer by the interface: `<status> ok` or `<status> <code>`. Throws an Error with the reason when the
 * interface shows no such answer for this endpoint. A crash (500) never has one.
 */
export function wordFor(endpoint: ShapeOf, raw: Raw): string {
  const { status, contentType } = raw;
  const body: unknown = JSON.parse(raw.text);
  const success = SUCCESSES[endpoint];
  if (success.statuses.some((one) => one === status)) {
    expectType(contentType, 'application/json');
    success.shape.parse(body);
    return `${status} ok`;
  }
  if (status < 400) throw new Error(`no status of ${endpoint}: ${status}`);
  if (endpoint.startsWith('open-')) return openWord(raw, body);
  const isVault = /vault|gateway/.test(endpoint);
  // The deposit vaults need no key, so none is missing there.
  if (!isVault && status === 403 && gatewayRefusal.safeParse(body).success) {
    expectType(contentType, 'application/json');
    return '403 gateway';
  }
  const found = isVault ? vaultError.safeParse(body) : null;
  if (found?.success) {
    expectType(contentType, 'application/json');
    if (found.data.statusCode !== status)
      throw new Error(`statusCode ${found.data.statusCode} with ${status}`);
    if (status !== 404 || found.data.code !== 'not-found') expectCode(status, found.data.code);
    return `${status} ${found.data.code}`;
  }
  const { code, status: reported, type } = problem.parse(body);
  expectType(contentType, code === 'invalid-api-key' ? 'application/json' : 'application/problem+json');
  if (reported !== status) throw new Error(`status ${reported} with ${status}`);
  if (!type.endsWith(`/v1/errors/${code}`)) throw new Error(`type ${type} with code ${code}`);
  expectCode(status, code);
  if (isVault && !CODES_BEFORE_VAULTS.includes(code))
    throw new Error(`${code} as a Problem of a deposit vault`);
  return `${status} ${code}`;
}

function openWord({ status, contentType }: Raw, body: unknown): string {
  expectType(contentType, 'application/json');
  const { statusCode } = openError.parse(body);
  if (statusCode !== status || ![400, 404].includes(status)) throw new Error(`${statusCode} with ${status}`);
  return `${status} ValidationFilter`;
}

function expectType(found: string, expected: string): void {
  if (found.split(';')[0] !== expected) throw new Error(`content type ${found}, expected ${expected}`);
}

function expectCode(status: number, code: string): void {
  if (!CODES[status]?.includes(code)) throw new Error(`code ${code} with ${status}`);
}
