import { type ImportedState, promisedBy } from '../domain/quotes/promised.ts';
import { vaultUnseenUntilMs } from '../domain/quotes/quote-vault.ts';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import type { EndpointGroup } from '../domain/subjects/kinds.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import type { RedisClient } from './commands.ts';
import type { StoredSubscription } from './definitions.ts';
import type { ImportedQuotes } from './imported-quotes.ts';
import type { Keys } from './keys.ts';
import { type Lane, type PlanClock, REDIS_TIME } from './plan.ts';
import { groupOfMember, parseMember } from './plan-members.ts';
import { priceOf } from './plan-state.ts';
import type { Registry } from './registry.ts';
import { scripts } from './scripts.ts';
import type { SubjectEntry, SubjectStore } from './subjects.ts';
import { type OpenTransfers, parseFacts, parseOpen, type WalletFacts } from './wallets.ts';

/** The stored state of a sweep. */
export type StoredSweep = { readonly [field: string]: string };

/**
 * A poll that a worker has started, with all data for its request. `inMs` is the time to its slot of the budget; `planMs` the
 * plan's time then and `virtual` its virtual time at the claim (seconds); `roundSeconds` the duration of one poll of every
 * wallet, with the whole budget; `lateMs` its delay beyond the promised time; `isRequested`: it was requested, or the subject is
 * new, so that it is made even where tracking is over; `fails` counts failures in a row; `asOf` is the commit counter, `nowMs`
 * Redis time at the slot.
 */
export type PollStart = SubjectEntry & {
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
  isRequested: boolean;
  lateMs: number;
  fails: number;
  asOf: string;
  nowMs: number;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  facts: WalletFacts;
  open: OpenTransfers;
  imported: ImportedState | null;
  /** Time at which a vault's polls end while no response has shown it (ms); null unless only its quotes lead to it. */
  unseenUntilMs: number | null;
  /** The definition of a route; null for any other subject. */
  route: RouteDefinition | null;
  /** The sweep of the polled page; null for the subject itself. */
  sweep: StoredSweep | null;
  /** Subscription key -> `<ms of the claim>:<the same time on the upstream's clock, seconds>`, as far as it is known. */
  subscribedAt: ReadonlyMap<string, string>;
};

/** Longest delay with which a poll retains its slot; later ones get another, so that no second has more than its share. */
const LATE_MS = 30;

/** The stores that parse the parts of a start. */
export type PollReaders = {
  redis: RedisClient;
  keys: Keys;
  subjects: SubjectStore;
  registry: Registry;
  importedQuotes: ImportedQuotes;
  atMs?: PlanClock;
};

/** Starts a claimed poll for a process, and reads its data. Null where another process has the claim, or it has expired. */
export async function startPoll(
  deps: PollReaders,
  { member, token }: { member: string; token: string },
  process: string,
): Promise<PollStart | null> {
  const { redis, keys, subjects, registry, importedQuotes, atMs = REDIS_TIME } = deps;
  const { subject, route: sweepScope } = parseMember(member);
  const endpointGroup = groupOfMember(member, keys);
  const key = parseSubjectId(subject);
  const start = await scripts.startPoll(redis, {
    keys: {
      plan: keys.plan(endpointGroup),
      endpointGroup: keys.endpointGroup(endpointGroup),
      subject: keys.subject(subject),
      claims: keys.claims(subject),
      facts: keys.wallet(subject),
      open: keys.open(subject),
      sweep: keys.sweep(subject, sweepScope ?? ''),
      commit: keys.commit,
      wanted: keys.wanted,
      subscriptions: keys.subscriptions,
      importedQuotes: keys.importedQuotes,
      verdicts: keys.verdicts,
    },
    args: {
      member,
      token,
      process,
      atMs: atMs(),
      subject,
      lateMs: LATE_MS,
      routes: keys.routes,
      route: key?.kind === 'route' ? key.name : '',
      since: keys.since,
      promised: keys.promised,
      tracked: keys.tracked,
    },
  });
  if (start === null) return null;
  const { inMs, lane, lateMs, virtual, fails, asOf } = start;
  subjects.epoch.noteCommits(asOf);
  const known = subjects.known(subject, start);
  const quote =
    start.imported === null ? null : await importedQuotes.read(subject, start.imported, start.verdict);
  const nowMs = Math.floor(start.redisMs + inMs);
  return {
    member,
    subject,
    endpointGroup,
    token: start.token,
    inMs,
    planMs: start.planMs + inMs,
    virtual,
    price: priceOf(start.dv, start.dt),
    roundSeconds: start.roundMs / 1_000,
    lane,
    isRequested: start.isRequested,
    lateMs,
    fails,
    asOf,
    nowMs,
    ...known,
    promised: quote?.verdict === 'valid' ? promisedBy(quote.quote) : known.promised,
    subscriptions: await registry.readSubscriptions(Object.entries(start.subscriptions)),
    facts: parseFacts(start.facts, nowMs),
    open: parseOpen(start.open),
    imported: quote,
    unseenUntilMs: await unseenUntil(subject, known, importedQuotes),
    route:
      start.route !== null && key?.kind === 'route' ? await registry.readRoute(key.name, start.route) : null,
    sweep: sweepScope === null ? null : start.sweep,
    subscribedAt: new Map(Object.entries(start.sinces)),
  };
}

/** The latest end among the quotes that lead to an unseen vault. Null where it is named itself, or a quote is not known. */
async function unseenUntil(
  subject: SubjectId,
  { snapshot, claims }: SubjectEntry,
  importedQuotes: ImportedQuotes,
): Promise<number | null> {
  if (subjectKind(subject) !== 'vault' || snapshot !== null) return null;
  const quotes = new Set(claims.map(({ key }) => asSubjectId(parseClaimKey(key).subject)));
  const timesMs = await Promise.all(
    [...quotes].map(async (quote) => {
      const state = await importedQuotes.of(quote);
      return state === null ? null : vaultUnseenUntilMs(state.quote);
    }),
  );
  return timesMs.reduce(
    (latest, ms) => (latest === null || ms === null ? null : Math.max(latest, ms)),
    timesMs[0] ?? null,
  );
}
