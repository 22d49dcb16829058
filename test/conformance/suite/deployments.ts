/** Behaviour of one side at a point, and a test that shows it: its file, and words of that test. */
type PointSide = { does: string; file: string; words: string };

/** A point that the interface leaves open, or that a deployment does in its own way. */
export type Point = { point: string; daemon: PointSide; sandbox: PointSide };

const side = (does: string, file: string, words: string): PointSide => ({
  does,
  file: `test/${file}`,
  words,
});

/** Points that the interface does not show. */
export const OPEN_POINTS: readonly Point[] = [
  {
    point: 'intent transitions',
    daemon: side(
      'Accepts each step; the event of a skipped or backward one is flagged. `polling.finished` names the final statuses',
      'unit/domain-decide.test.ts',
      'backward at a newer time is reported at once, as a regression',
    ),
    sandbox: side(
      '`pending` → `filled` → `settled`, or `pending` → `refundable` → `refunded`; the fault `regressions` goes back',
      'unit/sandbox-life.test.ts',
      'refundable',
    ),
  },
  {
    point: 'typical fill time',
    daemon: side(
      'Begins with a prior of 40 s, and learns the times of each pair of chains',
      'unit/domain-cadence.test.ts',
      'a few observations move the expectation a little',
    ),
    sandbox: side(
      'Fills most within a minute, a few late, some never',
      'unit/sandbox-life.test.ts',
      'describe(',
    ),
  },
  {
    point: 'gasless job `status`',
    daemon: side(
      'Knows the four words in any case; passes another on as it is',
      'integration/gateway-records.test.ts',
      'a record of the deposit gateway',
    ),
    sandbox: side(
      'Shows `PENDING`, `PERMIT_SENT`, `COMPLETED` and `FAILED`',
      'conformance/sandbox-gateway.test.ts',
      'a failed job states the reason and names no intent',
    ),
  },
  {
    point: 'vault `state`',
    daemon: side(
      'Knows the seven words in any case; passes another on as it is',
      'unit/domain-decide.test.ts',
      'never makes an event of another case of a vault state',
    ),
    sandbox: side(
      'Shows the path of a funded vault, and `EXPIRED_UNFUNDED`',
      'conformance/sandbox-gateway.test.ts',
      'a vault that was not funded expires after its deadline',
    ),
  },
  {
    point: "vault lookup's query parameter",
    daemon: side(
      'Sends `upstream.gateway.chainParam` (`sourceChainId`); the paths are settings too',
      'unit/upstream-client.test.ts',
      'chainParam',
    ),
    sandbox: side(
      'Reads `sourceChainId`',
      'conformance/sandbox-gateway.test.ts',
      'a vault is unknown on another chain',
    ),
  },
  {
    point: 'unknown gasless job or vault',
    daemon: side(
      'Takes a `404` as status `unknown`: no failure, and no event',
      'integration/gateway-records.test.ts',
      'of another job, another vault or nothing at all is no news',
    ),
    sandbox: side(
      'Answers `404` in the form of the gateway',
      'conformance/sandbox-gateway.test.ts',
      "an unknown job is a 404 in the gateway's own format",
    ),
  },
  {
    point: 'order of wallet pages, cursor lifetime',
    daemon: side(
      'Needs no order; a `400` to a cursor begins the sweep again',
      'long/wallet-orders.test.ts',
      'oldest-first',
    ),
    sandbox: side(
      'Newest first; `oldest-first`, `shuffled-pages`, `expired-cursors` and `cursor-lifetime` are faults',
      'conformance/sandbox-faults.test.ts',
      'oldest-first',
    ),
  },
  {
    point: 'rate limits',
    daemon: side(
      'Has a budget for each endpoint group; waits after a `429`, with `Retry-After` or without',
      'integration/routes.test.ts',
      'that requests a pause gets it, and the transfers are requested meanwhile',
    ),
    sandbox: side(
      'Has no limit of its own; the fault `error` answers `429` with or without `Retry-After`',
      'conformance/sandbox-faults.test.ts',
      'rate-limit-exceeded',
    ),
  },
  {
    point: 'errors',
    daemon: side(
      'Classifies by the HTTP status first, then by `code`; reads any body',
      'property/recorded-mutations.test.ts',
      'describeRecorded',
    ),
    sandbox: side(
      'Problems, the bare `403` of the gateway and HTML, by faults',
      'conformance/sandbox-faults.test.ts',
      'bare-error',
    ),
  },
  {
    point: 'quote validity',
    daemon: side('Counts `expiresAt` alone', 'integration/quote-expiry.test.ts', 'quotes of the sandbox'),
    sandbox: side('5 minutes at time scale 1', 'integration/quote-expiry.test.ts', 'quotes of the sandbox'),
  },
  {
    point: 'status of `deposit-address` records',
    daemon: side(
      'Reads them with the words of transfers, on wallet pages',
      'long/recorded-daemon.test.ts',
      'deposit-address',
    ),
    sandbox: side('Shows them with these words', 'conformance/preparation.ts', 'depositAddressWallet'),
  },
];

