import { z } from 'zod';
import type { Event } from '../events/event.ts';
import { TRANSFER, type TransferFacts } from '../events/event-schema.ts';
import { type Statement, statementsOf } from '../proof/statement.ts';
import { asSubjectId } from '../subjects/subject.ts';

/** Place of a transfer's money. `open`: neither paid out nor refunded; also the phase of an unknown status. */
export const PHASES = ['open', 'delivered', 'refunded'] as const;

export type Phase = (typeof PHASES)[number];

/** Proof of a payment, as an event reported it. */
export const PROOF_STATE = z.object({
  outcome: z.enum(['verified', 'disputed', 'unproven']),
  payment: z.string().nullable(),
  /** The checked transaction; null when the event has none. */
  txHash: z.string().nullable(),
  /** The checked statement as text (`statedText`); null when the event has none. */
  stated: z.string().nullable(),
  /** For a refund: base units sent by then; absent when the event's record states no such payment. */
  sent: z.string().nullable().exactOptional(),
  reason: z.string().nullable(),
  isSingleSource: z.boolean(),
});

export type ProofState = z.infer<typeof PROOF_STATE>;

const REPORTED = TRANSFER.pick({
  source: true,
  destination: true,
  refund: true,
  toSend: true,
  sent: true,
  promised: true,
  delivered: true,
  fees: true,
  quote: true,
  funder: true,
  recipient: true,
});

/** State of a transfer in the books after an event: it is stored, and its postings follow from it. */
export const BOOK_STATE = z.object({
  phase: z.enum(PHASES),
  status: z.string(),
  transfer: REPORTED,
  fundedAtMs: z.number().nullable(),
  endedAtMs: z.number().nullable(),
  /** Booking time of the upstream's last change, ms: its next is booked no earlier. Null before the first is booked. */
  reportedMs: z.number().nullable(),
  isOverdue: z.boolean(),
  isGone: z.boolean(),
  /** True for a deposit address whose money is counted with the intent that it names. */
  isCountedElsewhere: z.boolean(),
  proofs: z.array(PROOF_STATE),
  wallets: z.array(z.string()),
  subscriptions: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
});

export type BookState = z.infer<typeof BOOK_STATE>;

/** Owners of a transfer, as far as known when it is observed. */
export type Subscribers = Pick<BookState, 'wallets' | 'subscriptions' | 'metadata'>;

/** An observation of a transfer: its event, the facts of it, and its subscribers. */
export type Observation = { event: Event; facts: TransferFacts | null; subscribers: Subscribers };

/** True for the kinds of subject that are transfers. A quote, job or vault names a transfer and is not counted beside it. */
export function isTransfer({ data }: Event): boolean {
  return data.subject.kind === 'intent' || data.subject.kind === 'deposit-address';
}

const DELIVERED: ReadonlySet<string> = new Set(['filled', 'settled']);

/** Phase of a status; null for a status without one. */
export function phaseOf(status: string | null): Phase | null {
  const word = status?.toLowerCase() ?? '';
  if (word === '' || word === 'unknown') return null;
  if (DELIVERED.has(word)) return 'delivered';
  return word === 'refunded' ? 'refunded' : 'open';
}

const PROOF = z.looseObject({
  payment: z.string().nullable().catch(null),
  chainId: z.string().nullable().catch(null),
  txHash: z.string().nullable().catch(null),
  token: z.string().nullable().catch(null),
  stated: z.string().nullable().catch(null),
  reason: z.string().nullable().catch(null),
  singleSource: z.boolean().catch(false),
});

