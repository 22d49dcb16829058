import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Event } from '../../domain/events/event.ts';
import { PAYMENTS } from '../../domain/proof/proof.ts';
import { statementsOf } from '../../domain/proof/statement.ts';
import { asSubjectId, parseSubjectId } from '../../domain/subjects/subject.ts';
import { ANY_ROUTE, routeName } from '../../domain/transfers/transfer.ts';
import { Duty } from '../../duty.ts';
import { reportError, type Signals } from '../../signals.ts';
import type { NewCheck, Unstated } from '../../store/check-record.ts';
import type { CheckStore, ClaimedCheck } from '../../store/checks.ts';
import { redisTimeMs, SCHEMA_VERSION } from '../../store/commands.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { FencedLease } from '../../store/lease.ts';
import { compareEntries, isOfNewerVersion, type UnreadableEntry } from '../../store/log-entry.ts';
import { type CheckContext, isOver, runCheck } from './run-check.ts';

/** Most checks of one chain that a process runs at once, so that a hanging endpoint holds up no other chain. */
const MOST_PER_CHAIN = 8;

/** Most checks of one removed chain that a call of `settleRemovedChains` ends. */
const MOST_ENDED = 200;

const CLAIM_EVERY_MS = 1_000;

/** Wait after an error, and the longest one of a check: with each failure in a row its wait doubles. */
const ERROR_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 900_000;

const RENEW_EVERY_MS = 3_000;

const TRIM_EVERY_MS = 60_000;

/** Longest renewal and trim. */
const MOST_MS = 5_000;

/** Claims and runs the payment checks that are due (docs/glossary.md: check). Any number of processes may do so. */
export class PaymentChecks {
  readonly #deps: CheckContext;
  readonly #aborting = new AbortController();
  readonly #working = new Map<string, { check: ClaimedCheck; done: Promise<void> }>();
  readonly #claiming: Duty;
  readonly #renewing: Duty;
  readonly #trimming: Duty;

