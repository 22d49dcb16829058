/** Kinds of watched subjects. `other`: a kind of record that the interface does not name, seen on a wallet page. */
export const SUBJECT_KINDS = [
  'intent',
  'wallet',
  'quote',
  'gasless',
  'vault',
  'deposit-address',
  'route',
  'by-tx',
  'other',
] as const;

export type SubjectKind = (typeof SUBJECT_KINDS)[number];

declare const subjectIdBrand: unique symbol;

/**
 * Identifier of a subject, always with its prefix: `intent:0x…`, `wallet:0x…`, `quote:<uuid>`, `gasless:<uuid>` (v1
 * status endpoint), `gasless:gateway:<id>` (the deposit gateway's jobs), `vault:<chainId>:<address>`,
 * `deposit-address:…`, `route:<name in the config>` (priced by the open service), `route:v1:<name>` (priced with the
 * key), `by-tx:source:<hash>` and `by-tx:destination:<hash>`, which only lead to a transfer. One subject has one id:
 * hex and UUIDs are in lower case in every kind but `route`; other text, such as base58, is unchanged.
 */
export type SubjectId = string & { readonly [subjectIdBrand]: true };

/** Folds the case of `0x` hex only; base58 and other text stay unchanged. */
export function foldHex(text: string): string {
  return /^0[xX][0-9a-fA-F]+$/.test(text) ? text.toLowerCase() : text;
}

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

/** Canonical form of an id of unknown structure: each part between colons that is hex or a UUID is folded. */
function foldId(id: string): string {
  return id
    .split(':')
    .map((part) => (UUID.test(part) ? part.toLowerCase() : foldHex(part)))
    .join(':');
}

export function intentId(hash: string): SubjectId {
  return `intent:${foldHex(hash)}` as SubjectId;
}

export function walletId(address: string): SubjectId {
  return `wallet:${foldHex(address)}` as SubjectId;
}

export function quoteId(uuid: string): SubjectId {
  return `quote:${uuid.toLowerCase()}` as SubjectId;
}

export function gaslessId(uuid: string): SubjectId {
  return `gasless:${uuid.toLowerCase()}` as SubjectId;
}

export function gatewayJobId(id: string): SubjectId {
  return `gasless:gateway:${foldId(id)}` as SubjectId;
}

export function vaultId(vault: { chainId: number; address: string }): SubjectId {
  return `vault:${vault.chainId}:${foldHex(vault.address)}` as SubjectId;
}

/** Made from the id in status records; it cannot be polled alone. */
function depositAddressId(id: string): SubjectId {
  return `deposit-address:${foldId(id)}` as SubjectId;
}

function otherId({ word, id }: { word: string; id: string }): SubjectId {
  return `${word}:${foldId(id)}` as SubjectId;
}

/** Subject of a transaction that finds a transfer: the funding or the delivering one. */
export function txId(side: TxSide, hash: string): SubjectId {
  return `by-tx:${side}:${foldHex(hash)}` as SubjectId;
}

/** A name has no colon, so the routes of the two services stay distinct. */
export function routeId({ name, service }: { name: string; service: RouteService }): SubjectId {
  return (service === 'v1' ? `route:v1:${name}` : `route:${name}`) as SubjectId;
}

/** Services that price a route: the open quoting service, or `POST /v1/quotes` with the key. */
export const ROUTE_SERVICES = ['open', 'v1'] as const;

export type RouteService = (typeof ROUTE_SERVICES)[number];

export type TxSide = 'source' | 'destination';

/** A parsed subject id. */
export type SubjectKey =
  | { kind: 'intent'; hash: string }
  | { kind: 'wallet'; address: string }
  | { kind: 'quote'; uuid: string }
  | { kind: 'gasless'; endpoint: 'status' | 'gateway'; id: string }
  | { kind: 'vault'; chainId: number; address: string }
  | { kind: 'deposit-address'; id: string }
  | { kind: 'route'; service: RouteService; name: string }
  | { kind: 'by-tx'; side: TxSide; hash: string }
  | { kind: 'other'; word: string; id: string };

