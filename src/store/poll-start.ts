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
import { LANE, type Lane, type PlanClock, REDIS_TIME } from './plan.ts';
import { groupOfMember, parseMember } from './plan-members.ts';
import { priceOf } from './plan-state.ts';
import type { Registry } from './registry.ts';
import { scripts } from './scripts.ts';
import type { SubjectEntry, SubjectStore } from './subjects.ts';
import { type OpenTransfers, parseFacts, parseOpen, type WalletFacts, type WalletStore } from './wallets.ts';

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
  wallets: WalletStore;
  atMs?: PlanClock;
};

/** A poll that was started; null where another process has the claim, or it has expired; or the fault. */
export type StartedPoll = PollStart | null | Error;

/** Starts claimed polls of one plan for a process, and reads their data. What is wrong with one of them concerns no other. */
export async function startPolls(
  deps: PollReaders,
  sent: readonly { member: string; token: string }[],
  process: string,
): Promise<StartedPoll[]> {
  const { redis, keys, subjects, registry, wallets, atMs = REDIS_TIME } = deps;
  const held = new Map(sent.map(({ member }) => [member, wallets.heldOpen(parseMember(member).subject)]));
  const endpointGroup = groupOfMember(sent[0]?.member ?? '', keys);
  const { planMs, redisMs, dv, dt, roundMs, asOf, ...started } = await scripts.startPolls(redis, {
    keys: {
      plan: keys.plan(endpointGroup),
      endpointGroup: keys.endpointGroup(endpointGroup),
      commit: keys.commit,
      wanted: keys.wanted,
      subscriptions: keys.subscriptions,
      importedQuotes: keys.importedQuotes,
      verdicts: keys.verdicts,
    },
    args: {
      process,
      atMs: atMs(),
      lateMs: LATE_MS,
      routes: keys.routes,
      since: keys.since,
      promised: keys.promised,
      tracked: keys.tracked,
      subjectPrefix: keys.subject(''),
      claimsPrefix: keys.claims(''),
      factsPrefix: keys.wallet(''),
      openPrefix: keys.open(''),
      polls: sent.map(({ member, token }) => {
        const { subject, route } = parseMember(member);
        const sweep = keys.sweep(subject, route ?? '');
        const openVersion = held.get(member)?.version ?? '';
        return { member, token, subject, route: routeOf(subject), sweep, openVersion };
      }),
    },
  });
  subjects.epoch.noteCommits(asOf);
  const price = priceOf(dv, dt);
  const subscriptions = await registry.readSubscriptions(Object.entries(started.subscriptions));
  const shared = {
    endpointGroup,
    planMs,
    redisMs,
    price,
    roundSeconds: roundMs / 1_000,
    asOf,
    subscriptions,
  };
  const rows = new Map(started.polls.map((row) => [row.claim, row]));
  const faults = new Map(started.faults.map(({ claim, reason }) => [claim, new Error(reason)]));
  return Promise.all(
    sent.map(({ member, token }) => {
      const row = rows.get(token);
      if (row === undefined) return faults.get(token) ?? null;
      return readStart(deps, { member, row, shared, held: held.get(member) ?? null }).catch(errorOf);
    }),
  );
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function routeOf(subject: SubjectId): string {
  const key = parseSubjectId(subject);
  return key?.kind === 'route' ? key.name : '';
}

type StartRow = Awaited<ReturnType<typeof scripts.startPolls>>['polls'][number];

/** The data that all polls of one start share. */
type SharedStart = {
  endpointGroup: EndpointGroup;
  planMs: number;
  redisMs: number;
  price: number;
  roundSeconds: number;
  asOf: string;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
};

/** A row with its member, and the open transfers that were in memory when it was requested. */
type StartedRow = { member: string; row: StartRow; shared: SharedStart; held: OpenTransfers | null };

/** The open transfers of a row: those in memory, where they are of the stored version. */
function openOf(
  { wallets }: PollReaders,
  subject: SubjectId,
  { row: { open, openVersion: version }, held }: StartedRow,
): OpenTransfers {
  if (held !== null && held.version === version) return held;
  const read = { version, transfers: parseOpen(open) };
  if (subjectKind(subject) === 'wallet') wallets.holdOpen(subject, read);
  return read;
}

async function readStart(deps: PollReaders, started: StartedRow): Promise<PollStart> {
  const { subjects, registry, importedQuotes } = deps;
  const { member, row, shared } = started;
  const { subject, route: sweepScope } = parseMember(member);
  const { token, inMs, lateMs, virtual, fails, isRequested } = row;
  const { planMs, redisMs, ...rest } = shared;
  const entry = subjects.entryOf(subject, row);
  const quote = row.imported === null ? null : await importedQuotes.read(subject, row.imported, row.verdict);
  const nowMs = Math.floor(redisMs + inMs);
  return {
    ...rest,
    member,
    subject,
    token,
    inMs,
    planMs: planMs + inMs,
    virtual,
    lane: LANE.parse(row.lane),
    isRequested,
    lateMs,
    fails,
    nowMs,
    ...entry,
    promised: quote?.verdict === 'valid' ? promisedBy(quote.quote) : entry.promised,
    facts: parseFacts(row.facts, nowMs),
    open: openOf(deps, subject, started),
    imported: quote,
    unseenUntilMs: await unseenUntil(subject, entry, importedQuotes),
    route: row.route === null ? null : await registry.readRoute(routeOf(subject), row.route),
    sweep: sweepScope === null ? null : row.sweep,
    subscribedAt: new Map(Object.entries(row.sinces)),
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
