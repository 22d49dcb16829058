import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { asSubjectId, intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import type { PollContext } from '../../src/queues/polls/poll-context.ts';
import { walletAdapter } from '../../src/queues/polls/poll-wallet.ts';
import { INGESTED_EVERY_MS, SeenPages } from '../../src/queues/polls/seen-pages.ts';
import { Sweeps } from '../../src/queues/polls/sweeps.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { HealthStore } from '../../src/store/health.ts';
import { ImportedQuotes } from '../../src/store/imported-quotes.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventOf } from '../../src/store/log-entry.ts';
import { PlanStore } from '../../src/store/plan.ts';
import type { PlanMember } from '../../src/store/plan-members.ts';
import { startPolls } from '../../src/store/poll-start.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { WalletStore } from '../../src/store/wallets.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { logEntries } from '../support/log-entries.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { openTexts, storedOpen } from '../support/stored-open.ts';
import { storesOf } from '../support/stores.ts';
import { syncConfig } from '../support/sync-config.ts';

const ADDRESSES = [
  '0x1111111111111111111111111111111111111111',
  '0x2222222222222222222222222222222222222222',
];
const WALLETS = ADDRESSES.map(walletId);
const T0 = Math.floor(Date.now() / 1_000) - 5;

/** A state of a transfer as the upstream shows it. */
type Shown = { transfer: number; status: string; at: number; note: number };

const SHOWN: fc.Arbitrary<Shown> = fc.record({
  transfer: fc.nat({ max: 4 }),
  status: fc.constantFrom('pending', 'filled', 'settled', 'refunded'),
  at: fc.nat({ max: 2 }),
  note: fc.nat({ max: 1 }),
});

/**
 * A page differs from the one before in little: some of its records are replaced, or shown beside what replaces them, and it is
 * turned.
 */
type Change = { places: readonly Shown[]; turn: number; isEmptied: boolean; areBothShown?: boolean };

type Step =
  | { act: 'page'; wallet: number; process: number; change: Change }
  | { act: 'poll'; shown: Shown }
  | { act: 'restart'; process: number }
  | { act: 'wait' };

const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      act: fc.constant('page' as const),
      wallet: fc.nat({ max: 3 }).map((number) => (number === 3 ? 1 : 0)),
      process: fc.nat({ max: 3 }).map((number) => (number === 3 ? 1 : 0)),
      change: fc.record({
        places: fc.oneof(fc.constant([]), fc.array(SHOWN, { maxLength: 2 })),
        turn: fc.constantFrom(0, 0, 0, 1),
        isEmptied: fc.constantFrom(false, false, false, false, true),
        areBothShown: fc.constantFrom(false, false, false, true),
      }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('poll' as const), shown: SHOWN }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('restart' as const), process: fc.nat({ max: 1 }) }) },
  { weight: 1, arbitrary: fc.constant({ act: 'wait' as const }) },
);

function recordOf({ transfer, status, at, note }: Shown) {
  return intentRecord(hashOf(transfer + 1), status, T0 + at, note === 0 ? {} : { note });
}

let page: Shown[] = [];
const upstream = new ScriptedUpstream(() => ({ records: page.map(recordOf) }));
const redis = connect({ kind: 'server', url: inject('redisUrl') });
let client: UpstreamClient;

beforeAll(async () => {
  await upstream.start();
  client = new UpstreamClient({
    baseUrl: upstream.url,
    apiKey: null,
    timeoutMs: 30_000,
    gateway: { prefix: 'gateway', vaultPath: '/v/{vaultAddress}', chainParam: 'chainId', jobPath: '/j/{id}' },
  });
});

afterAll(async () => {
  await client.close();
  await upstream.close();
  await disconnect(redis);
});

/** Notes the subjects that pages have shown behind their snapshots, or twice. */
class NotingPlan extends PlanStore {
  readonly rechecked: string[] = [];

  override async recheck(members: readonly PlanMember[]): Promise<void> {
    this.rechecked.push(...[...members].sort());
    await super.recheck(members);
  }
}

