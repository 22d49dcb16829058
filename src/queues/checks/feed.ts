import type { Logger } from 'pino';
import type { Event } from '../../domain/events/event.ts';
import { PAYMENTS } from '../../domain/proof/proof.ts';
import { statementsOf } from '../../domain/proof/statement.ts';
import { asSubjectId, parseSubjectId } from '../../domain/subjects/subject.ts';
import { ANY_ROUTE, routeName } from '../../domain/transfers/transfer.ts';
import { Duty } from '../../duty.ts';
import type { Signals } from '../../signals.ts';
import type { NewCheck, Unstated } from '../../store/check-record.ts';
import type { CheckStore } from '../../store/checks.ts';
import { SCHEMA_VERSION } from '../../store/commands.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { FencedLease } from '../../store/lease.ts';
import { compareEntries, isOfNewerVersion, type UnreadableEntry } from '../../store/log-entry.ts';

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
      onError: (error) => deps.log.error({ error }, 'checks.feed_error'),
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
    const [, known = '', read = ''] = CURSOR.exec(stored) ?? [];
    const [unread] = (await events.after(known === name ? read : '0-0', 1)).entries;
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
    const [, known = '', entry = ''] = CURSOR.exec(stored) ?? [];
    if (known !== name) {
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
