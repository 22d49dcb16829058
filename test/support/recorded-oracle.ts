import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { isAmount, isObject, isSeconds, MEMBERS } from './recorded-shape.ts';

/** The content of a record that still states something. `status` is empty where it states none. */
export type StatedContent = {
  status: string;
  updatedAt: number | null;
  record: JsonObject;
  /** Present members that do not have the described shape. */
  unreadable: string[];
};

const isText = (value: JsonValue | undefined): value is string => typeof value === 'string' && value !== '';

/** True for a value that states nothing. */
const isEmpty = (value: JsonValue): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

function unreadableOf(record: JsonObject, members: (typeof MEMBERS)[keyof typeof MEMBERS]): string[] {
  return Object.entries(members)
    .filter(([name, check]) => Object.hasOwn(record, name) && !check(record[name] ?? null))
    .map(([name]) => name);
}

/** The contract's minimum of a status record: `id`, `type` and `status` as text. Null where it is not met. */
export function statedStatus(raw: JsonValue): StatedContent | null {
  if (!isObject(raw) || !isText(raw.id) || typeof raw.type !== 'string' || !isText(raw.status)) return null;
  const unreadable = unreadableOf(raw, MEMBERS.status);
  const isTimed = (raw.updatedAt ?? null) !== null && !unreadable.includes('updatedAt');
  return { status: raw.status, updatedAt: isTimed ? Number(raw.updatedAt) : null, record: raw, unreadable };
}

/** A gateway's record states something once one described member is readable and not empty. */
export function statedGateway(body: JsonValue, kind: 'job' | 'vault'): StatedContent | null {
  const data = isObject(body) ? body.data : undefined;
  if (!isObject(data)) return null;
  const unreadable = unreadableOf(data, MEMBERS[kind]);
  const hasMember = Object.keys(MEMBERS[kind]).some(
    (name) => Object.hasOwn(data, name) && !isEmpty(data[name] ?? null) && !unreadable.includes(name),
  );
  if (!hasMember) return null;
  const status = data[kind === 'job' ? 'status' : 'state'];
  return { status: isText(status) ? status : '', updatedAt: null, record: data, unreadable };
}

/** Members that are sets: the order of their elements states nothing. */
const SETS = ['intentHashes', 'quoteIds', 'wallets'];

const folded = (value: JsonValue): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^0x[0-9a-f]+$/i.test(text) ? text.toLowerCase() : text;
};

/**
 * True when an answer states other content than a record, beside id, time and status. Missing and unreadable members state
 * nothing. At a newer time an empty value removes; at the same time an answer only adds.
 */
export function isOtherContent(
  before: JsonObject,
  { record, unreadable }: StatedContent,
  { isNewer }: { isNewer: boolean },
): boolean {
  return Object.entries(record).some(
    ([name, value]) =>
      !['id', 'updatedAt', 'status', 'state', ...unreadable].includes(name) &&
      isOther(Object.hasOwn(before, name) ? before[name] : undefined, value, { name, isNewer }),
  );
}

function isOther(
  before: JsonValue | undefined,
  after: JsonValue,
  how: { name: string; isNewer: boolean },
): boolean {
  if (before === undefined || before === null) return !isEmpty(after);
  if (isEmpty(after)) return how.isNewer && !isEmpty(before);
  if (Array.isArray(before) && Array.isArray(after)) return isOtherList(before, after, how);
  if (isObject(before) && isObject(after)) {
    return Object.entries(after).some(([name, value]) =>
      isOther(Object.hasOwn(before, name) ? before[name] : undefined, value, { ...how, name }),
    );
  }
  return folded(before) !== folded(after);
}

function isOtherList(
  before: readonly JsonValue[],
  after: readonly JsonValue[],
  how: { name: string; isNewer: boolean },
): boolean {
  if (SETS.includes(how.name)) {
    const [old, next] = [before, after].map((all) => new Set(all.filter((one) => !isEmpty(one)).map(folded)));
    if (old === undefined || next === undefined) return false;
    return how.isNewer ? old.symmetricDifference(next).size > 0 : !next.isSubsetOf(old);
  }
  if (how.name === 'subStatuses') {
    const [old = [], next = []] = [before, after].map((all) => all.filter((one) => !isEmpty(one)));
    return isOtherList(old, next, { ...how, name: '' });
  }
  if (before.length !== after.length) return how.isNewer || after.length > before.length;
  return after.some((value, index) => isOther(before[index], value, { ...how, name: '' }));
}

