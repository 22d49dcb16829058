import { errorText, failures } from '../changes/failures.ts';
import { valuesAt } from '../changes/leaves.ts';
import type { Event } from '../events/event.ts';
import { TRANSFER, type TransferFacts } from '../events/event-schema.ts';
import { isOperatorKind } from '../events/event-types.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { deliveredOf, shareOf, withoutNulls, wordOf } from '../quotes/promised.ts';
import { statusMember } from '../subjects/kinds.ts';
import { asSubjectId, parseSubjectId } from '../subjects/subject.ts';
import { type Directory, explorerTxUrl } from './chains.ts';
import { money, quoteFees, quoteResponse, routeFees } from './money.ts';
import { type Leg, readTransfer } from './transfer.ts';

/**
 * Facts of an event's transfer, in one shape for every kind; null without any. Made when the event is rendered, with
 * the chains and tokens known by then: the log stores only what cannot be derived.
 */
export function transferFacts(event: Event, directory: Directory): TransferFacts | null {
  const { subject, record, promised } = event.data;
  if (isOperatorKind(subject.kind)) return null;
  const isRoute = record.type === 'route';
  const response = isRoute ? quoteResponse(record) : null;
  const { source, destination, refund } = readTransfer(record);
  const isDelivered = destination?.members.includes('destinationTx') ?? false;
  const isSent = source?.members.includes('sourceTx') ?? false;
  const expected = promised?.destination;
  const end = { token: destination?.token ?? null, chainId: destination?.chainId ?? null };
  const minimum = isRoute
    ? { amount: wordOf(record.minimumOutput), ...end }
    : { ...expected, amount: expected?.minimum };
  const facts = {
    source: endOf(source, promised?.source?.chainId, directory),
    destination: endOf(destination, expected?.chainId, directory),
    refund: endOf(refund, undefined, directory),
    toSend: isSent ? null : money(source?.amount == null ? (promised?.source ?? {}) : source, directory),
    sent: isSent ? money(source ?? {}, directory) : null,
    promised: money(expected?.amount === undefined ? (agreed(record) ?? {}) : expected, directory),
    minimum: money(minimum, directory),
    delivered: isDelivered ? money(destination ?? {}, directory) : null,
    shortfall: shortfall(event, directory),
    fees: isRoute ? routeFees(record) : promised === undefined ? [] : quoteFees(promised, directory),
    quote: promised?.quote ?? null,
    funder: wordOf(record.funder) ?? promised?.source?.funder ?? null,
    recipient: wordOf(record.recipient) ?? expected?.recipient ?? null,
    refundRecipient: promised?.refundRecipient ?? wordOf((response ?? record).refundRecipient),
    secondsSinceFunding: secondsSinceFunding(event),
    failed: failures(record).map(({ key: _, ...failure }) => failure),
    error: errorText(record),
  };
  const reported = TRANSFER.safeParse(withoutNulls(facts)).data ?? {};
  const changed = changedMembers(event);
  const all = changed.length === 0 ? reported : { ...reported, changed };
  return Object.keys(all).length === 0 ? null : all;
}

/** One end of a transfer; `expected` is the quote's chain. */
function endOf(leg: Leg | null, expected: string | undefined, directory: Directory): JsonObject {
  const chainId = wordOf(leg?.chainId ?? expected);
  const txHash = wordOf(leg?.txHash ?? undefined);
  return {
    chainId,
    chain: chainId === null ? null : (directory.chain(chainId)?.name ?? null),
    txHash,
    txUrl: chainId === null || txHash === null ? null : explorerTxUrl(chainId, txHash, directory),
  };
}

function agreed({ destinationTx: _, ...record }: JsonObject): Leg | null {
  return readTransfer(record).destination;
}

function shortfall({ data }: Event, directory: Directory): JsonObject | null {
  const { record, promised } = data;
  const compared = deliveredOf(record, promised);
  if (compared === null || compared.missing === 0n || compared.minimum === null) return null;
  const missing = money({ ...promised?.destination, amount: String(compared.missing) }, directory);
  return { ...missing, share: shareOf(compared.missing, compared.minimum) };
}

/** From the funding, as far as seen, to the event's time. */
function secondsSinceFunding({ type, timestamp, data }: Event): number | null {
  const { fundedAt, upstreamUpdatedAt } = data;
  const isOfTheClock = type.endsWith('.overdue');
  const until = isOfTheClock ? Math.floor(Date.parse(timestamp) / 1_000) : upstreamUpdatedAt;
  if (fundedAt === undefined || until === null || Number.isNaN(until)) return null;
  return until < fundedAt ? null : until - fundedAt;
}

type Changed = NonNullable<TransferFacts['changed']>[number];

/** Changed members with their old and new values, as far as stored. */
function changedMembers({ data }: Event): Changed[] {
  const { changes, record, before, previousStatus, status, subject } = data;
  if (before === undefined || previousStatus === null) return [];
  const now = valuesAt(record, changes);
  const statusPath = parseSubjectId(subject.id) === null ? '' : statusMember(asSubjectId(subject.id));
  return changes.map((path) =>
    path === statusPath
      ? { path, old: previousStatus, new: status }
      : { path, ...asReported('old', before, path), ...asReported('new', now, path) },
  );
}

/** A missing value is null; one too long to store is omitted. */
function asReported(name: 'old' | 'new', values: JsonObject, path: string): { [name: string]: JsonValue } {
  if (!Object.hasOwn(values, path)) return { [name]: null };
  const value = values[path];
  return value === null || value === undefined ? {} : { [name]: value };
}
