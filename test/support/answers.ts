import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { ROUTE_ITEM } from './routes.ts';
import { hashOf } from './scripted-upstream.ts';
import { IN_2100, QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from './signed-quote.ts';

const DEVIATIONS = ['missing', 'null', 'other form', 'other case', 'other type', 'empty', 'extra'] as const;

type Deviation = (typeof DEVIATIONS)[number];

/** One answer: correct except for one member, or with one member too many. */
export type AnswerCase = { member: string; deviation: Deviation; body: (id: string) => JsonObject };

/** The polled endpoints, as the table of answers requests them. */
export const POLLED = ['status', 'wallet page', 'gasless job', 'vault', 'open quotes', 'v1 quotes'] as const;

export type Polled = (typeof POLLED)[number];

const ADDRESS = '0x52908400098527886e0f7030069857d2e4169ee7';
const OTHER = '0x1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a';
const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const INNER = `0x${'abc'.padStart(64, '0')}` as const;

/** The answer of `GET /v1/chains` that the signatures of quotes need to hold. */
export const QUOTED_CHAINS = { chains: [{ chainId: QUOTE_CHAIN, quoteSigner: QUOTE_SIGNER.address }] };

/** A signature covers no price: quotes of all amounts have the same one. */
const SIGNATURE = await signQuote({
  id: `quote:${UUID}`,
  intentHashes: [INNER],
  expiresAt: BigInt(IN_2100),
  chainId: QUOTE_CHAIN,
});

const summary = { chainId: 8453, txHash: hashOf(0xa1), token: ADDRESS, amount: '5000000' };
const step = {
  type: 'BRIDGE',
  intentHash: INNER,
  status: 'FULFILLED',
  from: { token: ADDRESS, amount: '5000000', chainId: 8453 },
  to: { token: OTHER, amount: '4990000', chainId: 10 },
  transactions: { created: { chainId: 8453, txHash: hashOf(0xa1) } },
};
const subStatus = {
  chainId: 8453,
  quoteIds: [`quote:${UUID}`],
  txHash: null,
  intentHashes: [INNER],
  state: 'submitted',
};

/**
 * The members of a correct answer of each endpoint. Those of the open service are in `quoteResponse`, except the first
 * three. A dot leads into a member of a v1 quote.
 */
const MEMBERS: Readonly<Record<Polled, readonly string[]>> = {
  status: statusMembers(),
  'wallet page': statusMembers(),
  'gasless job': ['id', 'status', 'permitTxHash', 'transferTxHash', 'intentHash', 'amount', 'error'],
  vault: ['vaultAddress', 'amount', 'deadline', 'state', 'intentHash', 'sourceChainId'],
  'open quotes': [
    'quoteID',
    'quoteResponseID',
    'solverID',
    'intentExecutionType',
    'sourceChainID',
    'destinationChainID',
    'finalDestinationChainID',
    'sourceToken',
    'destinationToken',
    'sourceAmount',
    'destinationAmount',
    'minimumDestinationAmount',
    'funder',
    'refundRecipient',
    'recipient',
    'fees',
    'deadline',
    'quoteExpiry',
    'estimatedFulfillTimeSec',
    'encodedRoute',
  ],
  'v1 quotes': [
    'id',
    'type',
    'signature',
    'expiresAt',
    'intentHash',
    'source.chainId',
    'source.funder',
    'destination.amountOut',
    'destination.minAmountOut',
    'fees',
    'steps',
    'execution.transaction',
    'quotes',
  ],
};

function statusMembers(): string[] {
  return [
    'id',
    'type',
    'status',
    'updatedAt',
    'intentHashes',
    'txHash',
    'subStatuses',
    'sourceTx',
    'destinationTx',
    'steps',
  ];
}

/** A correct answer about a subject: an intent's hash, a job's id, a vault's address, or a route's amount. */
function rightAnswer(endpoint: Polled, id: string): JsonObject {
  switch (endpoint) {
    case 'status':
    case 'wallet page':
      return {
        id: `intent:${id}`,
        type: 'intent',
        status: 'filled',
        updatedAt: 4_000_000_000,
        intentHashes: [INNER],
        txHash: hashOf(0xa1),
        subStatuses: [subStatus],
        sourceTx: summary,
        destinationTx: { ...summary, chainId: 10, txHash: hashOf(0xa2) },
        steps: [step],
      };
    case 'gasless job':
      return {
        id,
        status: 'FAILED',
        permitTxHash: hashOf(0xa1),
        transferTxHash: hashOf(0xa2),
        intentHash: INNER,
        amount: '5000000',
        error: 'transfer amount exceeds balance',
      };
    case 'vault':
      return {
        vaultAddress: id,
        amount: '5000000',
        deadline: 4_000_000_000,
        state: 'PUBLISHED',
        intentHash: INNER,
        sourceChainId: 8453,
      };
    case 'open quotes':
      return {
        quoteID: `quote:${UUID}`,
        quoteResponseID: `quoteResponse:${UUID}`,
        solverID: OTHER,
        intentExecutionType: 'SELF_PUBLISH',
        sourceChainID: 8453,
        destinationChainID: 10,
        finalDestinationChainID: 10,
        sourceToken: ROUTE_ITEM.source.token,
        destinationToken: ROUTE_ITEM.destination.token,
        sourceAmount: id,
        destinationAmount: '99000000',
        minimumDestinationAmount: '98000000',
        funder: ROUTE_ITEM.funder,
        refundRecipient: ROUTE_ITEM.funder,
        recipient: ROUTE_ITEM.recipient,
        fees: [
          {
            name: 'Solver fee',
            description: 'What the solver takes',
            token: { address: ROUTE_ITEM.source.token, decimals: 6, symbol: 'USDC' },
            amount: '1000',
            kinds: [{ kind: 'solver', amount: '1000', basis: 'sourceAmount' }],
          },
        ],
        deadline: 4_000_000_000,
        quoteExpiry: 4_000_000_000,
        estimatedFulfillTimeSec: 25,
        encodedRoute: '0xabcd',
      };
    case 'v1 quotes':
      return {
        id: `quote:${UUID}`,
        type: 'exact-in',
        signature: SIGNATURE,
        expiresAt: IN_2100,
        intentHash: INNER,
        'source.chainId': 8453,
        'source.funder': ROUTE_ITEM.funder,
        'source.amount': id,
        'destination.amountOut': '99000000',
        'destination.minAmountOut': '98000000',
        fees: [{ type: 'solver', amount: '1000', token: ROUTE_ITEM.source.token }],
        steps: [{ type: 'bridge', intents: [{ intentHash: INNER, role: 'main' }] }],
        'execution.transaction': { type: 'evm', to: OTHER, data: '0xfeed' },
        quotes: [],
      };
  }
}

/** A correct answer in its envelope, as the endpoint sends it. */
function envelope(endpoint: Polled, record: JsonObject): JsonObject {
  switch (endpoint) {
    case 'status':
    case 'wallet page':
      return { results: [record], nextCursor: null };
    case 'gasless job':
    case 'vault':
      return { data: record };
    case 'open quotes': {
      const { quoteID, quoteResponseID, solverID, ...quoteResponse } = record;
      const outer = { quoteID, quoteResponseID, solverID };
      const members = Object.entries(outer).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value]],
      );
      return { data: [{ ...Object.fromEntries(members), quoteData: { quoteResponse } }] };
    }
    case 'v1 quotes':
      return nested(record);
  }
}

