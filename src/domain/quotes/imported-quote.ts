import { sha256, stringToBytes } from 'viem/utils';
import type { FlaggedEvent } from '../changes/decision.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Snapshot } from '../subjects/record.ts';
import { quoteId, type SubjectId } from '../subjects/subject.ts';
import type { QuotePart } from './quote-signature.ts';

/** An imported quote: the JSON of `POST /v1/quotes`. `raw` is all that its signature covers and what it promises, as it was. */
export type ImportedQuote = { subject: SubjectId; raw: JsonObject };

/** An imported quote, and whether its signature holds; null until that could be found out. */
export type ImportedState = { quote: ImportedQuote; verdict: 'valid' | 'invalid' | null };

/** What its signature covers, and the signature. */
const SIGNED = ['id', 'intentHash', 'steps', 'expiresAt', 'source', 'signature'];

/** What it promises beside that; the rest of a quote is not stored. */
const KEPT = [...SIGNED, 'destination', 'fees', 'estimatedFulfillTimeSec'];

/** Reads a quote far enough to watch it: its id. Null when that is not `quote:` and a UUID. */
export function readImportedQuote(json: JsonValue): ImportedQuote | null {
  if (!isJsonObject(json) || typeof json.id !== 'string') return null;
  const [, uuid] = /^quote:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.exec(json.id) ?? [];
  if (uuid === undefined) return null;
  return { subject: quoteId(uuid), raw: membersOf(json, KEPT) };
}

/** Names what is signed of a quote: an imported one with another content is verified again. */
export function fingerprintOf({ raw }: ImportedQuote): string {
  return sha256(stringToBytes(canonicalJson(membersOf(raw, SIGNED)))).slice(2, 34);
}

function membersOf(json: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(json).filter(([key]) => names.includes(key)));
}

/** The event of a signature that does not hold, once per content. */
export function signatureInvalid(
  quote: ImportedQuote,
  flaw: { part: QuotePart; reason: string; recovered: string | null },
  { status }: Pick<Snapshot, 'status'>,
): FlaggedEvent {
  const { part, reason, recovered } = flaw;
  return {
    flag: `quote:signature:${fingerprintOf(quote)}`,
    transition: {
      type: 'quote.signature_invalid',
      status,
      previousStatus: status,
      changes: [],
      skipped: false,
      regression: false,
    },
    raw: { id: quote.subject, signature: { valid: false, part, reason, recovered } },
  };
}
