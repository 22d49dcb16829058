import { z } from 'zod';
import { lieSchema } from '../../sandbox/chains/lies.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import type { Arrival } from './reckoning.ts';

/** Payments as the sandbox's control port reports them. */
export const paymentsSchema = z.array(
  z.object({
    at: z.number(),
    intentHash: z.string(),
    payment: z.enum(['source', 'destination', 'swap', 'refund']),
    chainId: z.number(),
    txHash: z.string(),
    token: z.string(),
    amount: z.string(),
    from: z.string(),
    recipient: z.string(),
    lie: lieSchema.nullable(),
  }),
);

/** A payment as the upstream stated it, and the payment that its chain shows instead. */
export type Stated = z.infer<typeof paymentsSchema>[number];

const REPORTED_PROOF = z.object({
  payment: z.string(),
  reason: z.string().nullable().default(null),
  outcome: z.enum(['verified', 'disputed', 'unproven']),
});

/** An amount at a place: a chain and a token. */
export type Money = { place: string; amount: bigint };

/** An event of the log: the time of the change, and the time of its append (ms). */
export type ReportedEvent = {
  id: string;
  type: string;
  status: string;
  happenedMs: number;
  appendedMs: number;
  showsDestination: boolean;
  proof: z.infer<typeof REPORTED_PROOF> | null;
};

/** A transfer as made: every status with its second (Unix ms), its payments, and its reported events. */
export type TrueTransfer = {
  subject: string;
  statuses: { status: string; atMs: number }[];
  /** Every `updatedAt` of its record (Unix ms): details change it too. */
  statedMs: ReadonlySet<number>;
  source: Money | null;
  destination: Money | null;
  stated: readonly Stated[];
  reported: readonly ReportedEvent[];
};

/** The times when a receiver first and last accepted an event, ms. */
export type Accepted = { firstMs: number; lastMs: number };

/** The reference for the books. `receivers`: accepted events by id; `checkedChains` have endpoints. */
export type BooksTruth = {
  transfers: readonly TrueTransfer[];
  receivers: ReadonlyMap<string, ReadonlyMap<string, Accepted>>;
  checkedChains: ReadonlySet<number>;
  /** The rightful recipients, in lower case. */
  wallets: ReadonlySet<string>;
  /** The receiver that accepts nothing any more, and the times when a daemon or Redis was killed (ms). */
  dead: string;
  kills: readonly { fromMs: number; toMs: number }[];
  overdueAfterMs: number;
  closeAfterMs: number;
};

export const ENDED: ReadonlySet<string> = new Set(['filled', 'settled', 'refunded']);

type Showing = { at: number; records: readonly { id: string; status: string; updatedAt: number | null }[] };

/**
 * The transfers that the sandbox made, from its logs of transitions, payments and responses, with their events. A transfer that
 * ended before `polledMs` is history and no money under way, unless a response showed it before its end, or an event reported it
 * later.
 */
export function transfersOf(
  transitions: readonly { subject: string; to: string; at: number }[],
  {
    payments,
    showings,
    log,
    polledMs,
  }: {
    payments: readonly Stated[];
    showings: readonly Showing[];
    log: readonly LogEntry[];
    polledMs: number;
  },
): TrueTransfer[] {
  const paid = new Map<string, Money>();
  for (const { intentHash, payment, chainId, token, amount } of payments) {
    const key = `intent:${intentHash} ${payment}`.toLowerCase();
    paid.set(key, { place: placeOf(String(chainId), token), amount: BigInt(amount) });
  }
  const stated = Map.groupBy(payments, ({ intentHash }) => `intent:${intentHash}`.toLowerCase());
  const statedTimes = new Map<string, Set<number>>();
  const shownOpen = new Set<string>();
  for (const { id, status, updatedAt } of showings.flatMap(({ records }) => records)) {
    const subject = id.toLowerCase();
    const times = statedTimes.get(subject) ?? new Set();
    statedTimes.set(subject, updatedAt === null ? times : times.add(updatedAt * 1_000));
    if (!ENDED.has(status)) shownOpen.add(subject);
  }
  const reported = reportedOf(log);
  const intents = transitions.filter(({ subject }) => subject.startsWith('intent:'));
  return [...Map.groupBy(intents, ({ subject }) => subject.toLowerCase())].flatMap(([subject, made]) => {
    const isHistory = made.some(({ to, at }) => ENDED.has(to) && at < polledMs) && !shownOpen.has(subject);
    if (isHistory && !reported.has(subject)) return [];
    return {
      subject,
      statuses: made.map(({ to, at }) => ({ status: to, atMs: Math.floor(at / 1_000) * 1_000 })),
      statedMs: statedTimes.get(subject) ?? new Set(),
      source: paid.get(`${subject} source`) ?? null,
      destination: paid.get(`${subject} destination`) ?? null,
      stated: stated.get(subject) ?? [],
      reported: reported.get(subject) ?? [],
    };
  });
}

/** Statuses from our own clock happen when they are notified. */
function reportedOf(log: readonly LogEntry[]): Map<string, ReportedEvent[]> {
  const reported = new Map<string, ReportedEvent[]>();
  for (const entry of log) {
    if (entry.kind !== 'event' || entry.event.data.subject.kind !== 'intent') continue;
    const { id, type, timestamp, data } = entry.event;
    const { upstreamUpdatedAt: updatedAt, record } = data;
    const proof =
      REPORTED_PROOF.safeParse({ ...data.proof, outcome: type.slice('intent.'.length) }).data ?? null;
    const isOfOurClock = type.endsWith('.overdue') || proof !== null || updatedAt === null;
    const subject = data.subject.id.toLowerCase();
    reported.set(subject, [
      ...(reported.get(subject) ?? []),
      {
        id,
        type,
        status: data.status ?? '',
        happenedMs: isOfOurClock ? Date.parse(timestamp) : updatedAt * 1_000,
        appendedMs: Number(entry.id.split('-')[0]),
        showsDestination: typeof record.destinationTx === 'object' && record.destinationTx !== null,
        proof,
      },
    ]);
  }
  return reported;
}

/** Name of a place in sums: the chain, and the token in one case. */
export function placeOf(chainId: string, token: string): string {
  return `${chainId} ${token.toLowerCase()}`;
}

/** The events that a receiver accepted, from its answers in order. */
export function acceptedOf(arrivals: readonly Arrival[]): Map<string, Accepted> {
  const accepted = new Map<string, Accepted>();
  for (const { id, atMs } of arrivals) {
    accepted.set(id, { firstMs: accepted.get(id)?.firstMs ?? atMs, lastMs: atMs });
  }
  return accepted;
}