/** Points that were seen at a deployment. */
export const SEEN_POINTS: readonly Point[] = [
  {
    point: 'names',
    daemon: side(
      '`upstream.gateway` has the path word and `upstream.quoteDomain` the EIP-712 name. Until a quote verifies under the default name, a quote of another is unverified, not invalid',
      'integration/imported-quotes.test.ts',
      'set upstream',
    ),
    sandbox: side(
      '`--gateway-prefix`, `--quote-domain`',
      'conformance/sandbox-names.test.ts',
      'another prefix',
    ),
  },
  {
    point: 'key',
    daemon: side(
      '`upstream.apiKey` is optional; what is refused without one is reported once',
      'long/second-deployment.test.ts',
      'no key',
    ),
    sandbox: side('`--no-api-key` answers without one', 'long/second-deployment.test.ts', 'no key'),
  },
  {
    point: 'request of `POST /v1/quotes`',
    daemon: side(
      'Requests without `refundRecipient`; reads the one of an answer',
      'integration/partner-routes.test.ts',
      'by the sandbox',
    ),
    sandbox: side(
      'Takes `refundRecipient`; refuses other unknown keys',
      'conformance/sandbox-fuzz.test.ts',
      'refundRecipient',
    ),
  },
  {
    point: 'quote, top level',
    daemon: side(
      'Reads `solver.id`; null for a member states nothing',
      'unit/recorded-quote.test.ts',
      'is read whole: nothing in it is unreadable',
    ),
    sandbox: side(
      'Sends all of these members; `--wire strict` sends those of the interface alone',
      'conformance/sandbox-wire.test.ts',
      'a quote with --wire strict',
    ),
  },
  {
    point: '`fees[]`',
    daemon: side(
      'Reads a token as address or as object',
      'unit/recorded-quote.test.ts',
      'promises its fees by the address of their tokens',
    ),
    sandbox: side('Sends token objects', 'conformance/sandbox-wire.test.ts', 'a quote in the recorded shape'),
  },
  {
    point: '`steps[]`',
    daemon: side(
      'Takes the sum of `estimatedDurationSec` as the estimate; reads types and roles in any case, and empty `intents`',
      'unit/recorded-quote.test.ts',
      'the estimate of a quote',
    ),
    sandbox: side(
      'Sends them in lower case, with a local intent',
      'conformance/sandbox-local-intents.test.ts',
      'a local intent ends on its source chain',
    ),
  },
  {
    point: '`execution`',
    daemon: side('Reads `evm`, `svm` and null; it never sends one', 'unit/recorded-quote.test.ts', 'svm'),
    sandbox: side(
      'Sends the data of `publishAndFund` with `intent` and `vault`, or `svm`',
      'conformance/sandbox-wire.test.ts',
      'calls publishAndFund, and its arguments are the intent that the quote states and signs',
    ),
  },
  {
    point: 'chain ids',
    daemon: side(
      'Expects the fulfilment of a local intent on the source chain; without the link to the payment on the target chain, that payment is `unproven`',
      'integration/quoted-payments.test.ts',
      'the delivery of a local intent',
    ),
    sandbox: side(
      'Has Solana as 1399811149; a local intent is fulfilled on its source chain, and a mint pays',
      'conformance/sandbox-local-intents.test.ts',
      'is fulfilled by a transaction of its source chain, and paid by a mint that names no intent',
    ),
  },
  {
    point: 'times',
    daemon: side(
      'Assumes none: `expiresAt` and the deadlines count as they come',
      'integration/quote-expiry.test.ts',
      'quotes of the sandbox',
    ),
    sandbox: side(
      '5 min, 85 min and 96 min',
      'conformance/sandbox-wire.test.ts',
      'can be sent until the quote ends, its route 85 min and its reward 96 min longer',
    ),
  },
  {
    point: 'status words',
    daemon: side(
      '`filled` is a fill, `settled` the later end; both are reported',
      'integration/tracking.test.ts',
      'settled',
    ),
    sandbox: side('Shows `filled`, then `settled`', 'conformance/sandbox-status.test.ts', 'settled'),
  },
  {
    point: 'vault, create',
    daemon: side(
      'Makes no vault; watches the one of an imported quote on request (`watchVault`)',
      'integration/quote-vault.test.ts',
      'watchVault: true',
    ),
    sandbox: side(
      'Both generations; the same body gives the same vault while it is unfunded',
      'conformance/sandbox-legacy-vaults.test.ts',
      'is the same one for the same body until it is funded',
    ),
  },
  {
    point: 'vault, permit',
    daemon: side('Sends none; follows its job', 'unit/domain-stages.test.ts', 'PERMIT_SENT'),
    sandbox: side(
      'Takes `depositAddress` or the interface’s members',
      'conformance/sandbox-legacy-vaults.test.ts',
      'by a permit is PENDING, PERMIT_SENT and COMPLETED',
    ),
  },
  {
    point: 'jobs',
    daemon: side(
      '`PENDING` → `COMPLETED` is no skipped step',
      'unit/domain-stages.test.ts',
      "[GATEWAY_JOB, 'PENDING', 'COMPLETED', 'forward']",
    ),
    sandbox: side(
      'Shows `PERMIT_SENT` for permits alone',
      'conformance/sandbox-legacy-vaults.test.ts',
      'by ERC-3009 never shows PERMIT_SENT',
    ),
  },
  {
    point: 'gateway errors',
    daemon: side(
      'Reads all seven members, in logs and errors',
      'unit/recorded-quote.test.ts',
      'an error of the deposit gateway',
    ),
    sandbox: side(
      'Sends `statusCode`, `error`, `message`, `code` and `requestId`',
      'conformance/sandbox-gateway.test.ts',
      "an unknown job is a 404 in the gateway's own format",
    ),
  },
  {
    point: 'open quoting service',
    daemon: side(
      'Prices routes by `exactIn`',
      'integration/routes.test.ts',
      'is reported as available, moved, unavailable and available again',
    ),
    sandbox: side(
      '`exactIn`, `exactOut`, `single`, with `refundRecipient`',
      'conformance/sandbox-open-quotes.test.ts',
      'names the requested refundRecipient, else the funder',
    ),
  },
  {
    point: 'status without a key',
    daemon: side(
      '`upstream.statusSource: open` or `both` polls intents there',
      'integration/open-status.test.ts',
      'the open source alone',
    ),
    sandbox: side(
      '`intentStatus` and `status`, with their `404`',
      'conformance/sandbox-open-status.test.ts',
      'shows the sub-status of an intent in its status, with its transactions, and needs no key',
    ),
  },
  {
    point: 'Portal event',
    daemon: side(
      'Reads `IntentFulfilled` as proof of the intent of a payment',
      'integration/chain-readers.test.ts',
      'the fulfilled intents of the pinned event are read, and of no other event',
    ),
    sandbox: side(
      'Logs it with each payment',
      'conformance/sandbox-chains.test.ts',
      'logs which intent a payment fulfils',
    ),
  },
  {
    point: 'not found',
    daemon: side(
      'Reads lists of chains and tokens bare, or as `chains`, `tokens` or `data`; paths and budgets are settings',
      'integration/discovery.test.ts',
      'have each entry and member that is unreadable counted',
    ),
    sandbox: side(
      'Answers `{ chains }` and `{ tokens }`',
      'conformance/sandbox-access.test.ts',
      'every chain has an id, a name and the address that signs its quotes',
    ),
  },
];
