import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import {
  amountMember,
  integerMember,
  integerOrNull,
  kindOf,
  type Members,
  type Parsed,
  recordSchema,
  textMember,
  textOrNull,
  unreadableMembers,
} from './wire.ts';

/** A gasless job of the deposit gateway. The interface requires none of its members (Gasless job record). */
export type GatewayJob = {
  /** As spelled by the upstream. */
  id: string | null;
  status: string | null;
  intentHash: string | null;
  /** The whole `data`. */
  raw: JsonObject;
  /** Members that do not have the interface's shape. */
  unreadable: string[];
};

/** A deposit vault. The interface requires none of its members (Vault record). */
export type VaultRecord = {
  /** As spelled by the upstream. */
  vaultAddress: string | null;
  state: string | null;
  /** Chain on which the vault is funded. */
  chainId: number | null;
  intentHash: string | null;
  /** Unix seconds. */
  deadline: number | null;
  /** The whole `data`. */
  raw: JsonObject;
  /** Members that do not have the interface's shape. */
  unreadable: string[];
};

const JOB_MEMBERS: Members = {
  id: textMember,
  status: textMember,
  permitTxHash: textMember,
  transferTxHash: textMember,
  intentHash: textMember,
  amount: amountMember,
  error: z.string(),
};

const VAULT_MEMBERS: Members = {
  vaultAddress: textMember,
  state: textMember,
  amount: amountMember,
  deadline: integerMember,
  intentHash: textMember,
  sourceChainId: integerMember,
};

/** The schema of the answer about a gasless job. */
export const GATEWAY_JOB = z.object({ data: recordSchema({}, JOB_MEMBERS) });

/** The schema of the answer about a vault. */
export const VAULT = z.object({ data: recordSchema({}, VAULT_MEMBERS) });

export const GATEWAY_JOB_EXPECTED =
  'HTTP 200 with a JSON object { data } with members of a gasless job (id, status, error, …)';

export const VAULT_EXPECTED =
  'HTTP 200 (201 for a new one) with a JSON object { data } with members of a vault (vaultAddress, state, …)';

/** Reads the readable members of a gasless job: at least one that the interface names must be present. */
export function readGatewayJob(body: JsonValue): Parsed<GatewayJob> {
  const parsed = readEnvelope(body, JOB_MEMBERS);
  if ('mismatch' in parsed) return parsed;
  const { raw, unreadable } = parsed.value;
  const [id, status, intentHash] = [raw.id, raw.status, raw.intentHash].map(textOrNull);
  return {
    value: { id: id ?? null, status: status ?? null, intentHash: intentHash ?? null, raw, unreadable },
  };
}

/** Reads the readable members of a vault: at least one that the interface names must be present. */
export function readVault(body: JsonValue): Parsed<VaultRecord> {
  const parsed = readEnvelope(body, VAULT_MEMBERS);
  if ('mismatch' in parsed) return parsed;
  const { raw, unreadable } = parsed.value;
  return {
    value: {
      vaultAddress: textOrNull(raw.vaultAddress),
      state: textOrNull(raw.state),
      chainId: integerOrNull(raw.sourceChainId),
      intentHash: textOrNull(raw.intentHash),
      deadline: integerOrNull(raw.deadline),
      raw,
      unreadable,
    },
  };
}

/** Content of `data`, and its unreadable members; an object with no member of the record is refused. */
function readEnvelope(body: JsonValue, members: Members): Parsed<{ raw: JsonObject; unreadable: string[] }> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  const { data } = body;
  if (!isJsonObject(data)) return { mismatch: `${kindOf(data)} as data` };
  const unreadable = unreadableMembers(data, members);
  const readable = Object.keys(members).filter((name) => !isAbsent(data[name]) && !unreadable.includes(name));
  if (readable.length > 0) return { value: { raw: data, unreadable } };
  return { mismatch: `none of ${Object.keys(members).join(', ')} in data` };
}

function isAbsent(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === '';
}
