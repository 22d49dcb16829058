import type { z } from 'zod';
import { evmAddressField, walletField } from '../config/fields/addresses.ts';
import { wholeNumberField } from '../config/fields/fields.ts';
import {
  intentHashField,
  jobField,
  quoteUuidField,
  statusJobField,
  txHashField,
} from '../config/sections/subscription.ts';
import { V1_NEEDED } from '../config/sections/upstream.ts';
import type { JsonObject } from '../domain/json.ts';
import { type ImportedQuote, readImportedQuote } from '../domain/quotes/promised.ts';
import { quoteVault } from '../domain/quotes/quote-vault.ts';
import { endpointGroupOf } from '../domain/subjects/kinds.ts';
import {
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  type SubjectId,
  txId,
  vaultId,
  walletId,
} from '../domain/subjects/subject.ts';
import type { Wish } from '../store/tracked.ts';
import { type OperationContext, UnknownError } from './operation.ts';

/** Kinds that can be tracked by id. */
export const TRACKED_KINDS = [
  'wallet',
  'intent',
  'source-tx',
  'destination-tx',
  'quote',
  'gasless',
  'vault',
] as const;

/** The user's name for a subject to track: kind and id, or a whole quote as it was answered. */
export type SubjectInput = {
  kind?: (typeof TRACKED_KINDS)[number] | undefined;
  id?: string | undefined;
  endpoint?: 'status' | 'gateway' | undefined;
  chainId?: number | undefined;
  quote?: JsonObject | undefined;
  watchVault?: boolean | undefined;
};

/** A fault in such a name: the member, the found value where that is not the member itself, and the expected one. */
export type NamingFault = { member: keyof SubjectInput; found?: string; expected: string };

const CHAIN_ID = wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER });

type Named = { subject: SubjectId; quote: ImportedQuote | null };

/** Parses which subject the user names, and the quote itself where that was imported. The source of statuses must know it. */
export function readNamed(named: SubjectInput, { statusSource }: OperationContext): Named | NamingFault {
  const read = readSubject(named);
  if ('member' in read || statusSource !== 'open') return read;
  if (endpointGroupOf(read.subject, statusSource) !== 'status') return read;
  const found = `${named.kind ?? 'a quote'} beside upstream.statusSource: open`;
  return { member: named.quote === undefined ? 'kind' : 'quote', found, expected: V1_NEEDED };
}

function readSubject(named: SubjectInput): Named | NamingFault {
  const { kind, quote, id, endpoint, chainId, watchVault = false } = named;
  if (quote !== undefined) {
    if (kind !== undefined && kind !== 'quote') {
      return { member: 'kind', expected: '"quote", or none, beside a whole quote' };
    }
    const member = (['id', 'endpoint', 'chainId'] as const).find((one) => named[one] !== undefined);
    if (member !== undefined) return { member, expected: 'none beside a whole quote' };
    const imported = readImportedQuote(quote);
    const expected = 'a quote as POST /v1/quotes answered it, with an id of "quote:" and a UUID';
    if (imported === null) return { member: 'quote', found: foundIn(quote), expected };
    const vault = quoteVault(imported);
    if (watchVault && 'found' in vault) return { member: 'watchVault', ...vault };
    return { subject: imported.subject, quote: imported };
  }
  if (watchVault) return { member: 'watchVault', expected: 'none but beside a whole quote' };
  if (kind === undefined) {
    return { member: 'kind', expected: `one of ${TRACKED_KINDS.join(', ')}, or a whole \`quote\`` };
  }
  if (endpoint !== undefined && kind !== 'gasless') {
    return { member: 'endpoint', expected: 'none but for a gasless job' };
  }
  if (chainId !== undefined && kind !== 'vault')
    return { member: 'chainId', expected: 'none but for a vault' };
  switch (kind) {
    case 'wallet':
      return readId(walletField, id, walletId);
    case 'intent':
      return readId(intentHashField, id, intentId);
    case 'source-tx':
      return readId(txHashField, id, (hash) => txId('source', hash));
    case 'destination-tx':
      return readId(txHashField, id, (hash) => txId('destination', hash));
    case 'quote':
      return readId(quoteUuidField, id, quoteId);
    case 'gasless':
      if (endpoint === 'gateway') return readId(jobField, id, gatewayJobId);
      return readId(statusJobField, id, gaslessId);
    case 'vault': {
      const chain = CHAIN_ID.safeParse(chainId);
      if (!chain.success) return { member: 'chainId', expected: 'the chain on which the vault is funded' };
      return readId(evmAddressField, id, (address) => vaultId({ address, chainId: chain.data }));
    }
  }
}

function foundIn({ id }: JsonObject): string {
  return id === undefined ? 'an object without id' : `an id ${JSON.stringify(id).slice(0, 80)}`;
}

function readId(
  field: z.ZodType<string>,
  id: string | undefined,
  subjectOf: (id: string) => SubjectId,
): { subject: SubjectId; quote: null } | NamingFault {
  const read = field.safeParse(id);
  if (read.success) return { subject: subjectOf(read.data), quote: null };
  return { member: 'id', expected: read.error.issues[0]?.message ?? 'an id' };
}

/** Returns the names that no receiver has, and the names of all receivers. */
export async function unknownReceivers(
  names: readonly string[],
  { stores: { registry } }: OperationContext,
): Promise<{ unknown: string[]; existing: string[] }> {
  const existing = (await registry.receivers()).filter(({ removed }) => !removed).map(({ name }) => name);
  return { unknown: names.filter((name) => !existing.includes(name)), existing: existing.sort() };
}

/** Tracks a subject beside those of the config. `created` is false for one that is tracked already: it gets this wish. */
export async function trackSubject(
  { subject, quote }: { subject: SubjectId; quote: ImportedQuote | null },
  wish: Wish,
  { stores: { tracked } }: OperationContext,
): Promise<{ created: boolean }> {
  const { created } = await tracked.track(subject, wish, quote);
  return { created };
}

/** Ends the tracking of a subject. Throws an UnknownError for one that is not tracked by itself. */
export async function untrackSubject(
  subject: SubjectId,
  { stores: { tracked } }: OperationContext,
): Promise<void> {
  if (await tracked.untrack(subject)) return;
  throw new UnknownError(
    `found no ${subject} that is tracked through the API; what the config names is removed from its file`,
  );
}
