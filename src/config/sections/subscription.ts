import { z } from 'zod';
import { isJsonObject, type JsonValue } from '../../domain/json.ts';
import type { ImportedQuote } from '../../domain/quotes/promised.ts';
import {
  foldHex,
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  routeId,
  txId,
  vaultId,
  walletId,
} from '../../domain/subjects/subject.ts';
import type { ConfiguredJob, Subscription } from '../config.ts';
import { evmAddressField, walletField } from '../fields/addresses.ts';
import {
  durationField,
  fitsMetadata,
  flagField,
  METADATA_LIMIT,
  mapping,
  nameField,
  textField,
  uuidField,
  wholeNumberField,
} from '../fields/fields.ts';
import { type Fault, findRepeated, isEmpty, items, member } from '../file/errors.ts';
import { QUOTE_FILE } from './quote-files.ts';
import { buildRoute, routeSchema } from './route.ts';

export const intentHashField = textField({
  pattern: /^0x[0-9a-fA-F]{64}$/,
  expected: 'an intent hash without the prefix "intent:" (0x and 64 hex digits)',
}).transform((hash) => hash.toLowerCase());

/** A gasless job that the v1 status endpoint knows. */
export const statusJobField = uuidField({ prefix: 'gasless:' });

export const jobField = textField({
  pattern: /^[A-Za-z0-9._-]{1,200}$/,
  expected: 'the id of a gasless job without the prefix "gasless:" (letters, digits, dots, _ and -)',
});

const gaslessJobField = z.union(
  [
    statusJobField.transform((id): ConfiguredJob => ({ id, endpoint: 'status' })),
    mapping({
      id: jobField.meta({ description: 'The id of the job; at the status endpoint a UUID.', label: 'text' }),
      endpoint: z.enum(['status', 'gateway'], { error: '"status" or "gateway"' }).prefault('status').meta({
        description: 'Who knows the job: the v1 status endpoint or the deposit gateway.',
      }),
    }).transform(({ id, endpoint }, context): ConfiguredJob => {
      if (endpoint === 'gateway') return { id, endpoint };
      const uuid = statusJobField.safeParse(id);
      if (uuid.success) return { id: uuid.data, endpoint };
      context.addIssue({ code: 'custom', path: ['id'], message: uuid.error.issues[0]?.message ?? 'a UUID' });
      return z.NEVER;
    }),
  ],
  { error: 'a UUID, or a mapping like { id: …, endpoint: gateway }' },
);

export const quoteUuidField = uuidField({ prefix: 'quote:' });

const quoteField = z.union(
  [
    quoteUuidField,
    mapping({
      file: textField({ pattern: QUOTE_FILE, expected: 'a path of a file' }).meta({
        description: 'A file with the quote as `POST /v1/quotes` answered it, relative to the config file.',
        label: 'path',
      }),
      watchVault: flagField().prefault(false).meta({
        description:
          "True to watch the quote's `execution.vault` as a vault of the deposit gateway too. While no answer shows it, that ends an hour after its deadline: that of the reward, else the quote's `expiresAt`.",
      }),
    }),
  ],
  { error: 'a UUID, or a mapping like { file: ./quote.json }' },
);

/** The hash of a transaction: EVM, Tron, or the signature of a Solana transaction. */
export const txHashField = textField({
  pattern: /^(0x[0-9a-fA-F]{64}|[0-9a-fA-F]{64}|[1-9A-HJ-NP-Za-km-z]{80,90})$/,
  expected: 'the hash of a transaction (0x and 64 hex digits, 64 hex digits, or a Solana signature)',
}).transform(foldHex);

function txsField(description: string) {
  return z
    .array(txHashField, { error: 'a list of transaction hashes' })
    .prefault([])
    .meta({ description, label: 'list of hashes' });
}

const OVERDUE = 'a duration from 1s to 365d (a whole number and ms, s, m, h or d) or "learned"';

/** Time after which a transfer under way is reported as overdue. */
export const overdueField = z.union([z.literal('learned'), durationField({ min: '1s', max: '365d' })], {
  error: OVERDUE,
});