/** Parses a subject id; null for other text. */
export function parseSubjectId(text: string): SubjectKey | null {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return null;
  const rest = text.slice(colon + 1);
  switch (text.slice(0, colon)) {
    case 'intent':
      return { kind: 'intent', hash: rest };
    case 'wallet':
      return { kind: 'wallet', address: rest };
    case 'quote':
      return { kind: 'quote', uuid: rest };
    case 'gasless':
      if (rest === 'gateway:') return null;
      return rest.startsWith('gateway:')
        ? { kind: 'gasless', endpoint: 'gateway', id: rest.slice('gateway:'.length) }
        : { kind: 'gasless', endpoint: 'status', id: rest };
    case 'vault': {
      const [, chainId, address] = /^(\d{1,15}):([^:]+)$/.exec(rest) ?? [];
      return chainId && address ? { kind: 'vault', chainId: Number(chainId), address } : null;
    }
    case 'deposit-address':
      return { kind: 'deposit-address', id: rest };
    case 'route':
      if (rest === 'v1:') return null;
      return rest.startsWith('v1:')
        ? { kind: 'route', service: 'v1', name: rest.slice('v1:'.length) }
        : { kind: 'route', service: 'open', name: rest };
    case 'by-tx': {
      const [, side, hash] = /^(source|destination):([^:]+)$/.exec(rest) ?? [];
      if (hash === undefined) return null;
      return { kind: 'by-tx', side: side === 'source' ? 'source' : 'destination', hash };
    }
    default:
      return /^[a-z][a-z0-9-]{0,31}$/.test(text.slice(0, colon))
        ? { kind: 'other', word: text.slice(0, colon), id: rest }
        : null;
  }
}

/** Reads a subject id as users write it: hex and UUIDs may be in any case. Null for other text. */
export function readSubjectId(text: string): SubjectId | null {
  const key = parseSubjectId(text);
  switch (key?.kind) {
    case undefined:
      return null;
    case 'intent':
      return intentId(key.hash);
    case 'wallet':
      return walletId(key.address);
    case 'quote':
      return quoteId(key.uuid);
    case 'gasless':
      return key.endpoint === 'status' ? gaslessId(key.id) : gatewayJobId(key.id);
    case 'vault':
      return vaultId(key);
    case 'by-tx':
      return txId(key.side, key.hash);
    case 'deposit-address':
      return depositAddressId(key.id);
    case 'other':
      return otherId(key);
    case 'route':
      return text as SubjectId;
  }
}

/** Kind of a subject id. The id is one of ours, so an unknown prefix is a bug and throws. */
export function subjectKind(id: SubjectId): SubjectKind {
  const key = parseSubjectId(id);
  if (key === null) throw new Error(`not a subject id: ${JSON.stringify(id)}`);
  return key.kind;
}

/** Reads a subject id from text that we stored. Throws on anything else. */
export function asSubjectId(text: string): SubjectId {
  if (parseSubjectId(text) === null) throw new Error(`not a subject id: ${JSON.stringify(text)}`);
  return text as SubjectId;
}

/** First part of a subject's event types: its kind, or the upstream's own name of an unknown kind. */
export function eventKind(id: SubjectId): string {
  const key = parseSubjectId(id);
  return key?.kind === 'other' ? key.word : subjectKind(id);
}

/** Kinds that no upstream record may have: events, metrics and audit entries of the daemon itself use them. */
export const RESERVED_KINDS = ['receiver', 'upstream', 'intentwatch', 'audit', 'route'] as const;

export type ReservedKind = (typeof RESERVED_KINDS)[number];

/** Reserved kind that an upstream record names, by its id's prefix, else by its type, in any case; null for other records. */
export function reservedKindOf({ id, type }: { id: string; type: string }): ReservedKind | null {
  const colon = id.indexOf(':');
  const kind = (colon === -1 ? type : id.slice(0, colon)).toLowerCase();
  return RESERVED_KINDS.find((reserved) => reserved === kind) ?? null;
}

/** Subject of a status record, with the type as an id's missing prefix; null when neither id nor type names a kind. */
export function subjectOfRecord(record: { id: string; type: string }): SubjectId | null {
  // A prefix is a name of the interface in any case; the rest is the upstream's own.
  const id = record.id.replace(/^[A-Za-z-]+(?=:)/, (prefix) => prefix.toLowerCase());
  const key = parseSubjectId(id) ?? parseSubjectId(`${record.type.toLowerCase()}:${id}`);
  switch (key?.kind) {
    case undefined:
    case 'wallet':
    case 'vault':
    case 'route':
    case 'by-tx':
      return null;
    case 'intent':
      return intentId(key.hash);
    case 'quote':
      return quoteId(key.uuid);
    case 'gasless':
      return key.endpoint === 'status' ? gaslessId(key.id) : null;
    case 'deposit-address':
      return depositAddressId(key.id);
    case 'other':
      // An id whose prefix is no name has its type as kind.
      if (RESERVED_KINDS.some((reserved) => reserved === key.word)) return null;
      return otherId(key);
  }
}