/** State after an observation. A fact that one answer omits and another showed stays known. */
export function nextState(before: BookState | null, { event, facts, subscribers }: Observation): BookState {
  const { type, data } = event;
  const status = data.status ?? before?.status ?? '';
  const isGone = status.toLowerCase() === 'unknown';
  const phase = phaseOf(status) ?? before?.phase ?? 'open';
  const reported = REPORTED.safeParse(facts ?? {}).data ?? {};
  const transfer = { ...before?.transfer, ...reported };
  if (reported.sent !== undefined) delete transfer.toSend;
  if (phase !== 'delivered') delete transfer.delivered;
  if (phase !== 'refunded') delete transfer.refund;
  const seenMs = Date.parse(event.timestamp);
  const atMs = believableMs(upstreamMs(event), seenMs);
  return {
    phase,
    status: isGone ? (before?.status ?? status) : status,
    transfer,
    fundedAtMs: before?.fundedAtMs ?? believableMs(startOf(event), seenMs),
    endedAtMs: phase === 'open' ? null : phase === before?.phase ? before.endedAtMs : atMs,
    reportedMs: before?.reportedMs ?? null,
    isOverdue: phase === 'open' && (type.endsWith('.overdue') || (before?.isOverdue ?? false)),
    isGone,
    isCountedElsewhere: before?.isCountedElsewhere === true || namesIntent(event),
    proofs: nextProofs(before?.proofs ?? [], event),
    wallets: union(before?.wallets ?? [], subscribers.wallets),
    subscriptions: union(before?.subscriptions ?? [], subscribers.subscriptions),
    metadata: { ...before?.metadata, ...subscribers.metadata },
  };
}

/** A deposit address shows the movements of the intent that it names as its own. */
function namesIntent({ data }: Event): boolean {
  const { intentHashes } = data.record;
  return data.subject.kind === 'deposit-address' && Array.isArray(intentHashes) && intentHashes.length > 0;
}

/** Newest proof of each payment; none of a payment for which the record now states something else. */
function nextProofs(before: readonly ProofState[], { type, data }: Event): ProofState[] {
  const outcome = PROOF_STATE.shape.outcome.safeParse(type.slice(type.indexOf('.') + 1)).data;
  if (outcome === undefined) return withoutRestated(before, data);
  const reported = 'proof' in data ? PROOF.safeParse(data.proof).data : undefined;
  const payment = reported?.payment ?? null;
  const statement = statementsIn(data).find((one) => one.payment === payment);
  const proof = {
    outcome,
    payment,
    txHash: reported?.txHash ?? null,
    stated: reported === undefined ? null : statedText({ ...reported, amount: reported.stated }),
    ...(statement === undefined ? {} : { sent: statement.sent }),
    reason: reported?.reason ?? null,
    isSingleSource: reported?.singleSource ?? false,
  };
  return [...before.filter((one) => one.payment !== payment), proof];
}

function withoutRestated(proofs: readonly ProofState[], data: Event['data']): ProofState[] {
  const reported = proofs.some(({ stated }) => stated !== null);
  const statements = reported ? statementsIn(data) : [];
  return proofs.filter(({ payment, stated, sent }) => {
    const now = statements.find((one) => one.payment === payment);
    if (now === undefined || stated === null) return true;
    return statedText(now) === stated && (sent === undefined || sent === now.sent);
  });
}

function statementsIn({ subject, record }: Event['data']): Statement[] {
  return statementsOf({ subject: asSubjectId(subject.id), record });
}

/** Text of a payment's statement: two state the same exactly when their texts are equal. */
function statedText(one: {
  chainId: string | null;
  txHash: string | null;
  token: string | null;
  amount: string | null;
}): string {
  return JSON.stringify([one.chainId, one.txHash, one.token, one.amount]);
}

/** Beyond this lead of the upstream's clock, its times are not believed. */
const MOST_AHEAD_MS = 300_000;

/** The upstream's time; the observation time instead when it is too far ahead of that, or before 1970. */
export function believableMs(statedMs: number, seenMs: number): number {
  return statedMs > seenMs + MOST_AHEAD_MS || statedMs < 0 ? seenMs : statedMs;
}

/** Upstream's time of the change, ms; the observation time without one. */
function upstreamMs({ timestamp, data }: Event): number {
  return data.upstreamUpdatedAt === null ? Date.parse(timestamp) : data.upstreamUpdatedAt * 1_000;
}

function startOf(event: Event): number {
  const { fundedAt } = event.data;
  return fundedAt === undefined ? upstreamMs(event) : fundedAt * 1_000;
}

const CLOCK_WORDS = /\.(overdue|expiring|short|verified|disputed|unproven|unknown)$/;

/** Time at which an event's change happened, ms: on our clock for events of our clock or a check, else on the upstream's. */
export function happenedMs(event: Event): number {
  return isOfOurClock(event) ? Date.parse(event.timestamp) : upstreamMs(event);
}

/** True for an event of our own clock or of a check, which does not date the upstream's next change. */
export function isOfOurClock({ type }: Event): boolean {
  return CLOCK_WORDS.test(type);
}

function union(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])];
}
