import { z } from 'zod';
import { deliveryId } from '../domain/events/delivery-id.ts';
import type { Event } from '../domain/events/event.ts';
import { TRANSFER } from '../domain/events/event-schema.ts';
import { PROOF } from '../domain/proof/proof.ts';
import { parseClaimRoot } from '../domain/subjects/claim.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { transferFacts } from '../domain/transfers/transfer-facts.ts';
import { compareEntries, eventOf } from '../store/log-entry.ts';
import type { Known } from '../store/subjects.ts';
import { CHECK_DETAILS, checkDetails } from './checks.ts';
import { DELIVERY, type Delivery, deliveryOf } from './deliveries.ts';
import { UnknownError } from './errors.ts';
import type { OperationParts } from './parts.ts';
import { SUBJECT, summaryOf } from './subjects.ts';

const MOMENT = z.object({
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
  proof: PROOF.exactOptional().describe('What the chain said, where the event tells that.'),
  deliveries: z.array(DELIVERY).describe('To every receiver that the event was for.'),
});

/** A subject with all that happened to it. */
export const SUBJECT_DETAILS = SUBJECT.omit({})
  .extend({
    record: z.record(z.string(), z.json()).nullable().describe('What the upstream said last, whole.'),
    transfer: TRANSFER.nullable().describe('What is known of the transfer, as its last event said it.'),
    checks: z
      .array(CHECK_DETAILS)
      .describe('What was stated about its payments on chains with RPC endpoints, and what came of it.'),
    related: z
      .array(z.string())
      .describe('The quotes and jobs that led to it, whose events are in the timeline.'),
    timeline: z.array(MOMENT).describe('The events, the oldest first, with what became of their deliveries.'),
  })
  .meta({ id: 'SubjectDetails' });

export type SubjectDetails = z.infer<typeof SUBJECT_DETAILS>;

/** How many events a timeline shows, the newest ones, and in how many subjects beside its own it looks for some. */
const MOST_EVENTS = 100;
const MOST_RELATED = 10;

/** A subject with its timeline. Throws an UnknownError for one that is not watched. */
export async function readSubject(id: string, parts: OperationParts): Promise<SubjectDetails> {
  const { subject, known } = await knownSubject(id, parts);
  const { registry } = parts.stores;
  const subscriptions = await registry.subscriptions(known.claims.map(({ root }) => root));
  const related = relatedTo(subject, known);
  const events = await eventsOf([subject, ...related], parts);
  const own = events.findLast(({ data }) => data.subject.id === subject);
  const receivers = (await registry.receivers()).map(({ name }) => name).sort();
  const checks = await parts.stores.checks.of(subject);
  const timeline = await Promise.all(events.map((event) => momentOf(event, receivers, parts)));
  return {
    ...summaryOf(subject, known, { subscriptions, changedAtMs: null, directory: parts.directory }),
    record: known.snapshot?.record ?? null,
    transfer: own === undefined ? null : transferFacts(own, parts.directory),
    checks: checks.map(checkDetails),
    related,
    timeline,
  };
}

/** What is known of a subject. Throws an UnknownError for one that is not watched. */
export async function knownSubject(
  id: string,
  { stores: { subjects } }: OperationParts,
): Promise<{ subject: SubjectId; known: Known }> {
  if (parseSubjectId(id) !== null) {
    const subject = asSubjectId(id);
    const [known] = await subjects.peek([subject]);
    const isKnown =
      known !== undefined && (known.snapshot !== null || known.seenAtMs !== null || known.claims.length > 0);
    if (isKnown) return { subject, known };
  }
  throw new UnknownError(
    `found no subject ${JSON.stringify(id.slice(0, 120))}, expected the id of one that is watched, such as intent:0x…`,
  );
}

/** The subjects that led to a transfer: the quote that was handed over, and whose claims it has taken over. */
function relatedTo(subject: SubjectId, { claims, promised }: Known): SubjectId[] {
  const named = claims.map(({ root }) => parseClaimRoot(root).subject);
  if (promised !== null)
    named.push(promised.quote.includes(':') ? promised.quote : `quote:${promised.quote}`);
  const ids = named.flatMap((text) => (parseSubjectId(text) === null ? [] : [asSubjectId(text)]));
  const related = ids.filter((id) => id !== subject && ['quote', 'gasless'].includes(subjectKind(id)));
  return [...new Set(related)].slice(0, MOST_RELATED);
}

/** The events of some subjects that are still in the log, in its order: of very many, the newest. */
async function eventsOf(subjects: readonly SubjectId[], { stores }: OperationParts): Promise<Event[]> {
  const places = (await Promise.all(subjects.map((subject) => stores.subjects.entries(subject)))).flat();
  const newest = places.sort(compareEntries).slice(-MOST_EVENTS);
  return (await stores.events.atAll(newest)).flatMap((entry) => eventOf(entry) ?? []);
}

async function momentOf(
  event: Event,
  receivers: readonly string[],
  parts: OperationParts,
): Promise<z.infer<typeof MOMENT>> {
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
    deliveries: await deliveriesOf(event.id, receivers, parts),
  };
}

/** Every delivery of an event to some receivers, replays included. */
async function deliveriesOf(
  eventId: string,
  receivers: readonly string[],
  { stores }: OperationParts,
): Promise<Delivery[]> {
  const replayed = await stores.replays.of(eventId);
  const found = await Promise.all(
    receivers.map(async (receiver) => {
      const own = replayed.filter((one) => one.receiver === receiver);
      const ids = [eventId, ...own.map(({ replay }) => deliveryId(eventId, replay))];
      const facts = await Promise.all(
        ids.map(async (id) => ({ id, fact: await stores.deliveries.fact(receiver, id) })),
      );
      return facts.flatMap(({ id, fact }) => (fact === null ? [] : [deliveryOf(receiver, id, fact)]));
    }),
  );
  return found.flat();
}
