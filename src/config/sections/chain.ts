import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { readFulfilmentEvent } from '../../domain/proof/moves.ts';
import { chainFamily } from '../../domain/proof/statement.ts';
import { foldHex } from '../../domain/subjects/subject.ts';
import type { ChainEndpoint, CheckedChain } from '../config.ts';
import {
  durationField,
  flagField,
  mapping,
  nameField,
  rateField,
  textField,
  wholeNumberField,
} from '../fields/fields.ts';
import { headersField, httpUrl, isLoopback, proxyField, secretUrlField } from '../fields/http.ts';
import { type Fault, findRepeated, items, member } from '../file/errors.ts';

const endpointSchema = mapping({
  name: nameField.meta({
    description: 'Its name in logs, metrics and events. They never have its URL.',
  }),
  url: secretUrlField({ example: 'https://node.example.com/key' }).meta({
    description: 'Its URL for JSON-RPC. Secret. Plain http only on loopback or with `allowInsecure: true`.',
    label: 'URL',
  }),
  headers: headersField.prefault({}).meta({
    description: 'Sent with every request, like an `Authorization`. Secret.',
    label: 'mapping',
  }),
  requestsPerSecond: rateField({ max: 1_000 }).prefault(10).meta({
    description: 'How often this process may send it a request.',
  }),
  timeout: durationField({ min: '100ms', max: '1m' }).prefault('10s').meta({
    description: 'How long a request may take, from connecting to the end of the body.',
    label: 'duration',
  }),
  proxy: proxyField.optional().meta({
    description: 'An http or https proxy for requests to it. Secret.',
    label: 'URL',
  }),
  allowInsecure: flagField().prefault(false).meta({
    description: 'Allows plain http to a host that is not this machine. Requests then travel in clear.',
  }),
});

const FINALITY = 'finalized, safe or a mapping like { confirmations: 12 }';

const finalitySchema = z.union(
  [
    z.enum(['finalized', 'safe'], { error: FINALITY }),
    mapping({
      confirmations: wholeNumberField({ min: 1, max: 100_000 }).meta({
        description: 'So many blocks on top of it.',
      }),
    }),
  ],
  { error: FINALITY },
);

const contractField = textField({
  pattern: /^0x[0-9a-fA-F]{40}$/,
  expected: 'the address of a contract in quotes, 0x and 40 hex digits',
}).transform(foldHex);

/** The event of a deployment's contract, and its parameter with the intent's hash. */
const FULFILMENT = {
  event: 'event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant)',
  hash: 'intentHash',
};

const fulfilmentsSchema = mapping({
  address: contractField.meta({
    description: 'The contract that reports which intent a transaction fulfils.',
    label: 'address',
  }),
  event: textField({
    pattern: /^.{1,1000}$/,
    expected: 'an event as Solidity declares it, like event Filled(bytes32 indexed intent)',
  })
    .prefault(FULFILMENT.event)
    .meta({
      description: 'The event that reports it, as Solidity declares it.',
      label: 'text',
    }),
  hash: textField({
    pattern: /^[A-Za-z_$][\w$]{0,99}$/,
    expected: 'the name of a bytes32 parameter of the event',
  })
    .prefault(FULFILMENT.hash)
    .meta({ description: "The event's parameter that is the intent's hash.", label: 'text' }),
});

/** Members of a chain that turn on the checks of its payments. */
export const CHAIN_CHECKS = {
  rpc: z
    .array(endpointSchema, { error: 'a list of endpoints' })
    .min(1, { error: 'at least one endpoint' })
    .optional()
    .meta({
      description:
        'Your own endpoints, which payments on this chain are checked with: [what is checked](proof.md). Two on distinct hosts are needed to dispute one. Left out: nothing is checked. Whoever runs an endpoint sees which transactions you request.',
      label: 'list of mappings',
    }),
  finality: finalitySchema.optional().meta({
    description:
      'From when on a block counts: `finalized` (default), `safe`, or `{ confirmations: n }`, n blocks on top of it. Solana: always `finalized`.',
    label: '`finalized`, `safe` or mapping',
  }),
  fulfilments: fulfilmentsSchema.optional().meta({
    description:
      'Pins the contract by whose event a delivery is recognised: one whose transaction fulfils another intent is disputed. Left out: not checked.',
  }),
  transmitter: contractField.optional().meta({
    description:
      'Pins the contract of the token issuer that logs `MessageSent` where it burns, and `MessageReceived` where it mints. With it on both chains, and `fulfilments` on the source chain, the delivery of a local intent can be verified: [local intents](proof.md#local-intents). Left out: it stays unproven.',
    label: 'address',
  }),
};

