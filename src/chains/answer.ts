import { z } from 'zod';
import { checkJson } from '../domain/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { EVM_BLOCK, EVM_RECEIPT, QUANTITY, SOLANA_TRANSACTION } from '../domain/proof/moves.ts';

/** Id of every call: each is a request of its own. */
export const CALL_ID = 1;

/** Results of endpoints, by name: a thread is given the name of the one that it parses. */
const RESULTS = {
  quantity: QUANTITY,
  /** A node that is catching up reports its progress. */
  synced: z.union([z.literal(false), z.looseObject({})]).transform((reported) => reported === false),
  evmReceipt: EVM_RECEIPT.nullable(),
  evmBlock: EVM_BLOCK.nullable(),
  // Its text is reported, so only a base58 hash passes.
  genesis: z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, { error: 'a hash' }),
  slot: z.int({ error: 'a slot' }).min(0),
  blockTime: z.int({ error: 'a time' }).min(0).nullable(),
  solanaTransaction: SOLANA_TRANSACTION.nullable(),
  solanaBlock: z
    .object({
      blockhash: z.string().max(64, { error: 'a hash' }),
      blockTime: z.int().min(0).nullable(),
    })
    .nullable(),
};

/** Name of a result. */
export type ResultName = keyof typeof RESULTS;

/** Result by its name. */
export type Result<Name extends ResultName> = z.infer<(typeof RESULTS)[Name]>;

/** This module, for a thread. */
export const ANSWER_MODULE = import.meta.url;

/** Content of an answer; `none`: it is no JSON-RPC answer, or beyond the limits. */
export type RpcAnswer =
  | { kind: 'none' }
  | { kind: 'error'; code: number; message: string }
  | { kind: 'result'; value: unknown }
  | { kind: 'unreadable'; where: string; expected: string };

/** A result with another id, or beside an unreadable error, is ignored: its null would mean that there is no transaction. */
const ANSWER = z.union([
  z.object({ error: z.object({ code: z.int(), message: z.string() }) }),
  z.object({
    id: z.literal(CALL_ID),
    result: z.unknown().refine((result) => result !== undefined),
    error: z.null().optional(),
  }),
]);

const MESSAGE_CHARS = 4_096;

/** Parses the text of an answer. Unused parts of the result are dropped. Also the work of a thread (thread.ts). */
export function work({ text, result }: { text: string; result: ResultName }): RpcAnswer {
  const read = ANSWER.safeParse(jsonOf(text));
  if (!read.success) return { kind: 'none' };
  if (!('result' in read.data)) {
    const { code, message } = read.data.error;
    return { kind: 'error', code, message: message.slice(0, MESSAGE_CHARS) };
  }
  const value = RESULTS[result].safeParse(read.data.result);
  if (value.success) return { kind: 'result', value: value.data };
  const [issue] = value.error.issues;
  return {
    kind: 'unreadable',
    where: ['result', ...(issue?.path ?? [])].join('.'),
    expected: issue?.message ?? '',
  };
}

/** Parses a JSON text within the limits, else undefined. Integers that JavaScript cannot hold are refused; amounts are text. */
function jsonOf(text: string): unknown {
  try {
    checkJson(text, LIMITS.rpc);
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
