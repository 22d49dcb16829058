import type { z } from 'zod';
import { type Patience, retry } from '../../src/commands/connection.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/domain/json.ts';
import type { RequestOptions, UpstreamCall, UpstreamClient } from '../../src/upstream/client/client.ts';
import type { Advice } from '../../src/upstream/client/failure.ts';
import type { Answer } from '../../src/upstream/client/send-request.ts';
import {
  readGatewayJob,
  readVault,
  VAULT_EXPECTED,
  type VaultRecord,
} from '../../src/upstream/wire/gateway-record.ts';
import { kindOf, type Parsed, payloadOf, textOrNull } from '../../src/upstream/wire/wire.ts';
import {
  type CreateVaultRequest,
  createVaultSchema,
  erc3009Schema,
  permit2Schema,
  permit3Schema,
  vaultErc3009Schema,
  vaultPermitSchema,
} from './payloads.ts';

/** The service at one deployment. `prefix` is the word in the paths of its vault endpoints. */
export type Service = { client: UpstreamClient; prefix: string };

/** Options of a submit: how often the identical bytes are sent before the failure is passed on. */
export type SubmitOptions = RequestOptions & { patience?: Patience };

/** A gasless job that a submit queued, or found to exist already. */
export type GaslessJob = {
  /** With its prefix `gasless:`. */
  id: string;
  status: string;
  /** The whole answer. */
  raw: JsonObject;
};

const QUEUED = 'HTTP 202 (or 200 for a job that exists) with a JSON object';

const gaslessJob = { expected: `${QUEUED} of id and status`, read: readGaslessJob };

const gatewayJob = {
  expected: `${QUEUED} { data } with members of a gasless job (id, status, error, …)`,
  read: readGatewayJob,
};

/** Funds a quote by a signed ERC-3009 authorization. `httpStatus` 200 means that the job existed already. */
export const submitErc3009 = submitOf({
  endpoint: 'submit-erc-3009',
  path: '/v1/gasless/submit/erc-3009',
  schema: erc3009Schema,
  ...gaslessJob,
});

/** Funds a quote by a signed Permit2 transfer. */
export const submitPermit2 = submitOf({
  endpoint: 'submit-permit2',
  path: '/v1/gasless/submit/permit2',
  schema: permit2Schema,
  ...gaslessJob,
});

/** Funds a quote by a signed Permit3. */
export const submitPermit3 = submitOf({
  endpoint: 'submit-permit3',
  path: '/v1/gasless/submit/permit3',
  schema: permit3Schema,
  ...gaslessJob,
});

/** Funds a vault by a signed ERC-3009 authorization. */
export const submitVaultErc3009 = submitOf({
  endpoint: 'submit-vault-erc-3009',
  path: '/{prefix}/v1/gasless/transferWithAuthorization',
  schema: vaultErc3009Schema,
  ...gatewayJob,
});

/** Funds a vault by a signed EIP-2612 permit. */
export const submitVaultPermit = submitOf({
  endpoint: 'submit-vault-permit',
  path: '/{prefix}/v1/gasless/permit',
  schema: vaultPermitSchema,
  ...gatewayJob,
});

/** Creates a quoted deposit vault, in one request. While it is not funded, the same request gives the same vault. */
export async function createVault(
  { client, prefix }: Service,
  request: CreateVaultRequest,
  options: RequestOptions = {},
): Promise<Answer<VaultRecord>> {
  const path = `/${prefix}/v2/depositAddresses`;
  const body = payloadOf(createVaultSchema, request);
  return client.request(
    { endpoint: 'create-vault', expected: VAULT_EXPECTED, read: readVault, path, body },
    options,
  );
}

/**
 * Advice about a failed submit. `resend-identical`: send the same bytes again to the same endpoint, and the existing
 * job comes back, never a second.
 */
export function submitAdvice(advice: Advice): Exclude<Advice, 'retry-bounded'> | 'resend-identical' {
  return advice === 'retry-bounded' ? 'resend-identical' : advice;
}

/**
 * Makes a submit of a signed payload. It sends the payload again, byte for byte, while its failure advises that
 * (`patience: { attempts: 1, … }` sends it once). It throws UpstreamFailure without a usable answer, and a RangeError
 * for a payload that would be refused anyway. When the caller aborts, it throws the signal's reason; the payload may
 * have arrived all the same.
 */
function submitOf<Schema extends z.ZodType, Job>(
  call: UpstreamCall<Job> & { schema: Schema },
): (service: Service, payload: z.input<Schema>, options?: SubmitOptions) => Promise<Answer<Job>> {
  const { schema, path: template, ...question } = call;
  return async ({ client, prefix }, payload, options = {}) => {
    const path = template.replace('{prefix}', prefix);
    // One text, so every attempt sends the same bytes.
    const body = payloadOf(schema, payload);
    return retry(() => client.request({ ...question, path, body }, options), options);
  };
}

/** Reads a gasless job: `id` and `status` must be present. */
export function readGaslessJob(body: JsonValue): Parsed<GaslessJob> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  const id = textOrNull(body.id);
  if (id === null) return { mismatch: `${kindOf(body.id)} as id` };
  const status = textOrNull(body.status);
  if (status === null) return { mismatch: `${kindOf(body.status)} as status` };
  return { value: { id, status, raw: body } };
}
