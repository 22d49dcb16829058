import { z } from 'zod';
import type { JsonObject } from '../domain/json.ts';
import { PROOF_OUTCOMES, proofOf } from '../domain/proof/proof-flags.ts';
import { ENDPOINT_GROUPS, endpointGroupKinds } from '../domain/subjects/kinds.ts';
import { stageOf } from '../domain/subjects/record.ts';
import {
  asSubjectId,
  eventKind,
  foldHex,
  parseSubjectId,
  type SubjectId,
} from '../domain/subjects/subject.ts';
import { isTrackedKey, parseClaimKey, walletsOf } from '../domain/subjects/subscription.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { money } from '../domain/transfers/money.ts';
import { ANY_ROUTE, type Leg, readTransfer, routeName } from '../domain/transfers/transfer.ts';
import type { StoredSubscription } from '../store/definitions.ts';
import type { ChangedSubject, SubjectEntry } from '../store/subjects.ts';
import { type OperationContext, UnknownError } from './operation.ts';
import { isoTime, isoTimeOrNull } from './time.ts';

/** An amount of a token. */
export const AMOUNT = z.object({
  amount: z.string().describe('In base units.'),
  units: z.string().nullable().describe('In whole tokens; null where the token is not known.'),
  symbol: z.string().nullable(),
});

/** A summary of a subject. */
export const SUBJECT = z
  .object({
    subject: z.string().describe('Its id, with its prefix.'),
    kind: z.string(),
    status: z.string().nullable().describe('The last that the upstream reported; null before that.'),
    underWay: z.boolean().describe('Whether it is polled: it has not ended, or is watched for ever.'),
    overdue: z.boolean().describe('Whether it was reported as overdue.'),
    proof: z
      .enum(PROOF_OUTCOMES)
      .nullable()
      .describe(
        'The reported result of checking it on the chain, the worst of its payments; null without one.',
      ),
    pendingSince: z.iso
      .datetime()
      .nullable()
      .describe('Since when it waits, or waited last, on the upstream’s clock.'),
    changedAt: z.iso
      .datetime()
      .nullable()
      .describe('When its last event was made; of a subject without one, when its status was first seen.'),
    polledAt: z.iso.datetime().nullable().describe('When it was last polled with success.'),
    events: z.int().describe('How many events were made of it: its last `sequence`.'),
    upstreamUpdatedAt: z.int().nullable().describe("The record's `updatedAt` in Unix seconds."),
    wallets: z.array(z.string()).describe('The watched wallets whose pages showed it.'),
    corridor: z
      .string()
      .nullable()
      .describe('Between which chains, such as `8453:10`, as in `GET /corridors`; null where none is known.'),
    source: z.string().nullable().describe('What the chain is called on which it is funded, or its id.'),
    destination: z.string().nullable().describe('Likewise, where it is delivered.'),
    amount: AMOUNT.nullable().describe('What is sent, or delivered where only that is known.'),
    subscriptions: z.array(z.string()).describe('The subscriptions that lead to it.'),
    metadata: z.record(z.string(), z.string()).describe('Theirs, merged in their order.'),
  })
  .meta({ id: 'Subject' });

export type Subject = z.infer<typeof SUBJECT>;

/** Filter of subjects: all given members must match; of several values in one list, any. Times in ms. */
export type SubjectFilter = {
  kinds: readonly string[];
  statuses: readonly string[];
  wallet?: string;
  subscription?: string;
  metadata: readonly (readonly [key: string, value: string])[];
  mentions?: string;
  underWay?: boolean;
  overdue?: boolean;
  proofs?: readonly string[];
  atLeastMs?: number;
};

/** Progress of a list: first subjects with a snapshot, then tracked ones without, one kind after another. */
export const SUBJECT_PLACE = z.union([
  z.object({ atMs: z.number(), subject: z.string() }),
  z.object({
    list: z.int().min(0).max(100),
    scan: z
      .string()
      .regex(/^\d{1,20}$/)
      .refine((text) => BigInt(text) < 2n ** 64n),
    /** The last listed id of a scan's reply, in the order of the ids. */
    after: z.string().exactOptional(),
  }),
]);

export type SubjectPlace = z.infer<typeof SUBJECT_PLACE>;

type TrackedPlace = Exclude<SubjectPlace, ChangedSubject>;

export type SubjectPage = { subjects: Subject[]; next: SubjectPlace | null };

const MOST_READ = 500;

