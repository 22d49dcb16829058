function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix} ${index + 1}`);
}

function rows(prefix: string, names: string): string[] {
  return names.split(' ').map((name) => `${prefix}: ${name}`);
}

/** Every place of the interface with a statement: its sections, with their numbered rules, table rows and items. */
export const OUTLINE: Readonly<Record<string, readonly string[]>> = {
  'What the service does': [
    ...numbered('service', 1),
    ...['service 2.1', 'service 2.2', 'service 2.3', 'service 2.4'],
    ...numbered('service', 6).slice(2),
  ],
  Conventions: [
    'conventions: JSON',
    'conventions: unknown keys',
    ...rows('conventions', 'amounts slippage timestamps type identifiers addresses'),
    'conventions: page size',
    'conventions: vault envelope',
  ],
  'Status result': [
    ...rows(
      'status result',
      'id type status updatedAt intentHashes txHash subStatuses sourceTx destinationTx steps',
    ),
    ...rows('status response', 'results nextCursor'),
  ],
  'Sub-status': rows('sub-status', 'chainId quoteIds txHash intentHashes state'),
  'Transaction summary': rows('transaction summary', 'chainId txHash token amount'),
  Step: rows('step', 'type intentHash status from to transactions'),
  Problem: rows('problem', 'type title status code detail instance legacyCode solverErrors errors requestId'),
  'v1 quote object': [
    ...rows('quote', 'id type signature expiresAt intentHash source.chainId source.funder'),
    ...rows(
      'quote',
      'destination.amountOut destination.minAmountOut fees steps execution.transaction quotes',
    ),
    'quote: other members',
    'quote: quoteSigner',
    'quote: other members of chains and tokens',
  ],
  'Gasless job record': [
    ...rows('gasless job', 'data id status permitTxHash transferTxHash intentHash amount error'),
    'gasless job: other status words',
  ],
  'Vault record': [
    ...rows('vault', 'data vaultAddress amount deadline state intentHash sourceChainId'),
    'vault: other state words',
  ],
  'Open quoting service: request': [
    ...rows('open request', 'dAppID intentExecutionTypes quoteRequest'),
    ...['sourceChainID', 'destinationChainID', 'sourceToken', 'destinationToken'].map(openField),
    ...['sourceAmount', 'funder', 'recipient'].map(openField),
    'open request: contract addresses',
    'open request: required fields',
    'open request: members of the contracts object',
  ],
  'Open quoting service: response': [
    'open response: status',
    'open response: empty data',
    ...rows('open entry', 'quoteID quoteResponseID solverID'),
    ...rows('open entry', 'quoteData.contracts.sourcePortal quoteData.contracts.destinationPortal'),
    'open entry: quoteData.contracts.prover',
    ...rows('open quote', 'intentExecutionType sourceChainID destinationChainID finalDestinationChainID'),
    ...rows('open quote', 'sourceToken destinationToken sourceAmount destinationAmount'),
    ...rows(
      'open quote',
      'minimumDestinationAmount funder refundRecipient recipient fees deadline quoteExpiry',
    ),
    ...rows('open quote', 'estimatedFulfillTimeSec encodedRoute'),
    'open quote: fee kind and basis',
  ],
  'States and transitions': [
    'states: status filter',
    'states: other words',
    'states: quote active to submitted',
    'states: any id to unknown',
    'states: transitions of intents',
    'states: transitions of jobs, sub-statuses, steps and vaults',
  ],
  'Endpoints: v1 API': [
    'endpoint GET /v1/chains',
    'endpoint GET /v1/tokens',
    'endpoint POST /v1/quotes',
    ...rows('endpoint POST gasless submit', 'Permit3 Permit2 ERC-3009'),
    'endpoint GET /v1/intents/status',
    'endpoint deposit-vault endpoints',
    'endpoint shapes of chains and tokens',
    'endpoint paths and payloads of Permit3 and Permit2',
  ],
  'POST /v1/quotes': [
    ...rows('POST /v1/quotes', 'type dappId source.funder source.chainId source.token destination.amountOut'),
    ...rows('POST /v1/quotes', 'destination.minAmountOut slippage options.allQuotes response'),
    'gasless submits: resend',
  ],
  'GET /v1/intents/status: parameters': [
    ...rows('status parameter', 'intentHash sourceTxHash destinationTxHash quoteId jobId'),
    ...rows('status parameter', 'wallet status cursor limit'),
  ],
  'GET /v1/intents/status: rules': [
    ...numbered('status rule', 7),
    'status: several exact filters, order of pages',
  ],
  'Deposit vaults: transferWithAuthorization': [
    ...rows(
      'transferWithAuthorization',
      'chainId from to value validAfter validBefore nonce signature response',
    ),
    'transferWithAuthorization: required fields',
    'transferWithAuthorization: one onchain transaction',
  ],
  'Deposit vaults: lookups': [
    'gasless/jobs/{id}',
    'depositAddresses/{vaultAddress}',
    'depositAddresses: name of the query parameter',
  ],
  'Deposit vaults: current public path set': [
    '/v1/deposit-gateway/deposit-addresses',
    '/v1/deposit-gateway/submit/erc-3009',
    '/v1/deposit-gateway/submit/erc-2612',
    '/v1/deposit-gateway/{vaultAddress}',
    '/v1/deposit-gateway/status',
    'deposit-gateway: methods and payloads',
  ],
  'POST /api/v3/quotes/exactIn': [
    ...rows('exactIn', '201 400 429 5xx'),
    'POST /api/v3/quotes/single',
    'POST /api/v3/quotes/exactOut',
    'POST /api/v3/intents/intentStatus',
    'POST /api/v3/intents/status',
  ],
  'Listed only': [
    'POST /api/v1/solverRegistry/registerSolver',
    'PATCH /api/v1/solverRegistry/updateSolver',
    'POST /api/v2/quote',
    'POST /api/v2/quote/reverse',
    'Solana deposit addresses',
  ],
  Authentication: numbered('authentication rule', 10),
  'Quote signature': [
    ...rows('quote signature', 'signer domain id intentHashes expiresAt verification rotation'),
    'quote signature: all quotes',
    'quote signature: what it proves',
    'quote signature: what it does not prove',
  ],
  Events: ['events'],
  'Errors: format': [
    ...rows('error format', 'core gateway'),
    'error format: deposit vaults',
    'error format: open quoting service',
  ],
  'Errors: status and code table': [
    'error 400 invalid-request',
    'error 400 invalid-parameter',
    'error 400 missing-parameter',
    'error 400 slippage-out-of-bounds',
    'error 401 invalid-api-key',
    'error 401 api-key-expired',
    'error 401 invalid-signature',
    'error 401 authorization-expired',
    'error 403 {Message}',
    'error 403 permission-denied',
    'error 403 funder-mismatch',
    'error 404 endpoint-not-found',
    'error 404 token-not-found',
    'error 404 never at status',
    'error 409 signature-already-bound',
    'error 409 nonce-used',
    'error 410 quote-expired',
    'error 422 chain-not-supported',
    'error 422 no-route-found',
    'error 422 chain-pair-unsupported',
    'error 422 amount-too-low',
    'error 422 amount-too-high',
    'error 422 insufficient-liquidity',
    'error 422 simulation-failed',
    'error 422 solverErrors',
    'error 429 rate-limit-exceeded',
    'error 500 internal-error',
    'error 502 solver-error',
    'error 503 solver-timeout',
    'error 503 service-unavailable',
    'errors: identical resend',
  ],
  'Errors: rules': numbered('errors rule', 8),
  Limits: [
    ...rows('limits', 'limit slippage dAppID chainId nonce signature Retry-After rates'),
    'limits: short-lived quotes',
    'limits: duration of validity',
  ],
  Versioning: numbered('versioning rule', 7),
};

/** The place of a rule or a reason: its id without the letter or the text that distinguishes it. */
export function placeOf(id: string): string {
  return id
    .replace(/ \([^)]*\)$/, '')
    .replace(/(?<=\d)[a-z]$/, '')
    .replace(/ [a-z]$/, '');
}

function openField(name: string): string {
  return `open request: quoteRequest.${name}`;
}
