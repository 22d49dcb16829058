import type { CallOutcome } from '../chains/endpoint.ts';
import type { StaleReason } from '../domain/changes/decision.ts';
import { EVENT_TYPES } from '../domain/events/event-types.ts';
import { knownStatuses } from '../domain/subjects/kinds.ts';
import { SUBJECT_KINDS } from '../domain/subjects/subject.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { RawAmount } from '../domain/transfers/money.ts';
import type { PollOutcome, RecordOutcome, RepairKind, SignalMap } from '../signals.ts';
import { CHECK_STATES } from '../store/checks.ts';
import { ENDPOINTS } from '../upstream/client/endpoint.ts';
import { FAILURE_CODES } from '../upstream/client/failure.ts';

/** The label value of every word that its closed set does not hold. */
export const OTHER = 'other';

/** The label value of receivers that are not in this config. No receiver can be called so. */
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

export const ATTEMPT_OUTCOMES = words<SignalMap['delivery.attempted'][0]['outcome']>({
  delivered: true,
  failed: true,
  rejected: true,
});

export const DELIVERY_OUTCOMES = words<SignalMap['delivery.ended'][0]['outcome']>({
  delivered: true,
  dead: true,
});

/** How a check can end. */
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

/** Every kind with the statuses that can be foreseen for it; a wallet has none and is only watched. */
export const SUBJECT_SERIES = SUBJECT_KINDS.flatMap((kind) =>
  [...new Set([...knownStatuses(kind), kind === 'wallet' ? 'watched' : 'unseen', 'unknown', OTHER])].map(
    (status) => ({ kind, status }),
  ),
);

export const SUBJECT_STATUSES = [...new Set(SUBJECT_SERIES.map(({ status }) => status))];

/** The status of a kind as a label: in lower case, and `other` when it cannot be foreseen. */
export function statusLabel(kind: string, status: string): string {
  const word = status.toLowerCase();
  return SUBJECT_SERIES.some((series) => series.kind === kind && series.status === word) ? word : OTHER;
}

/** The number of pairs of chains get series of their own: who hands over a quote, or names a transfer, chooses them. */
export const MOST_ROUTES = 50;

/** The number of symbols of tokens get series of their own. */
export const MOST_TOKENS = 10;

/** The first few words that come but `other`: those which get a series of their own. */
class FirstWords {
  readonly #words = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a word in, where there is room. Returns all that were. */
  add(word: string): readonly string[] {
    if (word !== OTHER && this.#words.size < this.#most) this.#words.add(word);
    return [...this.#words];
  }
}

/** The pairs of chains and the tokens that have series of their own in what a process counts. */
export class Named {
  readonly routes = new FirstWords(MOST_ROUTES);
  readonly tokens = new FirstWords(MOST_TOKENS);
  /** True when payments of transfers are checked on the chain, and so the upstream's lag is measured. */
  areChecked = false;
}

/** All words of a union: the record makes the compiler find a forgotten one. */
function words<T extends string>(set: Record<T, true>): readonly string[] {
  return Object.keys(set);
}

/**
 * What metrics know of tokens: their decimals from the `directory`, their symbols from what is `listed` in the config and the
 * package. Anybody may call a token USDC, and the upstream may list it.
 */
export type KnownTokens = { directory: Directory; listed: Directory };

/** An amount of a token as metrics count it: in token units, by its symbol, or as `other`. */
type TokenValue = { token: string; units: number };

/** An amount in token units; null where it is none, or the decimals of the token are not certain. */
export function tokenValue(
  { chainId, token, amount }: RawAmount,
  { directory, listed }: KnownTokens,
): TokenValue | null {
  if (chainId == null || token == null || !/^\d{1,78}$/.test(amount ?? '')) return null;
  const known = directory.token(chainId, token);
  if (known === null) return null;
  const units = Number(amount) / 10 ** known.decimals;
  return { token: listed.token(chainId, token)?.symbol ?? OTHER, units };
}
