import { z } from 'zod';

const hex = z.templateLiteral(['0x', z.string()]);
const uuid = z.guid();
const end = z.strictObject({ chainId: z.int(), token: z.string() });
const vault = z.strictObject({ address: z.string(), chainId: z.int() });

/** A route of a quote; `amount` is base units of the source token. */
const routeSchema = z.strictObject({
  source: end.extend({ funder: z.string() }),
  destination: end.extend({ recipient: z.string() }),
  amount: z.string(),
});

/** Facts about a service that its interface does not show. Every part but the route is optional. */
export const materialSchema = z.strictObject({
  route: routeSchema.describe(
    'A route from an EVM chain to another; its source token knows ERC-3009 and EIP-2612 under the name USD Coin, version 2.',
  ),
  solanaRoute: routeSchema.optional().describe('A route from Solana.'),
  tronRoute: routeSchema.optional().describe('A route to Tron.'),
  quotesUrl: z
    .string()
    .optional()
    .describe('Address of the open quoting service; `CONFORMANCE_QUOTES_URL` goes before it.'),
  funder: z
    .strictObject({ key: hex, spender: z.string() })
    .optional()
    .describe(
      'The private key of an account whose tokens may be moved, and the address that v1 authorizations promise them to. The rules that need it send signed authorizations, each for at most 1 unit more than the amount of the route.',
    ),
  vaultRequest: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The body that makes a vault at `deposit-addresses`, for the route.'),
  expiredKey: z.string().optional().describe('A key that has expired.'),
  forbiddenKey: z.string().optional().describe('A key that lacks permission.'),
  unattributedKey: z.string().optional().describe('A key that is valid, but of no partner.'),
  wallet: z
    .string()
    .optional()
    .describe('A wallet with more than 20 transfers, none of which moves any more.'),
  filledIntent: hex
    .optional()
    .describe('Hash of an intent that is filled or settled and shows both of its transactions.'),
  refundedIntent: hex.optional().describe('Hash of an intent that was refunded.'),
  fundedQuote: uuid.optional().describe('A quote that was funded.'),
  swappedQuote: uuid
    .optional()
    .describe('A quote between two symbols that was funded and filled: it has several steps and intents.'),
  depositAddressWallet: z
    .string()
    .optional()
    .describe('A wallet whose first page shows a record of type `deposit-address`.'),
  failedJob: uuid.optional().describe('A job of the status endpoint that failed.'),
  swapRoute: routeSchema
    .optional()
    .describe(
      'The route to a token of another symbol, on a chain that has both: its quotes have several steps.',
    ),
  publishedJob: uuid.optional().describe('A job of the status endpoint that is published.'),
  gatewayJob: uuid.optional().describe('A job of the deposit gateway that is done.'),
  failedGatewayJob: uuid.optional().describe('A job of the deposit gateway that failed.'),
  vault: vault.optional().describe('A vault that was published.'),
  expiredQuote: z
    .string()
    .startsWith('quote:')
    .optional()
    .describe("A quote for the route, made for the funder's key, that has expired unfunded."),
  expiredVault: vault.optional().describe('A vault made by `vaultRequest` that has expired unfunded.'),
});

/** Known facts about a service. */
export type Material = z.infer<typeof materialSchema>;

/** A route of a quote. */
export type Route = z.infer<typeof routeSchema>;