type ParsedChecks = z.output<z.ZodObject<typeof CHAIN_CHECKS>>;

/** Builds a chain whose payments are checked; empty where it has no endpoints. */
export function buildChecks(
  chainId: string,
  { rpc, finality = 'finalized', fulfilments, transmitter }: ParsedChecks,
): CheckedChain[] {
  if (rpc === undefined) return [];
  const endpoints = rpc.map(
    ({ name, url, headers, requestsPerSecond, timeout, proxy }): ChainEndpoint => ({
      name,
      url,
      headers,
      requestsPerSecond,
      timeoutMs: timeout,
      proxy: proxy ?? null,
    }),
  );
  return [
    { chainId, finality, endpoints, fulfilments: fulfilments ?? null, transmitter: transmitter ?? null },
  ];
}

/** Checks the members of a chain against each other. */
export function checkChecks(chainId: string, chain: JsonValue): Fault[] {
  const rpc = member(chain, 'rpc');
  if (rpc === undefined) {
    return ['finality', 'fulfilments', 'transmitter'].flatMap((key) =>
      member(chain, key) === undefined
        ? []
        : [{ path: [key], found: 'it without rpc', expected: 'endpoints (rpc) beside it', atKey: true }],
    );
  }
  const family = chainFamily(chainId);
  if (family === null) {
    // The place names the chain; the text may be a secret by a slip.
    const found = 'endpoints of a chain that cannot be checked';
    return [{ path: ['rpc'], found, expected: 'none: only EVM chains and Solana are checked', atKey: true }];
  }
  return [
    ...checkEndpoints(rpc),
    ...(family === 'solana' ? checkSolana(chain) : checkFulfilments(member(chain, 'fulfilments'))),
  ];
}

function checkEndpoints(rpc: JsonValue): Fault[] {
  const nameOf = (item: JsonValue): string | null => {
    const name = member(item, 'name');
    return typeof name === 'string' ? name : null;
  };
  const repeated = findRepeated(rpc, {
    at: ['rpc'],
    expected: 'each name once among the endpoints of a chain',
    keyOf: nameOf,
  });
  const open = items(rpc).flatMap((item, index) => {
    const text = member(item, 'url');
    const url = typeof text === 'string' ? httpUrl(text) : null;
    if (url?.protocol !== 'http:' || isLoopback(url) || member(item, 'allowInsecure') === true) return [];
    return [
      {
        path: ['rpc', index, 'url'],
        found: 'an http:// URL',
        expected: 'an https:// URL (or allowInsecure: true)',
      },
    ];
  });
  return [...repeated.map((finding) => ({ ...finding, path: [...finding.path, 'name'] })), ...open];
}

function checkSolana(chain: JsonValue): Fault[] {
  const finality = member(chain, 'finality');
  return [
    ...(finality === undefined || finality === 'finalized'
      ? []
      : [{ path: ['finality'], expected: 'finalized: Solana is read at no other' }]),
    ...['fulfilments', 'transmitter'].flatMap((key) =>
      member(chain, key) === undefined
        ? []
        : [{ path: [key], expected: 'none: Solana has no such events', atKey: true }],
    ),
  ];
}

function checkFulfilments(fulfilments: JsonValue | undefined): Fault[] {
  if (fulfilments === undefined) return [];
  const [event = FULFILMENT.event, hash = FULFILMENT.hash] = [
    member(fulfilments, 'event'),
    member(fulfilments, 'hash'),
  ];
  if (typeof event !== 'string' || typeof hash !== 'string') return [];
  const read = readFulfilmentEvent({ event, hash });
  if (!('fault' in read)) return [];
  return [{ path: ['fulfilments', read.in], expected: read.fault }];
}
