import { z } from 'zod';
import type { Event } from '../domain/events/event.ts';
import { TRANSFER } from '../domain/events/event-schema.ts';
import { PAYMENTS, PROOF } from '../domain/proof/proof.ts';
import { chainName, type Directory } from '../domain/transfers/chains.ts';
import { money } from '../domain/transfers/money.ts';
import { transferFacts } from '../domain/transfers/transfer-facts.ts';
import { CHECK_STATES, type Check } from '../store/check-record.ts';
import { eventOf } from '../store/log-entry.ts';
import { ENTRY } from './events.ts';
import { type OperationContext, relatedTo, watchedSubject } from './operation.ts';
import { AMOUNT, SUBJECT, summaryOf } from './subjects.ts';
import { isoTime, isoTimeOrNull } from './time.ts';

const CHECK_DETAILS = z
  .object({
    payment: z.enum(PAYMENTS),
    chainId: z.string(),
    chain: z.string().describe('What the chain is called, or its id.'),
    txHash: z.string(),
    token: z.string().nullable(),
    stated: z.string().nullable().describe('Amount that the upstream stated, in base units.'),
    state: z.enum(CHECK_STATES),
    because: z
      .string()
      .nullable()
      .describe(
        'Why it waits (`not-found`, `not-final`, `disagreement`, `unreachable`, `one-endpoint`, `claimed`, `funding`, `not-stated`), why it was not checked, or the reason of a dispute.',
      ),
    statedAt: z.iso.datetime(),
    polls: z.int().describe('How often its endpoints were polled while it waited.'),
    polledAt: z.iso.datetime().nullable(),
    endedAt: z.iso.datetime().nullable(),
    responses: z
      .array(z.object({ endpoint: z.string(), outcome: z.string(), reason: z.string().exactOptional() }))
      .describe('The last response of each endpoint.'),
    moved: z
      .array(AMOUNT.extend({ to: z.string() }))
      .describe(
        'What the chain shows: the move that is the payment; where disputed, the moves of the token.',
      ),
    proof: PROOF.nullable(),
  })
  .meta({ id: 'Check' });

function checkDetails(check: Check, directory: Directory): z.infer<typeof CHECK_DETAILS> {
  const { statement, state, because, statedAt, polls, polledAt, endedAt, responses, proof } = check;
  const { payment, chainId, txHash, token, amount } = statement;
  return {
    payment,
    chainId,
    chain: chainName(chainId, directory),
    txHash,
    token,
    stated: amount,
    state,
    because: because === '' ? null : because,
    statedAt: isoTime(statedAt),
    polls,
    polledAt: isoTimeOrNull(polledAt),
    endedAt: isoTimeOrNull(endedAt),
    responses: responses.map(({ reason, ...txState }) =>
      reason === undefined ? txState : { ...txState, reason },
    ),
    moved: (proof?.moved ?? []).map((move) => ({
      ...AMOUNT.parse(money({ ...move, chainId }, directory)),
      to: move.to,
    })),
    proof,
  };
}

const TIMELINE_ENTRY = z.object({
  at: z.iso.datetime().describe('When the change was seen.'),
  subject: z
    .string()
    .describe('Of which subject: of a transfer, also of the quote or gasless job that led to it.'),
  event: z.string().describe('The id of the event.'),
  type: z.string(),
  sequence: z.int(),
  status: z.string().nullable(),
  previousStatus: z.string().nullable(),
  changes: z.array(z.string()).describe('The members of the record that changed.'),
  skipped: z.boolean().exactOptional(),
  regression: z.boolean().exactOptional(),
  upstreamUpdatedAt: z.int().nullable(),
  detectionDelaySeconds: z.number().nullable(),
  proof: PROOF.exactOptional().describe('The result of the check on the chain, where the event has one.'),
});

/** A subject with its current state. */
export const SUBJECT_STATE = SUBJECT.omit({}).extend({
  record: z.record(z.string(), z.json()).nullable().describe('The last record of the upstream, whole.'),
  transfer: TRANSFER.nullable().describe('What is known of the transfer, as its last event reported it.'),
  checks: z
    .array(CHECK_DETAILS)
    .describe('What was stated about its payments on chains with RPC endpoints, and what came of it.'),
  related: z
    .array(z.string())
    .describe('The quotes and jobs that led to it, whose events are in the timeline.'),
  timeline: z
    .array(TIMELINE_ENTRY)
    .describe(
      'A page of its events, the newest first. `GET /subjects/{subject}/deliveries` has their deliveries.',
    ),
});

type SubjectState = z.infer<typeof SUBJECT_STATE>;

/** An event of a timeline. */
export type TimelineEntry = SubjectState['timeline'][number];

/** The place in a timeline before an event: a page goes on with the next older one. */
export const TIMELINE_PLACE = z.strictObject({ before: ENTRY });

export type TimelinePlace = z.infer<typeof TIMELINE_PLACE>;

/**
 * Reads a subject with a page of its timeline. A page ends with 2 MiB of events: it may be short, and there are still more. The
 * number of reads depends only on `limit`, and on the number of subjects that led to it, at most ten. Omits unreadable events.
 * Throws an UnknownError for a subject that is not watched.
 */
export async function readSubject(
  { id, after, limit }: { id: string; after: TimelinePlace | null; limit: number },
  deps: OperationContext,
): Promise<{ subject: SubjectState; next: TimelinePlace | null }> {
  const { subject, entry } = await watchedSubject(id, deps);
  const { registry, subjects, checks, events } = deps.stores;
  const related = relatedTo(subject, entry);
  const range = { before: after?.before ?? null, from: null };
  const [subscriptions, checked, places, own] = await Promise.all([
    registry.subscriptions(entry.claims.map(({ key }) => key)),
    checks.of(subject),
    subjects.entries.list([subject, ...related], { ...range, count: limit + 1 }),
    subjects.entries.list([subject], { before: null, from: null, count: 1 }),
  ]);
  const [newest = null] = await events.readAllAt(own);
  const last = eventOf(newest);
  const changedAtMs = last === null ? null : Date.parse(last.timestamp);
  const entries = await events.readSomeAt(places.slice(0, limit));
  const shown = places.slice(0, entries.length);
  return {
    subject: {
      ...summaryOf(subject, entry, { subscriptions, changedAtMs, directory: deps.directory }),
      record: entry.snapshot?.record ?? null,
      transfer: last === null ? null : transferFacts(last, deps.directory),
      checks: checked.map((check) => checkDetails(check, deps.directory)),
      related,
      timeline: entries.flatMap((entry) => {
        const event = eventOf(entry);
        return event === null ? [] : [entryOf(event)];
      }),
    },
    next: nextOf(shown, places.length > shown.length),
  };
}

function nextOf(shown: readonly string[], isMore: boolean): TimelinePlace | null {
  const last = shown.at(-1);
  return isMore && last !== undefined ? { before: last } : null;
}

function entryOf(event: Event): z.infer<typeof TIMELINE_ENTRY> {
  const { subject, sequence, status, previousStatus, changes, skipped, regression } = event.data;
  const { upstreamUpdatedAt, detectionDelaySeconds, proof } = event.data;
  return {
    at: event.timestamp,
    subject: subject.id,
    event: event.id,
    type: event.type,
    sequence,
    status,
    previousStatus,
    changes,
    ...(skipped === undefined ? {} : { skipped }),
    ...(regression === undefined ? {} : { regression }),
    upstreamUpdatedAt,
    detectionDelaySeconds,
    ...(proof === undefined ? {} : { proof }),
  };
}
