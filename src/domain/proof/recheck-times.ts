import type { Found, TxState } from './proof.ts';
import type { WaitingReason } from './verdict.ts';

/** Reason why a check waits: that of its verdict, or the transfer no longer states the payment. */
export type PostponeReason = WaitingReason | 'not-stated';

const SHORTEST_MS = 2_000;
const LONGEST_MS = 900_000;

/** Longest wait while an answer may change within seconds: a payment is judged within 30 s after it changed. */
const SOON_MS = 15_000;

/** Below this age, a payment that no endpoint explains is read at most `SOON_MS` apart; afterwards at eighths of its age. */
const YOUNG_MS = 900_000;

/** A payment that has lost its block may come back in another within this time: longer than a reorganisation takes. */
const REORGANISED_MS = 3_600_000;

/** Delay of a due observation behind the time at which the watch of the final head should find it final. */
const BEHIND_WATCH_MS = 60_000;

/** Age at which missing answers decide a verdict (see verdict.ts). */
const PATIENCE_MS = 3_600_000;

/**
 * State of the endpoint of one observation.
 * `failed`: it did not answer, or lacks a transaction that another has.
 * `absent`: it has no such transaction, and no other has it.
 * `head`: its final head. `until`: the block at which its observation becomes final.
 */
export type EndpointState = {
  name: string;
  outcome: 'answered' | 'absent' | 'failed';
  head: string | null;
  until: string | null;
};

/** Wait of a check: it ends after `inMs`, or early when an endpoint answers again or has reached a block. */
type RecheckPlan = { inMs: number; endpoints: EndpointState[] };

/**
 * Plans the next observation of a payment without a verdict.
 *
 *   what is missing                        | the next observation
 *   ---------------------------------------|-----------------------------------------------------------------
 *   an endpoint fails, or lacks the block  | when it answers others again (the store makes it due)
 *   a block is not final                   | when the endpoint's final head has reached its number
 *   it was in a block within the last hour | within 15 s: a reorganisation puts it into another one
 *   no endpoint has it; they contradict    | after its age, at most 15 s; past 15 min at eighths of its age
 *   other checks (claimed, funding)        | when they end (the store makes it due)
 *   the burn of a local intent             | after its age, at most 15 s; past 15 min at eighths of its age
 *   a statement                            | with the event that states it; else after its age
 *
 * No wait is longer than 15 min, nor goes past the hour after which one host, or a chain without it, is enough.
 */
export function planRecheck({
  because,
  txStates,
  ageMs,
  sinceSeenMs,
}: {
  because: PostponeReason;
  txStates: readonly TxState[];
  ageMs: number;
  /** Time since an endpoint had it in a block; null when none ever had. */
  sinceSeenMs: number | null;
}): RecheckPlan {
  const endpoints = txStates.map((txState) => endpointState(txState, txStates));
  const waitMs = Math.min(waitOf(), ageMs < PATIENCE_MS ? PATIENCE_MS - ageMs : LONGEST_MS);
  return { inMs: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, Math.ceil(waitMs))), endpoints };

  function waitOf(): number {
    switch (because) {
      case 'unreachable':
        return LONGEST_MS;
      case 'not-found':
        return sinceSeenMs !== null && sinceSeenMs < REORGANISED_MS ? SOON_MS : growingMs(ageMs);
      case 'not-final':
      case 'one-endpoint':
      case 'disagreement':
        return untilFinalMs(txStates, ageMs) ?? (isAwaited() ? LONGEST_MS : growingMs(ageMs));
      case 'burn':
        return growingMs(ageMs);
      case 'claimed':
      case 'funding':
      case 'not-stated':
        return ageMs;
      default:
        return because satisfies never;
    }
  }

  function isAwaited(): boolean {
    return endpoints.some(({ outcome, until }) => outcome === 'failed' || until !== null);
  }
}

/** State of the endpoint of each observation, in the order of the observations. */
export function endpointStates(txStates: readonly TxState[]): EndpointState[] {
  return txStates.map((txState) => endpointState(txState, txStates));
}

function endpointState(txState: TxState, all: readonly TxState[]): EndpointState {
  const name = txState.endpoint;
  switch (txState.outcome) {
    case 'failed':
      return { name, outcome: 'failed', head: null, until: null };
    case 'found': {
      const until = txState.isFinal ? null : txState.block.number;
      return { name, outcome: 'answered', head: txState.head.number, until };
    }
    case 'absent': {
      const head = txState.head?.number ?? null;
      const found = all.filter((other) => other.outcome === 'found');
      if (found.length === 0) return { name, outcome: 'absent', head, until: null };
      // An endpoint whose head is behind does not have the block yet; at or past it, it should have the block.
      const number = lowest(found);
      if (head !== null && BigInt(head) < BigInt(number)) {
        return { name, outcome: 'answered', head, until: number };
      }
      return { name, outcome: 'failed', head, until: null };
    }
    default:
      return txState satisfies never;
  }
}

function lowest(found: readonly Found[]): string {
  const numbers = found.map(({ block }) => block.number);
  return numbers.reduce((least, number) => (BigInt(number) < BigInt(least) ? number : least));
}

function growingMs(ageMs: number): number {
  return ageMs < YOUNG_MS ? Math.min(ageMs, SOON_MS) : ageMs / 8;
}

/**
 * Ms until every found block is final, at a second per second of the chain's clock; null without an open block. A far
 * or late block is found by the watch of the final head: on some chains finality comes in leaps.
 */
function untilFinalMs(txStates: readonly TxState[], ageMs: number): number | null {
  const waits = txStates
    .filter((txState) => txState.outcome === 'found')
    .flatMap(({ isFinal, block, head }) => (isFinal ? [] : [(block.timestamp - head.timestamp) * 1_000]));
  if (waits.length === 0) return null;
  const finalMs = Math.max(ageMs / 8, ...waits);
  return finalMs <= SOON_MS ? finalMs : finalMs + BEHIND_WATCH_MS;
}