function nested(record: JsonObject): JsonObject {
  const groups = Map.groupBy(Object.entries(record), ([name]) => name.split('.')[0] ?? '');
  return Object.fromEntries(
    [...groups].map(([name, members]) => {
      const inner = members.map(([path, value]): [string, JsonValue] => [path.slice(name.length + 1), value]);
      return [name, inner[0]?.[0] === '' ? inner[0][1] : Object.fromEntries(inner)];
    }),
  );
}

/** Every answer of the table for an endpoint. */
export function answerCases(endpoint: Polled): AnswerCase[] {
  const right = rightAnswer(endpoint, '1');
  const cases = MEMBERS[endpoint].flatMap((member) =>
    DEVIATIONS.filter((deviation) => deviation !== 'other case' || hasLetters(right[member])).map(
      (deviation): AnswerCase => ({
        member,
        deviation,
        body: (id) => envelope(endpoint, deviate(rightAnswer(endpoint, id), member, deviation)),
      }),
    ),
  );
  // A v1 quote is in no other object.
  if (endpoint === 'v1 quotes') return cases;
  const outer = endpoint === 'status' || endpoint === 'wallet page' ? 'results' : 'data';
  const envelopes = DEVIATIONS.map(
    (deviation): AnswerCase => ({
      member: `${outer} around it`,
      deviation,
      body: (id) => {
        const right = rightAnswer(endpoint, id);
        const whole = envelope(endpoint, right);
        if (deviation === 'other form') return right;
        if (deviation !== 'other case') return deviate(whole, outer, deviation);
        const { [outer]: inner = null, ...rest } = whole;
        return { ...rest, [outer.toUpperCase()]: inner };
      },
    }),
  );
  return [...cases, ...envelopes];
}

function deviate(record: JsonObject, member: string, deviation: Deviation): JsonObject {
  const value = record[member] ?? null;
  switch (deviation) {
    case 'missing': {
      const { [member]: _, ...rest } = record;
      return rest;
    }
    case 'null':
      return { ...record, [member]: null };
    case 'extra':
      return isObject(value)
        ? { ...record, [member]: { ...value, unheardOf: [1, 'x'] } }
        : { ...record, [`${member}V2`]: { unheardOf: [1, 'x'] } };
    case 'other form':
      return { ...record, [member]: inOtherForm(value) };
    case 'other case':
      return { ...record, [member]: inUpperCase(value) };
    case 'empty':
      return { ...record, [member]: Array.isArray(value) ? [] : isObject(value) ? {} : '' };
    case 'other type':
      return { ...record, [member]: ofOtherType(value) };
  }
}

/** The same value in another form: without or with a prefix, a number as text, one element for a list of one. */
function inOtherForm(value: JsonValue): JsonValue {
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return value[0] ?? null;
  if (isObject(value)) return Object.values(value);
  const text = String(value);
  if (/^\d+$/.test(text)) return Number(text);
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : `form:${text}`;
}

function inUpperCase(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toUpperCase().replace(/0X/g, '0x');
  if (Array.isArray(value)) return value.map(inUpperCase);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, inUpperCase(inner)]));
}

function ofOtherType(value: JsonValue): JsonValue {
  if (typeof value === 'string') return { of: 'another type' };
  return typeof value === 'number' ? [value] : 'text';
}

function hasLetters(value: JsonValue | undefined): boolean {
  return value !== undefined && /[a-z]/.test(JSON.stringify(value)) && typeof value !== 'number';
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