const TRACKED = ENDPOINT_GROUPS.flatMap((endpointGroup) =>
  endpointGroupKinds(endpointGroup).map((kind) => ({ endpointGroup, kind })),
);

/**
 * Lists subjects, last changed first, then those without snapshot, and wallets. A page may be short or empty before the end.
 * Throws an UnknownError for a subscription that never was.
 */
export async function listSubjects(
  { filter, from, limit }: { filter: SubjectFilter; from: SubjectPlace | null; limit: number },
  deps: OperationContext,
): Promise<SubjectPage> {
  if (filter.subscription !== undefined) await checkSubscription(filter.subscription, deps);
  if (from !== null && 'list' in from) return listTracked({ filter, from, limit }, deps);
  const found: Subject[] = [];
  let last: ChangedSubject | null = from;
  for (let checked = 0; checked < MOST_READ; ) {
    const some = await deps.stores.subjects.changed(last, Math.min(limit, MOST_READ));
    const summaries = await summariesOf(some, filter, deps);
    for (const [index, one] of some.entries()) {
      last = one;
      const summary = summaries[index] ?? null;
      if (summary !== null) found.push(summary);
      if (found.length === limit) return { subjects: found, next: last };
    }
    if (some.length < limit) return { subjects: found, next: { list: 0, scan: '0' } };
    checked += some.length;
  }
  return { subjects: found, next: last };
}

const MOST_NAMED = 20;

async function checkSubscription(name: string, { redis, stores }: OperationContext): Promise<void> {
  const { subscriptions } = stores.registry.keys;
  if ((await redis.hexists(subscriptions, name)) === 1) return;
  const names = await redis.hkeys(subscriptions);
  const listed =
    names.length === 0 ? 'one of the config' : `one of ${names.sort().slice(0, MOST_NAMED).join(', ')}`;
  const more = names.length > MOST_NAMED ? ', …' : '';
  throw new UnknownError(`found the subscription ${JSON.stringify(name)}, expected ${listed}${more}`);
}

async function listTracked(
  { filter, from, limit }: { filter: SubjectFilter; from: TrackedPlace; limit: number },
  deps: OperationContext,
): Promise<SubjectPage> {
  const found: Subject[] = [];
  let { list, scan, after = '' } = from;
  for (let checked = 0; checked < MOST_READ; ) {
    const tracked = TRACKED[list];
    if (tracked === undefined) return { subjects: found, next: null };
    const wanted = filter.kinds.length === 0 || filter.kinds.includes(tracked.kind);
    const { subjects, cursor } = wanted
      ? await deps.stores.plan.tracked(tracked.endpointGroup, tracked.kind, scan)
      : { subjects: [], cursor: '0' };
    const rest = [...new Set(subjects)].sort().filter((subject) => subject > after);
    const places = rest.map((subject) => ({ subject, atMs: null }));
    for (const summary of await summariesOf(places, filter, deps)) {
      if (summary === null) continue;
      if (found.length === limit)
        return { subjects: found, next: { list, scan, after: found.at(-1)?.subject ?? '' } };
      found.push(summary);
    }
    after = '';
    checked += subjects.length;
    list += cursor === '0' ? 1 : 0;
    scan = cursor;
  }
  return { subjects: found, next: { list, scan } };
}

/**
 * Builds the summaries of some subjects; null for those that do not match, and those that cannot be read, which their polls
 * report. `atMs` is null for those without a snapshot.
 */
async function summariesOf(
  places: readonly { subject: string; atMs: number | null }[],
  filter: SubjectFilter,
  { stores: { subjects, registry }, directory }: OperationContext,
): Promise<(Subject | null)[]> {
  const ids = places.map(({ subject }) => (parseSubjectId(subject) === null ? null : asSubjectId(subject)));
  const named = ids.filter(
    (id) => id !== null && (filter.kinds.length === 0 || filter.kinds.includes(eventKind(id))),
  );
  const wanted = named.filter((id) => id !== null);
  const entries = new Map((await subjects.peekEach(wanted)).map((one, index) => [wanted[index], one]));
  const claimKeys = [...entries.values()].flatMap(({ claims }) => claims.map(({ key }) => key));
  const subscriptions = await registry.subscriptions(claimKeys);
  return places.map(({ atMs }, index) => {
    const id = ids[index] ?? null;
    const one = id === null ? undefined : entries.get(id);
    // A subject with a snapshot is in the first list, and only there.
    if (
      id === null ||
      one === undefined ||
      one.fault !== undefined ||
      (one.snapshot === null) !== (atMs === null)
    )
      return null;
    const summary = summaryOf(id, one, { subscriptions, changedAtMs: atMs, directory });
    return isMeant(filter, { id, summary, entry: one }) ? summary : null;
  });
}