/** The output of the best quote that an answer still offers; null where it offers none. */
export function bestOutput(
  quotes: readonly JsonValue[],
  isOffer: (quote: JsonObject) => string | null,
): string | null {
  const outputs = quotes.flatMap((quote) => (isObject(quote) ? (isOffer(quote) ?? []) : []));
  return outputs.toSorted((a, b) => Number(b) - Number(a))[0] ?? null;
}

type RequestedMembers = Readonly<Record<string, string | number>>;

/** True when each present member of an object equals the requested one; another type states nothing. */
function agrees(
  value: JsonValue | undefined,
  requested: RequestedMembers,
  states: (member: JsonValue) => boolean,
): boolean {
  if (!isObject(value)) return true;
  return Object.entries(requested).every(([name, wanted]) => {
    const member = Object.hasOwn(value, name) ? (value[name] ?? null) : null;
    return !states(member) || folded(String(member)) === folded(String(wanted));
  });
}

/** The signed content of a v1 quote, as one text; null where a part cannot be read. */
export function signedContent(quote: JsonObject): string | null {
  const { id, intentHash, expiresAt, signature, source, steps } = quote;
  const chainId = isObject(source) ? source.chainId : undefined;
  if (!isText(id) || !isText(intentHash) || !isText(signature)) return null;
  if (!isSeconds(expiresAt ?? null) || !isSeconds(chainId ?? null)) return null;
  const hashes = new Set([folded(intentHash)]);
  for (const step of Array.isArray(steps) ? steps : steps == null ? [] : [null]) {
    const intents = isObject(step) ? (step.intents ?? []) : null;
    if (!Array.isArray(intents)) return null;
    for (const intent of intents) {
      const named = isObject(intent) ? intent.intentHash : null;
      if (!isText(named)) return null;
      hashes.add(folded(named));
    }
  }
  return [id, Number(expiresAt), Number(chainId), folded(signature), ...[...hashes].toSorted()].join(' ');
}

/** The output of a v1 quote that is an offer for the requested transfer, with the signed content of a healthy one. */
export function v1Offer(
  quote: JsonObject,
  {
    source,
    destination,
    signed,
  }: { source: RequestedMembers; destination: RequestedMembers; signed: ReadonlySet<string> },
): string | null {
  const content = signedContent(quote);
  const output = isObject(quote.destination) ? (quote.destination.amountOut ?? null) : null;
  if (content === null || !signed.has(content) || !isAmount(output)) return null;
  if (isText(quote.type) && quote.type.toLowerCase() !== 'exact-in') return null;
  const { chainId, ...sourceTexts } = source;
  const { chainId: targetId, ...targetTexts } = destination;
  const isAgreed =
    agrees(quote.source, sourceTexts, isText) &&
    agrees(quote.source, { chainId: chainId ?? 0 }, isSeconds) &&
    agrees(quote.destination, targetTexts, isText) &&
    agrees(quote.destination, { chainId: targetId ?? 0 }, isSeconds);
  return isAgreed ? String(output) : null;
}

/** The output of an entry of the open quoting service that is an offer. */
export function openOffer(entry: JsonObject, requested: RequestedMembers): string | null {
  const response = isObject(entry.quoteData) ? entry.quoteData.quoteResponse : undefined;
  if (!isText(entry.quoteID) || !isObject(response)) return null;
  const { destinationAmount = null, intentExecutionType, quoteExpiry = null } = response;
  if (!isAmount(destinationAmount)) return null;
  const states = (member: JsonValue): boolean => isText(member) || typeof member === 'number';
  if (!agrees(response, requested, states)) return null;
  if (isText(intentExecutionType) && intentExecutionType.toUpperCase() !== 'SELF_PUBLISH') return null;
  if (typeof intentExecutionType === 'number') return null;
  return isSeconds(quoteExpiry) && Number(quoteExpiry) * 1_000 < Date.now()
    ? null
    : String(destinationAmount);
}