/** Polls of two wallets by two processes on data of their own; `remembers`: with the pages that they have seen. */
class Side {
  readonly #keys = new Keys(testPrefix());
  /** Time of the plan beyond that of Redis, so that no poll waits. */
  #aheadMs = 0;
  readonly #atMs = (): string => String(Date.now() + this.#aheadMs);
  readonly #plan = new NotingPlan(redis, this.#keys, { atMs: this.#atMs });
  readonly #subjects = new SubjectStore(redis, this.#keys, { epoch: firstEpoch(redis, this.#keys) });
  readonly #registry = new Registry(redis, this.#keys, this.#subjects);
  readonly #importedQuotes = new ImportedQuotes(redis, this.#keys);
  readonly #remembers: boolean;
  readonly #memories = [this.#memory(), this.#memory()] as const;
  readonly #deps: Omit<PollContext, 'pages'>;

  constructor({ remembers }: { remembers: boolean }) {
    const keys = this.#keys;
    const commits = commitDeps(redis, keys, { subjects: this.#subjects, plan: this.#plan });
    this.#remembers = remembers;
    this.#deps = {
      ...commits,
      redis,
      keys,
      client,
      log: pino({ level: 'silent' }),
      rules: { ...commits.rules, fullSweepEveryMs: 1e9, requestsPerSecond: 1_000, retentionMs: 1e12 },
      stores: {
        ...storesOf(redis, keys),
        ...commits.stores,
        importedQuotes: this.#importedQuotes,
        sweeps: new Sweeps({ redis, keys, plan: this.#plan }),
        health: new HealthStore(redis, keys),
      },
    };
  }

  async begin(): Promise<void> {
    await this.#plan.setBudgets({ status: 10_000 });
    const subscription = {
      name: 's',
      receivers: ['r'],
      metadata: {},
      history: 'emit' as const,
      overdueAfterMs: null,
      warnBeforeMs: null,
      recipients: [],
      subjects: WALLETS,
    };
    const wanted = { digest: '', graceSpanMs: 0, receivers: [], routes: [], subscriptions: [subscription] };
    await syncConfig(this.#registry, wanted, '0-0');
  }

  wait(): void {
    this.#aheadMs += INGESTED_EVERY_MS / 2;
  }

  /** The memory of a process. */
  #memory() {
    return { pages: new SeenPages(), wallets: new WalletStore(redis, this.#keys) };
  }

  restart(process: number): void {
    Object.assign(this.#memories[process] ?? {}, this.#memory());
  }

  /** Polls the head of a wallet; `ended`: a transfer that another process sees ended before the answer. */
  async page(wallet: SubjectId, process: number, ended?: Shown): Promise<void> {
    const keys = this.#keys;
    // Listings of one status would be chosen by the time of day. A first poll requests the head, and has no facts.
    if ((await redis.exists(keys.wallet(wallet))) === 1)
      await redis.hset(keys.wallet(wallet), { unnarrowedAtMs: Date.now() });
    if (!this.#remembers) {
      this.restart(process);
      await redis.hdel(keys.wallet(wallet), 'same:head');
    }
    const { pages, wallets } = this.#memories[process] ?? this.#memory();
    const start = await this.#claim(wallet, wallets);
    expect(openTexts(start.open.transfers)).toEqual(openTexts(await storedOpen(redis, keys, wallet)));
    if (ended !== undefined) {
      await this.poll(ended);
      const subject = intentId(hashOf(ended.transfer + 1));
      const transfer = { subject, status: '', route: '', sinceMs: 0, seenAtMs: 0, isOver: true };
      await this.#deps.stores.wallets.noteTransfer([wallet], transfer);
    }
    const { end, next, observed } = await walletAdapter({ ...this.#deps, pages }).poll(
      start,
      new AbortController().signal,
    );
    if (observed.after !== undefined) wallets.holdOpen(wallet, observed.after);
    await this.#plan.end('status', [{ poll: start, outcome: end, next, observed }]);
  }

  async #claim(wallet: SubjectId, wallets: WalletStore) {
    const stores = {
      wallets,
      subjects: this.#subjects,
      registry: this.#registry,
      importedQuotes: this.#importedQuotes,
    };
    for (let tries = 0; tries < 20; tries += 1) {
      this.#aheadMs += 3_000;
      await this.#plan.pollSoon([wallet]);
      const { polls } = await this.#plan.claim('status', {
        process: 'p',
        most: 50,
        aheadMs: 5_000,
        sent: [],
      });
      const readers = { redis, keys: this.#keys, ...stores, atMs: this.#atMs };
      for (const poll of polls) {
        const [start = null] = await startPolls(readers, [poll], 'p');
        if (start instanceof Error) throw start;
        if (start?.subject === wallet) return start;
        const next = { virtualSeconds: 1_000, restMs: 0, latestMs: null, alarmMs: null, unseen: false };
        const observed = { facts: {}, open: {}, ended: [], shown: [], covered: [], coverMs: 0 };
        if (start !== null)
          await this.#plan.end('status', [{ poll: start, outcome: 'next', next, observed }]);
      }
    }
    throw new Error(`${wallet} was not claimed`);
  }

  /** Ingests the answer to a poll of one transfer, as another process does. */
  async poll(shown: Shown): Promise<void> {
    const subject = intentId(hashOf(shown.transfer + 1));
    const asOf = (await redis.get(this.#keys.commit)) ?? '0';
    const [entry] = await this.#subjects.readEach([subject]);
    if (entry?.snapshot == null) return;
    const raw = recordOf(shown);
    const record = {
      subject,
      status: shown.status,
      updatedAt: T0 + shown.at,
      names: [],
      raw,
      unreadable: [],
    };
    const observation = { asOf, nowMs: Date.now(), price: 1, exact: true, claims: [] };
    await commitRecord(this.#deps, record, entry, observation);
  }

  /** All that was emitted, stored and requested, by subject. */
  async outcome() {
    const events = (await logEntries(redis, this.#keys)).flatMap((entry) => {
      const event = eventOf(entry);
      if (event === null) return [];
      const { subject, sequence, status, previousStatus, changes } = event.data;
      return [{ subject: subject.id, type: event.type, sequence, status, previousStatus, changes }];
    });
    const subjects = [1, 2, 3, 4, 5].map((number) => intentId(hashOf(number)));
    const states = await this.#subjects.peekEach(subjects);
    return {
      events: Map.groupBy(events, ({ subject }) => subject),
      states: states.map(({ snapshot, claims }) => ({
        status: snapshot?.status,
        updatedAt: snapshot?.updatedAt,
        record: snapshot?.record,
        sequence: snapshot?.sequence,
        isUnconfirmed: snapshot?.unconfirmed != null,
        claims: claims.map(({ key, served }) => `${key} ${served}`).sort(),
      })),
      open: await Promise.all(
        WALLETS.map(async (wallet) =>
          (await storedOpen(redis, this.#keys, asSubjectId(wallet)))
            .map(({ subject, status }) => `${subject} ${status}`)
            .sort(),
        ),
      ),
      rechecked: this.#plan.rechecked,
    };
  }
}

const first = { note: 0, at: 0 };
const pageOf = (wallet: number, process: number, ...places: Shown[]): Step => ({
  ...{ act: 'page', wallet, process },
  change: { places, turn: 0, isEmptied: false },
});
const pageBy = (process: number, ...places: Shown[]): Step => pageOf(0, process, ...places);

/** A page confirms the end of a transfer that a poll had denied, while another process remembers the page before. */
const CONFIRMED: Step[] = [
  pageBy(0, { ...first, transfer: 2, status: 'refunded' }),
  pageBy(0, { ...first, transfer: 0, status: 'pending' }),
  { act: 'poll', shown: { ...first, transfer: 2, status: 'pending' } },
  pageBy(1),
  pageBy(0),
  { act: 'poll', shown: { ...first, transfer: 0, status: 'pending' } },
  ...[0, 0, 0].map((process) => pageBy(process)),
];

/** Found by seed 94403311: another process finds a record behind that this one remembers as settled. */
const BEHIND: Step[] = [
  pageBy(0, { ...first, transfer: 0, status: 'pending' }),
  pageBy(0, { ...first, transfer: 1, status: 'pending' }),
  pageOf(1, 0, { ...first, transfer: 0, status: 'pending', at: 1 }),
  pageBy(1),
  pageBy(0),
];

/** Commits of a wallet's first page are not counted: one of a poll behind it must not count as those. */
const FIRST: Step[] = [
  pageBy(0, { ...first, transfer: 0, status: 'pending' }),
  { act: 'poll', shown: { ...first, transfer: 0, status: 'pending', at: 1, note: 1 } },
  pageBy(0),
];

/** A page shows a transfer twice: the later one is committed, and the earlier one is behind it. */
const TWICE: Step[] = [
  pageBy(0, { ...first, transfer: 0, status: 'pending' }),
  pageBy(0),
  {
    act: 'page',
    wallet: 0,
    process: 0,
    change: {
      places: [{ ...first, transfer: 0, status: 'pending', at: 1, note: 1 }],
      turn: 0,
      isEmptied: false,
      areBothShown: true,
    },
  },
  {
    act: 'page',
    wallet: 0,
    process: 0,
    change: { places: [{ ...first, transfer: 0, status: 'pending' }], turn: 0, isEmptied: true },
  },
];

test('polls that remember their pages commit and request what those without a memory of them do', async () => {
  const seen = { events: 0, rechecked: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 5, maxLength: 20, size: 'max' }), async (steps) => {
      const [remembering, forgetful] = [new Side({ remembers: true }), new Side({ remembers: false })];
      const sides = [remembering, forgetful];
      for (const side of sides) await side.begin();
      const shown: Shown[][] = [[], []];
      for (const step of steps) {
        if (step.act === 'page') {
          const { places, turn, isEmptied, areBothShown = false } = step.change;
          const before = isEmptied ? [] : (shown[step.wallet] ?? []);
          const others = areBothShown
            ? before.slice(0, 5)
            : before.filter(({ transfer }) => !places.some((one) => one.transfer === transfer));
          page = [...places, ...others.slice(turn), ...others.slice(0, turn)];
          shown[step.wallet] = page;
        }
        for (const side of sides) {
          const [wallet = walletId('')] = step.act === 'page' ? WALLETS.slice(step.wallet) : [];
          if (step.act === 'page') await side.page(wallet, step.process);
          else if (step.act === 'poll') await side.poll(step.shown);
          else if (step.act === 'wait') side.wait();
          else side.restart(step.process);
        }
        const expected = await forgetful.outcome();
        expect(await remembering.outcome()).toStrictEqual(expected);
        if (step === steps.at(-1)) {
          seen.events += [...expected.events.values()].flat().length;
          seen.rechecked += expected.rechecked.length;
        }
      }
    }),
    { numRuns: 30, examples: [[CONFIRMED], [BEHIND], [FIRST], [TWICE]] },
  );
  expect(seen.events).toBeGreaterThan(60);
  expect(seen.rechecked).toBeGreaterThan(5);
}, 300_000);

test('a transfer that ends while a page shows it as it was does not become open again', async () => {
  const side = new Side({ remembers: true });
  await side.begin();
  const [wallet = walletId('')] = WALLETS;
  const ending: Shown = { transfer: 0, status: 'pending', at: 0, note: 0 };
  const other = { ...ending, transfer: 1 };
  page = [ending];
  for (let times = 0; times < 2; times += 1) await side.page(wallet, 0);
  page = [ending, other];
  await side.page(wallet, 0, { ...ending, status: 'filled', at: 1 });
  const { open } = await side.outcome();
  expect(open[0]).toEqual([`${intentId(hashOf(2))} pending`]);
});