  constructor(deps: CheckContext) {
    this.#deps = deps;
    const onError = (error: unknown): void => reportError(deps, 'checks.error', { error });
    this.#claiming = new Duty({
      everyMs: CLAIM_EVERY_MS,
      isShared: true,
      run: async () => ({ waitMs: await this.#claim() }),
      onError,
    });
    // A claim that was not renewed expires: then the script that ends its check writes nothing.
    const ignore = (): void => undefined;
    this.#renewing = new Duty({
      everyMs: RENEW_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: () => this.#renew(),
      onError: ignore,
    });
    this.#trimming = new Duty({
      everyMs: TRIM_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: async () => void (await deps.stores.checks.trim()),
      onError,
    });
  }

  start(): void {
    this.#claiming.start(0);
    this.#renewing.start();
    this.#trimming.start(0);
  }

  wake(): void {
    this.#claiming.soon();
  }

  async #claim(): Promise<number> {
    const capacities = this.#capacities();
    if (capacities.size === 0) return CLAIM_EVERY_MS;
    const { checks } = this.#deps.stores;
    const endpoints = new Map([...this.#deps.readers].map(([chain, reader]) => [chain, reader.endpoints]));
    const { claimed, nextInMs, heads } = await checks.claim(this.#token(), capacities, { endpoints });
    for (const check of claimed) this.#work(check);
    for (const head of heads) void this.#readFinalHead(head);
    if (nextInMs === null || claimed.length > 0) return CLAIM_EVERY_MS;
    return Math.min(CLAIM_EVERY_MS, Math.max(50, nextInMs));
  }

  /** Reads the newest final block of an endpoint. Checks that wait for that block become due at once. */
  async #readFinalHead({ chainId, endpoint }: { chainId: string; endpoint: string }): Promise<void> {
    try {
      const head = await this.#deps.readers.get(chainId)?.finalHead(endpoint);
      if (head === undefined || head === null || this.#claiming.isClosed) return;
      await this.#deps.stores.checks.noteHead({ chainId, endpoint }, head.number);
      this.wake();
    } catch (error) {
      if (!this.#claiming.isClosed) reportError(this.#deps, 'checks.error', { error });
    }
  }

  /**
   * Ends waiting checks on chains that were removed from the config. Reopens these when the chain is in the config again. One
   * call handles a bounded part, so callers repeat it. Only a process with the newest config may call it.
   */
  async settleRemovedChains(): Promise<void> {
    const { stores, readers } = this.#deps;
    const isBusy = [...this.#working.values()].some(({ check }) => !readers.has(check.statement.chainId));
    if (isBusy || this.#claiming.isClosed) return;
    if (readers.size === 0) await stores.checks.removeCursor();
    else if ((await stores.checks.reopen([...readers.keys()])) > 0) this.wake();
    const waiting = (await stores.checks.counts()).filter(({ state }) => state === 'waiting');
    const removed = waiting.filter(({ chain }) => !readers.has(chain));
    if (removed.length === 0) return;
    const capacities = new Map(removed.map(({ chain }) => [chain, MOST_ENDED]));
    const { claimed } = await stores.checks.claim(this.#token(), capacities, { all: true });
    for (const check of claimed) this.#work(check);
  }

  /** Names the claims of one call, and this process, which takes them with it when it ends. */
  #token(): string {
    return `${this.#deps.process} ${randomUUID()}`;
  }

  #capacities(): Map<string, number> {
    const capacities = new Map([...this.#deps.readers.keys()].map((chain) => [chain, MOST_PER_CHAIN]));
    for (const { check } of this.#working.values()) {
      const { chainId } = check.statement;
      capacities.set(chainId, (capacities.get(chainId) ?? 0) - 1);
    }
    return new Map([...capacities].filter(([, capacity]) => capacity > 0));
  }

  #work(check: ClaimedCheck): void {
    const key = `${check.id} ${check.token}`;
    const done = runCheck(check, this.#deps, this.#aborting.signal)
      .catch((error: unknown) => this.#postponeFailed(check, error))
      .finally(() => {
        this.#working.delete(key);
        this.wake();
      });
    this.#working.set(key, { check, done });
  }

  /** Postpones a failed check, longer each time. Ends it when it has waited too long for a verdict. */
  async #postponeFailed(check: ClaimedCheck, error: unknown): Promise<void> {
    const { stores, log, signals } = this.#deps;
    const isClosing = this.#claiming.isClosed;
    const failed = check.failed + (isClosing ? 0 : 1);
    if (!isClosing) {
      log.error({ check: check.id, failed, error }, 'check.error');
      signals.emit('check.failed', { chainId: check.statement.chainId });
    }
    try {
      const isLast = isOver(check, { nowMs: await redisTimeMs(this.#deps.redis) }, this.#deps);
      const nothing = { proof: null, responses: [], endpoints: [], logs: [], from: [], isHeld: false };
      if (isLast) await stores.checks.end(check, { state: 'unchecked', because: 'error', ...nothing });
      if (isLast) return;
      const inMs = Math.min(LONGEST_RETRY_MS, ERROR_RETRY_MS * 2 ** failed);
      await stores.checks.postpone(check, { inMs, because: check.because, responses: null, failed });
    } catch {
      // Redis does not answer. The claim expires, and the check is claimed again.
    }
  }

  async #renew(): Promise<void> {
    const claims = [...this.#working.values()].map(({ check: { id, token } }) => ({ id, token }));
    await this.#deps.stores.checks.renew(claims);
  }

  /** Stops claiming, and cancels requests under way. Their checks are due again at once. */
  async close(): Promise<void> {
    const ended = [this.#claiming, this.#renewing, this.#trimming].map((duty) => duty.close());
    this.#aborting.abort();
    await Promise.all(ended);
    await Promise.allSettled([...this.#working.values()].map(({ done }) => done));
  }
}

const QUIET_MS = 1_000;

const BATCH = 200;

/** Wait before an entry that only a newer version can read, during which others may hold the lease. */
const NEWER_WAIT_MS = 30_000;

const STEP_WAIT_MS = { more: 0, quiet: QUIET_MS, newer: NEWER_WAIT_MS } as const;

/** A cursor: the name of the log, and the last entry that was read. */
const CURSOR = /^([^|]*)\|(\d+-\d+)$/;

/** Dependencies of the feed. `chains` are those whose payments can be checked. */
export type FeedDeps = {
  stores: { checks: CheckStore; events: EventLog; lease: FencedLease };
  chains: ReadonlySet<string>;
  onFed: () => void;
  signals: Signals;
  log: Logger;
};

/**
 * Reads the event log along its own cursor and makes a check of every statement about a payment on a configured chain. One
 * process feeds at a time. Making the checks and moving the cursor is one step under the fencing token: a crash repeats nothing
 * and loses nothing. It begins with the entries that follow its first start, see `begin`.
 */
export class CheckFeed {
  readonly #deps: FeedDeps;
  readonly #following: Duty;
  /** Place to begin at, until a cursor was read: a process without chains, which lacks ours, may remove the stored one. */
  #begun: { name: string; entry: string } | null = null;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#following = new Duty({
      everyMs: QUIET_MS,
      isShared: true,
      run: async () => ({ waitMs: STEP_WAIT_MS[await this.step()] }),
      onError: (error) => reportError(deps, 'checks.feed_error', { error }),
    });
  }

  /** Begins at the end of the log where the feed was never switched on before. Later events are read. */
  async begin(): Promise<void> {
    const { checks, events } = this.#deps.stores;
    const [name, newest] = await Promise.all([events.ensureName(), events.newest()]);
    await checks.begin(`${name}|${newest}`);
    this.#begun = { name, entry: newest };
  }

  /** Time of the oldest event that no process has read yet (Redis time, ms); null when all were read. */
  async oldestUnreadMs(): Promise<number | null> {
    const { checks, events } = this.#deps.stores;
    const [stored, name] = await Promise.all([checks.cursor(), events.name()]);
    if (stored === '') return null;
    const [, log = '', read = ''] = CURSOR.exec(stored) ?? [];
    const [unread] = (await events.after(log === name ? read : '0-0', 1)).entries;
    return unread === undefined ? null : Number(unread.id.split('-')[0]);
  }

  start(): void {
    this.#following.start(0);
  }

  async close(): Promise<void> {
    await this.#following.close();
    await this.#deps.stores.lease.release().catch(() => undefined);
  }

  /** Makes one step along the log. `newer`: it waits before an entry that only a newer version can read. */
  async step(): Promise<keyof typeof STEP_WAIT_MS> {
    const { checks, events, lease } = this.#deps.stores;
    const token = await lease.hold();
    if (token === null) return 'quiet';
    const from = await checks.cursor();
    const place = await this.#placeOf(from);
    if (place.isNew) await checks.feed({ token, from, to: place.cursor(place.entry) }, []);
    if (place.isNew) return 'more';
    const { entries, more } = await events.scan(place.entry, BATCH);
    const newer = entries.findIndex((entry) => entry.kind === 'unreadable' && isOfNewerVersion(entry));
    const readable = newer === -1 ? entries : entries.slice(0, newer);
    const last = readable.at(-1);
    if (last !== undefined) {
      const stated = readable.flatMap((entry) => (entry.kind === 'event' ? this.#checksOf(entry.event) : []));
      const begun = await checks.feed({ token, from, to: place.cursor(last.id) }, stated);
      if (begun !== null && begun > 0) this.#deps.onFed();
    }
    const stopped = entries[newer];
    if (stopped?.kind === 'unreadable') {
      await this.#waitForNewer(stopped);
      return 'newer';
    }
    return more ? 'more' : 'quiet';
  }

  /** Returns the cursor's place; reports entries removed before they were read. `isNew`: the cursor is to be set there. */
  async #placeOf(
    stored: string,
  ): Promise<{ entry: string; isNew: boolean; cursor: (entry: string) => string }> {
    const { events } = this.#deps.stores;
    const [name, newest, trimmed] = await Promise.all([
      events.ensureName(),
      events.newest(),
      events.trimmed(),
    ]);
    const cursor = (entry: string): string => `${name}|${entry}`;
    const begun = this.#begun;
    this.#begun = null;
    if (stored === '') return { entry: begun?.name === name ? begun.entry : newest, isNew: true, cursor };
    const [, log = '', entry = ''] = CURSOR.exec(stored) ?? [];
    if (log !== name) {
      this.#miss('the event log is another than before', { cursor: stored });
      return { entry: '0-0', isNew: true, cursor };
    }
    if (compareEntries(entry, newest) > 0 && (trimmed === null || compareEntries(entry, trimmed) > 0)) {
      this.#miss('the event log has lost its newest entries', { cursor: stored, newest });
      return { entry: newest, isNew: true, cursor };
    }
    if (trimmed !== null && compareEntries(entry, trimmed) < 0) {
      this.#miss('entries were trimmed before they were read', { cursor: stored, trimmed });
      return { entry: trimmed, isNew: true, cursor };
    }
    return { entry, isNew: false, cursor };
  }

  #miss(reason: string, found: { cursor: string; newest?: string; trimmed?: string }): void {
    this.#deps.log.error({ reason, ...found }, 'checks.events_missed');
    this.#deps.signals.emit('checks.missed', { reason });
  }

  #checksOf(event: Event): (NewCheck | Unstated)[] {
    const { sequence, record, upstreamUpdatedAt } = event.data;
    if (parseSubjectId(event.data.subject.id)?.kind !== 'intent') return [];
    const subject = asSubjectId(event.data.subject.id);
    const route = routeName(record);
    const corridor = route === ANY_ROUTE ? null : route;
    const statedAtMs = Date.parse(event.timestamp);
    const statements = statementsOf({ subject, record });
    return PAYMENTS.map((payment) => {
      const statement = statements.find((one) => one.payment === payment) ?? null;
      if (statement === null || !this.#deps.chains.has(statement.chainId)) {
        return { unstated: { subject, payment }, elsewhere: statement, sequence };
      }
      const { recipients: _, ...stated } = statement;
      return { stated, sequence, statedAtMs, updatedAt: upstreamUpdatedAt, corridor };
    });
  }

  async #waitForNewer({ id, version, reason }: UnreadableEntry): Promise<void> {
    const { log, stores } = this.#deps;
    log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'checks.feed_stopped');
    await stores.lease.release();
  }
}
