import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import {
  amountMember,
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  type Reading,
  textMember,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** A gasless job of the deposit gateway. */
export type GatewayJob = {
  id: string;
  status: string;
  intentHash: string | null;
  /** All the upstream said inside `data`. */
  raw: JsonObject;
  /** Members that are there but not as the interface describes them. */
  unreadable: string[];
};

/** A deposit vault. */
export type VaultRecord = {
  /** As spelled by the upstream. */
  vaultAddress: string;
  state: string;
  /** The chain on which the vault is funded. */
  chainId: number | null;
  intentHash: string | null;
  /** Unix seconds. */
  deadline: number | null;
  /** All the upstream said inside `data`. */
  raw: JsonObject;
  /** Members that are there but not as the interface describes them. */
  unreadable: string[];
};

/** What the gasless job endpoint must answer, in words. */
export const GATEWAY_JOB_EXPECTED = 'HTTP 200 with a JSON object { data } of id and status';

/** What the deposit gateway's submits must answer, in words. */
export const GATEWAY_SUBMIT_EXPECTED =
  'HTTP 202 (or 200 for a job that exists) with a JSON object { data } of id and status';

/** What the vault lookup and the creation of a vault must answer, in words. */
export const VAULT_EXPECTED =
  'HTTP 200 (201 for a new one) with a JSON object { data } of vaultAddress and state';

const JOB_MEMBERS: Members = {
  permitTxHash: textMember,
  transferTxHash: textMember,
  intentHash: textMember,
  amount: amountMember,
  error: z.string(),
};

const VAULT_MEMBERS: Members = {
  amount: amountMember,
  deadline: integerMember,
  intentHash: textMember,
  sourceChainId: integerMember,
};

/** Reads a gasless job: `id` and `status` must be there, the rest is taken as far as it goes. */
export function readGatewayJob(body: JsonValue): Reading<GatewayJob> {
  const reading = readEnvelope(body);
  if ('mismatch' in reading) return reading;
  const raw = reading.value;
  const id = textOrNull(raw.id);
  if (id === null) return { mismatch: `${kindOf(raw.id)} as data.id` };
  const status = textOrNull(raw.status);
  if (status === null) return { mismatch: `${kindOf(raw.status)} as data.status` };
  const unreadable = unreadableMembers(raw, JOB_MEMBERS);
  return { value: { id, status, intentHash: textOrNull(raw.intentHash), raw, unreadable } };
}

/** Reads a vault: `vaultAddress` and `state` must be there, the rest is taken as far as it goes. */
export function readVault(body: JsonValue): Reading<VaultRecord> {
  const reading = readEnvelope(body);
  if ('mismatch' in reading) return reading;
  const raw = reading.value;
  const vaultAddress = textOrNull(raw.vaultAddress);
  if (vaultAddress === null) return { mismatch: `${kindOf(raw.vaultAddress)} as data.vaultAddress` };
  const state = textOrNull(raw.state);
  if (state === null) return { mismatch: `${kindOf(raw.state)} as data.state` };
  return {
    value: {
      vaultAddress,
      state,
      chainId: integerOrNull(raw.sourceChainId),
      intentHash: textOrNull(raw.intentHash),
      deadline: integerOrNull(raw.deadline),
      raw,
      unreadable: unreadableMembers(raw, VAULT_MEMBERS),
    },
  };
}

function readEnvelope(body: JsonValue): Reading<JsonObject> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  return isJsonObject(body.data) ? { value: body.data } : { mismatch: `${kindOf(body.data)} as data` };
}