export const subscriptionSchema = mapping({
  name: nameField.meta({ description: "The subscription's name. Unique.", label: 'name' }),
  wallets: z.array(walletField, { error: 'a list of wallet addresses' }).prefault([]).meta({
    description: 'Wallets whose transfers are watched: EVM, Solana or Tron addresses.',
    label: 'list of addresses',
  }),
  intents: z
    .array(intentHashField, { error: 'a list of intent hashes' })
    .prefault([])
    .meta({ description: 'Single transfers, by intent hash.', label: 'list of hashes' }),
  sourceTxs: txsField(
    'Single transfers, by the hash of the transaction that funds them, which may be yet to come.',
  ),
  destinationTxs: txsField('Single transfers, by the hash of the transaction that delivers them.'),
  quotes: z.array(quoteField, { error: 'a list of quotes' }).prefault([]).meta({
    description:
      'Quotes: a bare UUID, or `{ file }` for the quote itself as JSON, whose signature is verified and whose expiry is reported. The intents they become are watched too.',
    label: 'list of UUIDs or mappings',
  }),
  gaslessJobs: z.array(gaslessJobField, { error: 'a list of gasless jobs' }).prefault([]).meta({
    description:
      "Gasless jobs: a UUID for the v1 status endpoint, or `{ id, endpoint: gateway }` for the deposit gateway's.",
    label: 'list of UUIDs or mappings',
  }),
  vaults: z
    .array(
      mapping({
        address: evmAddressField.meta({ description: 'The address of the vault.', label: 'EVM address' }),
        chainId: wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }).meta({
          description: 'The chain on which the vault is funded.',
        }),
      }),
      { error: 'a list of vaults, each like { address: "0x…", chainId: 8453 }' },
    )
    .prefault([])
    .meta({ description: 'Deposit vaults.', label: 'list of mappings' }),
  routes: z.array(routeSchema, { error: 'a list of routes' }).prefault([]).meta({
    description:
      'Routes that are priced again and again, at the open quoting service (`upstream.quotesUrl`) or with the key: reported when they can be had, cannot be had, and when their price has moved.',
    label: 'list of mappings',
  }),
  recipients: z.array(walletField, { error: 'a list of addresses' }).prefault([]).meta({
    description:
      'Who may rightly receive what its transfers deliver, where a chain has RPC endpoints: a delivery to anybody else is disputed. Left out: who received is reported, and not judged.',
    label: 'list of addresses',
  }),
  metadata: z
    .record(
      z.string(),
      z.string({
        error: ({ input }) =>
          typeof input === 'number' || typeof input === 'boolean' ? 'text in quotes' : 'text',
      }),
      { error: 'a mapping of text to text' },
    )
    .refine(fitsMetadata, { error: METADATA_LIMIT })
    .prefault({})
    .meta({
      description:
        'What every event of this subscription carries for you, text to text. At most 4,096 bytes as JSON in UTF-8.',
      label: 'mapping',
    }),
  receivers: z.array(nameField, { error: 'a list of receiver names' }).prefault([]).meta({
    description:
      'Who is notified. `[]`: nobody, the events are only pulled from the API, which has to be on. May be left out where there are no receivers at all.',
    label: 'list of names',
  }),
  history: z.enum(['skip', 'emit'], { error: '"skip" or "emit"' }).prefault('skip').meta({
    description:
      'What a wallet did before it was subscribed: `skip` stores it without events, `emit` makes events of it too.',
  }),
  overdueAfter: overdueField.optional().meta({
    description:
      'After how long a transfer that is still pending is reported as overdue: a duration, or `learned` for the time within which 99 of 100 on its route were done, once 50 were seen; before that 15 times what a quote for the route stated, where one did. Left out: never.',
    label: 'duration or `learned`',
  }),
  warnBefore: durationField({ min: '1s', max: '365d' }).optional().meta({
    description:
      'How long before it expires a vault, or an imported quote, is reported as expiring while it is not funded. Left out: never.',
    label: 'duration',
  }),
}).meta({
  description: 'A named set of subjects and who is notified about them. At least one subject.',
  example: [
    {
      name: 'treasury',
      wallets: ['0x52908400098527886e0f7030069857d2e4169ee7', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
      receivers: ['backend', 'oncall'],
    },
    {
      name: 'order-1042',
      quotes: ['3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41', { file: './quote.json' }],
      gaslessJobs: [{ id: '7d9f1c52-8a4e-4b6d-b0c3-2e5a9f7d1b68', endpoint: 'gateway' }],
      vaults: [{ address: '0xde709f2102306220921060314715629080e2fb77', chainId: 8453 }],
      metadata: { order: '1042' },
      receivers: ['backend'],
      overdueAfter: '15m',
      warnBefore: '2m',
    },
    {
      name: 'prices',
      routes: [
        {
          name: 'base-to-optimism',
          source: { chainId: 8453, token: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' },
          destination: { chainId: 10, token: '0x0b2c639c533813f4aa9d7837caf62653d097ff85' },
          amount: '100000000',
          funder: '0x52908400098527886e0f7030069857d2e4169ee7',
          recipient: '0x52908400098527886e0f7030069857d2e4169ee7',
          movedBy: 0.01,
          every: '30s',
        },
      ],
      receivers: ['oncall'],
    },
  ],
});

/** Subject of an item: two items are the same when their subjects are, however they are written. */
const SUBJECT_IDS = {
  wallets: fromText(walletId),
  intents: fromText(intentId),
  sourceTxs: fromText((hash) => txId('source', hash)),
  destinationTxs: fromText((hash) => txId('destination', hash)),
  quotes: (quote: JsonValue, quotes: ReadonlyMap<string, ImportedQuote>): string | null => {
    const file = member(quote, 'file');
    if (typeof file === 'string') return quotes.get(file)?.subject ?? null;
    return typeof quote === 'string' ? quoteId(quote) : null;
  },
  gaslessJobs: (job: JsonValue): string | null => {
    const id = typeof job === 'string' ? job : member(job, 'id');
    if (typeof id !== 'string') return null;
    return member(job, 'endpoint') === 'gateway' ? gatewayJobId(id) : gaslessId(id);
  },
  vaults: (vault: JsonValue): string | null => {
    const [address, chainId] = [member(vault, 'address'), member(vault, 'chainId')];
    return typeof address === 'string' && typeof chainId === 'number' ? vaultId({ address, chainId }) : null;
  },
  routes: (route: JsonValue): string | null => {
    const name = member(route, 'name');
    const service = member(route, 'service') === 'v1' ? 'v1' : 'open';
    return typeof name === 'string' ? routeId({ name, service }) : null;
  },
};

function fromText(idOf: (text: string) => string) {
  return (item: JsonValue): string | null => (typeof item === 'string' ? idOf(item) : null);
}

/** Builds a subscription from its parsed section. `quotes` are those by file, all of them read. */
export function buildSubscription(
  item: z.output<typeof subscriptionSchema>,
  quotes: ReadonlyMap<string, ImportedQuote>,
): Subscription {
  const { overdueAfter, warnBefore, routes, ...same } = item;
  const uuids = item.quotes.flatMap((quote) => {
    if (typeof quote === 'string') return [quote];
    return quotes.get(quote.file)?.subject.slice('quote:'.length) ?? [];
  });
  const vaultQuotes = item.quotes.flatMap((quote) =>
    typeof quote !== 'string' && quote.watchVault ? (quotes.get(quote.file)?.subject ?? []) : [],
  );
  const times = { overdueAfterMs: overdueAfter ?? null, warnBeforeMs: warnBefore ?? null };
  return { ...same, quotes: uuids, vaultQuotes, routes: routes.map(buildRoute), ...times };
}

/**
 * Checks the fields against each other and the receivers. `shown`: names for messages; `quotes`: by file; `mayPull`: the API
 * is on.
 */
export function checkSubscription(
  item: JsonValue,
  {
    receivers,
    shown,
    quotes,
    mayPull,
  }: {
    receivers: string[];
    shown: string[];
    quotes: ReadonlyMap<string, ImportedQuote>;
    mayPull: boolean;
  },
): Fault[] {
  const findings: Fault[] = [];
  if (isJsonObject(item) && Object.keys(SUBJECT_IDS).every((key) => isEmpty(member(item, key)))) {
    findings.push({
      path: [],
      found: 'no subject',
      expected: `at least one of ${Object.keys(SUBJECT_IDS).join(', ')}`,
    });
  }
  for (const [key, idOf] of Object.entries(SUBJECT_IDS)) {
    const keyOf = (subject: JsonValue): string | null => idOf(subject, quotes);
    findings.push(...findRepeated(member(item, key), { at: [key], expected: 'each subject once', keyOf }));
  }
  const names = member(item, 'receivers');
  // Where the config has no receivers at all, this is reported once, for the config.
  if (receivers.length > 0 && isEmpty(names) && (names === undefined || !mayPull)) {
    const expected = mayPull
      ? 'a list of receiver names ([] where its events are only pulled)'
      : 'at least one receiver name';
    findings.push({ path: ['receivers'], expected });
  }
  findings.push(
    ...findRepeated(names, { at: ['receivers'], expected: 'each receiver once', keyOf: fromText(String) }),
  );
  items(names).forEach((name, index) => {
    if (typeof name !== 'string' || receivers.includes(name)) return;
    const expected =
      shown.length === 0 ? 'a receiver that exists' : `a receiver that exists (${shown.join(', ')})`;
    findings.push({ path: ['receivers', index], expected });
  });
  return findings;
}
