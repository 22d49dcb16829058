import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { IN_2100, QUOTE_CHAIN, signQuote } from './signed-quote.ts';

/** A check of one member, written after the contract and the notes, not after the code under test. */
type MemberCheck = (value: JsonValue) => boolean;

const text: MemberCheck = (value) => typeof value === 'string';
const int: MemberCheck = (value) => Number.isSafeInteger(value);
/** Unix seconds and chain ids at the top of a record may come as digits. */
const digitsOrInt: MemberCheck = (value) => int(value) || (text(value) && /^\d{1,15}$/.test(String(value)));
const amount: MemberCheck = (value) => text(value) && /^\d+$/.test(String(value));
const list =
  (check: MemberCheck): MemberCheck =>
  (value) =>
    Array.isArray(value) && value.every(check);
const orNull =
  (check: MemberCheck): MemberCheck =>
  (value) =>
    value === null || check(value);

/** An object of members; those whose name ends in `?` may be missing. */
function shape(members: Record<string, MemberCheck>): MemberCheck {
  return (value) =>
    isObject(value) &&
    Object.entries(members).every(([key, check]) => {
      const name = key.replace('?', '');
      if (!Object.hasOwn(value, name)) return key.endsWith('?');
      return check(value[name] ?? null);
    });
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const summary = shape({ chainId: int, txHash: text, token: text, amount: text });
const side = shape({ token: text, amount: text, chainId: int });
const reference = shape({ chainId: int, txHash: text });

/** The members of each kind of record that the contract describes, beside its core. */
export const MEMBERS: Readonly<Record<'status' | 'job' | 'vault', Readonly<Record<string, MemberCheck>>>> = {
  status: {
    updatedAt: orNull((value) => digitsOrInt(value) && Number(value) < 1e11),
    intentHashes: list(text),
    txHash: orNull(text),
    subStatuses: list(
      shape({
        chainId: int,
        quoteIds: list(text),
        txHash: orNull(text),
        intentHashes: list(text),
        state: text,
      }),
    ),
    sourceTx: summary,
    destinationTx: summary,
    steps: list(
      shape({
        type: text,
        intentHash: text,
        status: text,
        from: side,
        to: side,
        transactions: shape({ 'created?': reference, 'fulfilled?': reference, 'refunded?': reference }),
      }),
    ),
  },
  job: {
    id: text,
    status: text,
    permitTxHash: text,
    transferTxHash: text,
    intentHash: text,
    amount: text,
    error: text,
  },
  vault: {
    vaultAddress: text,
    state: text,
    amount: text,
    deadline: digitsOrInt,
    intentHash: text,
    sourceChainId: digitsOrInt,
  },
};

export { amount as isAmount, digitsOrInt as isSeconds };

const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_TO = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';
const PAYER = '0x52908400098527886e0f7030069857d2e4169ee7';
const PAYEE = '0xde709f2102306220921060314715629080e2fb77';

/** A hash whose first digits are its number, with letters, so that its case can change. */
export function hash(number: number): `0x${string}` {
  return `0x${number.toString(16).padStart(8, '0')}${'ab'.repeat(28)}`;
}

export function uuid(number: number): string {
  return `${number.toString(16).padStart(8, '0')}-aaaa-4bbb-8ccc-ddddeeeeffff`;
}

const transactionOf = (number: number, token = USDC): JsonObject => ({
  chainId: token === USDC ? 8453 : 10,
  txHash: hash(number),
  token,
  amount: '1000000',
});

/** The news of an answer against the one before. */
export const NEWS = ['status', 'content', 'none'] as const;
export type News = (typeof NEWS)[number];

/** The words of two answers by kind: the first, and the one that follows. */
const WORDS = {
  intent: ['pending', 'filled'],
  gasless: ['pending', 'submitted'],
  quote: ['active', 'submitted'],
  'deposit-address': ['pending', 'filled'],
  job: ['PENDING', 'COMPLETED'],
  vault: ['PENDING', 'FUNDING_DETECTED'],
} as const;

/** Kinds of records of a status page. */
export const PAGE_KINDS = ['intent', 'gasless', 'quote', 'deposit-address'] as const;
export type PageKind = (typeof PAGE_KINDS)[number];

/** A time before which no poll can be, Unix seconds. */
export const FROM_SECONDS = 1_763_638_000;

/** A record of the status endpoint, `number` its identity, before or after its news. */
export function statusRecord(kind: PageKind, number: number, news: News | null): JsonObject {
  const id = kind === 'intent' || kind === 'deposit-address' ? hash(number) : uuid(number);
  const [first, next] = WORDS[kind];
  const isMoved = news === 'status';
  const isRicher = isMoved || news === 'content';
  const common = {
    id: `${kind}:${id}`,
    type: kind,
    status: isMoved ? next : first,
    updatedAt: FROM_SECONDS + (news === null ? 0 : 10),
  };
  if (kind === 'gasless') {
    const state = isMoved ? 'submitted' : 'pending';
    const txHash = isRicher ? hash(number + 1) : null;
    const quoteIds = [`quote:${uuid(number + 2)}`];
    return {
      ...common,
      intentHashes: [hash(number + 3)],
      subStatuses: [{ chainId: 8453, quoteIds, txHash, intentHashes: [hash(number + 3)], state }],
    };
  }
  if (kind === 'quote')
    return { ...common, intentHashes: [hash(number + 3)], steps: isRicher ? [step(number, true)] : [] };
  return {
    ...common,
    txHash: isRicher ? hash(number + 1) : null,
    sourceTx: transactionOf(number + 4),
    ...(isRicher ? { destinationTx: transactionOf(number + 5, USDC_TO) } : {}),
    steps: [step(number, isRicher)],
  };
}

/** A step of the recorded shape: its type in lower case. */
function step(number: number, isFulfilled: boolean): JsonObject {
  return {
    type: 'bridge',
    intentHash: hash(number),
    status: isFulfilled ? 'FULFILLED' : 'CREATED',
    from: { token: USDC, amount: '1000000', chainId: 8453 },
    to: { token: USDC_TO, amount: '999000', chainId: 10 },
    transactions: {
      created: { chainId: 8453, txHash: hash(number + 4) },
      ...(isFulfilled ? { fulfilled: { chainId: 10, txHash: hash(number + 5) } } : {}),
    },
  };
}

/** A job of the gateway; `PERMIT_SENT` is for permits alone. */
export function gatewayJob(number: number, news: News | null): JsonObject {
  const isRicher = news === 'status' || news === 'content';
  return {
    id: uuid(number),
    status: WORDS.job[news === 'status' ? 1 : 0],
    amount: '1000000',
    ...(isRicher ? { transferTxHash: hash(number + 1), intentHash: hash(number + 3) } : {}),
  };
}

export function vaultAddressOf(number: number): string {
  return `0x${number.toString(16).padStart(8, '0')}${'ab'.repeat(16)}`;
}

export function gatewayVault(number: number, news: News | null): JsonObject {
  const isRicher = news === 'status' || news === 'content';
  return {
    vaultAddress: vaultAddressOf(number),
    state: WORDS.vault[news === 'status' ? 1 : 0],
    amount: '1000000',
    deadline: 4_000_000_000,
    sourceChainId: 8453,
    ...(isRicher ? { intentHash: hash(number + 3) } : {}),
  };
}

/** The outputs of the quotes of an answer, the best first. */
const OUTPUTS = ['99900000', '99800000', '99700000'] as const;

/** An answer of `POST /v1/quotes` in the recorded shape: all quotes are signed, the best is at the top as well. */
export async function quoteAnswer(): Promise<JsonObject> {
  const quotes = await Promise.all(OUTPUTS.map(recordedQuote));
  const [best = {}] = quotes;
  return { ...structuredClone(best), quotes };
}

async function recordedQuote(output: string, index: number): Promise<JsonObject> {
  const number = 900 + index * 10;
  const id = `quote:${uuid(number)}`;
  const [intentHash, local] = [hash(number + 1), hash(number + 2)];
  const signature = await signQuote({
    id,
    intentHashes: [intentHash, local].toSorted(),
    expiresAt: BigInt(IN_2100),
    chainId: QUOTE_CHAIN,
  });
  const token = { chainId: QUOTE_CHAIN, address: USDC, symbol: 'USDC', decimals: 6 };
  const fees = [{ type: 'protocol', amount: '1000', token, estimate: false }];
  const from = { chainId: QUOTE_CHAIN, token: USDC, amount: '100000000' };
  const to = { chainId: 10, token: USDC_TO, amount: output };
  const intent = { route: { destination: '10' }, reward: { deadline: String(IN_2100) } };
  return {
    id,
    type: 'exact-in',
    signature,
    expiresAt: IN_2100,
    intentHash,
    slippage: 0,
    solver: { id: vaultAddressOf(number) },
    source: { ...from, funder: PAYER, symbol: 'USDC', decimals: 6 },
    destination: {
      ...to,
      amountOut: output,
      minAmountOut: output,
      recipient: PAYEE,
      symbol: null,
      decimals: null,
    },
    fees,
    steps: [
      {
        type: 'bridge',
        provider: 'x',
        from,
        to,
        fees,
        estimatedDurationSec: 20,
        intents: [{ role: 'local', intentHash: local, intent }],
      },
      { type: 'transfer', provider: 'x', from: to, to, fees: [], estimatedDurationSec: 5, intents: [] },
    ],
    execution: {
      transaction: { type: 'evm', chainId: QUOTE_CHAIN, to: PAYEE, data: '0xdf00f8fa', value: '0' },
      intent,
      vault: null,
    },
    quotes: null,
  };
}

/** The route that the quotes price. */
export const PRICED = {
  source: { chainId: QUOTE_CHAIN, token: USDC },
  destination: { chainId: 10, token: USDC_TO },
  amount: '100000000',
  funder: PAYER,
  recipient: PAYEE,
} as const;

/** An answer of the open quoting service. */
export function openAnswer(): JsonObject {
  return { data: OUTPUTS.map(openEntry) };
}

function openEntry(output: string, index: number): JsonObject {
  const token = { address: USDC, decimals: 6, symbol: 'USDC' };
  return {
    quoteID: `quote:${uuid(700 + index)}`,
    quoteResponseID: `quoteResponse:${uuid(710 + index)}`,
    solverID: vaultAddressOf(720 + index),
    quoteData: {
      contracts: { sourcePortal: PAYER, destinationPortal: PAYER, prover: PAYEE },
      quoteResponse: {
        intentExecutionType: 'SELF_PUBLISH',
        sourceChainID: QUOTE_CHAIN,
        destinationChainID: 10,
        finalDestinationChainID: 10,
        sourceToken: USDC,
        destinationToken: USDC_TO,
        sourceAmount: PRICED.amount,
        destinationAmount: output,
        minimumDestinationAmount: output,
        funder: PAYER,
        refundRecipient: PAYER,
        recipient: PAYEE,
        fees: [
          {
            name: 'protocol',
            description: 'a fee',
            token,
            amount: '1000',
            kinds: [{ kind: 'flat', amount: '1000', basis: 'x' }],
          },
        ],
        deadline: IN_2100,
        quoteExpiry: IN_2100,
        estimatedFulfillTimeSec: 25,
        encodedRoute: `0x${'ab'.repeat(64)}`,
      },
    },
  };
}

/** Lists in the envelope of their name. */
export function chainList(signer: string): JsonObject {
  const chains = [8453, 10, 1_399_811_149].map((chainId) => ({
    chainId,
    name: `Chain ${chainId}`,
    quoteSigner: signer,
  }));
  return { chains };
}

export function tokenList(): JsonObject {
  const tokens = [USDC, USDC_TO].map((address) => ({ chainId: 8453, address, symbol: 'USDC', decimals: 6 }));
  return { tokens };
}

/** Error bodies by the side that sends them. */
export const ERROR_BODIES: readonly JsonObject[] = [
  {
    type: 'https://api.example.com/v1/errors/invalid-request',
    title: 'Invalid request',
    status: 400,
    code: 'invalid-request',
    detail: 'the request is invalid',
    instance: '/v1/quotes',
    legacyCode: '17',
    errors: [{ field: 'source.amount', detail: 'too low' }],
    requestId: '12345',
  },
  {
    type: 'https://api.example.com/v1/errors/solver-error',
    title: 'Solver error',
    status: 502,
    code: 'solver-error',
    solverErrors: [{ solver: PAYER, solverName: 'one', code: 'busy', message: 'try again' }],
  },
  { Message: 'forbidden' },
  {
    statusCode: 404,
    error: 'Not Found',
    message: 'no such vault',
    errorCode: 'not-found',
    cause: 'unknown address',
    errorDesc: 'the vault is unknown',
    details: { cause: 'never made', errorDesc: 'no row' },
    requestId: '123',
  },
  {
    statusCode: 400,
    createdBy: 'ValidationFilter',
    validationErrors: [{ field: 'dAppID', message: 'missing' }],
  },
];
