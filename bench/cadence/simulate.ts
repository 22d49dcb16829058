import { withArrivals } from '../../src/domain/cadence/arrivals.ts';
import { nextPoll, type PlannedPoll } from '../../src/domain/cadence/next-poll.ts';
import type { Listing } from '../../src/domain/cadence/wait.ts';
import type { OpenTransfer } from '../../src/domain/cadence/wallet.ts';
import { coveredWait } from '../../src/domain/cadence/watched.ts';
import { unseenSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { asSubjectId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import {
  type ListingRead,
  SINGLE_SECONDS,
  thoseThatLeft,
  WORTH_A_PAGE,
} from '../../src/queues/polls/left-transfers.ts';
import { leftBehind, type SweepScope, scopeAfter, statusOf } from '../../src/queues/polls/sweeps.ts';
import {
  coverMs,
  nextListing,
  nextPage,
  type PlanTime,
  planListing,
  withNoted,
} from '../../src/queues/polls/wallet-plan.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { Keys } from '../../src/store/keys.ts';
import { NOTHING_OBSERVED, type PageFacts } from '../../src/store/observed.ts';
import { type ClaimedPoll, PlanStore } from '../../src/store/plan.ts';
import { pageMember, parseMember } from '../../src/store/plan-members.ts';
import { priceOf } from '../../src/store/plan-state.ts';
import { scripts } from '../../src/store/scripts.ts';
import { type NotedFacts, parseFacts, type WalletFacts } from '../../src/store/wallets.ts';
import { apprentice, sage, type Teacher } from './knowledge.ts';
import { SimulatedUpstream } from './upstream.ts';
import { type Load, ratesOf, sinceAt, statusAt, type Transfer } from './workload.ts';

/** First time each transfer was known, and known as filled (seconds, by id; Infinity for never), and requests per second. */
export type Seen = { bornAt: Float64Array; filledAt: Float64Array; requestsPerSecond: number };

/** Start of the virtual clock, ms: 0 means never in stored values. */
const START_MS = 1_000_000_000_000;

const ENDPOINT_GROUP = 'status';
const SUBSCRIPTION = 'treasury';
const SHOWN_REST_MS = 30_000;
const RECHECK_EVERY_MS = 15_000;
const QUIET_MS = 500;

/** Interval at which learned values are applied: that of the daemon at first; more rarely later, to save time. */
const REFRESH_MS = 5_000;
const SLOW_REFRESH_MS = 30_000;

type Wallet = {
  index: number;
  subject: SubjectId;
  facts: WalletFacts;
  open: Map<string, OpenTransfer>;
  rate: number;
  sweeps: Map<SweepScope, { beganMs: number; sinceMs: number; before: number }>;
  isSwept: boolean;
};

/** Result of a poll: the next one, null when there is none, and the facts noted at its end. */
type Polled = { next: PlannedPoll | null; observed: PageFacts };

/** One cold start of the daemon's planner and dispatcher under a virtual clock. Only pages show births; answers come at once. */
export class Simulation {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #plan: PlanStore;
  readonly #load: Load;
  readonly #budget: number;
  readonly #transfers: readonly Transfer[];
  readonly #upstream: SimulatedUpstream;
  readonly #teacher: Teacher;
  readonly #knows: boolean;
  readonly #wallets: Wallet[];
  readonly #seen: Seen;
  readonly #lastSeenMs: Float64Array;
  readonly #stillPending: Uint8Array;
  /** Time of the last known status change of each transfer, and that status. */
  readonly #changedMs: Float64Array;
  readonly #shownStatus: string[];
  readonly #rechecked = new Map<SubjectId, number>();
  #pending: Promise<unknown>[] = [];
  #nowMs = START_MS;

  constructor(
    redis: RedisClient,
    run: { load: Load; transfers: readonly Transfer[]; budget: number; prefix: string; knows: boolean },
  ) {
    const { load, transfers, budget, prefix, knows } = run;
    this.#redis = redis;
    this.#keys = new Keys(prefix);
    this.#plan = new PlanStore(redis, this.#keys, { atMs: () => String(this.#nowMs) });
    this.#load = load;
    this.#budget = budget;
    this.#transfers = transfers;
    this.#upstream = new SimulatedUpstream(transfers, load.wallets);
    this.#teacher = knows ? sage(load) : apprentice(START_MS);
    this.#knows = knows;
    const rates = ratesOf(load);
    this.#wallets = rates.map((rate, index) => ({
      index,
      subject: asSubjectId(`wallet:0x${index.toString(16).padStart(40, '0')}`),
      facts: parseFacts({}, START_MS),
      open: new Map(),
      rate,
      sweeps: new Map(),
      isSwept: false,
    }));
    const never = (): Float64Array => new Float64Array(transfers.length).fill(Number.POSITIVE_INFINITY);
    this.#seen = { bornAt: never(), filledAt: never(), requestsPerSecond: 0 };
    this.#lastSeenMs = new Float64Array(transfers.length);
    this.#stillPending = new Uint8Array(transfers.length);
    this.#changedMs = new Float64Array(transfers.length);
    this.#shownStatus = new Array<string>(transfers.length);
  }

  async run(): Promise<Seen> {
    await this.#plan.setBudgets({ [ENDPOINT_GROUP]: this.#budget });
    await this.#nameWallets();
    const endMs = START_MS + 1_000 * this.#load.seconds;
    const stepMs = 1_000 / (0.97 * this.#budget);
    let requests = 0;
    let refreshAtMs = 0;
    while (this.#nowMs < endMs) {
      if (this.#nowMs >= refreshAtMs) {
        this.#teacher.refresh(this.#nowMs);
        refreshAtMs = this.#nowMs + (this.#nowMs - START_MS < 600_000 ? REFRESH_MS : SLOW_REFRESH_MS);
      }
      const [{ polls, waitMs }, [v, dv, dt]] = await Promise.all([
        this.#plan.claim(ENDPOINT_GROUP, { process: 'simulation', most: 1, aheadMs: 0, sent: [] }),
        this.#redis.hmget(this.#keys.plan(ENDPOINT_GROUP), 'v', 'dv', 'dt'),
        ...this.#pending.splice(0),
      ]);
      const [poll] = polls;
      if (poll === undefined) {
        this.#nowMs += Math.max(1, Math.min(QUIET_MS, waitMs ?? QUIET_MS));
        continue;
      }
      requests++;
      this.#poll(poll, {
        nowMs: Math.floor(this.#nowMs),
        virtual: Number(v),
        price: priceOf(Number(dv), Number(dt)),
        roundSeconds: (this.#load.wallets * stepMs) / 1_000,
      });
      this.#nowMs += stepMs;
    }
    await Promise.all(this.#pending);
    return { ...this.#seen, requestsPerSecond: requests / this.#load.seconds };
  }

  async #nameWallets(): Promise<void> {
    for (let from = 0; from < this.#wallets.length; from += 500) {
      const named = this.#wallets
        .slice(from, from + 500)
        .map(({ subject }) => ({ claimKey: keyOf(subject), subject, at: '', from: '' }));
      const { wanted, events, since, configLease: lease, configFence: fence } = this.#keys;
      await scripts.addSubscriptionKeys(this.#redis, {
        keys: { wanted, plan: this.#keys.plan(ENDPOINT_GROUP), events, lease, fence },
        args: {
          token: String(await this.#redis.incr(fence)),
          claimsPrefix: this.#keys.claims(''),
          subjectPrefix: this.#keys.subject(''),
          atMs: String(this.#nowMs),
          since,
          named,
        },
      });
    }
  }

  #poll({ member, token }: ClaimedPoll, context: PlanTime): void {
    const { subject } = parseMember(member);
    const { next, observed } = member.startsWith('page:')
      ? this.#pollPage(member, context)
      : member.startsWith('wallet:')
        ? this.#pollWallet(subject, context)
        : this.#pollTransfer(subject, context);
    const poll = { member, subject, token };
    const over = { virtualSeconds: 0, restMs: 0, latestMs: null, alarmMs: null, unseen: false };
    const ended = { poll, outcome: next === null ? 'finish' : 'next', next: next ?? over, observed } as const;
    this.#later(
      this.#plan.end(ENDPOINT_GROUP, [ended]).then(([reply]) => {
        if (reply instanceof Error) throw reply;
      }),
    );
  }

  #later(promise: Promise<unknown>): void {
    this.#pending.push(promise);
  }

  /** Like `pollWalletListing` of the daemon, for pages with the newest first and wallets without a past. */
  #pollWallet(subject: SubjectId, context: PlanTime): Polled {
    const wallet = this.#walletOf(subject);
    const { nowMs } = context;
    if (this.#knows)
      wallet.facts = {
        ...wallet.facts,
        arrivals: { seen: wallet.rate * 1e9, watchedSeconds: 1e9, atMs: nowMs },
      };
    const { facts } = wallet;
    const { model } = this.#teacher;
    const { plan, finder } = planListing(model, context, { facts, open: [...wallet.open.values()] });
    const { listing } = plan;
    const noted: NotedFacts = {
      [`polled:${listing}`]: nowMs,
      [`virtual:${listing}`]: context.virtual,
      [`ingested:${listing}`]: nowMs,
      pages: 1,
      sweptAtMs: nowMs,
    };
    const status = listing === 'head' ? null : listing;
    const page = {
      status,
      before: Number.POSITIVE_INFINITY,
      sinceMs: facts.headAnsweredAtMs,
      atHead: listing === 'head',
    };
    const ingested = this.#ingestPage(wallet, page, nowMs);
    const last = facts.polled[listing];
    if (listing === finder && last !== undefined && !this.#knows) {
      const arrived = { seen: ingested.arrived, watchedSeconds: Math.max(0, nowMs - last.atMs) / 1_000 };
      this.#teacher.sawArrivals(arrived);
      const tally = withArrivals(facts.arrivals, { ...arrived, nowMs });
      noted['arrivals:seen'] = tally.seen;
      noted['arrivals:watchedSeconds'] = tally.watchedSeconds;
      noted['arrivals:atMs'] = tally.atMs;
    }
    if (listing === 'head') noted.headAnsweredAtMs = nowMs;
    this.#follow(wallet, listing, { ingested, nowMs });
    wallet.facts = withNoted(facts, noted);
    const next = nextListing(model, context, { facts: wallet.facts, open: [...wallet.open.values()] });
    return {
      next,
      observed: {
        ...NOTHING_OBSERVED,
        shown: ingested.shown,
        covered: ingested.covered,
        coverMs: coverMs(context),
      },
    };
  }

  /** Reads on behind a first page, like `followHead` and `followNarrowed` of the daemon. */
  #follow(
    wallet: Wallet,
    listing: Listing,
    { ingested, nowMs }: { ingested: { isLast: boolean; allMoved: boolean; oldest: number }; nowMs: number },
  ): void {
    const { subject, facts, sweeps } = wallet;
    if (ingested.isLast) {
      if (listing === 'head') wallet.isSwept = true;
      else this.#followThoseThatLeft(wallet, { status: listing, sinceMs: nowMs }, nowMs);
      return;
    }
    const route = listing !== 'head' ? listing : !wallet.isSwept ? 'all' : ingested.allMoved ? 'new' : null;
    if (route === null) return;
    if (sweeps.has(route)) {
      // The running sweep began at an earlier head: a full sweep reads the part between.
      if (route === 'new') wallet.isSwept = false;
      return;
    }
    sweeps.set(route, { beganMs: nowMs, sinceMs: facts.headAnsweredAtMs, before: ingested.oldest });
    const member = pageMember(subject, route);
    if (route === 'all') this.#later(this.#plan.track([member]));
    else this.#later(this.#plan.pollSoon([member]));
  }

  /** Reads the next page of a listing that has several, like `pollSweepPage` of the daemon. */
  #pollPage(member: string, { nowMs, roundSeconds, ...context }: PlanTime): Polled {
    const { subject, route } = parseMember(member);
    const wallet = this.#walletOf(subject);
    const sweep = wallet.sweeps.get(route ?? '');
    if (route === null || sweep === undefined) return { next: null, observed: NOTHING_OBSERVED };
    const status = statusOf(route);
    const listed = leftBehind(route);
    const left = (): OpenTransfer[] =>
      listed === null ? [] : thoseThatLeft(wallet, { status: listed, sinceMs: sweep.sinceMs });
    const leftBefore = left().length;
    const page = { status, before: sweep.before, sinceMs: sweep.sinceMs, atHead: false };
    const ingested = this.#ingestPage(wallet, page, nowMs);
    const observed = {
      ...NOTHING_OBSERVED,
      shown: ingested.shown,
      covered: ingested.covered,
      coverMs: coverMs({ ...context, nowMs, roundSeconds }),
    };
    const isEnough =
      (route === 'new' && !ingested.allMoved) ||
      (listed !== null && Math.min(leftBefore - left().length, left().length) < WORTH_A_PAGE);
    if (!ingested.isLast && !isEnough) {
      sweep.before = ingested.oldest;
      return { next: nextPage({ scope: route, isHurried: false }), observed };
    }
    wallet.sweeps.delete(route);
    if (route === 'all') wallet.isSwept = true;
    if (listed !== null) this.#pollThoseThatLeft(left(), nowMs);
    else if (status !== null) this.#followThoseThatLeft(wallet, { status, sinceMs: sweep.beganMs }, nowMs);
    return { next: null, observed };
  }

  #ingestPage(
    wallet: Wallet,
    page: { status: string | null; before: number; sinceMs: number; atHead: boolean },
    nowMs: number,
  ): {
    arrived: number;
    allMoved: boolean;
    shown: SubjectId[];
    covered: PageFacts['covered'][number][];
    isLast: boolean;
    oldest: number;
  } {
    const at = (nowMs - START_MS) / 1_000;
    const { shown, isLast } = this.#upstream.page(wallet.index, { ...page, at });
    const oldest = shown.at(-1)?.transfer.bornAt ?? page.before;
    const ingested = {
      arrived: 0,
      allMoved: shown.length > 0,
      shown: [] as SubjectId[],
      covered: [] as PageFacts['covered'][number][],
      isLast,
      oldest,
    };
    for (const { transfer, status } of shown) {
      const subject = intentOf(transfer);
      const isNew = this.#see(transfer, status, nowMs);
      if (isNew && transfer.bornAt >= 0) ingested.arrived++;
      if ((this.#changedMs[transfer.id] ?? 0) <= page.sinceMs) ingested.allMoved = false;
      if (status === 'settled') {
        if (wallet.open.delete(subject)) this.#later(this.#plan.untrackFinished(subject, 1));
        continue;
      }
      ingested.shown.push(subject);
      const headAtMs = page.atHead ? nowMs : (wallet.open.get(subject)?.headAtMs ?? null);
      const open = this.#openTransfer(transfer, { status, nowMs, headAtMs });
      wallet.open.set(subject, open);
      const wait = coveredWait(open, { nowMs, model: this.#teacher.model });
      if (isNew) this.#track(subject, wallet.subject, wait.virtualSeconds);
      else ingested.covered.push({ subject, alarmMs: null, ...wait });
    }
    return ingested;
  }

  #openTransfer(
    transfer: Transfer,
    { status, nowMs, headAtMs }: { status: string; nowMs: number; headAtMs: number | null },
  ): OpenTransfer {
    const sinceMs = START_MS + Math.floor(sinceAt(transfer, status)) * 1_000 + 500;
    return {
      subject: intentOf(transfer),
      status,
      route: transfer.route.name,
      sinceMs: Math.min(nowMs, sinceMs),
      seenAtMs: nowMs,
      headAtMs,
    };
  }

  /** Notes an answer's status of a transfer, and learns from it. True when the transfer was not known before. */
  #see(transfer: Transfer, status: string, nowMs: number): boolean {
    const { id } = transfer;
    const at = (nowMs - START_MS) / 1_000;
    const isNew = this.#seen.bornAt[id] === Number.POSITIVE_INFINITY;
    if (isNew) this.#seen.bornAt[id] = at;
    if (this.#shownStatus[id] !== status) this.#changedMs[id] = nowMs;
    this.#shownStatus[id] = status;
    const isFilled = status === 'filled' || status === 'settled';
    if (isFilled && this.#seen.filledAt[id] === Number.POSITIVE_INFINITY) this.#seen.filledAt[id] = at;
    if (this.#stillPending[id] === 1) {
      const sinceSeconds = Math.floor(transfer.bornAt) + 0.5;
      this.#teacher.saw(transfer.route.name, 'pending', {
        fromSeconds: ((this.#lastSeenMs[id] ?? 0) - START_MS) / 1_000 - sinceSeconds,
        toSeconds: at - sinceSeconds,
        ended: isFilled,
      });
    }
    this.#stillPending[id] = status === 'pending' ? 1 : 0;
    this.#lastSeenMs[id] = nowMs;
    return isNew;
  }

  /** Adds a transfer to the plan when a page has shown it for the first time: like a commit, after its virtual wait. */
  #track(subject: SubjectId, wallet: SubjectId, virtualSeconds: number): void {
    const key = keyOf(wallet);
    this.#later(
      this.#redis.hget(this.#keys.wanted, key).then(async (since) => {
        await this.#redis.hset(this.#keys.claims(subject), key, `${since}::1`);
        await this.#redis.hset(this.#keys.subject(subject), 'commit', '1');
      }),
    );
    const args = {
      atMs: String(this.#nowMs),
      spreadSeconds: virtualSeconds,
      restMs: SHOWN_REST_MS,
      members: [subject],
    };
    this.#later(scripts.track(this.#redis, { keys: { plan: this.#keys.plan(ENDPOINT_GROUP) }, args }));
  }

  /** Like `followThoseThatLeft` of the daemon. */
  #followThoseThatLeft(wallet: Wallet, read: ListingRead, nowMs: number): void {
    const left = thoseThatLeft(wallet, read);
    const scope = scopeAfter(read.status);
    if (left.length < WORTH_A_PAGE || scope === null) {
      this.#pollThoseThatLeft(left, nowMs);
      return;
    }
    if (wallet.sweeps.has(scope)) return;
    wallet.sweeps.set(scope, { beganMs: nowMs, sinceMs: read.sinceMs, before: Number.POSITIVE_INFINITY });
    this.#later(this.#plan.pollSoon([pageMember(wallet.subject, scope)]));
  }

  #pollThoseThatLeft(left: readonly OpenTransfer[], nowMs: number): void {
    const first = left
      .map(({ subject }) => subject)
      .filter((subject) => nowMs - (this.#rechecked.get(subject) ?? 0) >= RECHECK_EVERY_MS)
      .slice(0, SINGLE_SECONDS * this.#budget);
    for (const subject of first) this.#rechecked.set(subject, nowMs);
    if (first.length > 0) this.#later(this.#plan.pollSoon(first));
  }

  /** An exact poll, like the daemon's poll of an intent. */
  #pollTransfer(subject: SubjectId, context: PlanTime): Polled {
    const { nowMs, price } = context;
    const transfer = this.#transfers[Number.parseInt(subject.slice('intent:0x'.length), 16)];
    if (transfer === undefined) return { next: null, observed: NOTHING_OBSERVED };
    const status = statusAt(transfer, (nowMs - START_MS) / 1_000);
    this.#see(transfer, status, nowMs);
    const wallet = this.#wallets[transfer.wallet];
    if (status === 'settled') {
      wallet?.open.delete(subject);
      return { next: null, observed: NOTHING_OBSERVED };
    }
    const headAtMs = wallet?.open.get(subject)?.headAtMs ?? null;
    const open = this.#openTransfer(transfer, { status, nowMs, headAtMs });
    wallet?.open.set(subject, open);
    const next = nextPoll({
      subject,
      snapshot: { ...unseenSnapshot(open.sinceMs), status },
      nowMs,
      namedAtMs: nowMs,
      price,
      model: {
        ...this.#teacher.model,
        curve: (_, watch) => this.#teacher.model.curve(transfer.route.name, watch),
      },
      finished: {},
      alarmsMs: [],
    });
    return { next: next.next === 'finish' ? null : next, observed: NOTHING_OBSERVED };
  }

  #walletOf(subject: SubjectId): Wallet {
    const wallet = this.#wallets[Number.parseInt(subject.slice('wallet:0x'.length), 16)];
    if (wallet === undefined) throw new Error(`no wallet ${subject}`);
    return wallet;
  }
}

function keyOf(wallet: SubjectId): string {
  return `${SUBSCRIPTION}|${wallet}`;
}

function intentOf({ id }: Transfer): SubjectId {
  return asSubjectId(`intent:0x${id.toString(16).padStart(64, '0')}`);
}
