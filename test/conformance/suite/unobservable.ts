import type { Unobservable } from './rule.ts';

function unseen(section: string, reasons: Readonly<Record<string, string>>): Unobservable[] {
  return Object.entries(reasons).map(([id, reason]) => ({ id, section, reason }));
}

const NOT_SHOWN = 'The interface does not show it: any answer conforms';
const LISTED = 'Only listed: the interface shows no shape to hold an answer against';

/** Statements of the interface that no answer can show, with reasons. */
export const UNOBSERVABLE: readonly Unobservable[] = [
  ...unseen('What the service does', {
    'service 4e (direct transfer)': 'A direct transfer to a vault happens on a chain, not over HTTP',
    'service 6': 'Solana deposit addresses, solver registry and solver interface are only listed',
  }),
  ...unseen('v1 quote object', {
    'quote: other members': NOT_SHOWN,
    'quote: other members of chains and tokens': NOT_SHOWN,
  }),
  ...unseen('Gasless job record', { 'gasless job: other status words': NOT_SHOWN }),
  ...unseen('Vault record', { 'vault: other state words': NOT_SHOWN }),
  ...unseen('Open quoting service: request', {
    'open request: required fields': NOT_SHOWN,
    'open request: members of the contracts object': NOT_SHOWN,
  }),
  ...unseen('Open quoting service: response', { 'open quote: fee kind and basis': NOT_SHOWN }),
  ...unseen('States and transitions', {
    'states: transitions of intents': NOT_SHOWN,
    'states: transitions of jobs, sub-statuses, steps and vaults': NOT_SHOWN,
  }),
  ...unseen('Endpoints: v1 API', {
    'endpoint shapes of chains and tokens': NOT_SHOWN,
    'endpoint paths and payloads of Permit3 and Permit2': `${NOT_SHOWN}. The suite requests it as the page of assumptions states`,
  }),
  ...unseen('GET /v1/intents/status: rules', {
    'status: several exact filters, order of pages': NOT_SHOWN,
  }),
  ...unseen('Deposit vaults: transferWithAuthorization', {
    'transferWithAuthorization: required fields': NOT_SHOWN,
    'transferWithAuthorization: one onchain transaction': 'It happens on a chain, not over HTTP',
  }),
  ...unseen('Deposit vaults: lookups', {
    'depositAddresses: name of the query parameter': `${NOT_SHOWN}. The suite requests it with sourceChainId`,
  }),
  ...unseen('Deposit vaults: current public path set', {
    'deposit-gateway: methods and payloads': `${NOT_SHOWN}. The suite requests it as the page of assumptions states`,
  }),
  ...unseen('POST /api/v3/quotes/exactIn', {
    'POST /api/v3/quotes/single': LISTED,
    'POST /api/v3/quotes/exactOut': LISTED,
    'POST /api/v3/intents/intentStatus': LISTED,
    'POST /api/v3/intents/status': LISTED,
  }),
  ...unseen('Listed only', {
    'POST /api/v1/solverRegistry/registerSolver': LISTED,
    'PATCH /api/v1/solverRegistry/updateSolver': LISTED,
    'POST /api/v2/quote': 'Served by solvers, not by the service',
    'POST /api/v2/quote/reverse': 'Served by solvers, not by the service',
    'Solana deposit addresses': LISTED,
  }),
  ...unseen('Authentication', {
    'authentication rule 1 (operator)':
      'Keys are obtained from the operator, and where they are stored is up to the client',
    'authentication rule 1 (pricing)':
      'Partner pricing and attribution of a key cannot be distinguished from one key alone',
    'authentication rule 8 (pricing)': 'That there is no partner pricing cannot be distinguished from prices',
    'authentication rule 10': 'The signing scheme of solver registry requests is not shown',
  }),
  ...unseen('Quote signature', {
    'quote signature: what it does not prove':
      'That the price is not the best, or the calldata another, shows in no answer',
    'quote signature: rotation':
      'When a signer rotates is up to the operator; that quotes of the time before stay valid is not stated',
  }),
  ...unseen('Events', {
    events: 'There are none: no event, webhook or callback is described',
  }),
  ...unseen('Errors: rules', {
    'errors rule 2 (slow routes)': 'Slow routes and failures of solvers cannot be brought about over HTTP',
    'errors rule 3': 'Which other routes are unfillable is not stated: it allows an answer, and demands none',
    'errors rule 7 (code)': NOT_SHOWN,
    'errors rule 8': NOT_SHOWN,
  }),
  ...unseen('Limits', {
    'limits: rates': `${NOT_SHOWN}. No number of requests without 429 proves an allowance`,
    'limits: duration of validity': NOT_SHOWN,
  }),
  ...unseen('Versioning', {
    'versioning rule 1 (schema)': 'No answer names schema version 0.9.0',
    'versioning rule 5 (move)': 'That vaults have moved to quoted ones is history',
    'versioning rule 6': 'The paths of the solver registry and the solver interface are only listed',
    'versioning rule 7': NOT_SHOWN,
  }),
];
