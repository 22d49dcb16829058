import { z } from 'zod';
import { type ImportedState, promisedBy } from '../domain/quotes/promised.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { type EndpointGroup, endpointGroupOf } from '../domain/subjects/kinds.ts';
import { parseSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import type { RedisClient } from './commands.ts';
import type { StoredSubscription } from './definitions.ts';
import type { ImportedQuotes } from './imported-quotes.ts';
import type { Keys } from './keys.ts';
import { type ClaimedPoll, LANES, type Lane, type PlanClock, REDIS_TIME } from './plan.ts';
import { parseMember } from './plan-members.ts';
import { priceOf } from './plan-state.ts';
import type { Registry } from './registry.ts';
import { pairs } from './stored.ts';
import type { Known, SubjectStore } from './subjects.ts';
import { type OpenTransfers, parseFacts, parseOpen, type WalletFacts } from './wallets.ts';

/** The present state of a sweep over the pages of a wallet, as it is stored. */
export type StoredSweep = { readonly [field: string]: string };

/**
 * A poll that a worker has taken, with all that it knows before its request. `inMs` is the time to its slot of the budget;
 * `planMs` the plan's time then and `virtual` its virtual time at the claim (seconds);
 * `roundSeconds` how long it takes to poll every wallet once, if the whole budget did nothing else; `lateMs` by how much it missed what
 * was promised; `isAsked`: somebody requested it, or the subject is new, so that it is made even where tracking is over;
 * `fails` counts failures in a row; `asOf` is the commit counter, `nowMs` Redis time at the slot.
 */
export type PollStart = Known & {
  member: string;
  subject: SubjectId;
  endpointGroup: EndpointGroup;
  token: string;
  inMs: number;
  planMs: number;
  virtual: number;
  price: number;
  roundSeconds: number;
  lane: Lane;
  isAsked: boolean;
  lateMs: number;
  fails: number;
  asOf: string;
  nowMs: number;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  facts: WalletFacts;
  open: OpenTransfers;
  /** The quote itself, where it was imported. */
  imported: ImportedState | null;
  /** What the name of a route means; null for any other subject. */
  route: RouteDefinition | null;
  /** The sweep of which a page is polled; null for the subject itself. */
  sweep: StoredSweep | null;
  /** Root -> `<ms of the claim>:<the same moment on the upstream's clock, seconds>`, as far as it is known. */
  subscribedAt: ReadonlyMap<string, string>;
};

/** A poll may be so late and keep its slot; later ones get another, so that no second holds more than its share. */
const LATE_MS = 30;

const list = z.array(z.string());

const REPLY = z.tuple([
  z.string(),
  z.coerce.number(),
  z.coerce.number(),
  z.coerce.number(),
  z.enum(LANES),
  z.coerce.number(),
  z.coerce.number(),
  z.coerce.number(),
  z.coerce.number(),
  z.coerce.number(),
  z.coerce.number(),
  z.string(),
  list,
  list,
  list,
  list,
  list,
  z.string().nullable(),
  z.string().nullable(),
  z.string().nullable(),
  list,
  z.string(),
  list,
  z.string(),
  z.enum(['0', '1']),
]);

/** What reads the parts of a start from their stored form. */
export type PollReaders = {
  redis: RedisClient;
  keys: Keys;
  subjects: SubjectStore;
  registry: Registry;
  importedQuotes: ImportedQuotes;
  atMs?: PlanClock;
};

/** Takes a claim for a process, and reads what its poll needs. Null where the claim is another's, or its time has passed. */
export async function takePoll(
  parts: PollReaders,
  { member, token }: Pick<ClaimedPoll, 'member' | 'token'>,
  process: string,
): Promise<PollStart | null> {
  const { redis, keys, subjects, registry, importedQuotes, atMs = REDIS_TIME } = parts;
  const { subject, route: sweepScope } = parseMember(member);
  const endpointGroup = endpointGroupOf(subject);
  const key = parseSubjectId(subject);
  const reply = await redis.iwTakePoll(
    keys.plan(endpointGroup),
    keys.endpointGroup(endpointGroup),
    keys.subject(subject),
    keys.claims(subject),
    keys.commit,
    keys.wanted,
    keys.subscriptions,
    keys.wallet(subject),
    keys.open(subject),
    keys.importedQuotes,
    keys.verdicts,
    keys.sweep(subject, sweepScope ?? ''),
    member,
    token,
    process,
    atMs(),
    subject,
    String(LATE_MS),
    keys.routes,
    key?.kind === 'route' ? key.name : '',
    keys.since,
    keys.promised,
    keys.tracked,
  );
  if (reply.length === 0) return null;
  const [taken, inMs, planMs, redisMs, lane, lateMs, virtual, dv, dt, roundMs, fails, asOf, ...read] =
    REPLY.parse(reply);
  const [
    snapshot,
    claims,
    subscriptions,
    facts,
    open,
    imported,
    verdict,
    route,
    sweep,
    looked,
    sinces,
    promised,
    asked,
  ] = read;
  subjects.epoch.noteCommits(asOf);
  const known = subjects.known(subject, { snapshot, claims, looked, promised });
  const quote = imported ? await importedQuotes.read(subject, imported, verdict) : null;
  return {
    member,
    subject,
    endpointGroup,
    token: taken,
    inMs,
    planMs: planMs + inMs,
    virtual,
    price: priceOf(dv, dt),
    roundSeconds: roundMs / 1_000,
    lane,
    isAsked: asked === '1',
    lateMs,
    fails,
    asOf,
    nowMs: Math.floor(redisMs + inMs),
    ...known,
    promised: quote?.verdict === 'valid' ? promisedBy(quote.quote) : known.promised,
    subscriptions: await registry.readSubscriptions(Object.entries(pairs(subscriptions))),
    facts: parseFacts(pairs(facts), Math.floor(redisMs + inMs)),
    open: parseOpen(pairs(open)),
    imported: quote,
    route: route && key?.kind === 'route' ? await registry.readRoute(key.name, route) : null,
    sweep: sweepScope === null ? null : pairs(sweep),
    subscribedAt: new Map(Object.entries(pairs(sinces))),
  };
}
