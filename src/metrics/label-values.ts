import type { CallOutcome } from '../chains/endpoint.ts';
import { BoundedMap, bytesOfTexts, CACHES, type CacheLimits } from '../domain/caches.ts';
import type { StaleReason } from '../domain/changes/decision.ts';
import { EVENT_TYPES } from '../domain/events/event-types.ts';
import { kindStatuses } from '../domain/subjects/kinds.ts';
import { SUBJECT_KINDS } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { RawAmount } from '../domain/transfers/money.ts';
import type { InternalPart, PollOutcome, RecordOutcome, RepairKind, SignalMap } from '../signals.ts';
import { CHECK_STATES } from '../store/check-record.ts';
import { ENDPOINTS } from '../upstream/client/endpoint.ts';
import { FAILURE_CODES } from '../upstream/client/failure.ts';

/** The label value of every text outside its closed set. */
export const OTHER = 'other';

/** The label value of receivers outside this config. No receiver can have this name. */
export const REMOVED = '(removed)';

export const POLL_OUTCOMES = words<PollOutcome>({
  answered: true,
  verified: true,
  failed: true,
  ended: true,
  aborted: true,
});

export const RECORD_OUTCOMES = words<RecordOutcome>({
  history: true,
  first: true,
  unchanged: true,
  stale: true,
  changed: true,
  superseded: true,
});

export const STALE_REASONS = [
  ...words<StaleReason>({ older: true, unknown: true, backward: true, returned: true }),
  OTHER,
];

export const REPAIRS = words<RepairKind>({
  'poll-missing': true,
  'delivery-missing': true,
  'count-wrong': true,
});

export const INTERNAL_PARTS = words<InternalPart>({
  poll: true,
  dispatch: true,
  record: true,
  relay: true,
  delivery: true,
  reconcile: true,
  repair: true,
  check: true,
});

export const ATTEMPT_OUTCOMES = words<SignalMap['delivery.attempted'][0]['outcome']>({
  delivered: true,
  failed: true,
  rejected: true,
});

export const DELIVERY_OUTCOMES = words<SignalMap['delivery.ended'][0]['outcome']>({
  delivered: true,
  dead: true,
});

export const MAIL_OUTCOMES = words<SignalMap['books.mail'][0]['outcome']>({
  sent: true,
  failed: true,
  dead: true,
  skipped: true,
});

/** The end states of a check. */
export const PROOF_STATES = CHECK_STATES.filter((state) => state !== 'waiting');

export const RPC_OUTCOMES = words<CallOutcome>({
  ok: true,
  error: true,
  timeout: true,
  'rate-limited': true,
  'wrong-chain': true,
});

export const QUEUE_STATES = ['waiting', 'delayed', 'active'];

export const REQUEST_ENDPOINTS = [...ENDPOINTS, OTHER];

export const REQUEST_OUTCOMES = ['ok', ...FAILURE_CODES, OTHER];

export const EVENT_TYPE_WORDS = [...EVENT_TYPES, OTHER];

/** Every kind with its known statuses; a wallet has none and is only watched. */
export const SUBJECT_SERIES = SUBJECT_KINDS.flatMap((kind) =>
  [...new Set([...kindStatuses(kind), kind === 'wallet' ? 'watched' : 'unseen', 'unknown', OTHER])].map(
    (status) => ({ kind, status }),
  ),
);

export const SUBJECT_STATUSES = [...new Set(SUBJECT_SERIES.map(({ status }) => status))];

/** Returns a status as a label of its kind: in lower case, and `other` when it is not a known one. */
export function statusLabel(kind: string, status: string): string {
  const word = status.toLowerCase();
  return SUBJECT_SERIES.some((series) => series.kind === kind && series.status === word) ? word : OTHER;
}

/** The first few values other than `other`, which get their own series. */
class FirstWords {
  readonly #words: BoundedMap<string, true>;

  constructor(limits: CacheLimits) {
    this.#words = new BoundedMap({ ...limits, bytesOf: (word) => bytesOfTexts(word) });
  }

  /** Returns all added values. */
  add(word: string): readonly string[] {
    if (word !== OTHER && this.#words.fits(word, true)) this.#words.set(word, true);
    return [...this.#words.entries()].map(([word]) => word);
  }
}

/** The pairs of chains and the tokens that have their own series in a process's counts. */
export class CountedSeries {
  readonly routes = new FirstWords(CACHES.routeSeries);
  readonly tokens = new FirstWords(CACHES.tokenSeries);
  /** True when payments of transfers are checked on the chain, and so the upstream's lag is measured. */
  areChecked = false;
}

/** Lists all values of a union: the record makes the compiler find a missing one. */
function words<T extends string>(set: Record<T, true>): readonly string[] {
  return Object.keys(set);
}

/** The tokens of metrics. Symbols come only from `listed` ones (config and package), since anybody can name a token USDC. */
export type TokenDirectories = { directory: Directory; listed: Directory };

type TokenValue = { token: string; units: number };

/** Converts an amount to token units; null without amount or certain decimals. `token` is its symbol, or `other`. */
export function tokenValue(
  { chainId, token, amount }: RawAmount,
  { directory, listed }: TokenDirectories,
): TokenValue | null {
  if (chainId == null || token == null || !/^\d{1,78}$/.test(amount ?? '')) return null;
  const entry = directory.token(chainId, token);
  if (entry === null) return null;
  const units = Number(amount) / 10 ** entry.decimals;
  return { token: listed.token(chainId, token)?.symbol ?? OTHER, units };
}
