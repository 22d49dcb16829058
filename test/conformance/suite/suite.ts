import type { Rule } from './rule.ts';
import { AUTHENTICATION_RULES } from './rules/authentication.ts';
import { CONVENTION_RULES } from './rules/conventions.ts';
import { ENDPOINT_RULES } from './rules/endpoints.ts';
import { ERROR_CODE_RULES } from './rules/error-codes.ts';
import { ERROR_RULES } from './rules/errors.ts';
import { GATEWAY_RECORD_RULES } from './rules/gateway-records.ts';
import { LIMIT_RULES } from './rules/limits.ts';
import { OPEN_ENDPOINT_RULES } from './rules/open-endpoint.ts';
import { OPEN_QUOTE_RULES } from './rules/open-quotes.ts';
import { PROBLEM_RULES } from './rules/problem.ts';
import { QUOTE_RULES } from './rules/quote.ts';
import { QUOTE_SIGNATURE_RULES } from './rules/quote-signature.ts';
import { STATE_RULES } from './rules/states.ts';
import { STATUS_ENDPOINT_RULES } from './rules/status-endpoint.ts';
import { STATUS_RECORD_RULES } from './rules/status-records.ts';
import { VAULT_ENDPOINT_RULES } from './rules/vault-endpoints.ts';
import { VERSIONING_RULES } from './rules/versioning.ts';
import { SERVICE_RULES } from './rules/what-the-service-does.ts';

/** Every observable rule of the interface, in its order. */
export const RULES: readonly Rule[] = [
  ...SERVICE_RULES,
  ...CONVENTION_RULES,
  ...STATUS_RECORD_RULES,
  ...PROBLEM_RULES,
  ...QUOTE_RULES,
  ...GATEWAY_RECORD_RULES,
  ...OPEN_QUOTE_RULES,
  ...STATE_RULES,
  ...ENDPOINT_RULES,
  ...STATUS_ENDPOINT_RULES,
  ...VAULT_ENDPOINT_RULES,
  ...OPEN_ENDPOINT_RULES,
  ...AUTHENTICATION_RULES,
  ...QUOTE_SIGNATURE_RULES,
  ...ERROR_RULES,
  ...ERROR_CODE_RULES,
  ...LIMIT_RULES,
  ...VERSIONING_RULES,
];