/** Builds the summary of a subject from its known state. */
export function summaryOf(
  id: SubjectId,
  { snapshot, claims, seenAtMs }: SubjectEntry,
  {
    subscriptions,
    changedAtMs,
    directory,
  }: {
    subscriptions: ReadonlyMap<string, StoredSubscription>;
    changedAtMs: number | null;
    directory: Directory;
  },
): Subject {
  const claimKeys = claims.map(({ key }) => key);
  const names = [...new Set(claimKeys.map((key) => parseClaimKey(key).subscription))];
  const leading = names
    .flatMap((name) => subscriptions.get(name) ?? [])
    .sort((one, other) => one.order - other.order);
  const pendingSince = snapshot?.pendingSince ?? null;
  return {
    subject: id,
    kind: eventKind(id),
    status: snapshot?.status ?? null,
    underWay: seenAtMs !== null,
    proof:
      snapshot === null ? null : proofOf({ subject: id, record: snapshot.record, flags: snapshot.flags }),
    overdue: snapshot?.flags.some((flag) => flag.startsWith('overdue:')) ?? false,
    pendingSince: pendingSince === null ? null : isoTime(pendingSince * 1_000),
    changedAt: isoTimeOrNull(changedAtMs ?? snapshot?.changedAtMs ?? null),
    polledAt: isoTimeOrNull(seenAtMs),
    events: snapshot?.sequence ?? 0,
    upstreamUpdatedAt: snapshot?.updatedAt ?? null,
    wallets: walletsOf(claimKeys),
    ...endsOf(snapshot?.record ?? {}, directory),
    subscriptions: leading.map(({ name }) => name).filter((name) => !isTrackedKey(name)),
    metadata: Object.assign({}, ...leading.map(({ metadata }) => metadata)),
  };
}

function endsOf(
  record: JsonObject,
  directory: Directory,
): Pick<Subject, 'corridor' | 'source' | 'destination' | 'amount'> {
  const { source, destination } = readTransfer(record);
  const corridor = routeName(record);
  const nameOf = (leg: Leg | null): string | null =>
    leg?.chainId == null ? null : (directory.chain(leg.chainId)?.name ?? leg.chainId);
  const amount = SUBJECT.shape.amount.safeParse(
    money(source ?? {}, directory) ?? money(destination ?? {}, directory),
  );
  return {
    corridor: corridor === ANY_ROUTE ? null : corridor,
    source: nameOf(source),
    destination: nameOf(destination),
    amount: amount.data ?? null,
  };
}

function isMeant(
  filter: SubjectFilter,
  { id, summary, entry }: { id: SubjectId; summary: Subject; entry: SubjectEntry },
): boolean {
  const { statuses, wallet, subscription, metadata, mentions, underWay, overdue, proofs, atLeastMs } = filter;
  const { snapshot, seenAtMs } = entry;
  const text =
    wallet === undefined && mentions === undefined
      ? ''
      : JSON.stringify(snapshot?.record ?? {}).toLowerCase();
  const names = (word: string): boolean => text.includes(word.toLowerCase()) || id.includes(foldHex(word));
  const isShownBy = (address: string): boolean => summary.wallets.includes(foldHex(address));
  const waits = snapshot !== null && stageOf(id, snapshot.status).waiting && snapshot.pendingSince !== null;
  return (
    (statuses.length === 0 || (snapshot !== null && statuses.includes(snapshot.status.toLowerCase()))) &&
    (wallet === undefined || isShownBy(wallet) || names(wallet)) &&
    (subscription === undefined || summary.subscriptions.includes(subscription)) &&
    metadata.every(([key, value]) => summary.metadata[key] === value) &&
    (mentions === undefined ||
      names(mentions) ||
      isShownBy(mentions) ||
      Object.values(summary.metadata).includes(mentions)) &&
    (underWay === undefined || underWay === (seenAtMs !== null)) &&
    (proofs === undefined || (summary.proof !== null && proofs.includes(summary.proof))) &&
    (overdue === undefined || overdue === (summary.overdue && waits)) &&
    (atLeastMs === undefined || (waits && Date.now() - (snapshot.pendingSince ?? 0) * 1_000 >= atLeastMs))
  );
}
